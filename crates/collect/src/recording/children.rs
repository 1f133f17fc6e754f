//! The child processes of a process that is recorded alone. The recording says that they are left out.

use stackglass_attach::frozen::is_own_copy;
use stackglass_procfs::clock;
use stackglass_procfs::process::{CpuUsage, children};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Shortest time between two searches.
const PAUSE: Duration = Duration::from_millis(250);
/// A search is followed by a pause of this many times its duration: it reads a file for each thread.
const PAUSES: u32 = 50;
/// Most children that are remembered.
const MOST: usize = 4096;
/// Most names in the remark.
const NAMED: usize = 3;

/// The children that were seen.
pub(crate) struct Children {
    pid: u32,
    due: Instant,
    seen: Named,
    /// Those of the last search: among them may be copies that are not known as such yet.
    last: Named,
}

/// Names by id, and start in ticks.
type Named = BTreeMap<(u32, u64), String>;

impl Children {
    /// Of this process; none are seen yet.
    pub(crate) fn new(pid: u32) -> Children {
        Children { pid, due: Instant::now(), seen: Named::new(), last: Named::new() }
    }

    /// Searches them, if that is due.
    pub(crate) fn update(&mut self) {
        let begin = Instant::now();
        if begin < self.due || self.seen.len() >= MOST {
            return;
        }
        self.take_last();
        for child in children(self.pid) {
            if let Some(usage) = CpuUsage::read(child).filter(|usage| usage.parent == self.pid) {
                self.last.insert((child, usage.started), usage.name);
            }
        }
        self.due = Instant::now() + PAUSE.max(begin.elapsed() * PAUSES);
    }

    /// Counts the last ones. The copies that are read are children of the program as well.
    fn take_last(&mut self) {
        let last = std::mem::take(&mut self.last).into_iter();
        self.seen.extend(last.filter(|((pid, started), _)| !is_own_copy(*pid, clock::since_boot(*started))));
    }

    /// The line that says how many there were.
    pub(crate) fn remark(&mut self) -> Option<String> {
        self.take_last();
        let mut names: Vec<&str> = self.seen.values().map(String::as_str).collect();
        let (count, are) = match names.len() {
            0 => return None,
            1 => ("1 child process".to_owned(), "is"),
            count => (format!("{count} child processes"), "are"),
        };
        names.sort_unstable();
        names.dedup();
        let more = if names.len() > NAMED { ", …" } else { "" };
        names.truncate(NAMED);
        Some(format!(
            "{count} of the program {are} not in this recording ({}{more}): `record --pid` without --no-children and --walltime records them",
            names.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn children_are_counted_once() {
        let mut here = Children::new(std::process::id());
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        for _ in 0..3 {
            here.due = Instant::now();
            here.update();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Other tests have children as well.
        assert!(here.seen.keys().filter(|(pid, _)| *pid == child.id()).count() == 1);
        here.seen.retain(|(pid, _), _| *pid == child.id());
        // It may not have executed its program yet.
        assert!(here.remark().is_some_and(|line| line.starts_with("1 child process of the program is not")));
        here.seen = (0..5).map(|pid| ((pid, 7), format!("name{}", pid % 4))).collect();
        let line = here.remark().unwrap();
        assert!(line.starts_with("5 child processes of the program are not"), "{line}");
        assert!(line.contains("(name0, name1, name2, …)"), "{line}");
        here.seen.clear();
        assert_eq!(here.remark(), None);
    }
}
