//! Which memory of a process was not written since it was copied: the copy still shares its pages.
//!
//! After the copy, the kernel gives a process a page of its own as soon as it writes to a shared one. So a page that both still share
//! holds what it held, and nothing was written there meanwhile, not even the same bytes. The kernel counts by pages of 4 KiB: a
//! page may be written for the sake of something else on it.
//!
//! While all threads sleep, there is no copy yet: the process is read itself, and nothing in it is written.

use super::{FrozenProcess, own_copies};
use stackglass_procfs::process::{CpuUsage, children, is_same_file};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

const PAGE: u64 = 4096;
/// A thread that was not caught when it woke is found out in this time.
const FOUND_OUT: Duration = Duration::from_millis(20);
/// Bits of an entry of `pagemap` (proc_pid_pagemap(5)): the page is here, swapped out, of a file, of one process alone.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;
/// The number of the page, where this user may know it. Otherwise 0.
const NUMBER: u64 = (1 << 55) - 1;

impl FrozenProcess {
    /// Those of some addresses whose pages the process has not written since it was copied, as far as the kernel tells. None, if this
    /// is no copy.
    pub fn unwritten(&self, addresses: &[u64]) -> BTreeSet<u64> {
        let pid = self.view.pid;
        let files = self.view.memory.files();
        if !self.is_held() {
            std::thread::sleep(FOUND_OUT);
            return if self.is_alive() { addresses.iter().copied().collect() } else { BTreeSet::new() };
        }
        let of_process = File::open(format!("/proc/{pid}/pagemap")).ok();
        let files = files.page_map().zip(of_process).filter(|_| self.is_copy && !merges_equal_pages());
        let Some((of_copy, of_process)) = files else { return BTreeSet::new() };
        let entry = |file: &File, page: u64| {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, page * 8).ok().map(|()| u64::from_le_bytes(bytes))
        };
        let pages: BTreeSet<u64> = addresses.iter().map(|address| address / PAGE).collect();
        // The copy's first: a page that is written between the two reads is the process's alone then.
        let unwritten = |page: &u64| {
            let copy = entry(&of_copy, *page)?;
            Some(is_shared(copy, entry(&of_process, *page)?))
        };
        let mut shared: BTreeSet<u64> =
            pages.into_iter().filter(|page| unwritten(page) == Some(true)).collect();
        let is_numbered = |page: &u64| entry(&of_copy, *page).is_some_and(|entry| entry & NUMBER != 0);
        // Without numbers, relatives could share both the old page and a new one.
        if !self.is_alive() || !shared.iter().all(is_numbered) && has_relatives(pid) {
            shared.clear();
        }
        addresses.iter().copied().filter(|address| shared.contains(&(address / PAGE))).collect()
    }
}

/// Whether a page of a copy and one of the process are the same.
fn is_shared(copy: u64, process: u64) -> bool {
    let is_common = |entry: u64| entry & (PRESENT | SWAPPED | OF_FILE | EXCLUSIVE) == PRESENT;
    is_common(copy) && is_common(process) && copy & NUMBER == process & NUMBER
}

/// Whether the kernel looks for equal pages and merges them, as it does for programs that ask for it.
fn merges_equal_pages() -> bool {
    fs::read_to_string("/sys/kernel/mm/ksm/run").is_ok_and(|run| run.trim() == "1")
}

/// Whether the parent or a child of a process runs the same program: it may be a fork.
fn has_relatives(pid: u32) -> bool {
    let own = format!("/proc/{pid}/exe");
    let parent = CpuUsage::read(pid).map(|usage| usage.parent);
    let mut others = children(pid).into_iter().filter(|child| !own_copies::is_noted(*child)).chain(parent);
    others.any(|other| is_same_file(&own, format!("/proc/{other}/exe")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_that_both_have_and_nobody_has_alone_is_shared() {
        let page = PRESENT | 7;
        assert!(is_shared(page, page) && is_shared(PRESENT, PRESENT));
        for other in [page | EXCLUSIVE, page | OF_FILE, page | SWAPPED, PRESENT | 8, 7, 0] {
            assert!(!is_shared(page, other) && !is_shared(other, page), "{other:#x}");
        }
    }
}
