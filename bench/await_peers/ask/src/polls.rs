//! The cost of a poll: a task that yields, in a copy and in `plain`, in turns.

use crate::{Result, package, programs};
use std::process::Command;

/// Rounds of one run each.
const ROUNDS: usize = 5;

/// Ticks of the kernel's clock in a second.
const TICKS: f64 = 100.0;

/// Prints the CPU time of a poll and the ratio of the same round: the median, the smallest, and the largest. It is the
/// time of the whole process, so that other load on the machine changes it little, and threads of a tool count.
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

/// The CPU time of one poll. The variables of dial9 are those of the caller.
fn nanoseconds(copy: &str, count: &str) -> Result<f64> {
    let before = children()?;
    let mut command = Command::new(programs()?.join(package(copy)));
    let output = command.arg(count).env("TOKIO_WORKER_THREADS", "1").output()?;
    if !output.status.success() {
        return Err(format!("{copy} failed").into());
    }
    Ok((children()? - before) * 1e9 / count.parse::<f64>()?)
}

/// The CPU seconds of all children that ended.
fn children() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/stat")?;
    // Fields 16 and 17, counted after the name in parentheses.
    let fields = status.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks = fields.skip(13).take(2).map(|field| field.parse::<f64>().unwrap_or_default());
    Ok(ticks.sum::<f64>() / TICKS)
}
