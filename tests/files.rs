//! Programs that cannot be profiled in the usual way, or do not exist: one clear line each.
#![allow(unsafe_code, reason = "calls the C library")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use whole_programs::{Folder, Language, Outcome, Record, host, host_with, stackglass};

/// Checks that exactly one line of stackglass, apart from the report, contains all of these texts.
#[track_caller]
fn one_line(outcome: &Outcome, words: &[&str]) {
    let says = |line: &&str| line.starts_with("stackglass: ") && words.iter().all(|word| line.contains(word));
    let lines: Vec<&str> = outcome.stderr.lines().filter(says).collect();
    assert_eq!(lines.len(), 1, "one line with {words:?}:\n{}", outcome.stderr);
}

/// Runs a shell line in which `$0` is the command and `$1` the recording. Returns its exit status and what it said.
fn shell(line: &str, file: &Path) -> (Option<i32>, String) {
    let output = Command::new("sh").args(["-c", line]).arg(stackglass()).arg(file).output();
    let output = output.expect("a shell can be started");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn reports_that_cannot_be_written_are_failures() {
    let outcome = Record::new(host("ends", Language::C)).args(["exit"]).run();
    for verb in ["print", "hot", "info", "callers main"] {
        let (status, said) = shell(&format!("$0 {verb} \"$1\" >&-"), &outcome.file);
        assert_eq!(status, Some(125), "{verb}: {said}");
        assert!(said.contains("cannot write: standard output is closed"), "{verb}: {said}");
    }
    for line in ["$0 --help >&-", "$0 man >&-", "$0 convert --to folded \"$1\" - >&-"] {
        assert_eq!(shell(line, &outcome.file).0, Some(125), "{line}");
    }
    // Lines are padded: this width would need more memory than there is.
    let (status, said) = shell("$0 print --cols 99999999999 \"$1\"", &outcome.file);
    assert!(status == Some(2) && said.contains("at most"), "{status:?} {said}");
    let (status, said) = shell("COLUMNS=99999999999 $0 print \"$1\"", &outcome.file);
    assert_eq!(status, Some(0), "{said}");
    // Nothing of a recording is no recording of nothing.
    for verb in ["print", "hot", "info"] {
        let line = format!("head -c 100 \"$1\" > \"$1\".cut && $0 {verb} \"$1\".cut");
        let (status, said) = shell(&line, &outcome.file);
        assert!(status == Some(125) && said.contains("before anything was recorded"), "{status:?} {said}");
    }
}

#[test]
fn a_program_whose_name_is_not_utf8_has_names() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let program = folder.path().join(std::ffi::OsStr::from_bytes(b"ends-\xff\xfe"));
    std::fs::copy(host("ends", Language::C), &program).expect("it can be copied");
    let outcome = Record::new(&program).args(["exit"]).run();
    outcome.program_did("working\n", 3);
    assert!(!outcome.stderr.contains("ends-\u{fffd}\u{fffd} could not be read"), "{}", outcome.stderr);
    let recording = outcome.recording();
    assert!(recording.symbols.frames().iter().any(|frame| &*frame.func == "work_before_the_end"));
}

