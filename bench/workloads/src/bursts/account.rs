//! The CPU time that each function really used, by the clock of its thread.
//!
//! The clock is read before the first function of a burst and after each. A part of each read is time in the kernel and in
//! the caller, not in the function. Two reads in direct succession, made now and then, measure it; their median is
//! subtracted for each call.

use crate::clock::{thread_cpu, thread_id};

/// Bursts between two such pairs of reads.
const EMPTY_EVERY: u64 = 8;
/// Most pairs that are stored.
const EMPTY_KEPT: usize = 4096;

/// A function of a burst.
#[derive(Clone, Copy)]
pub(super) struct Function {
    pub(super) name: &'static str,
    /// From a start value and a number of rounds to a value that depends on both.
    pub(super) run: fn(u64, u64) -> u64,
}

/// One thread's functions and the CPU time that they used.
pub(super) struct Side {
    pub(super) functions: [Function; 3],
    /// Passed from function to function, so that the compiler removes none.
    pub(super) x: u64,
    used_ns: [u64; 3],
    bursts: u64,
    last_ns: u64,
    empty_ns: Vec<u64>,
}

fn now_ns() -> u64 {
    thread_cpu().as_nanos() as u64
}

impl Side {
    pub(super) fn new(functions: [Function; 3]) -> Side {
        let empty_ns = Vec::with_capacity(EMPTY_KEPT);
        Side { functions, x: 1, used_ns: [0; 3], bursts: 0, last_ns: 0, empty_ns }
    }

    /// Before the first function. After the wait, the first of two reads loads the clock's code and data into the caches,
    /// so that the second takes as long as later reads.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        now_ns();
        self.last_ns = now_ns();
    }

    /// After a function.
    #[inline(always)]
    pub(super) fn next(&mut self, which: usize) {
        let now = now_ns();
        self.used_ns[which] += now - self.last_ns;
        self.last_ns = now;
    }

    /// After the last function.
    pub(super) fn end(&mut self) {
        self.bursts += 1;
        if self.bursts.is_multiple_of(EMPTY_EVERY) && self.empty_ns.len() < EMPTY_KEPT {
            self.empty_ns.push(now_ns() - self.last_ns);
        }
    }

    /// The account as JSON entries: one for each function, and one for the calling thread.
    pub(super) fn account(mut self) -> Account {
        std::hint::black_box(self.x);
        self.empty_ns.sort_unstable();
        let empty = self.empty_ns.get(self.empty_ns.len() / 2).copied().unwrap_or(0);
        let functions = self.functions.iter().zip(self.used_ns).map(|(Function { name, .. }, used)| {
            let used = used.saturating_sub(self.bursts * empty);
            format!("{{\"function\": \"{name}\", \"calls\": {}, \"cpu_ns\": {used}}}", self.bursts)
        });
        let thread = format!("{{\"tid\": {}, \"cpu_ns\": {}, \"empty_ns\": {empty}}}", thread_id(), now_ns());
        Account { functions: functions.collect(), thread }
    }
}

/// The account of a thread.
pub(super) struct Account {
    pub(super) functions: Vec<String>,
    pub(super) thread: String,
}
