//! What happened how often inside a profiled process: plain sums, one word each.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $label:literal;)*) => {
        /// Something that is counted. The number of a counter never changes its meaning.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(usize)]
        pub enum Counter { $($(#[$doc])* $name),* }

        impl Counter {
            /// All counters, in order.
            pub const ALL: &'static [Counter] = &[$(Counter::$name),*];

            /// A short text for `info`.
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
    /// Threads looked at (CPU clock read).
    Polls = "polls";
    /// Signals sent to threads that were running.
    SignalsRunning = "signals to running threads";
    /// Signals sent to threads that were asleep (their stack could not be read otherwise).
    SignalsAsleep = "signals to sleeping threads";
    /// Stacks taken by the signal handler.
    StacksRunning = "stacks of running threads";
    /// Stacks of sleeping threads read from outside.
    StacksAsleep = "stacks of sleeping threads";
    /// Sleeping stacks known to be the same as last time, by place.
    StacksRecognised = "sleeping stacks recognised";
    /// Polls that found an unmoved CPU clock.
    Unmoved = "unmoved clocks";
    /// Signals refused by the kernel's queue limit (EAGAIN).
    QueueFull = "signals refused: queue limit";
    /// Threads gone between poll and signal (ESRCH).
    ThreadGone = "threads gone before the signal";
    /// Mailboxes that did not come back in time.
    TimedOut = "signals not answered in time";
    /// Threads that block the signal, counted each time they were due.
    Blocked = "due threads that block the signal";
    /// No mailbox was free.
    NoMailbox = "no mailbox free";
    /// Handler entered for a mailbox that was taken back.
    StaleSignal = "late signals ignored";
    /// Signals of the same number that were not ours and were passed on.
    ForeignSignal = "foreign signals passed on";
    /// Events that found the stream full.
    StreamFull = "events lost: stream full";
    /// Samples whose stack was cut, whatever the reason.
    Cut = "stacks cut";
    /// Threads seen.
    Threads = "threads";
    /// Threads that found no slot.
    ThreadsUnseen = "threads without a slot";
    /// Full scans of the task folder.
    Scans = "scans of the thread list";
    /// Modules seen.
    Modules = "modules";
    /// Unwind rules worked out (cache misses).
    RulesMade = "unwind rules worked out";
    /// System calls that our signal interrupted and the handler put back.
    CallsPutBack = "interrupted calls put back";
    /// Stacks at the ends of system calls that stood for more than the thread's system time.
    CallsDoubted = "stacks at system calls not believed";
    /// Threads that were due and not signalled, or left without a stack: system calls are forbidden to them, or their stack has
    /// no room.
    NotSignalled = "due threads not safe to signal";
}

/// Room for more counters than there are, so that adding one does not move what follows.
const ROOM: usize = 64;
const _: () = assert!(Counter::ALL.len() <= ROOM);

/// The sums, one word for each [`Counter`].
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

    /// The sum so far.
    pub fn get(&self, which: Counter) -> u64 {
        self.0[which as usize].load(Relaxed)
    }
}

impl Default for Counters {
    fn default() -> Self {
        Counters::new()
    }
}
