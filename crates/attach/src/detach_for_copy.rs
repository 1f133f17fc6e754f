//! Detaches a sampled process while another thread or command copies it ([`frozen`](super::frozen)).

use super::frozen::{copy_is_wanted, release};
use super::sampled_process::SampledProcess;
use super::tracer_lock::{AttachMode, TracerLock};
use super::{Stopped, access};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// Longest wait for the lock after the copy is made: a peek may hold it.
const LONGEST: Duration = Duration::from_secs(20);
/// Time between two checks whether the copy is made.
const LOOK: Duration = Duration::from_millis(1);

/// Detaches all threads if another thread or command wants to copy the process, and waits until the copy is made. A thread is
/// traced again when it must next be stopped.
///
/// # Errors
/// If another Stackglass traces the process from now on.
pub(crate) fn if_wanted(process: &mut SampledProcess) -> Result<(), Stopped> {
    if !copy_is_wanted(process.pid) {
        return Ok(());
    }
    let lock = process.orders.tracer_lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    let traced: Vec<u32> =
        process.threads.iter().filter(|thread| thread.is_seized).map(|thread| thread.tid).collect();
    let still_traced = release(process.pid, &traced, &process.orders.seizing);
    for thread in &mut process.threads {
        (thread.stop, thread.put_back, thread.is_refused) = (None, None, false);
        thread.repeated = None;
        thread.is_seized = still_traced.contains(&thread.tid);
    }
    let mode = lock.as_ref().map(TracerLock::mode);
    drop(lock);
    while copy_is_wanted(process.pid) && !process.orders.stop.load(Acquire) {
        std::thread::sleep(LOOK);
    }
    let Some(mode) = mode else { return Ok(()) };
    match retake(process.pid, mode) {
        Some(lock) => {
            *process.orders.tracer_lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
            Ok(())
        }
        None if process.orders.stop.load(Acquire) => Ok(()),
        None => Err(access::taken(process.pid, mode).into()),
    }
}

/// Takes the lock again. The maker of the copy, or a peek, may still hold it.
fn retake(pid: u32, mode: AttachMode) -> Option<TracerLock> {
    let start = Instant::now();
    loop {
        match TracerLock::take(pid, mode) {
            Ok(lock) => return Some(lock),
            Err(AttachMode::Brief) if start.elapsed() < LONGEST => std::thread::sleep(LOOK),
            Err(_) => return None,
        }
    }
}
