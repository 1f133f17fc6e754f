//! A program that is ready to be peeked at, and is not recorded: `stackglass run`.
//!
//! Nothing runs in it until somebody asks: its handler of SIGUSR1 counts, we look at the count a few times a second and answer by
//! looking at it from outside. Meanwhile signals are passed on, and we leave with the program's own end.

use super::outside_peeks::OutsidePeeks;
use super::peek_counts::RequestPage;
use super::record::{fill_page, pass_on};
use super::start::{self, Child};
use super::{LaunchError, Library, Options};
use crate::recording::Observer;
use crate::session::Session;
use crate::session::signals::Signals;
use stackglass_profile::End;
use stackglass_wire::SessionState;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Time between two looks for requests.
const CALM: Duration = Duration::from_millis(100);
/// The same while a peek goes on, or where the kernel does not tell of the program's end.
const BUSY: Duration = Duration::from_millis(10);

/// Starts the program and peeks peeks until it ends. Of `options` what concerns a recording is not used.
///
/// # Errors
/// Only while nothing has been started.
pub fn run(options: &Options, observer: &mut dyn Observer) -> Result<End, LaunchError> {
    // The ends of children are left to the threads that look: each that is read here keeps a thread of the program standing.
    let signals = Signals::block_as_onlooker().map_err(LaunchError::Signals)?;
    let session = Session::create().map_err(LaunchError::Session)?;
    let requests = RequestPage::create(session.folder()).map_err(LaunchError::Session)?;
    fill_page(&session, options, SessionState::Ready);
    let obstacle = options.program.obstacle();
    if let Some(obstacle) = obstacle {
        let name = options.program.name.to_string_lossy();
        observer
            .note(&format!("{name} {}; `stackglass peek PID` looks at it from outside", obstacle.advice()));
    }
    let harmless = !obstacle.is_some_and(|obstacle| obstacle.forbids_preload());
    let library = if harmless { Some((options.library)().map_err(LaunchError::Library)?) } else { None };
    let mut child =
        start::start(options, &session, library.as_ref().map(Library::path), signals.mask_before())
            .map_err(|error| LaunchError::Start { program: options.program.name.clone(), error })?;

    let end_descriptor = child.end_descriptor();
    let mut peeks = OutsidePeeks::new(options.peek_defaults());
    loop {
        if let Some((end, _)) = child.ended() {
            peeks.finish(observer);
            return Ok(end);
        }
        let pause = if peeks.is_busy() || end_descriptor.is_none() { BUSY } else { CALM };
        if let Some(signal) = next_signal(&signals, end_descriptor.as_ref(), &mut child, pause) {
            match signal.number {
                libc::SIGUSR2 => {
                    observer.note("nothing is recorded under `stackglass run`: there is nothing to save");
                }
                // A thread that stands for its stack would stand as long as we do.
                libc::SIGTSTP => peeks.detach_all(),
                _ => {}
            }
            pass_on(signal, &child, &signals);
        }
        for (pid, count) in requests.take() {
            peeks.receive(pid, count);
        }
        peeks.advance(observer);
    }
}

/// The next signal, waiting for it up to `pause`, or until the program has ended.
fn next_signal(
    signals: &Signals,
    end_descriptor: Option<&OwnedFd>,
    child: &mut Child,
    pause: Duration,
) -> Option<crate::session::signals::Signal> {
    let began = Instant::now();
    let descriptors: Vec<_> = end_descriptor.map(AsRawFd::as_raw_fd).into_iter().collect();
    let signal = signals.next_or(&descriptors, pause);
    // Whoever traces the program has its end first: the descriptor tells of it all the time.
    if signal.is_none() && began.elapsed() < pause / 2 && child.ended().is_none() {
        return signals.next(pause);
    }
    signal
}