#[test]
fn a_running_program_whose_name_is_not_utf8_can_be_asked() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let program = folder.path().join(std::ffi::OsStr::from_bytes(b"bulk-\xff\xfe"));
    std::fs::copy(host("bulk", Language::C), &program).expect("it can be copied");
    let mut running = Command::new(&program);
    running.args(["all", "1000000", "20000"]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut running = running.spawn().expect("the program can be started");
    let doors: [&[&str]; 5] = [
        &["peek", "--duration", "100ms"],
        &["record", "-q", "-o", "r.glass", "--duration", "100ms", "--pid"],
        &["record", "-q", "-o", "t.glass", "--duration", "100ms", "--driver", "ptrace", "--pid"],
        &["heap", "take", "-o", "h.heapsnapshot"],
        &["heap", "take", "--stop", "-o", "s.heapsnapshot"],
    ];
    let answers = doors.map(|door| {
        let mut command = Command::new(stackglass());
        command.args(door).arg(running.id().to_string()).current_dir(folder.path());
        let output = command.stdin(Stdio::null()).output().expect("the command can be started");
        (door, output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    });
    let ran_on = running.try_wait().expect("a child can be waited for").is_none();
    running.kill().expect("a child can be ended");
    running.wait().expect("a child can be waited for");
    for (door, status, said) in answers {
        assert_eq!(status, Some(0), "{door:?}: {said}");
    }
    assert!(ran_on, "the program ended too soon");
}

#[test]
fn a_static_program_is_seen_from_outside() {
    let outcome = Record::new(host_with("ends", Language::C, &["-static"])).args(["exit"]).run();
    outcome.program_did("working\n", 3);
    outcome.seen("ends").is_true(200).has_share("work_before_the_end", 0.95, 1.0);
}

#[test]
fn into_a_static_program_the_library_does_not_get_and_one_line_says_why() {
    let outcome = Record::new(host_with("ends", Language::C, &["-static"]))
        .flag("--sampler=preload")
        .args(["exit"])
        .run();
    outcome.program_did("working\n", 3);
    one_line(&outcome, &["statically linked"]);
}

#[test]
fn children_without_samples_are_named_with_their_time() {
    let ends = host_with("ends", Language::C, &["-static"]);
    let script = format!("{0} return; {0} return; true", ends.display());
    let inside = Record::new("sh").flag("--sampler=preload").args(["-c", &script]).run();
    let remarks = inside.recording().info.remarks;
    let named =
        remarks.iter().find_map(|remark| remark.split_once("not sampled, with at least this CPU time: "));
    let (_, named) = named.unwrap_or_else(|| panic!("{remarks:?}"));
    let seconds: f64 =
        named.strip_prefix("ends ").and_then(|text| text.strip_suffix(" s")).unwrap().parse().unwrap();
    // Two times 0.3 s, without what came after the last reading.
    assert!((0.2..0.65).contains(&seconds), "{named}");
    // From outside, they have samples.
    let outside = Record::new("sh").args(["-c", &script]).run();
    outside.seen("ends").is_true(400);
    let remarks = outside.recording().info.remarks;
    assert!(!remarks.iter().any(|remark| remark.contains("not sampled")), "{remarks:?}");
}

#[test]
fn a_setuid_program_runs_and_one_line_says_why_it_is_not_seen() {
    // SAFETY: no arguments.
    let root = unsafe { libc::geteuid() } == 0;
    let outcome = if root {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("ends");
        std::fs::copy(host("ends", Language::C), &program).unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&program, Some(65534), None).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
        let outcome = Record::new(&program).args(["exit"]).run();
        outcome.program_did("working\n", 3);
        outcome
    } else {
        let alone = Command::new("su").arg("--version").output().expect("su is there");
        let outcome = Record::new("su").args(["--version"]).run();
        outcome.program_did(&String::from_utf8_lossy(&alone.stdout), 0);
        outcome
    };
    one_line(&outcome, &["set-uid"]);
}

#[test]
fn a_stripped_program_is_seen_and_its_names_are_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("stripped");
    let strip = Command::new("strip").arg("-o").arg(&program).arg(host("ends", Language::C)).status();
    assert!(strip.expect("strip is there").success());
    let outcome = Record::new(&program).args(["exit"]).run();
    outcome.program_did("working\n", 3);
    outcome.seen("stripped").is_true(200);
    assert!(outcome.stderr.contains("strip"), "the report says so:\n{}", outcome.stderr);
}

#[test]
fn a_missing_program() {
    let outcome = Record::new("/no/such/program").run();
    outcome.program_did("", 127);
    one_line(&outcome, &["/no/such/program"]);
    assert!(!outcome.file.exists(), "nothing is left behind");
}

#[test]
fn a_file_that_cannot_be_executed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    std::fs::write(&file, "no program\n").unwrap();
    let outcome = Record::new(&file).run();
    outcome.program_did("", 126);
    one_line(&outcome, &["text"]);
}

#[test]
fn a_script_is_its_interpreter() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\necho \"$1\"; exit 8\n").unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    Record::new(&script).args(["hello world"]).run().program_did("hello world\n", 8);
}

#[test]
fn an_impossible_output_is_refused_before_the_program_starts() {
    for place in ["/no/such/folder/host.glass", "/proc/host.glass", "/"] {
        let record = Record::new("sh");
        let trace = record.folder().join("started");
        let script = format!("echo yes > {}", trace.display());
        let outcome = record.args(["-c", &script]).output(Path::new(place)).run();
        outcome.program_did("", 125);
        assert!(!Path::new(&trace).exists(), "the program was started");
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
}

#[test]
fn a_program_that_closes_every_descriptor() {
    let script = "import os\nos.closerange(3, 4096)\nx = 1\nfor i in range(4000000): x = (x * 31 + i) % 1000003\nprint(x)\n";
    let alone = Command::new("python3").args(["-c", script]).output().expect("python3 is there");
    let outcome = Record::new("python3").args(["-c", script]).run();
    outcome.program_did(&String::from_utf8_lossy(&alone.stdout), 0);
    let recording = outcome.recording();
    let hits: u64 = recording.samples.iter().map(|sample| u64::from(sample.hits)).sum();
    assert!(hits > 100, "{hits} hits");
}
