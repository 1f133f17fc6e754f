//! The allocator of the crate `stackglass`: a wrapper around another one that counts while it is asked to.
//!
//! While nothing counts, each call is one load and a branch more than that of the inner allocator. Recording functions are
//! nested in the methods of `GlobalAlloc`, so that their names say to which method they belong: readers leave such frames out.

use crate::blocks::Granule;
use crate::recorder::{self, Kind};
use crate::registers::here;
use crate::stats;
use crate::switch::{ALLOCATIONS, FREES, ON, PROBE, Switch};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};
use stackglass_host::fork_guard;
use stackglass_unwind::stack_cache::Start;
use std::alloc::System;

/// Address of the allocator that allocates for this program; 0 before the first [`probe`].
static GLOBAL: AtomicUsize = AtomicUsize::new(0);
static GLOBAL_GRANULE: AtomicU32 = AtomicU32::new(0);
/// The process that records. A forked child finds another one, or none.
static OWNER: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Allocations of this thread are not recorded.
    static LEFT_OUT: Cell<u32> = const { Cell::new(0) };
}

/// What the allocator passes to the recorder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passing {
    /// Nothing.
    Nothing,
    /// Frees only: what was recorded before stays followed.
    Frees,
    /// Allocations and frees.
    All,
}

/// Sets what the allocator passes to the recorder.
pub fn pass(what: Passing) {
    let bits = match what {
        Passing::Nothing => 0,
        Passing::Frees => FREES,
        Passing::All => ALLOCATIONS | FREES,
    };
    OWNER.store(fork_guard::sampled_process().map_or(0, |process| process.pid), Release);
    let _ = ON.fetch_update(SeqCst, SeqCst, |on| Some(on & !(ALLOCATIONS | FREES) | bits));
}

/// The granule of the allocator that allocates for this program. `None` if it is not an [`Alloc`].
pub fn probe() -> Option<Granule> {
    if GLOBAL.load(Acquire) == 0 {
        ON.fetch_or(PROBE, SeqCst);
        drop(core::hint::black_box(Box::new(0u64)));
        ON.fetch_and(!PROBE, SeqCst);
    }
    if GLOBAL.load(Acquire) == 0 {
        return None;
    }
    let is_16 = GLOBAL_GRANULE.load(Relaxed) == Granule::Of16 as u32;
    Some(if is_16 { Granule::Of16 } else { Granule::Of32 })
}

/// While it exists, allocations of this thread are not recorded. Scopes count them.
#[derive(Debug)]
pub struct LeftOut {
    _stays: core::marker::PhantomData<*const ()>,
}

impl LeftOut {
    /// Leaves the calling thread out.
    pub fn new() -> LeftOut {
        LEFT_OUT.with(|depth| depth.set(depth.get() + 1));
        LeftOut { _stays: core::marker::PhantomData }
    }
}

impl Default for LeftOut {
    fn default() -> LeftOut {
        LeftOut::new()
    }
}

impl Drop for LeftOut {
    fn drop(&mut self) {
        let _ = LEFT_OUT.try_with(|depth| depth.set(depth.get().saturating_sub(1)));
    }
}

/// In a forked child: nothing is recorded. Scopes of the thread that forked go on.
pub fn after_fork() {
    ON.fetch_and(!(ALLOCATIONS | FREES | PROBE), SeqCst);
    OWNER.store(0, Release);
}

/// Smallest size that is requested from an inner allocator, so that two blocks are 16 bytes apart.
const SMALLEST: usize = 16;

/// An allocator that counts what it allocates, on request. It passes all calls on to another one, by default the system's.
///
/// ```
/// # use stackglass_heap as stackglass;
/// # fn main() {}
/// #[global_allocator]
/// static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();
/// ```
///
/// Around another allocator, which every allocator of a crate is that implements `GlobalAlloc`:
///
/// ```
/// # use stackglass_heap as stackglass;
/// # use std::alloc::System as MiMalloc;
/// # fn main() {}
/// #[global_allocator]
/// static ALLOCATOR: stackglass::Alloc<MiMalloc> = stackglass::Alloc::new(MiMalloc);
/// ```
///
/// While nothing counts, a call costs one load and a branch. Requests for less than 16 bytes to another allocator than the
/// system's are rounded up to 16 bytes.
#[derive(Debug)]
pub struct Alloc<Inner = System> {
    inner: Inner,
    granule: Granule,
}

impl Alloc<System> {
    /// Around the system's allocator.
    pub const fn system() -> Alloc<System> {
        let granule = if cfg!(target_env = "gnu") { Granule::Of32 } else { Granule::Of16 };
        Alloc { inner: System, granule }
    }
}

impl<Inner> Alloc<Inner> {
    /// Around another allocator, such as mimalloc or jemalloc.
    pub const fn new(inner: Inner) -> Alloc<Inner> {
        Alloc { inner, granule: Granule::Of16 }
    }

