//! `stackglass heap take` on a process that nothing has prepared.

use crate::support::Place;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Sleeping(Child);

impl Sleeping {
    fn start() -> Sleeping {
        // With a locale, it has blocks whose types nobody knows.
        let mut command = Command::new("sleep");
        let child = command.arg("600").env("LC_ALL", "C.UTF-8").stdin(Stdio::null()).spawn().unwrap();
        let name = || std::fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap_or_default();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        // Between fork and exec, the child still is this program.
        while name().trim() != "sleep" || !state().contains(") S ") {
            std::thread::yield_now();
        }
        Sleeping(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeping {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

#[test]
fn a_snapshot_has_the_default_name_and_can_be_shown() {
    let (place, sleeping) = (Place::new(), Sleeping::start());
    let taken = place.run(["heap", "take", &sleeping.pid()]);
    let stderr = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(taken.status.success(), "{stderr}");
    let name = stderr.lines().last().unwrap().strip_prefix("stackglass: ").unwrap();
    let (name, rest) = name.split_once(": ").unwrap();
    assert!(name.starts_with(&format!("{}_", sleeping.pid())) && name.ends_with(".heapsnapshot"), "{stderr}");
    let pause = rest.contains("; paused for ") || rest.contains("; not paused");
    assert!(rest.contains(" blocks, ") && pause, "{stderr}");
    let shown = place.stdout_of(&["heap", "show", name]);
    // Both count all blocks, also those that no root reaches.
    let blocks = |text: &str| {
        let before = text.split(" block").next().unwrap_or_default();
        before.rsplit(' ').next().map(str::to_owned)
    };
    assert_eq!(blocks(rest), blocks(&shown), "{rest}\n{shown}");
    assert_eq!(
        rest.contains(" reached by no root"),
        shown.lines().next().unwrap().contains(" of "),
        "{rest}\n{shown}"
    );
    let state = std::fs::read_to_string(format!("/proc/{}/stat", sleeping.pid())).unwrap();
    assert!(state.contains(") S "), "{state}");
}

#[test]
fn a_stopped_process_continues() {
    let (place, sleeping) = (Place::new(), Sleeping::start());
    let taken = place.run(["heap", "take", &sleeping.pid(), "--stop", "-o", "s.heapsnapshot"]);
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    assert!(place.file("s.heapsnapshot").is_file());
    let status = std::fs::read_to_string(format!("/proc/{}/status", sleeping.pid())).unwrap();
    assert!(status.contains("TracerPid:\t0") && status.contains("S (sleeping)"), "{status}");
}

#[test]
fn a_snapshot_to_stdout_leaves_no_file() {
    let (place, sleeping) = (Place::new(), Sleeping::start());
    let taken = place.run(["heap", "take", &sleeping.pid(), "-o", "-"]);
    let stderr = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(taken.status.success(), "{stderr}");
    assert!(taken.stdout.starts_with(b"{\"snapshot\":"), "{stderr}");
    assert!(!place.file("-").exists());
    let line = stderr.lines().last().unwrap();
    assert!(line.starts_with("stackglass: ") && line.contains(" blocks, ") && !line.contains("-:"), "{line}");
    assert!(stderr.contains("sizes are those of malloc's blocks"), "{stderr}");
    assert!(stderr.contains("`stackglass run --allocs`"), "{stderr}");
    let refused = place.run(["heap", "take", &sleeping.pid(), "-o", "-", "--streaming"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn an_output_that_cannot_be_created_is_named_as_given() {
    let (place, sleeping) = (Place::new(), Sleeping::start());
    let refused = place.run(["heap", "take", &sleeping.pid(), "-o", "/nonexistent/x"]);
    assert_eq!(refused.status.code(), Some(125));
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(stderr.starts_with("stackglass: cannot create /nonexistent/x: No such file"), "{stderr}");
}

#[test]
fn a_process_that_does_not_exist_leaves_no_file() {
    let place = Place::new();
    let refused = place.run(["heap", "take", "1073741823", "-o", "x.heapsnapshot"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("there is no process 1073741823"));
    assert!(!place.file("x.heapsnapshot").exists());
}

#[test]
fn a_recording_saves_the_heap_at_the_end_of_the_program() {
    let place = Place::new();
    let recorded = place.run([
        "record",
        "-q",
        "--allocs",
        "--no-time",
        "--heap-at",
        "exit",
        "--heap-file",
        "e.heapsnapshot",
        "-o",
        "e.glass",
        "--",
        "sort",
        "/dev/null",
    ]);
    let stderr = String::from_utf8_lossy(&recorded.stderr).into_owned();
    assert!(recorded.status.success() && stderr.contains("e.heapsnapshot: "), "{stderr}");
    assert!(place.file("e.heapsnapshot").is_file());
    let refused = place.run(["record", "--heap-at", "exit", "--", "true"]);
    assert_eq!(refused.status.code(), Some(2), "--allocs is required");
}

/// Where the file system can have files without names, as most can.
#[test]
fn a_killed_command_leaves_no_file() {
    let (place, sleeping) = (Place::new(), Sleeping::start());
    let mut options = std::fs::OpenOptions::new();
    options.write(true).custom_flags(rustix::fs::OFlags::TMPFILE.bits() as i32);
    if options.open(place.file("")).is_err() {
        return;
    }
    for round in 0..30 {
        let mut taking = place.stackglass(["heap", "take", &sleeping.pid(), "-o", "k.heapsnapshot"]);
        let mut taking = taking.stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(round * 3));
        let _ = (taking.kill(), taking.wait());
        let left: Vec<_> =
            place.file("").read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name == "k.heapsnapshot"), "{left:?}");
    }
}

/// What `run --allocs` records belongs to heap snapshots.
#[test]
fn allocations_that_are_recorded_from_the_start_are_not_recorded_again() {
    let place = Place::new();
    let mut command =
        place.stackglass(["run", "--allocs", "--", "sh", "-c", "echo $$ > ready; exec sleep 60"]);
    let mut run = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    place.await_file("ready");
    let pid = std::fs::read_to_string(place.file("ready")).unwrap().trim().to_owned();
    let refused = place.run(["allocs", "--pid", &pid, "--duration", "100ms"]);
    let line = String::from_utf8_lossy(&refused.stderr).into_owned();
    Command::new("kill").arg(&pid).status().unwrap();
    run.wait().unwrap();
    assert!(!refused.status.success() && line.contains("are recorded from its start"), "{line}");
}
