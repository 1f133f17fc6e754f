//! One thread's time: what passed, what of it the thread ran, what was given to its stacks.
//!
//! At each poll the time since the last one splits by the thread's CPU clock into what it *ran* and the
//! *rest*. What it ran waits as *pending* until a stack is taken while it runs; so the pending time of a
//! thread that is hardly ever caught running goes, in the mean, where it belongs, and nothing is lost. The
//! sums are exact: everything given as run equals the kernel's clock, run and rest equal the wall clock.

/// Rest below this is kept back until there is more: two clocks are never read at the same moment.
const WORTH_TELLING: i64 = 50_000;

/// The books of one thread. All zeros is a thread that began at time zero.
#[derive(Clone, Copy, Default, Debug)]
pub struct Ledger {
    polled_at: u64,
    cpu: u64,
    /// Run but not given to a stack yet.
    pending: u64,
    /// Run and given to stacks.
    given: u64,
    /// Not run and not given to a stack yet; negative when the CPU clock was ahead of the wall clock.
    rest: i64,
}

/// What one poll found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Time since the last poll, ns.
    pub elapsed: u64,
    /// How much of it the thread ran, ns.
    pub ran: u64,
}

impl Ledger {
    /// Books that start at `at`, when the thread's CPU clock showed `cpu`.
    pub fn open(at: u64, cpu: u64) -> Ledger {
        Ledger { polled_at: at, cpu, ..Ledger::default() }
    }

    /// Enters a poll. Clocks that seem to run backwards count as standing still.
    pub fn poll(&mut self, at: u64, cpu: u64) -> Passed {
        let elapsed = at.saturating_sub(self.polled_at);
        let ran = cpu.saturating_sub(self.cpu);
        self.polled_at = self.polled_at.max(at);
        self.cpu = self.cpu.max(cpu);
        self.pending += ran;
        self.rest = self.rest.saturating_add_unsigned(elapsed).saturating_sub_unsigned(ran);
        Passed { elapsed, ran }
    }

    /// The thread's CPU clock at the last poll.
    pub fn cpu(&self) -> u64 {
        self.cpu
    }

    /// The moment up to which the books are kept: the last one at which the thread was known to live.
    pub fn until(&self) -> u64 {
        self.polled_at
    }

    /// Time run that waits for a stack.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Gives the pending time to a stack.
    pub fn give_pending(&mut self) {
        self.given += self.pending;
        self.pending = 0;
    }

    /// Gives so much of the pending time to a stack; what was given.
    pub fn give(&mut self, time: u64) -> u64 {
        let time = time.min(self.pending);
        self.given += time;
        self.pending -= time;
        time
    }

    /// The rest that waits for a stack, 0 while it is not worth telling (always told with `all`).
    pub fn rest(&self, all: bool) -> u64 {
        if self.rest >= WORTH_TELLING || all { self.rest.max(0) as u64 } else { 0 }
    }

    /// Gives `time` of the rest to a stack.
    pub fn give_rest(&mut self, time: u64) {
        self.rest = self.rest.saturating_sub_unsigned(time);
    }

    /// All CPU time given to stacks so far.
    pub fn given(&self) -> u64 {
        self.given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_given_sums_to_both_clocks() {
        // A thread with a made-up life, polled at odd moments, its clock read a little too late each time.
        let mut ledger = Ledger::open(1_000, 500);
        let (mut now, mut cpu, mut random) = (1_000u64, 500u64, 12345u64);
        let (mut awake, mut asleep) = (0, 0);
        for step in 0..100_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let elapsed = (random >> 33) % 3_000_000;
            let ran = [0, elapsed, elapsed / 3][step % 3];
            now += elapsed;
            cpu += ran;
            let jitter = (random >> 20) % 1_000;
            ledger.poll(now, cpu + if ran > 0 { jitter } else { 0 });
            cpu += if ran > 0 { jitter } else { 0 };
            if step % 5 == 0 {
                awake += ledger.pending();
                ledger.give_pending();
            }
            let rest = ledger.rest(false);
            asleep += rest;
            ledger.give_rest(rest);
        }
        awake += ledger.pending();
        ledger.give_pending();
        asleep += ledger.rest(true);
        assert_eq!(awake, cpu - 500);
        assert_eq!(ledger.given(), awake);
        let wall = now - 1_000;
        assert!((awake + asleep).abs_diff(wall) < 100_000, "{awake} + {asleep} against {wall}");
    }

    #[test]
    fn clocks_that_jump_back_add_nothing() {
        let mut ledger = Ledger::open(1_000_000, 500_000);
        assert_eq!(ledger.poll(900_000, 400_000), Passed { elapsed: 0, ran: 0 });
        assert_eq!(ledger.poll(1_000_100, 500_020), Passed { elapsed: 100, ran: 20 });
        assert_eq!(ledger.pending(), 20);
    }
}
