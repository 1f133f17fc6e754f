//! The command waits for something that never comes: a reader of its output. SIGTERM and SIGINT end it all the same, and the
//! program runs on.
#![allow(unsafe_code, reason = "calls the C library")]

use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::{Folder, ended_by, stackglass};

/// A program that computes, and that a command looks at.
const BUSY: &[&str] = &["sh", "-c", "while :; do :; done"];

/// A pipe that has no room left.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe can be made");
    // SAFETY: a call without pointers.
    let room = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_GETPIPE_SZ) };
    writer.write_all(&vec![b'.'; room as usize]).expect("it has that much room");
    (reader, writer)
}

/// Waits until the command stands still in a system call.
#[track_caller]
fn is_stuck_in(command: &Child, call: i64) {
    let syscall = || std::fs::read_to_string(format!("/proc/{}/syscall", command.id())).unwrap_or_default();
    let begin = Instant::now();
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_millis(200) {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not get stuck: {}", syscall());
        if !syscall().starts_with(&format!("{call} ")) {
            since = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs, and nobody traces it.
fn runs_free(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("TracerPid:\t0\n") && status.contains("State:\tR")
}

/// The command with these words, in which `PID` stands for a program that computes; `FIFO` is a file that nobody reads.
#[track_caller]
fn stuck(words: &[&str], call: i64) {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let folder = Folder::new();
        let quiet = |command: &mut Command| {
            command.current_dir(folder.path()).stdin(Stdio::null()).spawn().expect("it can be started")
        };
        // It ends with the folder.
        let mut program = quiet(Command::new(BUSY[0]).args(&BUSY[1..]).stdout(Stdio::null()));
        let made = Command::new("mkfifo").arg(folder.path().join("FIFO")).status();
        assert!(made.is_ok_and(|status| status.success()));
        let (_reader, writer) = full_pipe();
        let pid = program.id().to_string();
        let mut command = Command::new(stackglass());
        command.args(words.iter().map(|word| if *word == "PID" { &*pid } else { word }));
        if call == libc::SYS_write {
            command.stderr(writer.try_clone().expect("a descriptor can be copied")).stdout(writer);
        } else {
            command.stderr(Stdio::null()).stdout(Stdio::null());
        }
        let mut command = quiet(&mut command);
        is_stuck_in(&command, call);
        ended_by(signal, &mut command);
        assert!(runs_free(program.id()), "{words:?}");
        let _ = (program.kill(), program.wait());
    }
}

#[test]
fn an_output_that_nobody_opens_before_a_program_starts() {
    stuck(&["record", "-o", "FIFO", "--", "touch", "started"], libc::SYS_openat);
}

#[test]
fn an_output_that_nobody_opens() {
    stuck(&["record", "-q", "-o", "FIFO", "--pid", "PID"], libc::SYS_openat);
}

#[test]
fn messages_that_nobody_reads() {
    stuck(&["record", "--duration", "200ms", "-o", "r.glass", "--pid", "PID"], libc::SYS_write);
}

#[test]
fn a_peek_that_nobody_reads() {
    stuck(&["peek", "PID", "--duration", "100ms"], libc::SYS_write);
}

#[test]
fn figures_that_nobody_reads() {
    stuck(&["top", "--json", "PID"], libc::SYS_write);
}

#[test]
fn a_heap_snapshot_that_nobody_reads() {
    stuck(&["heap", "take", "PID", "-o", "-"], libc::SYS_write);
    stuck(&["tasks", "PID"], libc::SYS_write);
}
