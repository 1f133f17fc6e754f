//! Recording of allocations in this process: when it begins, and what forked children do.
//!
//! While nothing is recorded, each hook is one comparison and a jump to the C library's function (`entries_x86_64`). The
//! comparison reads a word of the session page, which the launcher changes at any moment. So a program under `stackglass run`
//! is ready to be recorded.

#[path = "allocations/confinement_x86_64.rs"]
mod confinement;
#[path = "allocations/entries_x86_64.rs"]
mod entries;
#[path = "allocations/entry_code_x86_64.rs"]
mod entry_code;
mod hooks;
#[path = "allocations/inside_x86_64.rs"]
mod inside;
mod mappings;
#[path = "allocations/own_entries_x86_64.rs"]
mod own_entries;
mod own_hooks;
mod real;
#[cfg_attr(target_arch = "x86_64", path = "allocations/sanitizers_x86_64.rs")]
mod sanitizers;
mod takeover;

use crate::{environment, own_session};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::*};
pub use real::{has_shadow_memory, is_in_glibc};
use stackglass_heap::{Granule, InFolder, Memory, Sampling};
use stackglass_host::session::Session;
use stackglass_host::{confined, system};

/// The word that is not zero while allocations are recorded.
static ON: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const UNKNOWN).cast_mut());
/// The word before the session is known: constructors of other libraries run before that of this one, and may allocate.
static UNKNOWN: AtomicU32 = AtomicU32::new(u32::MAX);
/// The word of a process that is not recorded.
static NEVER: AtomicU32 = AtomicU32::new(0);
/// The session is being looked for.
static LOOKING: AtomicBool = AtomicBool::new(false);

/// Allocations of a forked child before it gets its own tables. Most children exec earlier.
const PATIENCE: u32 = 32;
/// Allocations until the tables are made: 0 in a process that starts with the recording.
static WAIT: AtomicU32 = AtomicU32::new(0);
/// Allocations that were waited for.
static WAITED: AtomicU32 = AtomicU32::new(0);
/// Number of the recording that one thread has begun, or tried to begin.
static TRIED: AtomicU32 = AtomicU32::new(0);

/// Records no allocations in this process.
pub fn never() {
    ON.store((&raw const NEVER).cast_mut(), Release);
}

/// Records allocations of this process whenever the session says so. `own_session` must be set.
pub fn begin(session: &Session) {
    let page = session.page;
    if page.allocation_sampling.load(Relaxed) == 0 {
        return never();
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

/// Number of the recording that the session asks for, 0 for none.
#[inline(always)]
fn wanted() -> u32 {
    // SAFETY: the word of the session page, which stays mapped, or one of this file's.
    unsafe { (*ON.load(Acquire)).load(Relaxed) }
}

/// Whether the recording that the session asks for has begun here.
#[inline(always)]
fn is_recording() -> bool {
    let wanted = wanted();
    wanted != 0 && wanted == stackglass_heap::session()
}

/// The same. The first thread that allocates begins it.
#[inline(always)]
fn begins_or_is_recording() -> bool {
    let wanted = wanted();
    wanted != 0 && (wanted == stackglass_heap::session() || begin_when_due())
}

#[cold]
#[inline(never)]
fn begin_when_due() -> bool {
    if ON.load(Acquire).cast_const() == &raw const UNKNOWN {
        return begin_early();
    }
    if confined::is_confined() {
        return false;
    }
    let waits = WAIT.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
    !waits && begin_recording_late()
}

/// Begins at the first allocation, if the C library is ready. Otherwise a later allocation or the constructor begins.
fn begin_early() -> bool {
    if !environment::is_there() || !real::resolve() || LOOKING.swap(true, Acquire) {
        return false;
    }
    let errno = system::errno();
    match own_session::find() {
        Some(session) => begin(session),
        None => never(),
    }
    system::set_errno(errno);
    stackglass_heap::session() != 0
}

/// Begins in a forked child. The allocations that it made before count as lost.
fn begin_recording_late() -> bool {
    let begun = begin_recording();
    if begun && let Some(tables) = stackglass_heap::tables() {
        tables.page().lost().fetch_add(u64::from(WAITED.swap(0, AcqRel)), Relaxed);
    }
    begun
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
    let folder = InFolder { folder: session.folder.as_bytes(), begin: system::now(), smaller: smaller() };
    let sampling = Sampling::from_numbers(
        page.allocation_sampling.load(Relaxed),
        page.allocation_parameter.load(Relaxed),
    );
    let begun = sampling.is_some_and(|sampling| {
        let prepared = stackglass_heap::prepare(Memory::Session(folder), granule).map(drop);
        match prepared {
            // Only a part of the calls would be seen. The launcher tells why from the empty tables.
            Ok(()) if real::has_other_allocator() && !takeover::is_done() => return false,
            Ok(()) => stackglass_heap::start(sampling, number),
            // A session that has ended has removed its folder. This is no error.
            Err(why) if why.errno == libc::ENOENT => {}
            Err(why) => stackglass_heap::tell_refusal(folder, why),
        }
        prepared.is_ok()
    });
    system::set_errno(errno);
    begun
}

/// For tests: small tables, as on old kernels, or tiny ones, which are soon full.
fn smaller() -> u32 {
    match () {
        _ if environment::has(c"STACKGLASS_TEST_TABLES", c"small") => 1,
        _ if environment::has(c"STACKGLASS_TEST_TABLES", c"tiny") => 8,
        _ => 0,
    }
}

/// In a forked child. If children are recorded, it gets tables of its own after some allocations.
pub fn after_fork(follows_children: bool) {
    if ON.load(Acquire).cast_const() == &raw const NEVER {
        return;
    }
    stackglass_heap::after_fork();
    if follows_children {
        WAIT.store(PATIENCE, Relaxed);
        WAITED.store(PATIENCE, Relaxed);
        TRIED.store(0, Release);
    } else {
        never();
    }
}
