//! The output of print, info, help, the manual page and the completions, on a terminal and in a pipe.

mod support;

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, SystemTime};
use support::samples::{julia, recorded};
use support::{Place, Terminal, text};

#[test]
fn print_shows_the_summary_on_a_terminal_and_everything_in_a_pipe() {
    let place = recorded();
    let (status, printed) = Terminal::start(place.stackglass(["print"])).end();
    assert_eq!(status, Some(0));
    assert!(printed.contains("compute") && printed.contains("\x1b["), "{printed}");
    assert!(!printed.contains("lang_start"), "{printed}");
    let widest = printed.lines().map(|line| plain(line).chars().count()).max();
    assert!(widest <= Some(100), "{widest:?}");

    let piped = place.run(["print", "r.glass"]);
    let piped = text(&piped.stdout);
    assert!(!piped.contains('\x1b') && piped.contains("compute"), "{piped}");
    assert!(piped.lines().count() > printed.lines().count());
    assert!(!piped.contains("--all shows"), "{piped}");
}

#[test]
fn colours_and_width_are_the_users_choice() {
    let place = recorded();
    let mut command = place.stackglass(["print"]);
    command.env("NO_COLOR", "1").env("COLUMNS", "60");
    let (_, printed) = Terminal::start(command).end();
    assert!(!printed.contains("\x1b["), "{printed}");
    assert!(printed.lines().all(|line| line.trim_end_matches('\r').chars().count() <= 60), "{printed}");
    for format in ["tree", "flat"] {
        let output = place.run(["print", "--format", format, "--cols", "90"]);
        let message = text(&output.stdout);
        let rows = message.lines().filter(|line| !line.starts_with("Total snapshots"));
        assert!(
            rows.clone().count() > 10 && rows.clone().all(|line| line.chars().count() <= 90),
            "{message}"
        );
        assert!(message.contains("Total snapshots"), "{message}");
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    let place = recorded();
    for arguments in [
        vec!["print"],
        vec!["print", "--format", "flat"],
        vec!["print", "--all"],
        vec!["callers", "--regex", "."],
        vec!["annotate", "--all"],
        vec!["convert", "r.glass", "-", "--to=folded"],
        vec!["info"],
        vec!["man"],
        vec!["completions", "bash"],
    ] {
        let mut child =
            place.stackglass(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let status = child.wait().unwrap();
        let mut message = String::new();
        child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        let lost = message.starts_with("stackglass: lost: ") && message.lines().count() == 1;
        assert!(status.code() == Some(0) && (message.is_empty() || lost), "{arguments:?}: {message}");
    }
}

#[test]
fn info_names_processes_threads_modules_and_counters() {
    let place = recorded();
    let output = place.run(["info"]);
    let message = text(&output.stdout);
    for expected in [
        "demo-workload",
        "sleeper",
        "waiter",
        "stackglass",
        "libc.so.6",
        "stacks of running threads",
        "sampler       ",
        "exited with status 0",
    ] {
        assert!(message.contains(expected), "{expected} is missing in {message}");
    }
}

#[test]
fn info_has_a_line_for_recorded_allocations() {
    use stackglass_profile::{
        AllocatingProcess, AllocationSampling, Nanos, Process, ProcessIndex, Recording,
    };
    let place = Place::new();
    let mut recording = Recording::default();
    for (pid, sampling) in [(7, AllocationSampling::Every), (8, AllocationSampling::Bytes(4096))] {
        recording.processes.push(Process { pid, ..Process::default() });
        recording.allocations.processes.push(AllocatingProcess {
            process: ProcessIndex(pid - 7),
            begin: Nanos(0),
            end: Nanos(2_000_000_000),
            sampling,
            peak_at: Nanos(0),
            lost: u64::from(pid),
            without_stack: u64::from(pid - 7),
            memory: Vec::new(),
        });
    }
    stackglass_files::write(place.file("a.glass"), &recording).unwrap();
    let message = place.stdout_of(&["info", "a.glass"]);
    for line in [
        "  allocations   every one, 0 groups, 0.000 s to 2.000 s, 7 lost\n",
        "  allocations   one sample in 4096 bytes, 0 groups, 0.000 s to 2.000 s, 8 lost, 1 without a stack\n",
    ] {
        assert!(message.contains(line), "{message}");
    }
}

#[test]
fn info_of_samples_from_elsewhere_says_what_is_not_known() {
    let place = Place::new();
    fs::write(place.file("a.folded"), "main 1\nmain;f 4\n").unwrap();
    assert!(place.run(["convert", "a.folded", "b.glass"]).status.success());
    fs::copy(julia("samples-threads.jlprof"), place.file("c.jlprof")).unwrap();
    for (file, samples) in
        [("a.folded", "5 stacks taken"), ("b.glass", "5 stacks taken"), ("c.jlprof", " taken")]
    {
        let message = place.stdout_of(&["info", file]);
        for label in ["command", "wall time", "CPU time", "own CPU time", "delay", "limit", "machine"] {
            let line = format!("\n  {label:<13} unknown\n");
            assert!(message.contains(&line), "{file}: {label}: {message}");
        }
        assert!(
            message.contains(samples) && message.contains("thread  name") && !message.contains("process"),
            "{message}"
        );
        let bytes = fs::read(place.file(file)).unwrap();
        let piped = place.run_with_input(&["info", "-"], &bytes);
        assert!(piped.status.success(), "{}", text(&piped.stderr));
        assert!(text(&piped.stdout).starts_with("standard input\n  command       unknown\n"), "{file}");
    }
}

#[test]
fn info_of_a_recording_in_a_pipe_is_that_of_the_file() {
    let place = recorded();
    let bytes = fs::read(place.file("r.glass")).unwrap();
    let piped = text(&place.run_with_input(&["info", "-"], &bytes).stdout);
    let of_file = place.stdout_of(&["info", "r.glass"]);
    let facts = |message: &str| {
        let lines = message.lines().skip(1).filter(|line| !line.starts_with("  samples"));
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    assert!(facts(&of_file).len() > 20, "{of_file}");
    assert_eq!(facts(&piped), facts(&of_file));
}

#[test]
fn what_is_no_recording_hides_none() {
    let place = recorded();
    let old = SystemTime::now() - Duration::from_secs(60);
    fs::File::options().write(true).open(place.file("r.glass")).unwrap().set_modified(old).unwrap();
    fs::write(place.file("empty.glass"), "").unwrap();
    for verb in ["info", "print", "annotate"] {
        let output = place.run([verb]);
        assert!(output.status.success() && !output.stdout.is_empty(), "{verb}");
        let message = text(&output.stderr);
        assert_eq!(message, "stackglass: ./empty.glass is empty: using ./r.glass instead\n", "{verb}");
    }
    fs::write(place.file("odd.glass"), "x").unwrap();
    assert!(text(&place.run(["info"]).stderr).contains("; 1 more: using ./r.glass instead"));
    fs::remove_file(place.file("r.glass")).unwrap();
    let message = place.refused(&["print"]);
    assert!(message.contains("no recording") && message.contains(".glass is"), "{message}");
}

#[test]
fn the_newest_recording_is_the_default() {
    let place = recorded();
    assert!(place.run(["record", "--quiet", "-o", "later.glass", "--", "true"]).status.success());
    let output = place.run(["info"]);
    assert!(text(&output.stdout).starts_with("./later.glass"), "{}", text(&output.stdout));
}

#[test]
fn help_man_page_and_completions_come_from_the_same_flags() {
    let place = Place::new();
    let help = text(&place.run(["--help"]).stdout);
    assert!(help.contains("Examples:") && help.contains("stackglass record --"), "{help}");
    let flags = ["--delay", "--delay-start", "--duration", "--no-children", "--output", "--n"];
    let help = text(&place.run(["record", "--help"]).stdout);
    let man = text(&place.run(["man", "record"]).stdout).replace('\\', "");
    let bash = text(&place.run(["completions", "bash"]).stdout);
    for flag in flags {
        for (what, message) in [("help", &help), ("man", &man), ("completions", &bash)] {
            assert!(message.contains(flag), "{flag} is missing in the {what}");
        }
    }
    for (verb, flags) in [
        ("print", &["--format", "--sortedby", "--groupby", "--recur", "--no-combine", "--output"][..]),
        ("callers", &["--regex", "--file", "--line"]),
        ("annotate", &["--file", "--context", "--asleep"]),
        ("convert", &["--to"]),
    ] {
        let help = text(&place.run([verb, "--help"]).stdout);
        let man = text(&place.run(["man", verb]).stdout).replace('\\', "");
        assert!(help.contains("Examples:") && help.contains("stackglass "), "{help}");
        for flag in flags {
            assert!(help.contains(flag) && man.contains(flag) && bash.contains(flag), "{verb} {flag}");
        }
    }
    assert!(text(&place.run(["man"]).stdout).starts_with(".ie"));
    let hidden = text(&place.run(["--help"]).stdout);
    assert!(!hidden.contains("demo-workload"), "{hidden}");
}

#[test]
fn the_demo_reports_and_says_what_to_try_next() {
    let place = Place::new();
    let output = place.stackglass(["demo"]).env_remove("CARGO").output().unwrap();
    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    for expected in ["smooth", "count_leaves", "compare", "sleeper", "Try next:", "stackglass record"] {
        assert!(message.contains(expected), "{expected} is missing in {message}");
    }
    let next = message.split("Try next:").nth(1).unwrap();
    assert!(next.lines().all(|line| line.len() <= 80), "{next}");
    assert!(place.recording("demo.glass").info.wall.seconds() < 15.0);
}

/// A line without its colour codes and links.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.trim_end_matches('\r');
    while let Some(at) = rest.find('\x1b') {
        out.push_str(&rest[..at]);
        let end = if rest[at..].starts_with("\x1b]") { "\x1b\\" } else { "m" };
        rest = rest[at..].split_once(end).map_or("", |(_, after)| after);
    }
    out + rest
}
