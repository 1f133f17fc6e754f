//! The memory of our stay in this process: slots, mailboxes, news, and where the stream lies.
//!
//! One anonymous mapping, touched lazily, not given to forked children (`MADV_DONTFORK`). Once made it is
//! never unmapped: a late signal or a thread that is just beginning may still look at it.

use crate::arrivals::Arrivals;
use crate::events::{EVENTS, Event};
use crate::mailbox::{MAILBOXES, Mailbox};
use crate::slot::{CAPACITY, Slot, SlotIndex};
use crate::{marker, system};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};
use stackglass_wire::{ControlPage, Counter};

/// Everything the handler, the hooks and the sampler share. All zeros is an empty guest.
#[repr(C)]
pub struct Guest {
    control: AtomicPtr<ControlPage>,
    ring: AtomicPtr<core::sync::atomic::AtomicU64>,
    ring_words: AtomicUsize,
    /// Changes when the sampler shall look up before its next tick is due.
    pub call: AtomicU32,
    /// Set by the hooks when a library was closed.
    pub modules_changed: AtomicU32,
    /// News from the program's threads.
    pub arrivals: Arrivals,
    /// Events of the kernel's that signal threads, by descriptor.
    pub events: [Event; EVENTS],
    /// The pool of mailboxes.
    pub mailboxes: [Mailbox; MAILBOXES],
    slots: [Slot; CAPACITY],
}

static GUEST: AtomicPtr<Guest> = AtomicPtr::new(core::ptr::null_mut());

/// The guest of this process, `None` before the first start and in a forked child.
#[inline]
pub fn current() -> Option<&'static Guest> {
    marker::armed()?;
    // SAFETY: null, or a mapping that is never unmapped in the process that made it; `armed` says that this
    // is that process.
    unsafe { GUEST.load(Acquire).as_ref() }
}

/// Makes the guest of this process and arms the marker, or gives the one there is.
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
    // SAFETY: advice on the mapping just made. Without it a child only carries needless address space.
    unsafe { libc::madvise(at.cast(), bytes, libc::MADV_DONTFORK) };
    GUEST.store(at.cast(), Release);
    if !marker::arm() {
        return None;
    }
    current()
}

impl Guest {
    /// Where control page and stream lie from now on. They must stay mapped for good.
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

    /// Counts one more of something, where there is a control page already.
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

    /// Makes the sampler look up at once.
    pub fn call_sampler(&self) {
        self.call.fetch_add(1, AcqRel);
        system::wake(&self.call);
    }
}
