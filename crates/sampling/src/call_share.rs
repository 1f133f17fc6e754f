//! How much of a thread's CPU time belongs to the ends of system calls, where two timers take its stacks.
//!
//! The frequent timer takes stacks in the thread's own code only. The rare one meets the thread wherever it is: each of its
//! stacks stands for what the thread ran since the one before, as the kernel's own account of user and system time does. At
//! the end of a call, that time is the call's. But most of it was assigned to stacks of own code meanwhile, so it is owed: the
//! stacks that come next get less, and what is kept goes to the next call.

/// One thread's time in calls. All zeros is a thread that has had no stack of the rare timer since its clock showed 0.
#[derive(Clone, Copy, Default, Debug)]
pub struct CallShare {
    /// The thread's clock at the last stack of the rare timer, ns.
    seen_at: u64,
    /// Time of calls that was assigned to other stacks.
    owed: u64,
    /// The part of it that is kept, and pending.
    kept: u64,
}

impl CallShare {
    /// The rare timer starts, when the thread's clock shows `cpu`.
    pub fn start(&mut self, cpu: u64) {
        self.seen_at = cpu;
    }

    /// The time of a stack in own code, which is one of `count` that share what is `pending`.
    pub fn of_own_code(&mut self, pending: u64, count: u64) -> u64 {
        let time = pending.saturating_sub(self.kept) / count.max(1);
        let kept = (self.owed - self.kept).min(time / 4 * 3);
        self.kept += kept;
        time - kept
    }

    /// The rare timer has met the thread in own code.
    pub fn was_in_own_code(&mut self, cpu: u64) {
        self.seen_at = self.seen_at.max(cpu);
    }

    /// The rare timer has met the thread in a call, whose stack gets this time of what is `pending`.
    pub fn of_call(&mut self, cpu: u64, pending: u64) -> u64 {
        self.owed += cpu.saturating_sub(self.seen_at);
        self.seen_at = self.seen_at.max(cpu);
        let time = self.owed.min(pending);
        self.owed -= time;
        self.kept = 0;
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// A thread of 20 s that is in calls for `in_calls` ns in each 10 ms: the share that calls get, and what is left at the end.
    fn share(in_calls: u64) -> (f64, u64) {
        let mut random = Random::new(in_calls);
        let mut share = CallShare::default();
        let (mut pending, mut calls, mut own) = (0, 0u64, 0u64);
        let (mut next_own, mut next_rare) = (0, 0);
        for cpu in (0..20_000_000_000u64).step_by(10_000) {
            pending += 10_000;
            let is_call = cpu % 10_000_000 < in_calls;
            if cpu >= next_rare {
                next_rare = cpu + 3_000_000 + random.below(2_000_000);
                if is_call {
                    let time = share.of_call(cpu, pending);
                    (calls, pending) = (calls + time, pending - time);
                } else {
                    share.was_in_own_code(cpu);
                }
            }
            if cpu >= next_own {
                next_own = cpu + 750_000 + random.below(500_000);
                if !is_call {
                    let time = share.of_own_code(pending, 1);
                    (own, pending) = (own + time, pending - time);
                }
            }
        }
        (calls as f64 / (calls + own) as f64, pending)
    }

    #[test]
    fn calls_get_the_time_at_which_they_are_met() {
        for percent in [0, 1, 5, 25, 50, 75, 95, 100] {
            let (share, left) = share(percent * 100_000);
            assert!((share - percent as f64 / 100.0).abs() < 0.015, "{percent} %: {share}");
            assert!(left < 20_000_000, "{percent} %: {left} ns are left");
        }
    }

    #[test]
    fn stacks_share_what_is_pending() {
        let mut share = CallShare::default();
        share.start(1_000);
        assert_eq!(
            [share.of_own_code(900, 3), share.of_own_code(600, 2), share.of_own_code(300, 1)],
            [300; 3]
        );
        assert_eq!(share.of_call(5_000, 1_000), 1_000);
        assert_eq!((share.owed, share.of_own_code(400, 1), share.kept), (3_000, 100, 300));
        assert_eq!((share.of_call(5_500, 800), share.kept), (800, 0));
    }
}
