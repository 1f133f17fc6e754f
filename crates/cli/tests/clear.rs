//! `clear PID`: earlier samples are gone from the report and the file, and the recording continues.

use crate::support::{Place, end_of, signal, stackglass, text, wait_until};
use rustix::process::Signal;
use stackglass_profile::Recording;
use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;

/// The time of the first sample, and the length of the recording, in seconds.
fn span(recording: &Recording) -> (f64, f64) {
    let begin = |s: &stackglass_profile::Sample| s.clock.0.saturating_sub(s.time.0);
    let first = recording.samples.iter().map(begin).min().unwrap();
    ((first as f64 - recording.info.start.0 as f64) / 1e9, recording.info.wall.seconds())
}

fn program_of(launcher: &Child) -> String {
    let path = format!("/proc/{0}/task/{0}/children", launcher.id());
    let mut pid = String::new();
    wait_until("the program", || {
        pid = fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
        !pid.is_empty()
    });
    pid
}

fn check(place: &Place, launcher: &mut Child, pid: &str) {
    place.await_file("r.glass");
    std::thread::sleep(Duration::from_millis(1200));
    let cleared = place.run(["clear", pid]);
    assert_eq!(cleared.status.code(), Some(0), "{}", text(&cleared.stderr));
    assert!(text(&cleared.stderr).contains("all samples so far are discarded"));
    std::thread::sleep(Duration::from_millis(600));
    signal(launcher, Signal::INT);
    assert_eq!(end_of(launcher), Some(0));
    let recording = place.recording("r.glass");
    let (first, wall) = span(&recording);
    // An event that arrives later may have started a little earlier.
    assert!(first > -0.2, "a sample begins {first} s after the recording");
    assert!((0.5..1.6).contains(&wall), "{wall} s");
    let threads = recording.threads.len() as f64;
    let all: f64 = recording.samples.iter().map(|sample| sample.time.seconds()).sum();
    assert!(all > 0.3 && all < threads * (wall + 0.2), "{all} s of {threads} threads in {wall} s");
    let known = |sample: &stackglass_profile::Sample| recording.stacks.walk(sample.stack).next().is_some();
    assert!(recording.samples.iter().filter(|sample| sample.hits > 0).all(known));
}

#[test]
fn a_program_that_is_recorded_by_its_own_id() {
    let place = Place::new();
    // It exits with status 0 on SIGTERM.
    let script = format!("trap 'kill $!; exit 0' INT TERM; {} demo-workload --time 60s & wait", stackglass());
    let mut launcher = place
        .stackglass(["record", "-q", "-o", "r.glass", "--duration", "60s", "--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = program_of(&launcher);
    place.await_file("r.glass");
    std::thread::sleep(Duration::from_millis(1200));
    let cleared = place.run(["clear", &pid]);
    assert_eq!(cleared.status.code(), Some(0), "{}", text(&cleared.stderr));
    std::thread::sleep(Duration::from_millis(600));
    signal(&launcher, Signal::TERM);
    end_of(&mut launcher);
    let recording = place.recording("r.glass");
    let (first, wall) = span(&recording);
    assert!(first > -0.2 && wall > 0.5, "{first} {wall}");
    let all: f64 = recording.samples.iter().map(|sample| sample.time.seconds()).sum();
    assert!(all > 0.3 && all < recording.threads.len() as f64 * (wall + 0.2), "{all} s in {wall} s");
}

#[test]
fn a_process_that_is_looked_at_from_outside() {
    for by_launcher in [false, true] {
        let place = Place::new();
        let mut command = std::process::Command::new(stackglass());
        command.args(["demo-workload", "--time", "60s"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.current_dir(place.path());
        let mut program = command.spawn().unwrap();
        let pid = program.id().to_string();
        let mut launcher = place
            .stackglass(["record", "-q", "-o", "r.glass", "--pid", &pid])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let asked = if by_launcher { launcher.id().to_string() } else { pid };
        check(&place, &mut launcher, &asked);
        program.kill().unwrap();
        program.wait().unwrap();
    }
}

#[test]
fn what_is_not_recorded_has_nothing_to_forget() {
    let place = Place::new();
    let (own, nobody) = (std::process::id(), 99_999_999);
    for (pid, line) in [
        (own, format!("process {own} is not being recorded by this user")),
        (nobody, format!("there is no process {nobody}")),
    ] {
        let output = place.run(["clear", &pid.to_string()]);
        assert_eq!(output.status.code(), Some(125));
        assert_eq!(text(&output.stderr), format!("stackglass: {line}\n"));
    }
    assert_eq!(place.run(["clear"]).status.code(), Some(2));
}
