//! The tasks that this process has created to copy others, copies included. A recording must leave them out.

use crate::clock::monotonic;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Number of tasks that are remembered. The events of older ones were read long ago.
const MOST: usize = 1024;
/// A task is noted at most this long after it was created, ns.
const LATEST: u64 = 10_000_000_000;

/// A task, and a moment at which it existed (CLOCK_MONOTONIC, ns).
struct Created {
    pid: u32,
    at: u64,
}

static CREATED: Mutex<VecDeque<Created>> = Mutex::new(VecDeque::new());

/// Notes a task that was just created.
pub(super) fn note(pid: u32) {
    let mut created = CREATED.lock().unwrap_or_else(PoisonError::into_inner);
    if created.len() == MOST {
        created.pop_front();
    }
    created.push_back(Created { pid, at: monotonic() });
}

/// Whether a task with this id was noted.
pub(super) fn is_noted(pid: u32) -> bool {
    CREATED.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|task| task.pid == pid)
}

/// Whether this process has created the process `pid`, which began at `start` (CLOCK_MONOTONIC, ns), as a frozen copy or to
/// make one. Such a process never runs.
pub fn is_own_copy(pid: u32, start: u64) -> bool {
    let created = CREATED.lock().unwrap_or_else(PoisonError::into_inner);
    created.iter().any(|task| task.pid == pid && start <= task.at && task.at - start < LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_used_again_is_no_copy() {
        let pid = u32::MAX - 9;
        let before = monotonic();
        assert!(!is_own_copy(pid, before));
        note(pid);
        assert!(is_own_copy(pid, before));
        assert!(!is_own_copy(pid, monotonic() + 1));
        assert!(!is_own_copy(pid - 1, before));
    }
}
