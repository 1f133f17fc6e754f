//! The program keeps its streams, arguments, environment and exit status.

use crate::support;
use crate::support::{Place, text};
use stackglass_profile::End;
use std::io::Write;
use std::process::Stdio;

#[test]
fn exit_statuses_are_passed_through() {
    let place = Place::new();
    for (script, status, end) in [
        ("exit 0", 0, End::Exit(0)),
        ("exit 7", 7, End::Exit(7)),
        ("exit 255", 255, End::Exit(255)),
        ("kill -TERM $$", 143, End::Signal(15)),
        ("kill -KILL $$", 137, End::Signal(9)),
        ("kill -SEGV $$", 139, End::Signal(11)),
    ] {
        let output = place.run(["record", "-o", "r.glass", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(status), "{script}: {}", text(&output.stderr));
        assert_eq!(place.recording("r.glass").info.end, Some(end), "{script}");
    }
}

#[test]
fn input_output_and_arguments_are_the_programs_own() {
    let place = Place::new();
    let script = r#"cat; printf '%s|' "$@"; echo err >&2"#;
    let mut child = place
        .stackglass(["record", "--quiet", "--", "sh", "-c", script, "name", "--flag", "two words", "-o"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"from stdin\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), "from stdin\n--flag|two words|-o|");
    assert_eq!(text(&output.stderr), "err\n");
}

#[test]
fn the_report_goes_to_stderr_and_the_recording_to_a_file_named_after_the_program() {
    let place = Place::new();
    let output = place.run(["record", "--", "sh", "-c", "echo out"]);
    assert_eq!(text(&output.stdout), "out\n");
    assert!(text(&output.stderr).contains("recorded to sh.glass"), "{}", text(&output.stderr));
    assert_eq!(place.recording("sh.glass").info.command, ["sh", "-c", "echo out"]);
}

/// The preloaded libraries that a recorded program sees if the user preloads one.
fn preloaded(sampler: &str) -> String {
    let place = Place::new();
    let script = "grep -c 'r-x.*libm.so' /proc/self/maps; echo $LD_PRELOAD";
    let output = place
        .stackglass(["record", "--quiet", "--sampler", sampler, "--", "sh", "-c", script])
        .env("LD_PRELOAD", "libm.so.6")
        .output()
        .unwrap();
    text(&output.stdout)
}

#[test]
fn the_users_own_preloaded_libraries_are_kept() {
    assert_eq!(preloaded("perf"), "1\nlibm.so.6\n");
    let message = preloaded("preload");
    let preload = message.strip_prefix("1\n").unwrap_or_else(|| panic!("{message}"));
    assert!(preload.ends_with(":libm.so.6\n") && preload.contains("libstackglass-"), "{preload}");
}

#[test]
fn signal_masks_and_ignored_signals_are_not_ours() {
    let place = Place::new();
    let script = "grep -E 'Sig(Blk|Ign)' /proc/self/status";
    let bare = std::process::Command::new("sh").args(["-c", script]).output().unwrap();
    let recorded = place.run(["record", "--quiet", "--", "sh", "-c", script]);
    let ours = text(&recorded.stdout);
    let blocked = |message: &str| message.lines().find(|line| line.starts_with("SigBlk")).map(str::to_string);
    assert_eq!(blocked(&ours), blocked(&text(&bare.stdout)));
    // Started by a parent that ignores SIGINT, as `program &` in a script is.
    let ignoring =
        format!("trap '' INT; exec {} record --quiet -- sh -c \"{script}\"", support::stackglass());
    let output =
        std::process::Command::new("sh").args(["-c", &ignoring]).current_dir(place.path()).output().unwrap();
    let message = text(&output.stdout);
    let ignored = message.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    assert_eq!(u64::from_str_radix(ignored.trim(), 16).unwrap() & 2, 2, "{message}");
}

#[test]
fn the_session_leaves_nothing_behind() {
    let place = Place::new();
    let output = place.run([
        "record",
        "--quiet",
        "--sampler",
        "preload",
        "--",
        "sh",
        "-c",
        "echo $STACKGLASS_SESSION; ls $STACKGLASS_SESSION",
    ]);
    let message = text(&output.stdout);
    let folder = message.lines().next().unwrap();
    assert!(folder.contains("stackglass-"), "{message}");
    assert!(message.lines().any(|line| line == "session"), "{message}");
    assert!(!std::path::Path::new(folder).exists());
}
