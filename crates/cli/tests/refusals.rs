//! Impossible requests are refused in one line before anything starts. Programs that can run without being sampled run.

use crate::support;
use crate::support::{Place, text};
use std::os::unix::fs::PermissionsExt;

/// The one line on stderr.
fn line(output: &std::process::Output) -> String {
    let message = text(&output.stderr);
    assert_eq!(message.lines().count(), 1, "one line: {message}");
    message
}

#[test]
fn a_missing_program_is_refused() {
    let place = Place::new();
    for name in ["no-such-program", "./no-such-program"] {
        let output = place.run(["record", "--", name]);
        assert_eq!(output.status.code(), Some(127));
        assert!(line(&output).contains(name));
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing was made");
}

/// As in a changed root folder.
#[test]
fn a_sampler_that_needs_proc_says_so_where_it_is_not_mounted() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    for sampler in ["ptrace", "preload"] {
        let script =
            "mount -t tmpfs none /proc && exec \"$0\" \"$2\" record --sampler \"$1\" -o r.glass -- true";
        let mut command = std::process::Command::new("unshare");
        // ptrace is used only where perf events are refused.
        let refused = whole_programs::host("refused", whole_programs::Language::C);
        command.args(["--mount", "sh", "-c", script]).arg(refused).arg(sampler);
        command.arg(whole_programs::stackglass());
        let output = command.current_dir(place.path()).output().expect("unshare (util-linux) runs");
        assert_eq!(output.status.code(), Some(125), "{}", text(&output.stderr));
        assert!(line(&output).contains("mount -t proc proc /proc"));
        assert!(!place.file("r.glass").exists());
    }
}

#[test]
fn what_is_not_executable_is_refused() {
    let place = Place::new();
    std::fs::write(place.file("script"), "#!/bin/sh\n").unwrap();
    for name in ["./script", "/"] {
        let output = place.run(["record", "-o", "r.glass", "--", name]);
        assert_eq!(output.status.code(), Some(126));
        line(&output);
    }
    assert!(!place.file("r.glass").exists());
}

#[test]
fn an_impossible_output_is_refused_before_the_program_starts() {
    let place = Place::new();
    std::fs::write(place.file("notes.txt"), "precious").unwrap();
    for output in ["no/such/folder/r.glass", ".", "/dev/full", "notes.txt", "/proc/r.glass"] {
        let ran = place.run(["record", "-o", output, "--", "sh", "-c", "echo started >> started"]);
        assert_eq!(ran.status.code(), Some(125), "{output}");
        assert!(!line(&ran).contains(".part"), "no names of our own");
        assert!(!place.file("started").exists(), "{output}");
    }
    assert_eq!(std::fs::read_to_string(place.file("notes.txt")).unwrap(), "precious");
}

#[test]
fn wrong_flags_are_refused_with_a_reason() {
    let place = Place::new();
    for (flags, reason) in [
        (vec!["--delay", "10us"], "10 000"),
        (vec!["--delay", "soon"], "1ms"),
        (vec!["--n", "many"], "10M"),
        (vec!["--duration=-1"], "duration"),
        (vec!["--delay", "5"], "5ms"),
        (vec!["--duration", "0"], "30s"),
        (vec!["-o", "-"], "run.glass"),
        (vec!["--no-such-flag"], "--no-such-flag"),
    ] {
        let mut arguments = vec!["record"];
        arguments.extend(&flags);
        arguments.extend(["--", "touch", "started"]);
        let output = place.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(text(&output.stderr).contains(reason), "{flags:?}: {}", text(&output.stderr));
    }
    assert!(!place.file("started").exists());
}

