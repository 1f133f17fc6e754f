//! The cost of a poll: a task that yields, in a copy and in `plain`, in turns.

use crate::{Result, package, programs};
use std::process::Command;

/// Rounds of one run each.
const ROUNDS: usize = 5;

/// Prints the time of a poll and the ratio of the same round: the median, the smallest, and the largest.
pub fn compare(copy: &str, count: &str) -> Result<()> {
    let mut ratios = Vec::new();
    let (mut plain_times, mut copy_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let plain = nanoseconds("plain", count)?;
        let other = nanoseconds(copy, count)?;
        ratios.push(other / plain);
        plain_times.push(plain);
        copy_times.push(other);
    }
    for (what, mut values) in [("plain, ns", plain_times), (copy, copy_times), ("ratio", ratios)] {
        values.sort_by(f64::total_cmp);
        println!("{what}: {:.2} [{:.2}, {:.2}]", values[ROUNDS / 2], values[0], values[ROUNDS - 1]);
    }
    Ok(())
}

/// The time of one poll. The variables of dial9 are those of the caller.
fn nanoseconds(copy: &str, count: &str) -> Result<f64> {
    let output = Command::new(programs()?.join(package(copy))).arg(count).output()?;
    let seconds: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(seconds * 1e9 / count.parse::<f64>()?)
}
