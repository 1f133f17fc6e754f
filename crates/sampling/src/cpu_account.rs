//! One thread's time: how long it ran and waited, and how much of both is assigned to stacks.
//!
//! Each reading of the thread's CPU clock splits the time since the last reading into running time and the *rest*.
//! Running time is *pending* until a stack is taken while the thread runs. So even a thread that is rarely sampled has,
//! on average, its time on the right stacks, and no time is lost. The sums are exact: all assigned running time equals
//! the kernel's clock, and running time and rest together equal the wall clock.

use stackglass_proc_text::SchedStat;

/// A shorter rest is kept until it has grown, ns: two clocks are never read at the same moment.
const WORTH_ASSIGNING: i64 = 50_000;

/// The time of one thread. All zeros is a thread that began at time zero.
#[derive(Clone, Copy, Default, Debug)]
pub struct CpuAccount {
    read_at: u64,
    ran: u64,
    waited: u64,
    /// Running time that is not assigned to a stack yet.
    pending: u64,
    /// Running time that is assigned to stacks.
    assigned: u64,
    /// Other time that is not assigned to a stack yet; negative when the CPU clock was ahead of the wall clock.
    rest: i64,
    /// The part of the rest in which the thread was ready to run.
    rest_waited: u64,
}

/// The time between two readings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passed {
    /// Time since the last reading, ns.
    pub elapsed: u64,
    /// How much of it the thread ran, ns.
    pub ran: u64,
}

impl CpuAccount {
    /// An account that starts at `at`, when the thread's clock showed `cpu` (both ns).
    pub fn open(at: u64, cpu: u64) -> CpuAccount {
        CpuAccount { read_at: at, ran: cpu, ..CpuAccount::default() }
    }

    /// The same, with all numbers of the kernel's account.
    pub fn open_with(at: u64, stat: SchedStat) -> CpuAccount {
        CpuAccount { waited: stat.waited, ..CpuAccount::open(at, stat.ran) }
    }

    /// Adds a reading of the CPU clock. A clock that seems to run backwards counts as standing still.
    pub fn update(&mut self, at: u64, cpu: u64) -> Passed {
        let elapsed = at.saturating_sub(self.read_at);
        let ran = cpu.saturating_sub(self.ran);
        self.read_at = self.read_at.max(at);
        self.ran = self.ran.max(cpu);
        self.pending += ran;
        self.rest = self.rest.saturating_add_unsigned(elapsed).saturating_sub_unsigned(ran);
        Passed { elapsed, ran }
    }

    /// Adds a reading of the kernel's whole account. While the thread is on a CPU, the account lags behind by up to one of
    /// the kernel's ticks, so read it while the thread is off.
    pub fn update_with(&mut self, at: u64, stat: SchedStat) -> Passed {
        self.rest_waited += stat.waited.saturating_sub(self.waited);
        self.waited = self.waited.max(stat.waited);
        self.update(at, stat.ran)
    }

    /// The thread's CPU clock at the last reading, ns.
    pub fn cpu(&self) -> u64 {
        self.ran
    }

    /// The moment of the last reading, at which the thread was last known to live.
    pub fn until(&self) -> u64 {
        self.read_at
    }

    /// Running time that is not assigned to a stack yet.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// Records that the pending time was assigned to a stack.
    pub fn assign_pending(&mut self) {
        self.assigned += self.pending;
        self.pending = 0;
    }

    /// Records that `time` of the pending time was assigned to a stack.
    pub fn assign(&mut self, time: u64) {
        let time = time.min(self.pending);
        self.assigned += time;
        self.pending -= time;
    }

    /// Rest that is not assigned to a stack yet. Without `all`, 0 while it is too short to be assigned.
    pub fn rest(&self, all: bool) -> u64 {
        if self.rest >= WORTH_ASSIGNING || all { self.rest.max(0) as u64 } else { 0 }
    }

    /// Records that `time` of the rest was assigned to a stack.
    pub fn assign_rest(&mut self, time: u64) {
        self.rest = self.rest.saturating_sub_unsigned(time);
    }

    /// The thread was stopped for `time` by the profiler, and was ready to run.
    pub fn add_waited(&mut self, time: u64) {
        self.rest_waited += time;
    }

    /// Removes and returns the part of the rest in which the thread was ready to run.
    pub fn take_waited(&mut self) -> u64 {
        let waited = self.rest_waited.min(self.rest(false));
        self.rest_waited -= waited;
        waited
    }

    /// All running time that was assigned to stacks so far.
    pub fn assigned(&self) -> u64 {
        self.assigned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_assigned_sums_to_both_clocks() {
        // A thread with a made-up life, read at odd moments, its clock a little too late each time.
        let mut account = CpuAccount::open(1_000, 500);
        let (mut now, mut cpu, mut random) = (1_000u64, 500u64, 12345u64);
        let (mut awake, mut asleep) = (0, 0);
        for step in 0..100_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let elapsed = (random >> 33) % 3_000_000;
            let ran = [0, elapsed, elapsed / 3][step % 3];
            now += elapsed;
            cpu += ran;
            let jitter = (random >> 20) % 1_000;
            account.update(now, cpu + if ran > 0 { jitter } else { 0 });
            cpu += if ran > 0 { jitter } else { 0 };
            if step % 5 == 0 {
                awake += account.pending();
                account.assign_pending();
            }
            let rest = account.rest(false);
            asleep += rest;
            account.assign_rest(rest);
        }
        awake += account.pending();
        account.assign_pending();
        asleep += account.rest(true);
        assert_eq!(awake, cpu - 500);
        assert_eq!(account.assigned(), awake);
        let wall = now - 1_000;
        assert!((awake + asleep).abs_diff(wall) < 100_000, "{awake} + {asleep} against {wall}");
    }

    #[test]
    fn clocks_that_jump_back_add_nothing() {
        let mut account = CpuAccount::open(1_000_000, 500_000);
        assert_eq!(account.update(900_000, 400_000), Passed { elapsed: 0, ran: 0 });
        assert_eq!(account.update(1_000_100, 500_020), Passed { elapsed: 100, ran: 20 });
        assert_eq!(account.pending(), 20);
        account.update_with(0, SchedStat::default());
        assert_eq!((account.pending(), account.take_waited()), (20, 0));
    }

    #[test]
    fn short_waits_add_up() {
        let mut account = CpuAccount::open_with(0, SchedStat { ran: 0, waited: 7, turns: 0 });
        let mut waited = 0;
        for step in 1..=1000 {
            let stat = SchedStat { ran: step * 970_000, waited: 7 + step * 20_000, turns: step };
            account.update_with(step * 1_000_000, stat);
            account.add_waited(10_000);
            let time = account.take_waited();
            account.assign_rest(time);
            waited += time;
        }
        assert!((29_000_000..=30_000_000).contains(&waited), "{waited}");
        assert!(account.rest(true) < 1_100_000);
    }
}
