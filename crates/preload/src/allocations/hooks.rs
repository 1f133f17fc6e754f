//! The recording functions of the allocator: the real one, and the count.
//!
//! With a rate, most allocations are left out and most freed blocks are not known. Then `malloc`, `calloc`, `realloc` and `free` jump to
//! the real function, with nothing of theirs on the stack.
//!
//! The last two arguments describe the program's function: the address of its return address, and its `rbp`.

use super::{begins_or_is_recording, is_recording, real, wanted};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::*};
use stackglass_heap::{Kind, Start, leaves_out, may_have};

/// The state of the program's function after the return to it.
///
/// # Safety
/// `sp` must be the stack pointer at an entry: the address of the return address.
#[inline(always)]
pub(super) unsafe fn caller(sp: *const u64, rbp: u64) -> Start {
    // SAFETY: by the caller.
    Start { pc: unsafe { sp.read_unaligned() }, sp: sp.addr() as u64 + 8, rbp }
}

/// Counts a block.
///
/// # Safety
/// `sp` and `rbp` must be those of an entry that has not returned.
#[inline(always)]
pub(super) unsafe fn count(block: *mut c_void, size: usize, kind: Kind, sp: *const u64, rbp: u64) {
    if block.is_null() || !begins_or_is_recording() {
        return;
    }
    // SAFETY: by the caller.
    unsafe { stackglass_heap::allocated(block.addr(), size, kind, caller(sp, rbp)) };
}

/// Blocks are made at least this large: 0, or the distance at which the table of live blocks tells two apart. Allocators with
/// size classes put blocks of up to [`SMALL`] bytes closer together.
static SMALLEST: AtomicUsize = AtomicUsize::new(0);
const DISTANCE: usize = 16;
const SMALL: usize = 8;

#[inline(always)]
fn smallest() -> usize {
    SMALLEST.load(Relaxed)
}

/// A block that is too close to its neighbours, and that the program does not know yet, is made again.
///
/// # Safety
/// It must be a block of the allocator.
#[inline(always)]
unsafe fn apart(block: *mut c_void, size: usize, again: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if block.addr() & SMALL == 0 || size > SMALL {
        return block;
    }
    SMALLEST.store(DISTANCE, Relaxed);
    // SAFETY: by the caller.
    unsafe { real::free(block) };
    again()
}

pub(super) unsafe extern "C" fn malloc(size: usize, sp: *const u64, rbp: u64) -> *mut c_void {
    // SAFETY: the arguments of an entry, passed on.
    unsafe { if leaves_out(size, wanted()) { real::malloc(size) } else { counted_malloc(size, sp, rbp) } }
}

#[inline(never)]
unsafe extern "C" fn counted_malloc(size: usize, sp: *const u64, rbp: u64) -> *mut c_void {
    // SAFETY: the arguments of an entry, passed on.
    unsafe {
        let block = real::malloc(size.max(smallest()));
        let block = apart(block, size, || real::malloc(DISTANCE));
        count(block, size, Kind::Block, sp, rbp);
        block
    }
}

pub(super) unsafe extern "C" fn calloc(n: usize, size: usize, sp: *const u64, rbp: u64) -> *mut c_void {
    // SAFETY: the arguments of an entry, passed on.
    unsafe {
        match leaves_out(n.wrapping_mul(size), wanted()) {
            true => real::calloc(n, size),
            false => counted_calloc(n, size, sp, rbp),
        }
    }
}

#[inline(never)]
unsafe extern "C" fn counted_calloc(n: usize, size: usize, sp: *const u64, rbp: u64) -> *mut c_void {
    // SAFETY: the arguments of an entry, passed on. If the product overflows, the real one returns null.
    unsafe {
        let bytes = n.wrapping_mul(size);
        let is_small = n.checked_mul(size).is_some_and(|bytes| bytes < smallest());
        let block = if is_small { real::calloc(1, smallest()) } else { real::calloc(n, size) };
        let block = apart(block, bytes, || real::calloc(1, DISTANCE));
        count(block, bytes, Kind::Block, sp, rbp);
        block
    }
}

