//! The loop of `top`: figures are refreshed once a second; keys and signals are handled at once.

use super::child::ChildProgram;
use super::figures::{Figures, REFRESH_INTERVAL};
use super::full_screen::FullScreen;
use super::keys;
use super::screen::{Action, Screen, Tab};
use super::tasks_reader::TasksReader;
use crate::output::{Output, default_output_of_process};
use ratatui::crossterm::event::{Event, KeyEventKind};
use stackglass_attach::Stopped;
use stackglass_collect::allocations::live::LiveAllocations;
use stackglass_collect::attached;
use stackglass_collect::session::signals::{Signal, Signals};
use stackglass_report::Unit;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Longest wait for a key between two drains of the streams.
const KEY_TIMEOUT: Duration = Duration::from_millis(50);

const SIGHUP: i32 = rustix::process::Signal::HUP.as_raw();
const SIGCONT: i32 = rustix::process::Signal::CONT.as_raw();
pub(super) const SIGTSTP: i32 = rustix::process::Signal::TSTP.as_raw();

/// Why the view ends.
pub(super) enum ExitReason {
    /// The user quit.
    Asked,
    /// Sampling has stopped.
    Stopped(Stopped),
    /// A signal to top. If top started the program: only a hang-up.
    Signal(i32),
    /// The terminal is gone.
    TerminalGone,
}

impl ExitReason {
    /// Passes a signal on to `child`, and returns why the view ends, if it does.
    pub(super) fn by_signal(
        signal: Signal,
        signals: &Signals,
        child: Option<&ChildProgram>,
    ) -> Option<ExitReason> {
        let ends = match child {
            None => attached::ends(signal.number),
            Some(child) => {
                child.forward(signal, signals);
                signal.number == SIGHUP && signal.from_kernel
            }
        };
        ends.then_some(ExitReason::Signal(signal.number))
    }
}

/// Where `s` saves the recording.
pub(super) enum SaveTo {
    /// A file that the user has named; a later recording replaces an earlier one.
    Named(PathBuf),
    /// A new file each time, named after this executable.
    NewFileOf(PathBuf),
}

/// A view of one process.
pub(super) struct LiveView {
    figures: Figures,
    screen: Screen,
    tasks: TasksReader,
    output: SaveTo,
    pid: u32,
    /// Allocations, while another command records them, and their number at the last refresh.
    allocations: Option<(LiveAllocations, u64)>,
}

impl LiveView {
    pub(super) fn new(figures: Figures, pid: u32, output: SaveTo, head: String) -> LiveView {
        let screen = Screen { head, ..Screen::default() };
        LiveView { figures, screen, tasks: TasksReader::new(pid), output, pid, allocations: None }
    }

    /// Runs until the user quits, the process ends, or a signal arrives. Signals are passed on to `child`.
    pub(super) fn run(
        &mut self,
        full_screen: &mut FullScreen,
        signals: &Signals,
        child: Option<&ChildProgram>,
    ) -> ExitReason {
        let Ok(keys) = keys::read() else { return ExitReason::TerminalGone };
        // The first figures come sooner.
        let mut refresh = REFRESH_INTERVAL / 4;
        let mut changed = true;
        loop {
            self.figures.drain();
            if self.figures.age() >= refresh {
                self.refresh();
                (refresh, changed) = (REFRESH_INTERVAL, true);
            }
            let wants_tasks = self.screen.tab == Tab::Tasks && !self.screen.paused;
            changed |= self.tasks.advance(wants_tasks);
            while let Some(signal) = signals.next(Duration::ZERO) {
                match signal.number {
                    SIGTSTP => self.suspend(full_screen, signals),
                    // Another program may have changed the terminal.
                    SIGCONT => drop(full_screen.enter_again()),
                    _ => {
                        if let Some(why) = ExitReason::by_signal(signal, signals, child) {
                            return why;
                        }
                    }
                }
                changed = true;
            }
            if let Some(why) = self.figures.stopped() {
                return ExitReason::Stopped(why);
            }
            if std::mem::take(&mut changed)
                && full_screen
                    .draw(|frame| self.screen.draw(&self.figures.model, &self.tasks, frame))
                    .is_err()
            {
                return self.terminal_gone(signals, child);
            }
            match keys.recv_timeout(KEY_TIMEOUT) {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    match self.screen.key(key, &self.figures.model) {
                        Action::Leave => return ExitReason::Asked,
                        Action::Save => self.save(),
                        Action::Suspend => self.suspend(full_screen, signals),
                        Action::Nothing => {}
                    }
                    changed = true;
                }
                Ok(_) => changed = true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.terminal_gone(signals, child),
            }
        }
    }

    /// Detaches from the process.
    pub(super) fn detach(&mut self) {
        self.figures.detach();
    }

    /// The reason after a failed read or write: the hang-up signal may still arrive.
    fn terminal_gone(&self, signals: &Signals, child: Option<&ChildProgram>) -> ExitReason {
        match signals.next(KEY_TIMEOUT) {
            Some(signal) if attached::ends(signal.number) => {
                if let Some(child) = child {
                    child.forward(signal, signals);
                }
                ExitReason::Signal(signal.number)
            }
            _ => ExitReason::TerminalGone,
        }
    }

    /// Stops top until SIGCONT, with the terminal restored and the process detached.
    fn suspend(&mut self, full_screen: &mut FullScreen, signals: &Signals) {
        self.refresh();
        full_screen.leave();
        self.figures.interrupt_for(|| {
            signals.stop_here();
            // In the background this stops top again.
            let _ = full_screen.enter_again();
        });
    }

    /// Adds the new samples to the model.
    fn refresh(&mut self) {
        if self.screen.paused {
            self.figures.discard();
            return;
        }
        let wall = self.figures.refresh();
        self.screen.allocations = self.allocations(wall).unwrap_or_default();
    }

    /// The rate of allocations since the last refresh, and live bytes, as text.
    fn allocations(&mut self, wall: u64) -> Option<String> {
        if self.allocations.is_none() {
            let opened = LiveAllocations::open(self.pid)?;
            let count = opened.read().count;
            self.allocations = Some((opened, count));
            return None;
        }
        let (tables, before) = self.allocations.as_mut()?;
        let now = tables.read();
        let new = now.count.saturating_sub(std::mem::replace(before, now.count));
        let rate = (new as f64 / (wall.max(1) as f64 * 1e-9)) as u64;
        let live = Unit::Bytes.text(now.live_bytes);
        Some(format!(", {} allocations/s, {live} live", Unit::Allocations.text(rate)))
    }

    /// Writes the recording so far to a file.
    fn save(&mut self) {
        let recording = self.figures.recording_so_far();
        let output = match &self.output {
            SaveTo::Named(path) => Output::named(path.clone()),
            SaveTo::NewFileOf(executable) => default_output_of_process(executable),
        };
        self.screen.message = match stackglass_files::write(output.path(), &recording) {
            Ok(_) => format!("saved to {}", output.path().display()),
            Err(error) => error.to_string(),
        };
    }
}
