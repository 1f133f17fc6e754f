//! A program that `top` has started: it gets the signals that top gets, and top leaves with its exit status.

use crate::failure::Failure;
use crate::message;
use stackglass_collect::launch::start::{Child, start_apart};
use stackglass_collect::launch::{Program, exit_status, pass_on};
use stackglass_collect::session::signals::{Signal, Signals};
use stackglass_profile::End;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// Time that a program gets to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// Time between two looks whether it has ended.
const PAUSE: Duration = Duration::from_millis(20);

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

/// A program that does not outlive us.
pub(super) struct Started {
    child: Child,
    name: String,
}

impl Started {
    /// Starts it, without input and with its output thrown away.
    pub(super) fn start(
        name: &OsString,
        arguments: &[OsString],
        signals: &Signals,
    ) -> Result<Started, Failure> {
        let program = Program::find(name)
            .map_err(|error| Failure { status: error.exit_status(), line: error.to_string() })?;
        let name = name.to_string_lossy().into_owned();
        match start_apart(&program, arguments, signals) {
            Ok(child) => Ok(Started { child, name }),
            Err(error) => Err(Failure { status: 126, line: format!("{name}: {error}") }),
        }
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Passes a signal on.
    pub(super) fn take(&self, signal: Signal, signals: &Signals) {
        pass_on(signal, &self.child, signals);
    }

    /// It has ended, or is about to: says how, and returns the exit status.
    pub(super) fn gone(&mut self) -> i32 {
        let end = self.await_end(None).unwrap_or(End::Running);
        let (name, pid) = (&self.name, self.pid());
        message::print(&match end {
            End::Signal(number) => format!("{name} ({pid}) was ended by signal {number}"),
            End::Exit(status @ 1..) => format!("{name} ({pid}) has ended with status {status}"),
            _ => format!("{name} ({pid}) has ended"),
        });
        exit_status(end)
    }

    /// Waits for its end without a view, and returns the exit status.
    pub(super) fn wait(&mut self, signals: &Signals) -> i32 {
        loop {
            if let Some((end, _)) = self.child.ended() {
                return exit_status(end);
            }
            if let Some(signal) = signals.next(PAUSE) {
                self.take(signal, signals);
            }
        }
    }

    /// Ends it, gently at first.
    pub(super) fn end_it(&mut self, signals: &Signals) {
        self.child.send(SIGTERM);
        if self.await_end(Some(GRACE)).is_none() {
            message::print(&format!("{} ({}) does not end by SIGTERM: killed", self.name, self.pid()));
            self.child.send(SIGKILL);
            self.wait(signals);
        }
    }

    fn await_end(&mut self, patience: Option<Duration>) -> Option<End> {
        let began = Instant::now();
        loop {
            if let Some((end, _)) = self.child.ended() {
                return Some(end);
            }
            if patience.is_some_and(|patience| began.elapsed() > patience) {
                return None;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.child.ended().is_none() {
            self.child.send(SIGKILL);
            let _ = self.await_end(Some(GRACE));
        }
    }
}
