//! Ends a command by a signal.
#![allow(unsafe_code, reason = "calls the C library")]

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// The command ends within a second, on a machine that is not busy.
const PATIENCE: Duration = Duration::from_secs(8);

/// Sends a signal to a command, and waits for its end.
///
/// # Panics
/// If it does not end; it is killed then.
#[track_caller]
pub fn ended_by(signal: i32, command: &mut Child) -> ExitStatus {
    // SAFETY: takes two numbers; the child was not reaped, so its id is valid.
    unsafe { libc::kill(command.id() as libc::pid_t, signal) };
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if let Some(status) = command.try_wait().expect("a child can be waited for") {
            return status;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = (command.kill(), command.wait());
    panic!("signal {signal} does not end it");
}
