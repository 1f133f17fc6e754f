//! `top` at a terminal: it shows functions and threads, takes keys, saves, and leaves the terminal as it was.

mod support;

use std::process::Stdio;
use std::time::Duration;
use support::{Place, Terminal, stackglass, text};

/// Types one key after the other, with time to be drawn between.
fn type_slowly(terminal: &mut Terminal, keys: &[&[u8]]) {
    for key in keys {
        terminal.type_keys(key);
        std::thread::sleep(Duration::from_millis(400));
    }
}

#[test]
fn a_program_is_started_shown_and_saved() {
    let place = Place::new();
    let words = ["top", "-o", "t.glass", "--", stackglass(), "demo-workload", "--time", "60s"];
    let mut terminal = Terminal::start(place.stackglass(words));
    std::thread::sleep(Duration::from_millis(2500));
    type_slowly(&mut terminal, &[b"?", b"x", b"2", b"3", b"1", b"\r", b"\x1b", b"/compute\r", b"p", b"s"]);
    place.await_file("t.glass");
    std::thread::sleep(Duration::from_millis(500));
    terminal.type_keys(b"q");
    let (status, shown) = terminal.end();
    assert_eq!(status, Some(0), "{shown}");
    // The second screen, and back.
    assert!(shown.contains("\x1b[?1049h") && shown.contains("\x1b[?1049l"), "{shown}");
    for word in ["compute", "functions", "runs", "mostly", "processor", "called", "PAUSED", "saved"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let recording = place.recording("t.glass");
    let compute = |id| recording.symbols.frames_of(id).any(|frame| frame.func.ends_with("compute"));
    assert!(recording.samples.iter().any(|sample| recording.stacks.walk(sample.stack).any(compute)));
}

#[test]
fn the_end_of_the_program_ends_the_view() {
    let place = Place::new();
    let terminal = Terminal::start(place.stackglass(["top", "--", "sleep", "1"]));
    let (status, shown) = terminal.end();
    assert_eq!(status, Some(0), "{shown}");
    assert!(shown.contains("has ended"), "{shown}");
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
