//! What each function really used, by the clock of its thread.
//!
//! The clock is read before the first function of a burst and after each. A part of such a read falls between two
//! readings; it is time in the kernel and in the caller, not in the function. So two readings without anything in between are
//! taken now and then, and their median comes off for each call.

use super::Function;
use crate::clock::{thread_cpu, thread_id};

/// An empty pair of readings after each so many bursts.
const EMPTY_EVERY: u64 = 8;
/// The most pairs that are kept.
const EMPTY_KEPT: usize = 4096;

/// One thread's functions and what they used.
pub(super) struct Side {
    pub(super) functions: [Function; 3],
    /// Goes from one function to the next, so that none can be left out.
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

    /// Before the first function. The first of the two readings brings the clock's code and data into the caches after
    /// the wait, so that the second costs what the later ones do.
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

    /// The account as entries of JSON: one for each function, and one for the calling thread, whose side this is.
    pub(super) fn account(mut self) -> Account {
        std::hint::black_box(self.x);
        self.empty_ns.sort_unstable();
        let empty = self.empty_ns.get(self.empty_ns.len() / 2).copied().unwrap_or(0);
        let functions = self.functions.iter().zip(self.used_ns).map(|((name, _), used)| {
            let used = used.saturating_sub(self.bursts * empty);
            format!("{{\"function\": \"{name}\", \"calls\": {}, \"cpu_ns\": {used}}}", self.bursts)
        });
        let thread = format!("{{\"tid\": {}, \"cpu_ns\": {}, \"empty_ns\": {empty}}}", thread_id(), now_ns());
        Account { functions: functions.collect(), thread }
    }
}

/// What a side says at its end.
pub(super) struct Account {
    pub(super) functions: Vec<String>,
    pub(super) thread: String,
}
