//! Event counts of a profiled process: one word each.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $label:literal;)*) => {
        /// A counter. Numbers never change their meaning.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(usize)]
        pub enum Counter { $($(#[$doc])* $name),* }

        impl Counter {
            /// All counters, in order.
            pub const ALL: &'static [Counter] = &[$(Counter::$name),*];

            /// Its name in `info`.
            pub fn label(self) -> &'static str {
                match self { $(Counter::$name => $label),* }
            }
        }
    };
}

counters! {
    /// Ticks of the sampler.
    Ticks = "ticks";
    /// Ticks that came more than half a delay late.
    LateTicks = "late ticks";
    /// Whole delays that passed without a tick.
    MissedTicks = "missed ticks";
    /// Threads polled (CPU clock read).
    Polls = "polls";
    /// Signals sent to threads that were running.
    SignalsRunning = "signals to running threads";
    /// Signals sent to sleeping threads whose stack could not be read otherwise.
    SignalsAsleep = "signals to sleeping threads";
    /// Stacks taken by the signal handler.
    StacksRunning = "stacks of running threads";
    /// Stacks of sleeping threads read from outside.
    StacksAsleep = "stacks of sleeping threads";
    /// Stacks of sleeping threads found in the sleep stack cache.
    StacksRecognised = "sleeping stacks recognised";
    /// Polls that found an unmoved CPU clock.
    Unmoved = "unmoved clocks";
    /// Signals refused by the kernel's queue limit (EAGAIN).
    QueueFull = "signals refused: queue limit";
    /// Threads that ended between poll and signal (ESRCH).
    ThreadGone = "threads gone before the signal";
    /// Signals that were not answered in time.
    TimedOut = "signals not answered in time";
    /// Threads that block the signal, counted whenever a sample was due.
    Blocked = "due threads that block the signal";
    /// No mailbox was free.
    NoMailbox = "no mailbox free";
    /// Signals whose mailbox had been taken back.
    StaleSignal = "late signals ignored";
    /// Signals of the same number from other senders, passed on.
    ForeignSignal = "foreign signals passed on";
    /// Events lost because the stream was full.
    StreamFull = "events lost: stream full";
    /// Samples with a cut stack.
    Cut = "stacks cut";
    /// Threads seen.
    Threads = "threads";
    /// Threads without a slot.
    ThreadsUnseen = "threads without a slot";
    /// Full scans of the task folder.
    Scans = "scans of the thread list";
    /// Modules seen.
    Modules = "modules";
    /// Unwind rules evaluated (cache misses).
    RulesMade = "unwind rules worked out";
    /// System calls that the sampling signal interrupted and the handler restarted.
    CallsPutBack = "interrupted calls put back";
    /// Stacks at the ends of system calls that would stand for more than the thread's system time.
    CallsDoubted = "stacks at system calls not accepted";
    /// Due threads that were not signalled, or left without a stack: a sandbox forbids their system calls, or their stack
    /// has no room.
    NotSignalled = "due threads not safe to signal";
    /// System calls that a stop by ptrace found at their end with less than was asked for, or with EINTR: it may be the reason.
    CallsCutShort = "system calls that ptrace may have cut short";
}

/// Room for more counters, so that a new one does not move the fields that follow.
const ROOM: usize = 64;
const _: () = assert!(Counter::ALL.len() <= ROOM);

/// The counts, one word for each [`Counter`].
#[repr(C)]
pub struct Counters([AtomicU64; ROOM]);

impl Counters {
    /// All zero.
    pub const fn new() -> Counters {
        Counters([const { AtomicU64::new(0) }; ROOM])
    }

    /// Adds `n`.
    pub fn add(&self, which: Counter, n: u64) {
        self.0[which as usize].fetch_add(n, Relaxed);
    }

    /// The count so far.
    pub fn get(&self, which: Counter) -> u64 {
        self.0[which as usize].load(Relaxed)
    }
}

impl Default for Counters {
    fn default() -> Self {
        Counters::new()
    }
}
