//! The recording functions of an allocator that is part of the executable.
//!
//! An allocator's functions call each other: only the outermost call is counted. Mappings that it makes meanwhile are its own.

use super::hooks::{before_reallocation, count, count_reallocation};
use super::{inside, is_recording};
use core::ffi::c_void;
use core::mem::transmute;
use stackglass_heap::Kind;

/// Blocks of at least this size are at least this far apart.
const SMALLEST: usize = 16;

/// A function of the allocator: three arguments, of which it may use fewer.
type Original = unsafe extern "C" fn(usize, usize, usize) -> *mut c_void;

/// An allocation of 0 bytes gets a block, too.
#[inline(always)]
fn rounded(size: usize) -> usize {
    size.max(SMALLEST)
}

#[inline(always)]
fn rounded_unless_0(size: usize) -> usize {
    if size == 0 { 0 } else { rounded(size) }
}

/// # Safety
/// `original` must be the code of a function of the allocator, with these arguments.
#[inline(always)]
unsafe fn call(original: usize, a: usize, b: usize, c: usize) -> *mut c_void {
    // SAFETY: by the caller.
    unsafe { transmute::<usize, Original>(original)(a, b, c) }
}

/// One function that allocates: its name, the size that is counted, the arguments that are passed on.
macro_rules! allocating {
    ($name:ident($a:ident, $b:ident, $c:ident), $size:expr, ($($passed:expr),*)) => {
        pub(super) unsafe extern "C" fn $name(
            $a: usize,
            $b: usize,
            $c: usize,
            sp: *const u64,
            rbp: u64,
            original: usize,
        ) -> *mut c_void {
            // SAFETY: the arguments of an entry, passed on.
            unsafe {
                let outer = inside::enter(sp);
                let block = call(original, $($passed),*);
                if let Some(outer) = outer {
                    drop(outer);
                    count(block, $size, Kind::Block, sp, rbp);
                }
                block
            }
        }
    };
}
allocating!(allocate(size, b, c), size, (rounded(size), b, c));
allocating!(allocate_aligned(align, size, c), size, (align, rounded(size), c));

pub(super) unsafe extern "C" fn allocate_array(
    n: usize,
    size: usize,
    c: usize,
    sp: *const u64,
    rbp: u64,
    original: usize,
) -> *mut c_void {
    // If the product overflows, the original returns null.
    let bytes = n.checked_mul(size);
    let (n, size) = if bytes.is_some_and(|bytes| bytes < SMALLEST) { (1, SMALLEST) } else { (n, size) };
    // SAFETY: the arguments of an entry, passed on.
    unsafe {
        let outer = inside::enter(sp);
        let block = call(original, n, size, c);
        if let Some(outer) = outer {
            drop(outer);
            count(block, bytes.unwrap_or(0), Kind::Block, sp, rbp);
        }
        block
    }
}

pub(super) unsafe extern "C" fn allocate_at(
    place: usize,
    align: usize,
    size: usize,
    sp: *const u64,
    rbp: u64,
    original: usize,
) -> *mut c_void {
    // SAFETY: the arguments of an entry, passed on. `place` holds the block if the call succeeds. The result is an `int`.
    unsafe {
        let outer = inside::enter(sp);
        let answer = call(original, place, align, rounded(size));
        if let Some(outer) = outer {
            drop(outer);
            if answer.addr() as i32 == 0 {
                count(*(place as *const *mut c_void), size, Kind::Block, sp, rbp);
            }
        }
        answer
    }
}

pub(super) unsafe extern "C" fn reallocate(
    old: usize,
    size: usize,
    c: usize,
    sp: *const u64,
    rbp: u64,
    original: usize,
) -> *mut c_void {
    // SAFETY: the arguments of an entry, passed on.
    unsafe {
        let Some(outer) = inside::enter(sp) else { return call(original, old, rounded_unless_0(size), c) };
        let ended = before_reallocation(old as *mut c_void);
        let block = call(original, old, rounded_unless_0(size), c);
        drop(outer);
        count_reallocation(ended, block, size, sp, rbp)
    }
}

#[inline(always)]
fn end(block: usize) {
    if block != 0 && is_recording() {
        stackglass_heap::freed(block);
    }
}

pub(super) unsafe extern "C" fn free(
    block: usize,
    b: usize,
    c: usize,
    _sp: *const u64,
    _rbp: u64,
    original: usize,
) -> *mut c_void {
    end(block);
    // SAFETY: the arguments of an entry, passed on.
    unsafe { call(original, block, b, c) }
}

pub(super) unsafe extern "C" fn free_sized(
    block: usize,
    size: usize,
    c: usize,
    _sp: *const u64,
    _rbp: u64,
    original: usize,
) -> *mut c_void {
    end(block);
    // SAFETY: the arguments of an entry, passed on.
    unsafe { call(original, block, rounded_unless_0(size), c) }
}
