//! The profiler's memory in this process: slots, mailboxes, thread events, and where the stream lies.
//!
//! One anonymous mapping, touched lazily and not inherited by forked children (`MADV_DONTFORK`). It is never
//! unmapped, because a late signal or a starting thread may still access it.

use crate::mailbox::{MAILBOXES, Mailbox};
use crate::slot::{CAPACITY, Slot, SlotIndex};
use crate::thread_events::ThreadEventQueue;
use crate::user_timer::TimedThreads;
use crate::{fork_guard, system};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};
use stackglass_wire::{ControlPage, Counter};

/// Everything that the handler, the hooks and the sampler share. All zeros is an empty guest.
#[repr(C)]
pub struct Guest {
    control: AtomicPtr<ControlPage>,
    ring: AtomicPtr<core::sync::atomic::AtomicU64>,
    ring_words: AtomicUsize,
    /// Counts requests that the sampler wake up before its next tick.
    pub wakeups: AtomicU32,
    /// Set by the hooks when a library was closed.
    pub modules_changed: AtomicU32,
    /// Events that the program's threads report.
    pub thread_events: ThreadEventQueue,
    /// The pool of mailboxes.
    pub mailboxes: [Mailbox; MAILBOXES],
    /// Whose timers there are.
    pub timers: TimedThreads,
    /// Counts the signals of timers, so that samples have an order.
    pub hits: AtomicU32,
    slots: [Slot; CAPACITY],
}

static GUEST: AtomicPtr<Guest> = AtomicPtr::new(core::ptr::null_mut());

/// The guest of this process, `None` before the first start and in a forked child.
#[inline]
pub fn current() -> Option<&'static Guest> {
    fork_guard::sampled_process()?;
    // SAFETY: null, or a mapping that is never unmapped in the process that made it, which is this process.
    unsafe { GUEST.load(Acquire).as_ref() }
}

/// Makes the guest of this process and arms the fork_guard, or gives the one there is.
///
/// `None` when the kernel refuses the memory. Not for two threads at once.
pub fn establish() -> Option<&'static Guest> {
    if let Some(guest) = current() {
        return Some(guest);
    }
    let bytes = size_of::<Guest>();
    let at = system::map_private(bytes);
    if at.is_null() {
        return None;
    }
    // SAFETY: advice on the mapping just made. Without it a child only inherits unused address space.
    unsafe { libc::madvise(at.cast(), bytes, libc::MADV_DONTFORK) };
    GUEST.store(at.cast(), Release);
    if !fork_guard::arm() {
        return None;
    }
    current()
}

impl Guest {
    /// Sets the control page and the stream. They must stay mapped for as long as the process lives.
    pub fn attach(&self, control: &'static ControlPage, ring: &'static [core::sync::atomic::AtomicU64]) {
        self.ring.store(ring.as_ptr().cast_mut(), Relaxed);
        self.ring_words.store(ring.len(), Relaxed);
        self.control.store((control as *const ControlPage).cast_mut(), Release);
    }

    /// The control page, once attached.
    #[inline]
    pub fn control(&self) -> Option<&'static ControlPage> {
        // SAFETY: null, or from the reference given to `attach`.
        unsafe { self.control.load(Acquire).as_ref() }
    }

    /// Adds one to a counter, if there is a control page.
    #[inline]
    pub fn count(&self, which: Counter) {
        if let Some(control) = self.control() {
            control.counters.add(which, 1);
        }
    }

    /// The slot with this index.
    #[inline]
    pub fn slot(&self, index: SlotIndex) -> &Slot {
        &self.slots[index.0 as usize % CAPACITY]
    }

    /// Wakes the sampler.
    pub fn wake_sampler(&self) {
        self.wakeups.fetch_add(1, AcqRel);
        system::wake(&self.wakeups);
    }
}
