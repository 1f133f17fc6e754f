//! A program started by `top`: it gets the signals that top gets, and top exits with its status.

use crate::failure::Failure;
use crate::message;
use stackglass_collect::launch::start::{Child, start_apart};
use stackglass_collect::launch::{Program, exit_status, pass_on};
use stackglass_collect::session::signals::{Signal, Signals};
use stackglass_profile::End;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL.
const GRACE_PERIOD: Duration = Duration::from_secs(2);
/// Time between two checks whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

const SIGKILL: i32 = rustix::process::Signal::KILL.as_raw();
const SIGTERM: i32 = rustix::process::Signal::TERM.as_raw();

/// A program that does not outlive top.
pub(super) struct ChildProgram {
    child: Child,
    name: String,
}

impl ChildProgram {
    /// Starts the program without input; its output is discarded.
    pub(super) fn start(
        name: &OsString,
        arguments: &[OsString],
        signals: &Signals,
    ) -> Result<ChildProgram, Failure> {
        let program = Program::find(name)
            .map_err(|error| Failure { status: error.exit_status(), line: error.to_string() })?;
        let name = name.to_string_lossy().into_owned();
        match start_apart(&program, arguments, signals) {
            Ok(child) => Ok(ChildProgram { child, name }),
            Err(error) => Err(Failure { status: 126, line: format!("{name}: {error}") }),
        }
    }

    /// The process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Passes a signal on to the program.
    pub(super) fn forward(&self, signal: Signal, signals: &Signals) {
        pass_on(signal, &self.child, signals);
    }

    /// Waits until the program has ended, reports how it ended, and returns the exit status.
    pub(super) fn report_end(&mut self) -> i32 {
        let end = self.await_end(None).unwrap_or(End::Running);
        let (name, pid) = (&self.name, self.pid());
        message::print(&match end {
            End::Signal(number) => format!("{name} ({pid}) was killed by signal {number}"),
            End::Exit(status @ 1..) => format!("{name} ({pid}) exited with status {status}"),
            _ => format!("{name} ({pid}) has ended"),
        });
        exit_status(end)
    }

    /// Waits for the end, passing signals on, and returns the exit status.
    pub(super) fn wait(&mut self, signals: &Signals) -> i32 {
        loop {
            if let Some((end, _)) = self.child.ended() {
                return exit_status(end);
            }
            if let Some(signal) = signals.next(POLL_INTERVAL) {
                self.forward(signal, signals);
            }
        }
    }

    /// Ends the program with SIGTERM, then with SIGKILL.
    pub(super) fn terminate(&mut self, signals: &Signals) {
        self.child.send(SIGTERM);
        if self.await_end(Some(GRACE_PERIOD)).is_none() {
            message::print(&format!("{} ({}) did not end on SIGTERM: killed", self.name, self.pid()));
            self.child.send(SIGKILL);
            self.wait(signals);
        }
    }

    fn await_end(&mut self, timeout: Option<Duration>) -> Option<End> {
        let began = Instant::now();
        loop {
            if let Some((end, _)) = self.child.ended() {
                return Some(end);
            }
            if timeout.is_some_and(|timeout| began.elapsed() > timeout) {
                return None;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for ChildProgram {
    fn drop(&mut self) {
        if self.child.ended().is_none() {
            self.child.send(SIGKILL);
            let _ = self.await_end(Some(GRACE_PERIOD));
        }
    }
}
