//! `top` at a terminal: it shows functions and threads, takes keys, saves, and leaves the terminal as it was.

use crate::support::{Place, Received, Terminal, end_of, signal, stackglass, text, wait_until};
use rustix::process::Signal;
use std::io::Read;
use std::process::{Child, Command, Stdio};

/// An unprepared program; it is killed with the test.
struct Target(Child);

impl Target {
    fn start() -> Target {
        Target(Command::new("sleep").arg("60").spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// A line of `/proc/PID/status`.
    fn status(&self, name: &str) -> String {
        status_of(self.0.id(), name)
    }

    /// It still sleeps, and no process traces it.
    fn is_let_go(&self) -> bool {
        self.status("State").starts_with('S') && self.status("TracerPid") == "0"
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn status_of(pid: u32, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

/// A shell that runs until SIGTERM, and then runs `last`.
fn until_told(last: &str) -> [String; 5] {
    let script = format!("trap '{last}' TERM HUP; echo > ready; while :; do sleep 0.05; done");
    ["top".into(), "--".into(), "sh".into(), "-c".into(), script]
}

/// Parts of the help.
const HELP: [&str; 4] =
    ["Times cover the last ten seconds", "its callees.", "have no share.", "The program runs on after top"];

/// The heading of the functions. Their callers and callees have others.
const FUNCTIONS: &str = "  own % total % function";

/// The threads fill the screen. Beside functions and lines only the busiest are shown.
fn shows_threads(screen: &str) -> bool {
    screen.contains(" CPU %  ready %     tid thread ") && !screen.contains("own %")
}

#[test]
fn a_program_is_started_shown_and_saved() {
    let place = Place::new();
    let words = ["top", "-o", "t.glass", "--", stackglass(), "demo-workload", "--time", "60s"];
    let mut terminal = Terminal::start(place.stackglass(words));
    for words in [FUNCTIONS, "compute", "mostly in", "1 functions 2 lines 3 threads 4 tasks"] {
        terminal.await_shown(words);
    }
    // Nothing that is awaited after a key is on the screen before it.
    terminal.type_keys(b"?");
    for words in HELP {
        terminal.await_shown(words);
    }
    terminal.type_keys(b"x");
    terminal.await_screen("no help", |screen| HELP.iter().all(|words| !screen.contains(words)));
    terminal.type_until(b"2", "  own % line");
    terminal.type_keys(b"3");
    terminal.await_screen("threads", shows_threads);
    terminal.type_until(b"1", FUNCTIONS);
    terminal.type_until(b"\r", "  own % total % called by");
    terminal.await_shown("  own % total % calls (itself: own time)");
    terminal.type_until(b"\x1b", FUNCTIONS);
    terminal.type_until(b"/compute", "filter: compute_");
    terminal.type_until(b"\r", "only names with \"compute\"");
    terminal.type_until(b"p", "PAUSED");
    terminal.type_until(b"s", "saved to t.glass");
    terminal.type_keys(b"q");
    let (status, printed) = terminal.end();
    assert_eq!(status, Some(0), "{printed}");
    // The alternate screen, and back.
    assert!(printed.contains("\x1b[?1049h") && printed.contains("\x1b[?1049l"), "{printed}");
    let recording = place.recording("t.glass");
    let compute = |id| recording.symbols.frames_of(id).any(|frame| frame.func.ends_with("compute"));
    assert!(recording.samples.iter().any(|sample| recording.stacks.walk(sample.stack).any(compute)));
}

#[test]
fn the_end_of_the_program_ends_the_view() {
    let place = Place::new();
    let terminal = Terminal::start(place.stackglass(["top", "--", "sleep", "1"]));
    let (status, printed) = terminal.end();
    assert_eq!(status, Some(0), "{printed}");
    assert!(printed.contains("has ended"), "{printed}");
}

#[test]
fn a_signal_ends_the_view_alone_and_the_terminal_is_given_back() {
    let (place, target) = (Place::new(), Target::start());
    for (number, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130), (Signal::QUIT, 131)] {
        let terminal = Terminal::start(place.stackglass(["top", &target.pid()]));
        terminal.await_shown("ready %");
        assert!(!terminal.reads_lines(), "keys are raw meanwhile");
        signal(&terminal.child, number);
        terminal.await_text("\x1b[?1049l", 1);
        wait_until("the terminal as it was", || terminal.reads_lines());
        let (status, printed) = terminal.end();
        assert_eq!(status, Some(code), "{printed}");
        assert!(printed.ends_with("\x1b[?1049l") && printed.contains("\x1b[?25h"), "{printed:?}");
        wait_until("the target runs on", || target.is_let_go());
    }
}

#[test]
fn a_closed_terminal_ends_the_view() {
    let (place, target) = (Place::new(), Target::start());
    let (mut terminal, mut child) = Terminal::unread(place.stackglass(["top", &target.pid()]));
    read_until_shown(&mut terminal, "ready %");
    drop(terminal);
    assert_eq!(end_of(&mut child), Some(129));
    assert!(target.is_let_go());
    // A program started by top gets the signal, as it would without top.
    let (mut terminal, mut child) = Terminal::unread(place.stackglass(until_told("exit 7")));
    place.await_file("ready");
    read_until_shown(&mut terminal, "ready %");
    drop(terminal);
    assert_eq!(end_of(&mut child), Some(7));
}

fn read_until_shown(terminal: &mut std::fs::File, what: &str) {
    let (mut all, mut buffer) = (Received::new(), [0; 4096]);
    while !all.screen().contains(what) {
        let n = terminal.read(&mut buffer).unwrap();
        all.add(&buffer[..n]);
    }
}

#[test]
fn ctrl_z_gives_the_terminal_back_for_a_while() {
    let (place, target) = (Place::new(), Target::start());
    let mut terminal = Terminal::start(place.stackglass(["top", &target.pid()]));
    for round in 1..=2 {
        terminal.await_text("\x1b[?1049h", round);
        terminal.await_shown("ready %");
        match round {
            1 => terminal.type_keys(b"\x1a"),
            _ => signal(&terminal.child, Signal::TSTP),
        }
        terminal.await_text("\x1b[?1049l", round);
        wait_until("it stands", || status_of(terminal.child.id(), "State").starts_with('T'));
        assert!(terminal.reads_lines());
        // A stopped top does not hold the target.
        assert!(target.is_let_go());
        signal(&terminal.child, Signal::CONT);
    }
    terminal.await_text("\x1b[?1049h", 3);
    // Completely redrawn, with one thread.
    terminal.await_shown(" 1 thread,");
    terminal.await_shown("ready %");
    wait_until("raw keys", || !terminal.reads_lines());
    terminal.type_keys(b"q");
    let (status, printed) = terminal.end();
    assert_eq!(status, Some(0), "{printed}");
}

#[test]
fn the_programs_end_is_the_views() {
    let place = Place::new();
    let told = [
        ("sleep 0.5; exit 3", 3, "exited with status 3"),
        ("sleep 0.5; kill -9 $$", 137, "was killed by signal 9"),
        ("while [ $((i += 1)) -lt 100000 ]; do :; done; exit 4", 4, "exited with status 4"),
        ("exit 5", 5, "exited with status 5"),
        (":", 0, "has ended"),
    ];
    for (script, code, line) in told {
        for driver in ["--driver=ptrace", "--driver=perf"] {
            let command = place.stackglass(["top", driver, "--", "sh", "-c", script]);
            let (status, printed) = Terminal::start(command).end();
            if printed.contains("perf_event_paranoid") {
                continue;
            }
            assert_eq!(status, Some(code), "{script}: {printed}");
            assert!(printed.contains(line), "{script}: {printed}");
        }
    }
    let (status, printed) = Terminal::start(place.stackglass(["top", "--", "./missing"])).end();
    assert_eq!(status, Some(127), "{printed}");
}

#[test]
fn a_signal_is_passed_on_to_the_program() {
    let place = Place::new();
    let terminal = Terminal::start(place.stackglass(until_told("exit 7")));
    place.await_file("ready");
    terminal.await_shown("ready %");
    signal(&terminal.child, Signal::TERM);
    let (status, printed) = terminal.end();
    assert_eq!(status, Some(7), "{printed}");
    assert!(printed.contains("exited with status 7"), "{printed}");
}

#[test]
fn leaving_ends_the_program() {
    let place = Place::new();
    let mut terminal = Terminal::start(place.stackglass(until_told("echo > told; exit 7")));
    place.await_file("ready");
    terminal.await_shown("ready %");
    terminal.type_keys(b"q");
    assert_eq!(terminal.end().0, Some(0));
    place.await_file("told");
    // A program that ignores SIGTERM.
    let mut terminal = Terminal::start(place.stackglass(until_told("")));
    terminal.await_shown("ready %");
    terminal.type_keys(b"\x03");
    let (status, printed) = terminal.end();
    assert_eq!(status, Some(0), "{printed}");
    assert!(printed.contains("killed"), "{printed}");
}

#[test]
fn what_cannot_be_saved_is_said() {
    let (place, target) = (Place::new(), Target::start());
    let mut terminal = Terminal::start(place.stackglass(["top", "-o", "no/such/f.glass", &target.pid()]));
    terminal.await_shown("ready %");
    terminal.type_until(b"s", "no/such/f.glass");
    terminal.type_keys(b"q");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn enter_on_a_thread_shows_its_functions() {
    let place = Place::new();
    let mut terminal =
        Terminal::start(place.stackglass(["top", "--", stackglass(), "demo-workload", "--time", "60s"]));
    terminal.await_shown("compute");
    terminal.await_shown("smooth");
    terminal.type_keys(b"3");
    terminal.await_screen("threads", shows_threads);
    terminal.type_until(b"/compute\r", "only names with \"compute\"");
    terminal.type_until(b"\r", "only thread compute");
    terminal.type_until(b"\r", "called by");
    terminal.type_keys(b"q");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let place = Place::new();
    let output = place.stackglass(["top", "1"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("stackglass peek PID"));
    assert_eq!(place.run(["top"]).status.code(), Some(2));
    assert_eq!(place.run(["top", "1", "--", "true"]).status.code(), Some(2));
}
