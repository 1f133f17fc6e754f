//! The loop of `top`: figures are refreshed once a second; keys and signals are handled at once.

use super::child::ChildProgram;
use super::full_screen::FullScreen;
use super::keys;
use super::model::Model;
use super::screen::{Action, Screen};
use crate::output::{Output, default_output_of_process};
use ratatui::crossterm::event::{Event, KeyEventKind};
use stackglass_attach::Stopped;
use stackglass_collect::Recorder;
use stackglass_collect::allocations::live::LiveAllocations;
use stackglass_collect::attached::{self, Attached};
use stackglass_collect::session::signals::{Signal, Signals};
use stackglass_procfs::process;
use stackglass_profile::{Nanos, RecordingInfo};
use stackglass_report::Unit;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant, SystemTime};

/// Time between two refreshes.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait for a key between two drains of the streams.
const KEY_TIMEOUT: Duration = Duration::from_millis(50);
/// Limit of the recording that `s` saves, in words. When it is full, it is cleared.
const CAPACITY_WORDS: u64 = 20_000_000;

const SIGHUP: i32 = rustix::process::Signal::HUP.as_raw();
const SIGCONT: i32 = rustix::process::Signal::CONT.as_raw();
const SIGTSTP: i32 = rustix::process::Signal::TSTP.as_raw();

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

/// Where `s` saves the recording.
pub(super) enum SaveTo {
    /// A file that the user has named; a later recording replaces an earlier one.
    Named(PathBuf),
    /// A new file each time, named after this executable.
    NewFileOf(PathBuf),
}

/// A view of one process.
pub(super) struct LiveView {
    attached: Attached,
    recorder: Recorder,
    model: Model,
    screen: Screen,
    output: SaveTo,
    pid: u32,
    /// Allocations, while another command records them, and their number at the last refresh.
    allocations: Option<(LiveAllocations, u64)>,
    /// Number of samples that the model already has.
    seen: usize,
    refreshed: Instant,
}

impl LiveView {
    pub(super) fn new(
        attached: Attached,
        pid: u32,
        delay: Duration,
        output: SaveTo,
        head: String,
    ) -> LiveView {
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let info = RecordingInfo {
            command: process::arguments(pid),
            started: started.as_nanos() as u64,
            start: Nanos(Attached::now()),
            delay: Nanos(delay.as_nanos() as u64),
            capacity: CAPACITY_WORDS,
            writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).into(),
            ..RecordingInfo::default()
        };
        LiveView {
            attached,
            recorder: Recorder::new(info),
            model: Model::default(),
            screen: Screen { head, ..Screen::default() },
            output,
            pid,
            allocations: None,
            seen: 0,
            refreshed: Instant::now(),
        }
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
            self.attached.drain(&mut self.recorder);
            if self.refreshed.elapsed() >= refresh {
                self.refresh();
                (refresh, changed) = (REFRESH_INTERVAL, true);
            }
            while let Some(signal) = signals.next(Duration::ZERO) {
                match (signal.number, child) {
                    (SIGTSTP, _) => self.suspend(full_screen, signals),
                    // Another program may have changed the terminal.
                    (SIGCONT, _) => drop(full_screen.enter_again()),
                    (number, None) if attached::ends(number) => return ExitReason::Signal(number),
                    (_, None) => {}
                    (_, Some(child)) => {
                        child.forward(signal, signals);
                        if matches!(signal, Signal { number: SIGHUP, from_kernel: true, .. }) {
                            return ExitReason::Signal(SIGHUP);
                        }
                    }
                }
                changed = true;
            }
            if let Some(why) = self.attached.stopped() {
                return ExitReason::Stopped(why);
            }
            if std::mem::take(&mut changed)
                && full_screen.draw(|frame| self.screen.draw(&self.model, frame)).is_err()
            {
                return self.terminal_gone(signals, child);
            }
            match keys.recv_timeout(KEY_TIMEOUT) {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    match self.screen.key(key, &self.model) {
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
        self.attached.stop();
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
        self.attached.interrupt_for(&mut self.recorder, || {
            signals.stop_here();
            // In the background this stops top again.
            let _ = full_screen.enter_again();
        });
        // The time in between is not counted.
        self.seen = self.recorder.recording().samples.len();
        self.refreshed = Instant::now();
    }

    /// Adds the new samples to the model.
    fn refresh(&mut self) {
        let wall = self.refreshed.elapsed().as_nanos() as u64;
        self.refreshed = Instant::now();
        if !self.screen.paused {
            self.screen.allocations = self.allocations(wall).unwrap_or_default();
        }
        // Samples must not grow after they are counted.
        self.recorder.settle();
        if !self.screen.paused {
            self.model.add(self.recorder.recording(), self.seen, wall);
        }
        self.seen = self.recorder.recording().samples.len();
        if self.recorder.is_full() {
            let before = self.recorder.clear_samples();
            self.attached.forget_stacks(&before, &mut self.recorder);
            self.recorder.info_mut().start = Nanos(Attached::now());
            self.seen = 0;
        }
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
        let mut recording = self.recorder.recording().clone();
        recording.info.wall = Nanos(Attached::now().saturating_sub(recording.info.start.0));
        recording.info.end = Some(stackglass_profile::End::Running);
        stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
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
