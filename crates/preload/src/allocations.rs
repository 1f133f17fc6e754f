//! Recording of allocations in this process: when it begins, and what forked children do.
//!
//! While nothing is recorded, each hook is one comparison and a jump to the C library's function (`entries_x86_64`). The
//! comparison reads a word of the session page, which the launcher changes at any moment. So a program under `stackglass run`
//! is ready to be recorded.

#[path = "allocations/entries_x86_64.rs"]
mod entries;
mod hooks;
#[path = "allocations/inside_x86_64.rs"]
mod inside;
mod mappings;
#[path = "allocations/own_entries_x86_64.rs"]
mod own_entries;
mod own_hooks;
mod real;
mod takeover;

use crate::own_session;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};
use stackglass_heap::{Granule, InFolder, Memory, Sampling};
use stackglass_host::session::Session;
use stackglass_host::system;

/// The word that is not zero while allocations are recorded.
static ON: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const NEVER).cast_mut());
static NEVER: AtomicU32 = AtomicU32::new(0);

/// Allocations of a forked child before it gets its own tables. Most children exec earlier.
const PATIENCE: u32 = 256;
/// Allocations until the tables are made: 0 in a process that starts with the recording.
static WAIT: AtomicU32 = AtomicU32::new(0);
/// Number of the recording that one thread has begun, or tried to begin.
static TRIED: AtomicU32 = AtomicU32::new(0);

/// Records allocations of this process whenever the session says so. `own_session` must be set.
pub fn begin(session: &Session) {
    let page = session.page;
    if page.allocation_sampling.load(Relaxed) == 0 {
        return;
    }
    real::resolve();
    takeover::begin(session);
    if page.allocations.load(Acquire) != 0 {
        begin_recording();
    }
    ON.store((&raw const page.allocations).cast_mut(), Release);
}

/// Whether allocations are recorded, or will be when the session says so.
pub fn are_hooked() -> bool {
    ON.load(Acquire).cast_const() != &raw const NEVER
}

/// Whether the recording that the session asks for has begun here. The first thread begins it.
#[inline(always)]
fn is_recording() -> bool {
    // SAFETY: the word of the session page, which stays mapped, or `NEVER`.
    let wanted = unsafe { (*ON.load(Acquire)).load(Relaxed) };
    wanted != 0 && (wanted == stackglass_heap::session() || begin_when_due())
}

#[cold]
#[inline(never)]
fn begin_when_due() -> bool {
    let waits = WAIT.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
    !waits && begin_recording()
}

/// Makes the tables if there are none, and begins the recording with the session's number.
fn begin_recording() -> bool {
    let Some(session) = own_session::get() else { return false };
    let page = session.page;
    let number = page.allocations.load(Acquire);
    let tried = TRIED.load(Acquire);
    if number == 0 || number == tried || TRIED.compare_exchange(tried, number, AcqRel, Acquire).is_err() {
        return false;
    }
    let errno = system::errno();
    let granule = if real::is_glibc() && !takeover::is_done() { Granule::Of32 } else { Granule::Of16 };
    let folder = InFolder { folder: session.folder.as_bytes(), begin: system::now() };
    let sampling = Sampling::from_numbers(
        page.allocation_sampling.load(Relaxed),
        page.allocation_parameter.load(Relaxed),
    );
    // A session that has ended has removed its folder. This is no error.
    let begun = sampling.is_some_and(|sampling| {
        let prepared = stackglass_heap::prepare(Memory::Session(folder), granule).is_ok();
        if prepared {
            stackglass_heap::start(sampling, number);
        }
        prepared
    });
    system::set_errno(errno);
    begun
}

/// In a forked child. If children are recorded, it gets tables of its own after some allocations.
pub fn after_fork(follows_children: bool) {
    if ON.load(Acquire).cast_const() == &raw const NEVER {
        return;
    }
    stackglass_heap::after_fork();
    if follows_children {
        WAIT.store(PATIENCE, Relaxed);
        TRIED.store(0, Release);
    } else {
        ON.store((&raw const NEVER).cast_mut(), Release);
    }
}