#[test]
fn a_program_that_cannot_be_sampled_runs_all_the_same() {
    let place = Place::new();
    // A static program: it has no interpreter.
    std::fs::write(place.file("static.c"), "int main(void) { return 5; }\n").unwrap();
    let built = std::process::Command::new("cc")
        .args(["-static", "-o", "static", "static.c"])
        .current_dir(place.path())
        .status()
        .expect("a C compiler is there");
    assert!(built.success());
    let output = place.run(["record", "--quiet", "--", "./static"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(5), String::new()), "seen from outside");
    let output = place.run(["record", "--quiet", "--sampler", "preload", "--", "./static"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(line(&output).contains("statically linked"));
    assert_eq!(place.recording("static-2.glass").samples.len(), 0);
}

#[test]
fn a_limit_on_file_sizes_ends_neither_the_program_nor_us() {
    let place = Place::new();
    // The library is unpacked already.
    assert!(place.run(["record", "--quiet", "--sampler", "preload", "--", "true"]).status.success());
    for (sampler, says) in [("perf", false), ("preload", true)] {
        let stackglass = support::stackglass();
        let command =
            format!("ulimit -f 64; exec {stackglass} record --quiet --sampler {sampler} -- sh -c 'exit 4'");
        let output = std::process::Command::new("sh")
            .args(["-c", &command])
            .current_dir(place.path())
            .output()
            .unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{message}");
        assert_eq!(message.contains("ulimit -f"), says, "{message}");
    }
}

#[test]
fn too_few_descriptors_are_named_with_the_way_out() {
    let place = Place::new();
    for (limit, flags) in [(10, "--allocs --no-time"), (6, ""), (8, ""), (10, "")] {
        let stackglass = support::stackglass();
        let script = format!("ulimit -n {limit}; exec {stackglass} record -q -o r.glass {flags} -- true");
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(place.path())
            .output()
            .unwrap();
        if output.status.success() {
            continue;
        }
        assert_eq!(output.status.code(), Some(125), "{limit} {flags}: {}", text(&output.stderr));
        let way_out = format!("too many open files: raise the limit (`ulimit -n`), which is {limit}");
        assert!(line(&output).contains(&way_out), "{limit} {flags}: {}", text(&output.stderr));
    }
}

#[test]
fn a_script_is_judged_by_its_interpreter_and_one_without_is_the_shells() {
    let place = Place::new();
    for (name, content) in [("with", "#!/bin/sh\nexit 4\n"), ("without", "exit 6\n")] {
        std::fs::write(place.file(name), content).unwrap();
        std::fs::set_permissions(place.file(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(place.run(["record", "--quiet", "--", "./with"]).status.code(), Some(4));
    assert_eq!(place.run(["record", "--quiet", "--", "./without"]).status.code(), Some(6));
}

#[test]
fn a_script_whose_interpreter_is_missing_is_refused_by_its_name() {
    let place = Place::new();
    std::fs::write(place.file("plain"), "").unwrap();
    let plain = place.file("plain").display().to_string();
    for (interpreter, status) in [("/no/such/interpreter", 127), (plain.as_str(), 126)] {
        std::fs::write(place.file("script"), format!("#!{interpreter}\n")).unwrap();
        std::fs::set_permissions(place.file("script"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = place.run(["record", "--", "./script"]);
        assert_eq!(output.status.code(), Some(status), "{interpreter}");
        assert!(line(&output).contains(interpreter));
    }
}

#[test]
fn help_fits_eighty_columns() {
    let place = Place::new();
    for arguments in [
        vec!["--help"],
        vec!["record", "--help"],
        vec!["print", "--help"],
        vec!["save", "--help"],
        vec!["demo", "--help"],
    ] {
        let help = text(&place.run(&arguments).stdout);
        let examples = help.split("Examples:").nth(1).unwrap_or_default();
        for line in examples.lines() {
            assert!(line.chars().count() <= 80, "{arguments:?}: {line}");
        }
        assert!(!help.is_empty());
    }
    let help = text(&place.run(["--help"]).stdout);
    assert!(help.contains("\n  man ") && help.contains("\n  completions "), "{help}");
}

#[test]
fn reading_what_is_no_recording_is_one_line() {
    let place = Place::new();
    std::fs::write(place.file("empty.glass"), "").unwrap();
    std::fs::write(place.file("text.glass"), "not a recording at all, only text").unwrap();
    for verb in ["print", "info"] {
        for file in ["empty.glass", "text.glass", "missing.glass", "."] {
            let output = place.run([verb, file]);
            assert_eq!(output.status.code(), Some(125), "{verb} {file}");
            line(&output);
        }
    }
    let empty = Place::new();
    let output = empty.run(["print"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(line(&output).contains("stackglass record"));
}
