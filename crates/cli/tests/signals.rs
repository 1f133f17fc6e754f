//! Keys at the terminal and signals from other processes: each reaches the program once, and nothing is lost.

use crate::support;
use crate::support::{Place, Terminal, end_of, signal, text, wait_until};
use rustix::process::Signal;
use stackglass_profile::End;
use std::process::Stdio;

#[test]
fn ctrl_c_ends_the_program_and_gives_the_report() {
    let place = Place::new();
    // The script starts no program: dash loses a key that arrives meanwhile, also without stackglass.
    let script = "echo > ready; while :; do :; done";
    let mut terminal = Terminal::start(place.stackglass(["record", "--", "sh", "-c", script]));
    place.await_file("ready");
    terminal.type_keys(b"\x03");
    let (status, printed) = terminal.end();
    assert_eq!(status, Some(130), "{printed}");
    assert!(printed.contains("recorded to sh.glass"), "{printed}");
    assert_eq!(place.recording("sh.glass").info.end, Some(End::Signal(2)));
}

#[test]
fn a_program_that_handles_ctrl_c_ends_in_its_own_way() {
    let place = Place::new();
    let script = "trap 'sleep 0.2; echo bye; exit 9' INT; echo > ready; while :; do sleep 0.05; done";
    let mut terminal = Terminal::start(place.stackglass(["record", "--", "sh", "-c", script]));
    place.await_file("ready");
    terminal.type_keys(b"\x03");
    let (status, printed) = terminal.end();
    assert_eq!(status, Some(9), "{printed}");
    assert!(printed.contains("bye"), "{printed}");
    assert_eq!(place.recording("sh.glass").info.end, Some(End::Exit(9)));
}