pub(super) unsafe extern "C" fn realloc(
    old: *mut c_void,
    size: usize,
    sp: *const u64,
    rbp: u64,
) -> *mut c_void {
    // SAFETY: the arguments of an entry, passed on.
    unsafe {
        // A reallocation to nothing frees, so it mostly is no allocation that could be left out.
        let allocates = size != 0 || old.is_null();
        match !may_have(old.addr()) && allocates && leaves_out(size, wanted()) {
            true => real::realloc(old, size),
            false => counted_realloc(old, size, sp, rbp),
        }
    }
}

#[inline(never)]
unsafe extern "C" fn counted_realloc(old: *mut c_void, size: usize, sp: *const u64, rbp: u64) -> *mut c_void {
    // SAFETY: the arguments of an entry, passed on.
    unsafe {
        let ended = before_reallocation(old);
        let block = real::realloc(old, if size == 0 { 0 } else { size.max(smallest()) });
        count_reallocation(ended, block, size, sp, rbp)
    }
}

/// # Safety
/// As for [`count`].
pub(super) unsafe fn count_reallocation(
    ended: stackglass_heap::Ended,
    block: *mut c_void,
    size: usize,
    sp: *const u64,
    rbp: u64,
) -> *mut c_void {
    if block.is_null() && size != 0 {
        stackglass_heap::reallocation_failed(ended);
    } else {
        ended.count((!block.is_null()).then_some((block.addr(), size)));
        // SAFETY: by the caller.
        unsafe { count(block, size, Kind::Block, sp, rbp) };
    }
    block
}

pub(super) unsafe extern "C" fn reallocarray(
    old: *mut c_void,
    n: usize,
    size: usize,
    sp: *const u64,
    rbp: u64,
) -> *mut c_void {
    // SAFETY: the arguments of an entry, passed on. If the product overflows, the real one returns null. Otherwise it would call
    // `realloc` by its name, which is that of this library.
    unsafe {
        match n.checked_mul(size) {
            Some(bytes) => realloc(old, bytes, sp, rbp),
            None => real::reallocarray(old, n, size),
        }
    }
}

/// Takes a block out before it is reallocated.
#[inline(always)]
pub(super) fn before_reallocation(old: *mut c_void) -> stackglass_heap::Ended {
    stackglass_heap::before_reallocation(if is_recording() { old.addr() } else { 0 })
}

macro_rules! aligned {
    ($name:ident) => {
        pub(super) unsafe extern "C" fn $name(
            align: usize,
            size: usize,
            sp: *const u64,
            rbp: u64,
        ) -> *mut c_void {
            // SAFETY: the arguments of an entry, passed on.
            unsafe {
                let block = real::$name(align, size.max(smallest()));
                count(block, size, Kind::Block, sp, rbp);
                block
            }
        }
    };
}
aligned!(memalign);
aligned!(aligned_alloc);

pub(super) unsafe extern "C" fn posix_memalign(
    place: *mut *mut c_void,
    align: usize,
    size: usize,
    sp: *const u64,
    rbp: u64,
) -> c_int {
    // SAFETY: the arguments of an entry, passed on. `place` holds the block if the call succeeds.
    unsafe {
        let answer = real::posix_memalign(place, align, size.max(smallest()));
        if answer == 0 {
            count(*place, size, Kind::Block, sp, rbp);
        }
        answer
    }
}

macro_rules! paged {
    ($name:ident) => {
        pub(super) unsafe extern "C" fn $name(size: usize, sp: *const u64, rbp: u64) -> *mut c_void {
            // SAFETY: the arguments of an entry, passed on.
            unsafe {
                let block = real::$name(size);
                count(block, size, Kind::Block, sp, rbp);
                block
            }
        }
    };
}
paged!(valloc);
paged!(pvalloc);

pub(super) unsafe extern "C" fn free(block: *mut c_void, _sp: *const u64, _rbp: u64) {
    // SAFETY: the argument of an entry, passed on.
    unsafe { if may_have(block.addr()) { counted_free(block) } else { real::free(block) } }
}

#[inline(never)]
unsafe extern "C" fn counted_free(block: *mut c_void) {
    if !block.is_null() && is_recording() {
        stackglass_heap::freed(block.addr());
    }
    // SAFETY: the argument of an entry, passed on.
    unsafe { real::free(block) };
}
