//! One asked poll: a waker that notes the stack of each of its clones, and the list of finished traces.

use super::Said;
use crate::UNWINDER;
use core::cell::{Cell, UnsafeCell};
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering::*};
use core::task::{RawWaker, RawWakerVTable, Waker};
use stackglass_unwind::{OwnStack, Registers, Scratch, StackMemory};

/// Most frames of a stack.
const FRAMES: usize = 256;
/// Most stacks of a task.
const STACKS: usize = 256;
/// Most frames of all stacks of a task.
const WORDS: usize = 64 << 10;

/// A stack in an asked poll.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stack {
    /// Lookup addresses, innermost first. The last is that of the function that polls the task.
    pub frames: Vec<u64>,
    /// The waker was woken here, not cloned.
    pub is_wake: bool,
}

/// A poll that is traced, for the function that polls.
///
/// Its waker is lent to the poll, as every waker of a `Context`. Clones of it are clones of the real waker.
pub struct Tracing {
    trace: NonNull<Trace>,
    waker: Waker,
}

/// What the waker refers to.
pub(super) struct Trace {
    id: u64,
    question: u32,
    /// The waker that the executor polls with, which lives longer than the poll.
    real: NonNull<Waker>,
    /// Address of a variable in the function that polls. The stack ends there.
    limit: u64,
    /// The polling thread.
    thread: usize,
    /// A clone is being noted.
    is_noting: Cell<bool>,
    work: UnsafeCell<Work>,
}

/// What remains of a trace.
pub(super) struct Finished {
    id: u64,
    question: u32,
    said: Said,
    next: *mut Finished,
}

/// What only the polling thread uses.
struct Work {
    scratch: Scratch,
    buffer: [u64; FRAMES],
    stacks: Vec<Stack>,
    words: usize,
}

/// Finished traces, newest first. Threads only push to it, or take it whole, so it needs no lock and survives a fork.
static FINISHED: AtomicPtr<Finished> = AtomicPtr::new(core::ptr::null_mut());

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, drop_lent);

thread_local! {
    /// Its address identifies the thread.
    static HERE: u8 = const { 0 };
    /// The mapping that holds the thread's stack.
    static STACK: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

fn this_thread() -> usize {
    HERE.with(|here| core::ptr::from_ref(here).addr())
}

impl Tracing {
    /// Begins to trace the poll that `real` was given for. `real` must live longer than the result.
    pub(super) fn begin(id: u64, question: u32, real: &Waker, limit: u64) -> Tracing {
        let work =
            Work { scratch: Scratch::new(), buffer: [0; FRAMES], stacks: Vec::with_capacity(4), words: 0 };
        let trace = NonNull::from(Box::leak(Box::new(Trace {
            id,
            question,
            real: NonNull::from(real),
            limit,
            thread: this_thread(),
            is_noting: Cell::new(false),
            work: UnsafeCell::new(work),
        })));
        // SAFETY: the functions of the vtable take a trace that is alive. It is as long as this waker, of which the poll only has
        // a reference. Clones do not refer to it.
        let waker = unsafe { Waker::new(trace.as_ptr().cast_const().cast(), &VTABLE) };
        Tracing { trace, waker }
    }

    /// The waker to poll with.
    #[inline]
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// The poll has ended.
    #[inline(never)]
    pub fn end(self, is_ready: bool) {
        // SAFETY: made from a box; the poll is over, and the waker's drop does not look at it.
        let trace = unsafe { Box::from_raw(core::mem::ManuallyDrop::new(self).trace.as_ptr()) };
        let Trace { id, question, .. } = *trace;
        let said = if is_ready { Said::Ended } else { Said::Waits(trace.work.into_inner().stacks) };
        let new = Box::into_raw(Box::new(Finished { id, question, said, next: core::ptr::null_mut() }));
        let mut head = FINISHED.load(Relaxed);
        loop {
            // SAFETY: only this thread knows it until it is published.
            unsafe { (*new).next = head };
            match FINISHED.compare_exchange_weak(head, new, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

/// After a panic.
impl Drop for Tracing {
    fn drop(&mut self) {
        // SAFETY: made from a box; the poll is over. The waker's own drop does not look at it.
        drop(unsafe { Box::from_raw(self.trace.as_ptr()) });
    }
}

impl Finished {
    /// The task.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What it answers.
    pub fn question(&self) -> u32 {
        self.question
    }

    /// What the task said.
    pub fn said(self) -> Said {
        self.said
    }
}

impl Trace {
    /// Notes the stack of the caller.
    #[inline(never)]
    fn note(&self, is_wake: bool) {
        // A poll may lend its waker to other threads.
        if self.thread != this_thread() || self.is_noting.replace(true) {
            return;
        }
        // SAFETY: only the polling thread gets here, and only once at a time.
        let work = unsafe { &mut *self.work.get() };
        if work.stacks.len() < STACKS && work.words < WORDS {
            let here = Registers::here();
            let known = STACK.get();
            let stack = OwnStack::within(known.0..known.1, here.sp());
            let Range { start, end } = stack.range();
            STACK.set((start, end));
            let mut stack = UpTo { stack, limit: self.limit };
            let walk = UNWINDER.walk(&here, &mut stack, &mut work.scratch, &mut work.buffer);
            let frames = work.buffer[..walk.len.min(FRAMES)].to_vec();
            work.words += frames.len();
            work.stacks.push(Stack { frames, is_wake });
        }
        self.is_noting.set(false);
    }
}

/// The real waker, where tasks are nested in traced ones.
pub(super) fn real(waker: &Waker) -> &Waker {
    let mut waker = waker;
    while core::ptr::eq(waker.vtable(), &VTABLE) {
        // SAFETY: a waker with this vtable is lent to a poll that goes on, so its trace and the real waker are alive.
        waker = unsafe { (*waker.data().cast::<Trace>()).real.as_ref() };
    }
    waker
}

/// All finished traces.
pub(super) fn take() -> Vec<Finished> {
    let mut head = FINISHED.swap(core::ptr::null_mut(), AcqRel);
    let mut all = Vec::new();
    while !head.is_null() {
        // SAFETY: the list was taken whole, so its boxes belong to this thread.
        let trace = unsafe { Box::from_raw(head) };
        head = trace.next;
        all.push(*trace);
    }
    all
}

/// The stack of this thread below a limit.
struct UpTo {
    stack: OwnStack,
    limit: u64,
}

impl StackMemory for UpTo {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        if address < self.limit { self.stack.read_u64(address) } else { None }
    }
}

/// # Safety
/// `data` is that of the waker of a [`Tracing`] that is alive.
unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: see above.
    let trace = unsafe { &*data.cast::<Trace>() };
    trace.note(false);
    // SAFETY: the real waker lives longer.
    let real = core::mem::ManuallyDrop::new(unsafe { trace.real.as_ref() }.clone());
    RawWaker::new(real.data(), real.vtable())
}

/// # Safety
/// As for [`clone`]. The waker itself is lent, so it is never woken by value.
unsafe fn wake(data: *const ()) {
    // SAFETY: see above.
    let trace = unsafe { &*data.cast::<Trace>() };
    trace.note(true);
    // SAFETY: the real waker lives longer.
    unsafe { trace.real.as_ref() }.wake_by_ref();
}

/// Nothing is owned.
unsafe fn drop_lent(_: *const ()) {}
