//! `stackglass allocs --pid`: records allocations for a while in a program that was started with `stackglass run`.
//!
//! The program's library is ready: its hooks look at a word of the session's page. This process turns it on, waits, turns it off, and
//! reads the program's tables. If this process is killed meanwhile, the launcher turns it off.

use super::settings::LEAVE;
use super::{AllocationSettings, drain::AllocationDrain};
use crate::recording::begin::beginning_now;
use crate::session::signals::Signals;
use crate::session::{OtherSession, clearing};
use stackglass_procfs::clock::monotonic;
use stackglass_procfs::{process, threads};
use stackglass_profile::{End, Nanos, Recorder, Recording, RecordingInfo};
use stackglass_wire::{SessionPage, SessionState};
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

/// Why allocations of a process cannot be recorded now.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// It was not started in a way that allows it.
    #[error(
        "process {0} is not ready to record allocations: start it with `stackglass run -- PROGRAM`, or record it from its start with `stackglass record --allocs -- PROGRAM`"
    )]
    NotReady(u32),
    /// Another command records it.
    #[error("allocations of process {0} are being recorded already, by another `stackglass allocs --pid`")]
    Recorded(u32),
    /// They are recorded from the start.
    #[error(
        "allocations of process {0} are recorded from its start, for heap snapshots (`stackglass heap take {0}`): `stackglass run` without --allocs leaves them to `allocs --pid`"
    )]
    FromStart(u32),
    /// It has ended, or has not allocated.
    #[error("process {0} allocated nothing in this time, or has ended")]
    Nothing(u32),
    /// Signals cannot be received, or the session cannot be opened.
    #[error("the session of process {0} cannot be used: {1}")]
    System(u32, std::io::Error),
}

/// Records allocations of process `pid` for `duration`, or until Ctrl-C. The result has no names yet.
///
/// # Errors
/// [`AskError`].
pub fn record(
    pid: u32,
    settings: AllocationSettings,
    duration: Duration,
    writer: String,
) -> Result<Recording, AskError> {
    let folder = clearing::session_of(pid).ok_or(AskError::NotReady(pid))?;
    let session = OtherSession::open(&folder).map_err(|error| AskError::System(pid, error))?;
    let page = session.page();
    if SessionState::from_number(page.state.load(Acquire)) != SessionState::Ready
        || page.allocation_sampling.load(Relaxed) == 0
    {
        return Err(AskError::NotReady(pid));
    }
    let own = std::process::id();
    turn_off_if_abandoned(page);
    if page.allocation_asker.compare_exchange(0, own, AcqRel, Acquire).is_err() {
        let is_from_start = page.allocation_asker.load(Acquire) == page.launcher.load(Relaxed);
        return Err(if is_from_start { AskError::FromStart(pid) } else { AskError::Recorded(pid) });
    }
    let signals = Signals::block().map_err(|error| AskError::System(pid, error))?;
    let command = vec![process::executable(pid).display().to_string()];
    let info = RecordingInfo {
        end: Some(End::Running),
        remarks: vec!["recorded while the program ran: what it allocated before has no record".into()],
        ..beginning_now(command, &writer)
    };
    let mut recorder = Recorder::new(info);
    let mut drain = AllocationDrain::new(&folder);
    settings.store(page);
    AllocationSettings::turn(page, true);
    let began = Instant::now();
    while let Some(left) = duration.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        let is_interrupted = signals.next(left.min(Duration::from_millis(20))).is_some_and(|signal| {
            matches!(signal.number, libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT)
        });
        if is_interrupted || !process::is_alive(pid) {
            break;
        }
        drain.update();
    }
    AllocationSettings::turn(page, false);
    page.allocation_asker.store(0, Release);
    std::thread::sleep(LEAVE);
    recorder.info_mut().wall = Nanos(monotonic().saturating_sub(recorder.recording().info.start.0));
    drain.read_one(pid, &mut recorder);
    let mut recording = recorder.into_recording();
    if !recording.allocations.were_recorded() {
        return Err(AskError::Nothing(pid));
    }
    for thread in &mut recording.threads {
        thread.name = threads::name(pid, thread.tid).unwrap_or_default().into();
    }
    Ok(recording)
}

/// Turns the recording off if the process that turned it on has ended. For launchers.
pub fn turn_off_if_abandoned(page: &SessionPage) {
    let asker = page.allocation_asker.load(Acquire);
    if asker != 0 && !process::is_alive(asker) {
        AllocationSettings::turn(page, false);
        let _ = page.allocation_asker.compare_exchange(asker, 0, AcqRel, Relaxed);
    }
}
