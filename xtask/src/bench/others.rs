//! CPU use of other programs while a row is measured.
//!
//! Unlike the load average, it excludes the measurement. A row measured next to a compiler shows it.

use std::fs::read_to_string;

/// CPU time so far, in the kernel's clock ticks.
pub struct Others {
    /// Of all processes, by all CPUs.
    busy: u64,
    /// Of all CPUs, idle or not.
    all: u64,
    /// Of this process and its ended children.
    own: u64,
}

impl Others {
    /// Starts now.
    pub fn now() -> Option<Others> {
        let stat = read_to_string("/proc/stat").ok()?;
        let ticks: Vec<u64> =
            stat.lines().next()?.split_whitespace().skip(1).filter_map(|tick| tick.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
        let all: u64 = ticks.iter().take(8).sum();
        let busy = all - ticks.get(3)? - ticks.get(4)?;
        let own = read_to_string("/proc/self/stat").ok()?;
        // utime, stime, cutime and cstime are fields 14 to 17, counted after the name in parentheses.
        let own = own.rsplit(')').next()?.split_whitespace().skip(11).take(4);
        Some(Others { busy, all, own: own.filter_map(|tick| tick.parse::<u64>().ok()).sum() })
    }

    /// The share of all CPUs that other programs used since the start.
    pub fn share(&self) -> Option<f64> {
        let now = Others::now()?;
        let others = (now.busy - self.busy) as f64 - (now.own - self.own) as f64;
        Some(others.max(0.0) / ((now.all - self.all) as f64).max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_work_is_not_that_of_others() {
        let before = Others::now().unwrap();
        let mut x = 1u64;
        for i in 0..200_000_000u64 {
            x = std::hint::black_box(x.wrapping_mul(i | 1));
        }
        let after = Others::now().unwrap();
        assert!(after.own > before.own && after.busy >= before.busy && after.all > before.all);
        assert!((0.0..=1.0).contains(&before.share().unwrap()));
    }
}
