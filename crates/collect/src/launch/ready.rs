//! A program that is ready to be peeked at, and is not recorded: `stackglass run`.
//!
//! Its sampler sleeps until somebody asks; we look for requests a few times a second, show what they
//! are answered with, pass signals on and leave with the program's own end.

use super::drain::Drain;
use super::follow::{about, give_orders, pass_on};
use super::peeks::Peeks;
use super::session::Session;
use super::signals::Signals;
use super::start;
use super::{LaunchError, Library, Observer, Options};
use crate::Recorder;
use stackglass_profile::End;
use stackglass_wire::SessionState;
use std::time::Duration;

/// Time between two looks for requests.
const CALM: Duration = Duration::from_millis(100);
/// The same while a peek goes on.
const BUSY: Duration = Duration::from_millis(5);

/// Starts the program and answers peeks until it ends. Of `options` what concerns a recording is not used.
///
/// # Errors
/// Only while nothing has been started.
pub fn run(options: &Options, observer: &mut dyn Observer) -> Result<End, LaunchError> {
    let signals = Signals::block().map_err(LaunchError::Signals)?;
    let session = Session::create().map_err(LaunchError::Session)?;
    give_orders(&session, options, SessionState::Ready);
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

    let mut drain = Drain::new(session.folder());
    let mut recorder = Recorder::new(about(options));
    let mut peeks = Peeks::alone(options.peek, options.delay);
    loop {
        if let Some((end, _)) = child.ended() {
            drain.read(&mut recorder);
            peeks.finish(&mut recorder, observer);
            return Ok(end);
        }
        session.beat();
        if let Some(signal) = signals.next(if peeks.is_busy() { BUSY } else { CALM }) {
            if signal.number == libc::SIGUSR2 {
                observer.note("nothing is recorded under `stackglass run`: there is nothing to save");
            }
            pass_on(signal, &child, &signals);
        }
        // What the images say of themselves is asked before their streams are read: whatever they have ended
        // is in the stream by then.
        let images = drain.peekable();
        drain.read(&mut recorder);
        peeks.look(&images, session.page(), &mut recorder, observer);
        if !peeks.is_busy() {
            drain.settle(&mut recorder);
            if !recorder.recording().samples.is_empty() {
                drain.forget_samples(&mut recorder);
                peeks.forgotten();
            }
        }
    }
}