    /// The allocator that this one passes calls on to.
    pub const fn inner(&self) -> &Inner {
        &self.inner
    }

    #[inline(always)]
    fn rounded(&self, size: usize) -> usize {
        if matches!(self.granule, Granule::Of16) && size < SMALLEST { SMALLEST } else { size }
    }

    #[inline(always)]
    fn layout(&self, layout: Layout) -> Layout {
        // SAFETY: the alignment is that of a layout. A size that is smaller than 16 and becomes 16 does not overflow when it is
        // rounded up to an alignment.
        unsafe { Layout::from_size_align_unchecked(self.rounded(layout.size()), layout.align()) }
    }

    /// Whether the recorder counts for this allocator, in this process.
    fn is_recorded(&self) -> bool {
        let owner = OWNER.load(Relaxed);
        GLOBAL.load(Relaxed) == (&raw const *self).addr()
            && owner != 0
            && fork_guard::sampled_process().is_some_and(|process| process.pid == owner)
    }

    /// Counts a new block.
    ///
    /// # Safety
    /// `start` must be the state of a function of the calling thread that has not returned.
    #[inline(always)]
    unsafe fn count(&self, at: *mut u8, size: usize, ended: Option<usize>, start: Start) {
        let on = Switch::load();
        stats::allocated(on, size, ended);
        if on.0 & ALLOCATIONS != 0
            && self.is_recorded()
            && LEFT_OUT.try_with(|depth| depth.get() == 0).unwrap_or(true)
        {
            // SAFETY: by the caller.
            unsafe { recorder::allocated(at.addr(), size, Kind::Block, start) };
        } else if on.0 & PROBE != 0 {
            GLOBAL_GRANULE.store(self.granule as u32, Relaxed);
            GLOBAL.store((&raw const *self).addr(), Release);
        }
    }
}

// SAFETY: all calls are passed on to an allocator. Sizes below 16 may become 16, for each call alike. The recorder neither
// allocates nor unwinds, and touches no block.
unsafe impl<Inner: GlobalAlloc> GlobalAlloc for Alloc<Inner> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        #[cold]
        #[inline(never)]
        unsafe fn recorded<Inner: GlobalAlloc>(this: &Alloc<Inner>, layout: Layout) -> *mut u8 {
            // SAFETY: by the caller of `alloc`; this function has not returned.
            unsafe {
                let at = this.inner.alloc(this.layout(layout));
                if !at.is_null() {
                    this.count(at, layout.size(), None, here());
                }
                at
            }
        }
        // SAFETY: by the caller.
        unsafe {
            if Switch::load().is_off() {
                return self.inner.alloc(self.layout(layout));
            }
            recorded(self, layout)
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        #[cold]
        #[inline(never)]
        unsafe fn recorded<Inner: GlobalAlloc>(this: &Alloc<Inner>, layout: Layout) -> *mut u8 {
            // SAFETY: by the caller of `alloc_zeroed`; this function has not returned.
            unsafe {
                let at = this.inner.alloc_zeroed(this.layout(layout));
                if !at.is_null() {
                    this.count(at, layout.size(), None, here());
                }
                at
            }
        }
        // SAFETY: by the caller.
        unsafe {
            if Switch::load().is_off() {
                return self.inner.alloc_zeroed(self.layout(layout));
            }
            recorded(self, layout)
        }
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        #[cold]
        #[inline(never)]
        fn recorded<Inner: GlobalAlloc>(this: &Alloc<Inner>, at: *mut u8, size: usize) {
            let on = Switch::load();
            stats::freed(on, size);
            if on.0 & FREES != 0 && this.is_recorded() {
                recorder::freed(at.addr());
            }
        }
        if !Switch::load().is_off() {
            recorded(self, at, layout.size());
        }
        // SAFETY: by the caller.
        unsafe { self.inner.dealloc(at, self.layout(layout)) };
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        #[cold]
        #[inline(never)]
        unsafe fn recorded<Inner: GlobalAlloc>(
            this: &Alloc<Inner>,
            old: *mut u8,
            layout: Layout,
            size: usize,
        ) -> *mut u8 {
            // SAFETY: by the caller of `realloc`; this function has not returned.
            unsafe {
                let follows = Switch::load().0 & FREES != 0 && this.is_recorded();
                let ended = follows.then(|| recorder::before_reallocation(old.addr()));
                let at = this.inner.realloc(old, this.layout(layout), this.rounded(size));
                if at.is_null() {
                    if let Some(ended) = ended {
                        recorder::reallocation_failed(ended);
                    }
                    return at;
                }
                if let Some(ended) = &ended {
                    ended.count(Some((at.addr(), size)));
                }
                this.count(at, size, Some(layout.size()), here());
                at
            }
        }
        // SAFETY: by the caller. The new size is at most rounded up to 16.
        unsafe {
            if Switch::load().is_off() {
                return self.inner.realloc(old, self.layout(layout), self.rounded(size));
            }
            recorded(self, old, layout, size)
        }
    }
}