#[test]
fn a_second_ctrl_c_saves_although_the_program_goes_on() {
    let place = Place::new();
    let script = "trap '' INT; echo > ready; while [ ! -e stop ]; do sleep 0.05; done; exit 3";
    let mut terminal = Terminal::start(place.stackglass(["record", "--", "sh", "-c", script]));
    place.await_file("ready");
    terminal.type_keys(b"\x03");
    // Keys in quick succession become one signal; people type slower.
    std::thread::sleep(std::time::Duration::from_millis(300));
    terminal.type_keys(b"\x03");
    let path = place.file("sh.glass");
    wait_until("a complete recording", || {
        stackglass_files::read(&path).is_ok_and(|(_, completeness)| completeness.is_complete())
    });
    // A key that sends a signal discards what the terminal has not passed on yet (NOFLSH in termios(3)).
    terminal.await_text("is still running", 1);
    for _ in 0..3 {
        terminal.type_keys(b"\x03");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::fs::write(place.file("stop"), "").unwrap();
    let (status, printed) = terminal.end();
    assert_eq!(status, Some(3), "{printed}");
    let pid = place.recording("sh.glass").processes[0].pid;
    assert!(printed.contains(&format!("sh (pid {pid}) is still running")), "{printed}");
    assert_eq!(place.recording("sh.glass").info.end, Some(End::Running));
}

#[test]
fn a_line_lives_on_the_terminal_only() {
    let place = Place::new();
    let (_, printed) = Terminal::start(place.stackglass(["record", "--", "sleep", "0.8"])).end();
    assert!(printed.contains("recording 0.") && printed.contains("1 thread"), "{printed:?}");
    // The bottom row is excluded from the scrolling region, and restored.
    assert!(
        printed.contains("\x1b[1;39r") && printed.rfind("\x1b[r") > printed.rfind("\x1b[1;39r"),
        "{printed:?}"
    );
    assert!(!printed.contains("\x1b[2A"), "nothing above is touched: {printed:?}");
    let (_, printed) = Terminal::start(place.stackglass(["record", "--quiet", "--", "sleep", "0.8"])).end();
    assert_eq!(printed, "");
    let piped = place.run(["record", "--", "sleep", "0.8"]);
    assert!(!text(&piped.stderr).contains("recording 0."));
}

#[test]
#[ignore = "long: outwaits the guests' patience with a silent launcher"]
fn a_stopped_recording_goes_on_when_it_is_continued() {
    let place = Place::new();
    let script = format!("{} demo-workload --time 8s", support::stackglass());
    let mut child = place
        .stackglass(["record", "-o", "r.glass", "--"].into_iter().chain(script.split(' ')))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let path = place.file("r.glass");
    wait_until("samples", || stackglass_files::read(&path).is_ok_and(|(r, _)| r.samples.len() > 20));
    // Both stop, as with Ctrl-Z, for longer than a sampler trusts a silent launcher.
    let (recording, _) = stackglass_files::read(&path).unwrap();
    let program = rustix::process::Pid::from_raw(recording.processes[0].pid as i32).unwrap();
    rustix::process::kill_process(program, Signal::STOP).unwrap();
    signal(&child, Signal::TSTP);
    std::thread::sleep(std::time::Duration::from_secs(6));
    rustix::process::kill_process(program, Signal::CONT).unwrap();
    signal(&child, Signal::CONT);
    assert_eq!(end_of(&mut child), Some(0));
    let recording = place.recording("r.glass");
    let last = recording.samples.iter().map(|sample| sample.clock).max().unwrap();
    let remarks = &recording.info.remarks;
    assert!(remarks.iter().any(|line| line.contains("Ctrl-Z")), "{remarks:?}");
    let end = recording.info.start.0 + recording.info.wall.0;
    assert!(end - last.0 < 300_000_000, "sampled to the end: {} ms missing", (end - last.0) / 1_000_000);
}

#[test]
fn sigterm_is_passed_on_and_everything_is_saved() {
    let place = Place::new();
    for (number, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let _ = std::fs::remove_file(place.file("ready"));
        let mut child = place
            .stackglass(["record", "-o", "r.glass", "--", "sh", "-c", "echo > ready; exec sleep 60"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        place.await_file("ready");
        signal(&child, number);
        assert_eq!(end_of(&mut child), Some(code));
        assert_eq!(place.recording("r.glass").info.end, Some(End::Signal(code - 128)));
    }
}

/// The command is the session leader here, as in a window of its own: the kernel signals only the leader.
#[test]
fn a_closed_terminal_ends_the_program_as_it_does_alone() {
    let place = Place::new();
    let script = "trap 'exit 7' HUP; echo > ready; for i in $(seq 400); do sleep 0.05; done";
    let command = place.stackglass(["record", "--", "sh", "-c", script]);
    let (terminal, mut child) = Terminal::unread(command);
    place.await_file("ready");
    drop(terminal);
    assert_eq!(end_of(&mut child), Some(7));
    assert_eq!(place.recording("sh.glass").info.end, Some(End::Exit(7)));
}

#[test]
fn a_closed_terminal_ends_the_program_after_its_recording_as_well() {
    let place = Place::new();
    let script = "trap 'exit 7' HUP; echo > ready; for i in $(seq 400); do sleep 0.05; done";
    let arguments = ["record", "--duration", "100ms", "--", "sh", "-c", script];
    let (terminal, mut child) = Terminal::unread(place.stackglass(arguments));
    place.await_file("ready");
    let path = place.file("sh.glass");
    wait_until("a complete recording", || {
        stackglass_files::read(&path).is_ok_and(|(_, completeness)| completeness.is_complete())
    });
    drop(terminal);
    assert_eq!(end_of(&mut child), Some(7));
    assert_eq!(place.recording("sh.glass").info.end, Some(End::Running));
}

#[test]
fn after_the_duration_people_are_told_that_the_program_runs_on() {
    let place = Place::new();
    let arguments = ["record", "--duration", "100ms", "--", "sleep", "1"];
    let (status, printed) = Terminal::start(place.stackglass(arguments)).end();
    assert_eq!(status, Some(0), "{printed}");
    let pid = place.recording("sleep.glass").processes[0].pid;
    let line = format!("sleep (pid {pid}) is still running, and waited for; Ctrl-C ends it");
    assert!(printed.find(&line) > printed.find("recorded to sleep.glass"), "{printed}");
    assert!(!text(&place.run(arguments).stderr).contains("waited for"), "silent where nobody watches");
}

#[test]
fn a_recording_can_be_saved_while_it_is_made() {
    let place = Place::new();
    let script = "echo > ready; while [ ! -e stop ]; do sleep 0.05; done";
    let mut child = place
        .stackglass(["record", "-o", "r.glass", "--", "sh", "-c", script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    place.await_file("ready");
    let saved = place.run(["save", &child.id().to_string()]);
    assert!(saved.status.success(), "{}", text(&saved.stderr));
    place.await_file("r-1.glass");
    assert_eq!(place.recording("r-1.glass").info.end, Some(End::Running));
    std::fs::write(place.file("stop"), "").unwrap();
    assert_eq!(end_of(&mut child), Some(0));
    assert_eq!(place.recording("r.glass").info.end, Some(End::Exit(0)));
    assert_eq!(place.run(["save", "1"]).status.code(), Some(125));
}

#[test]
fn a_killed_launcher_leaves_a_readable_recording_and_the_program_alone() {
    let place = Place::new();
    let workload = format!("{} demo-workload --time 30s & echo $! > ready; wait", support::stackglass());
    let mut child = place
        .stackglass(["record", "-o", "r.glass", "--", "sh", "-c", &workload])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    place.await_file("ready");
    let path = place.file("r.glass");
    wait_until("samples in the file", || {
        stackglass_files::read(&path).is_ok_and(|(recording, _)| recording.samples.len() > 20)
    });
    signal(&child, Signal::KILL);
    assert_eq!(end_of(&mut child), None);
    let pid = std::fs::read_to_string(place.file("ready")).unwrap();
    let alive = std::path::Path::new("/proc").join(pid.trim()).exists();
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    assert!(alive, "the program goes on");
    let printed = place.run(["print", "r.glass"]);
    assert!(printed.status.success());
    assert!(text(&printed.stdout).contains("compute"), "{}", text(&printed.stdout));
    assert!(text(&printed.stderr).contains("incomplete"), "{}", text(&printed.stderr));
}
