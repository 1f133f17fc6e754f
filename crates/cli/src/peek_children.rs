//! What child processes ran during a peek, which shows one process alone.

use stackglass_attach::frozen::is_own_copy;
use stackglass_procfs::clock;
use stackglass_procfs::process::{CpuUsage, children};
use std::collections::BTreeMap;

/// Most processes that are looked at, and most that are named.
const MOST: usize = 4096;
const NAMED: usize = 3;

/// Descendants of a process, with their CPU time at the beginning.
pub(crate) struct ChildrenBefore {
    pid: u32,
    ticks: BTreeMap<(u32, u64), u64>,
}

impl ChildrenBefore {
    /// Reads the descendants of a process.
    pub(crate) fn read(pid: u32) -> ChildrenBefore {
        let ticks = descendants(pid).into_iter().map(|(child, usage)| ((child, usage.started), usage.ticks));
        ChildrenBefore { pid, ticks: ticks.collect() }
    }

    /// The line that names those that have run since, those with the most CPU time first; `None` if none has.
    pub(crate) fn that_ran(&self) -> Option<String> {
        let ran = descendants(self.pid).into_iter().filter_map(|(child, usage)| {
            let before = self.ticks.get(&(child, usage.started)).copied().unwrap_or(0);
            let ticks = usage.ticks.saturating_sub(before);
            (ticks > 0).then_some((ticks, child, usage.name))
        });
        let mut ran: Vec<(u64, u32, String)> = ran.collect();
        ran.sort_by_key(|(ticks, child, _)| (std::cmp::Reverse(*ticks), *child));
        let most = ran.first()?.1;
        let named: Vec<String> = ran
            .iter()
            .take(NAMED)
            .map(|(ticks, child, name)| {
                let seconds = clock::of_ticks(*ticks) as f64 / 1e9;
                format!("{name} {child} ({seconds:.2} s of CPU time)")
            })
            .collect();
        let more = if ran.len() > NAMED { ", …" } else { "" };
        let (count, are) = match ran.len() {
            1 => ("1 child process".to_owned(), "is"),
            count => (format!("{count} child processes"), "are"),
        };
        Some(format!(
            "{count} ran meanwhile and {are} not shown: {}{more}. `stackglass peek {most}` shows one, \
             `stackglass record --pid {}` all",
            named.join(", "),
            self.pid
        ))
    }
}

/// The descendants of a process, without this command and copies that are read.
fn descendants(pid: u32) -> Vec<(u32, CpuUsage)> {
    let (mut parents, mut found) = (vec![pid], Vec::new());
    while let Some(parent) = parents.pop() {
        for child in children(parent) {
            let Some(usage) = CpuUsage::read(child).filter(|usage| usage.parent == parent) else { continue };
            let is_ours = child == std::process::id() || is_own_copy(child, clock::since_boot(usage.started));
            if is_ours || found.len() >= MOST {
                continue;
            }
            parents.push(child);
            found.push((child, usage));
        }
    }
    found
}
