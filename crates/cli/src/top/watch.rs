//! The loop of `top`: what was seen is taken up once a second, keys and signals at once.

use super::full_screen::FullScreen;
use super::keys;
use super::model::Model;
use super::program::Started;
use super::screen::{Action, Screen};
use ratatui::crossterm::event::{Event, KeyEventKind};
use stackglass_attach::Stopped;
use stackglass_collect::Recorder;
use stackglass_collect::attached::{self, Attached};
use stackglass_collect::session::signals::{Signal, Signals};
use stackglass_procfs::process;
use stackglass_profile::{About, Nanos};
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant, SystemTime};

/// Time between two drawings.
const REFRESH: Duration = Duration::from_secs(1);
/// Longest wait for a key, so that streams are drained.
const PATIENCE: Duration = Duration::from_millis(50);
/// Words that the recording behind `s` may take; it begins anew when it is full.
const WORDS: u64 = 20_000_000;

const SIGHUP: i32 = 1;
const SIGCONT: i32 = 18;
const SIGTSTP: i32 = 20;

/// Why the view ends.
pub(super) enum Leave {
    /// By a key.
    Asked,
    /// There is nothing more to see.
    Stopped(Stopped),
    /// By a signal to us, or, with a program that we have started, a hang-up.
    Signal(i32),
    /// Nobody can see it.
    TerminalGone,
}

/// A view of one process.
pub(super) struct Top {
    attached: Attached,
    recorder: Recorder,
    model: Model,
    screen: Screen,
    output: PathBuf,
    /// Samples before this one were taken up.
    seen: usize,
    refreshed: Instant,
}

impl Top {
    pub(super) fn new(attached: Attached, pid: u32, delay: Duration, output: PathBuf, head: String) -> Top {
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let about = About {
            command: process::arguments(pid),
            started: started.as_nanos() as u64,
            start: Nanos(Attached::now()),
            delay: Nanos(delay.as_nanos() as u64),
            capacity: WORDS,
            writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).into(),
            ..About::default()
        };
        Top {
            attached,
            recorder: Recorder::new(about),
            model: Model::default(),
            screen: Screen { head, ..Screen::default() },
            output,
            seen: 0,
            refreshed: Instant::now(),
        }
    }

    /// Until somebody leaves, the process ends, or a signal comes; those are passed on to what was started.
    pub(super) fn watch(
        &mut self,
        full_screen: &mut FullScreen,
        signals: &Signals,
        started: Option<&Started>,
    ) -> Leave {
        let Ok(keys) = keys::read() else { return Leave::TerminalGone };
        // The first figures come soon.
        let mut refresh = REFRESH / 4;
        let mut changed = true;
        loop {
            self.attached.drain(&mut self.recorder);
            if self.refreshed.elapsed() >= refresh {
                self.refresh();
                (refresh, changed) = (REFRESH, true);
            }
            while let Some(signal) = signals.next(Duration::ZERO) {
                match (signal.number, started) {
                    (SIGTSTP, _) => self.suspend(full_screen, signals),
                    // Whoever had the terminal meanwhile may have left it as they like it.
                    (SIGCONT, _) => drop(full_screen.enter_again()),
                    (number, None) if attached::ends(number) => return Leave::Signal(number),
                    (_, None) => {}
                    (_, Some(started)) => {
                        started.take(signal, signals);
                        if matches!(signal, Signal { number: SIGHUP, from_kernel: true, .. }) {
                            return Leave::Signal(SIGHUP);
                        }
                    }
                }
                changed = true;
            }
            if let Some(why) = self.attached.stopped() {
                return Leave::Stopped(why);
            }
            if std::mem::take(&mut changed)
                && full_screen.draw(|frame| self.screen.draw(&self.model, frame)).is_err()
            {
                return self.terminal_gone(signals, started);
            }
            match keys.recv_timeout(PATIENCE) {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    match self.screen.key(key, &self.model) {
                        Action::Leave => return Leave::Asked,
                        Action::Save => self.save(),
                        Action::Suspend => self.suspend(full_screen, signals),
                        Action::Nothing => {}
                    }
                    changed = true;
                }
                Ok(_) => changed = true,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.terminal_gone(signals, started),
            }
        }
    }

    /// Lets the process go.
    pub(super) fn let_go(&mut self) {
        self.attached.stop();
    }

    /// The hang-up may be on its way.
    fn terminal_gone(&self, signals: &Signals, started: Option<&Started>) -> Leave {
        match signals.next(PATIENCE) {
            Some(signal) if attached::ends(signal.number) => {
                if let Some(started) = started {
                    started.take(signal, signals);
                }
                Leave::Signal(signal.number)
            }
            _ => Leave::TerminalGone,
        }
    }

    /// Stops until somebody continues us, with the terminal as it was and the process let go.
    fn suspend(&mut self, full_screen: &mut FullScreen, signals: &Signals) {
        self.refresh();
        full_screen.leave();
        self.attached.interrupt_for(&mut self.recorder, || {
            signals.stop_here();
            // In the background this stops us again.
            let _ = full_screen.enter_again();
        });
        // The time between is nobody's.
        self.seen = self.recorder.recording().samples.len();
        self.refreshed = Instant::now();
    }

    /// Takes up what has come since the last time.
    fn refresh(&mut self) {
        let wall = self.refreshed.elapsed().as_nanos() as u64;
        self.refreshed = Instant::now();
        // What grows from here on is the next time's.
        self.recorder.settle();
        if !self.screen.paused {
            self.model.take(self.recorder.recording(), self.seen, wall);
        }
        self.seen = self.recorder.recording().samples.len();
        if self.recorder.is_full() {
            let before = self.recorder.clear_samples();
            self.attached.forget_stacks(&before, &mut self.recorder);
            self.recorder.about_mut().start = Nanos(Attached::now());
            self.seen = 0;
        }
    }

    /// Writes all that was seen to a file.
    fn save(&mut self) {
        let mut recording = self.recorder.recording().clone();
        recording.about.wall = Nanos(Attached::now().saturating_sub(recording.about.start.0));
        recording.about.end = Some(stackglass_profile::End::Running);
        stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
        self.screen.message = match stackglass_files::write(&self.output, &recording) {
            Ok(_) => format!("saved to {}", self.output.display()),
            Err(error) => error.to_string(),
        };
    }
}
