//! Peak memory of a command and all its descendants together, read from outside while they run.
//!
//! Proportional memory: pages that processes share, such as tables in shared memory, count once. It is read every ten
//! milliseconds; the reading slows processes down, so the same run measures no time.

use anyhow::{Context, Result, bail};
use std::fs::{read_dir, read_to_string};
use std::process::{Command, Stdio};
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(10);

/// Runs a command and returns the most memory that it and its descendants had at one moment, MB.
pub fn peak(words: &[String]) -> Result<f64> {
    let (program, arguments) = words.split_first().context("a command has a program")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    let mut peak = 0;
    loop {
        peak = peak.max(tree_kib(child.id()));
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("{} failed ({status})", words.join(" "));
            }
            return Ok(peak as f64 * 1024e-6);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Memory of a process and its descendants now, KiB. A process that has ended has none.
fn tree_kib(pid: u32) -> u64 {
    let rollup = read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let own = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let own: u64 = own.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
    let threads = read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children: Vec<u32> = threads
        .flat_map(|thread| read_to_string(thread.path().join("children")))
        .flat_map(|text| text.split_whitespace().flat_map(str::parse).collect::<Vec<u32>>())
        .collect();
    own + children.into_iter().map(tree_kib).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_count() {
        let sleep = ["sh", "-c", "head -c 30000000 /dev/zero | tail -c 30000000 | sleep 0.3"];
        let sleep = sleep.map(str::to_owned);
        assert!(peak(&sleep).expect("it runs") > 20.0);
        assert!(peak(&sleep[..1]).expect("a shell without input ends") < 20.0);
    }
}
