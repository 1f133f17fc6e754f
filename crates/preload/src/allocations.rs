//! Recording of allocations in this process: when it begins, and what forked children do.
//!
//! While nothing is recorded, each hook is one comparison and a jump to the C library's function (`entries_x86_64`). The
//! comparison reads a word of the session page, which the launcher changes at any moment. So a program under `stackglass run`
//! is ready to be recorded.

#[path = "allocations/entries_x86_64.rs"]
mod entries;
mod hooks;
mod mappings;
mod real;

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
/// One thread makes the tables; if it fails, no other tries.
static MAKING: AtomicU32 = AtomicU32::new(0);

/// Records allocations of this process whenever the session says so. `own_session` must be set.
pub fn begin(session: &Session) {
    let page = session.page;
    if page.allocation_sampling.load(Relaxed) == 0 {
        return;
    }
    real::resolve();
    if page.allocations.load(Acquire) != 0 {
        make_tables();
    }
    ON.store((&raw const page.allocations).cast_mut(), Release);
}

/// Whether there are tables; makes them if it is time to.
#[cold]
#[inline(never)]
fn make_tables_when_due() -> bool {
    let waits = WAIT.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
    !waits && make_tables()
}

fn make_tables() -> bool {
    if MAKING.compare_exchange(0, 1, AcqRel, Acquire).is_err() {
        return false;
    }
    let errno = system::errno();
    let made = own_session::get().is_some_and(|session| {
        let granule = if real::is_glibc() { Granule::Of32 } else { Granule::Of16 };
        let folder = InFolder { folder: session.folder.as_bytes(), begin: system::now() };
        let page = session.page;
        let sampling = Sampling::from_numbers(
            page.allocation_sampling.load(Relaxed),
            page.allocation_parameter.load(Relaxed),
        );
        let Some(sampling) = sampling else { return false };
        // A session that has ended has removed its folder. This is no error.
        let Ok(_) = stackglass_heap::prepare(Memory::Session(folder), granule) else { return false };
        stackglass_heap::start(sampling);
        true
    });
    system::set_errno(errno);
    made
}

/// In a forked child. If children are recorded, it gets tables of its own after some allocations.
pub fn after_fork(follows_children: bool) {
    if ON.load(Acquire).cast_const() == &raw const NEVER {
        return;
    }
    stackglass_heap::after_fork();
    if follows_children {
        WAIT.store(PATIENCE, Relaxed);
        MAKING.store(0, Release);
    } else {
        ON.store((&raw const NEVER).cast_mut(), Release);
    }
}
