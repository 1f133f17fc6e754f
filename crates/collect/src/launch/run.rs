//! `stackglass run`: starts a program that can be peeked at, without recording it.
//!
//! Nothing is sampled until a peek is requested. The program's handler of SIGUSR1 counts requests. This process
//! checks the count a few times a second and samples the program from outside. SIGUSR1 to this process is a request as well,
//! of which the program sees nothing. It passes other signals on and ends with the program's exit status.

use super::error::LaunchError;
use super::library::Library;
use super::options::Options;
use super::outside_peeks::OutsidePeeks;
use super::peek_counts::RequestPage;
use super::record::{fill_page, pass_on};
use super::start::{self, Child};
use super::takeover::Takeover;
use crate::allocations::{AllocationSettings, on_request};
use crate::peeks::handler;
use crate::recording::Observer;
use crate::session::Session;
use crate::session::signals::Signals;
use stackglass_procfs::Status;
use stackglass_profile::{AllocationSampling, End};
use stackglass_wire::SessionState;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::Release;
use std::time::{Duration, Instant};

/// Time between two checks for requests.
const CALM: Duration = Duration::from_millis(100);
/// The same during a peek, or if the kernel does not report the end of the program.
const BUSY: Duration = Duration::from_millis(10);

/// Time in which a program that has started must have its handler. Until then, SIGUSR1 would end it.
const START: Duration = Duration::from_secs(2);

/// Starts the program and answers peeks until it ends. Of a recording's options, allocations alone count: they are then known to heap
/// snapshots.
///
/// # Errors
/// Only before the program is started.
pub fn run(options: &Options, observer: &mut dyn Observer) -> Result<End, LaunchError> {
    // SIGCHLD is left to the threads that trace the program: each one that is read here would keep a thread of it
    // stopped.
    let signals = Signals::block_as_onlooker().map_err(LaunchError::Signals)?;
    let session = Session::create().map_err(LaunchError::Session)?;
    let requests = RequestPage::create(session.folder()).map_err(LaunchError::Session)?;
    // The library gets ready to record allocations, which `stackglass allocs --pid` turns on, unless they are recorded from the start.
    let every = AllocationSettings { sampling: AllocationSampling::Every };
    options.allocations.unwrap_or(every).store(session.page());
    fill_page(&session, options, SessionState::Ready);
    if options.allocations.is_some() {
        session.page().allocation_asker.store(std::process::id(), Release);
        AllocationSettings::turn(session.page(), true);
    }
    let obstacle = options.program.obstacle();
    if let Some(obstacle) = obstacle {
        let name = options.program.name.to_string_lossy();
        observer
            .note(&format!("{name} {}; `stackglass peek PID` looks at it from outside", obstacle.advice()));
    }
    let harmless = !obstacle.is_some_and(|obstacle| obstacle.forbids_preload());
    // The same for an allocator that is part of the program.
    let _ = obstacle.is_none().then(|| Takeover::prepare(&options.program.executable(), session.folder()));
    let library = if harmless { Some((options.library)().map_err(LaunchError::Library)?) } else { None };
    let mut child =
        start::start(options, &session, library.as_ref().map(Library::path), signals.mask_before())
            .map_err(|error| LaunchError::Start { program: options.program.name.clone(), error })?;

    let begun = Instant::now();
    let answers = obstacle.is_none() && library.is_some();
    let mut early = None;
    let end_descriptor = child.end_descriptor();
    let mut peeks = OutsidePeeks::new(options.peek_defaults());
    loop {
        if let Some((end, _)) = child.ended() {
            peeks.finish(observer);
            return Ok(end);
        }
        let is_busy = peeks.is_busy() || early.is_some() || end_descriptor.is_none();
        let pause = if is_busy { BUSY } else { CALM };
        let received = next_signal(&signals, end_descriptor.as_ref(), &mut child, pause);
        for signal in [early.take(), received].into_iter().flatten() {
            let asks = signal.number == handler::SIGNAL && !child.has_started(signal.sender);
            if asks && answers && begun.elapsed() < START && has_no_handler(child.pid()) {
                early = Some(signal);
                continue;
            }
            match signal.number {
                libc::SIGUSR2 => {
                    observer.note("nothing is recorded under `stackglass run`: there is nothing to save");
                }
                // A thread that is stopped for its stack would stay stopped together with this process.
                libc::SIGTSTP => peeks.detach_all(),
                _ => {}
            }
            // In the program, the signal would interrupt a call.
            match asks && handler::carries_our_handler(child.pid()) {
                true => peeks.receive(child.pid(), 1),
                false => pass_on(signal, &child, &signals),
            }
        }
        for (pid, count) in requests.take() {
            peeks.receive(pid, count);
        }
        peeks.advance(observer);
        on_request::turn_off_if_abandoned(session.page());
    }
}

/// Whether a process neither handles nor ignores SIGUSR1.
fn has_no_handler(pid: u32) -> bool {
    let acts = |status: Status| (status.caught | status.ignored) >> (handler::SIGNAL - 1) & 1 == 0;
    Status::read(pid).is_some_and(acts)
}

/// The next signal; waits at most `pause`, or until the program has ended.
fn next_signal(
    signals: &Signals,
    end_descriptor: Option<&OwnedFd>,
    child: &mut Child,
    pause: Duration,
) -> Option<crate::session::signals::Signal> {
    let began = Instant::now();
    let descriptors: Vec<_> = end_descriptor.map(AsRawFd::as_raw_fd).into_iter().collect();
    let signal = signals.next_or(&descriptors, pause);
    // A tracer is notified of the end first; until then, the descriptor is readable all the time.
    if signal.is_none() && began.elapsed() < pause / 2 && child.ended().is_none() {
        return signals.next(pause);
    }
    signal
}
