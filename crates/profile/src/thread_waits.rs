//! Which threads of a process wait for which others: for a lock that another one holds, or for its end.

use crate::Frame;
use std::sync::Arc;

/// The waits of threads whose other side is known, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadWaits {
    /// The waits, by the id of the thread that waits. A thread has one at most.
    pub waits: Vec<ThreadWait>,
    /// Threads that wait for each other.
    pub deadlocks: Vec<ThreadDeadlock>,
}

/// A thread that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadWait {
    /// Its kernel id.
    pub tid: u32,
    /// Its name.
    pub name: Arc<str>,
    /// What it waits for.
    pub what: ThreadTarget,
    /// Where it waits: the innermost frame outside of the libraries that lock.
    pub at: Option<Frame>,
    /// It gives up after some time.
    pub has_timeout: bool,
    /// Who can end the wait, as far as that is known.
    pub holders: Vec<ThreadHolder>,
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ThreadTarget {
    /// A lock in memory.
    Lock {
        /// What it is.
        kind: LockKind,
        /// Its address.
        address: u64,
    },
    /// A lock of a file, as by flock(2).
    File {
        /// Its path.
        path: String,
    },
    /// The end of a thread.
    End,
}

/// A lock for which threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKind {
    /// `pthread_mutex_t` of glibc.
    Pthread,
    /// `pthread_rwlock_t` of glibc.
    PthreadRwLock,
    /// `Mutex` of `std::sync` or `parking_lot`.
    Mutex,
    /// `RwLock` of them.
    RwLock,
}

impl LockKind {
    /// Its name as a programmer writes it.
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Pthread => "pthread mutex",
            LockKind::PthreadRwLock => "pthread rwlock",
            LockKind::Mutex => "Mutex",
            LockKind::RwLock => "RwLock",
        }
    }
}

/// Who can end a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadHolder {
    /// Who it is.
    pub who: HolderId,
    /// Its name: that of the thread, or of the other process. Empty if it is gone.
    pub name: Arc<str>,
    /// The innermost frame of the program's own code in the function that has the guard or around it, if a guard was found.
    pub at: Option<Frame>,
    /// It holds the lock. Otherwise a variable has a guard, which may be moved away already, or not all code was followed that would give
    /// the lock back.
    pub is_certain: bool,
}

/// A thread or a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HolderId {
    /// A thread of the process, by kernel id.
    Thread(u32),
    /// A thread that took the lock and is none of the process: it has ended, or the process was forked from one that had it.
    /// Its id is that in the process's own namespace.
    GoneThread(u32),
    /// A process, by id.
    Process(u32),
}

/// Threads each of which waits for the next, the last for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadDeadlock {
    /// Their kernel ids.
    pub tids: Vec<u32>,
    /// All holders are certain, and no wait has an end by time.
    pub is_certain: bool,
}

impl ThreadWaits {
    /// Adds the cycles among waits that have one holder each.
    pub fn find_deadlocks(&mut self) {
        let next = |tid: u32| {
            let wait = self.waits.iter().find(|wait| wait.tid == tid && !wait.has_timeout)?;
            match &wait.holders[..] {
                [ThreadHolder { who: HolderId::Thread(of), is_certain, .. }] => Some((*of, *is_certain)),
                _ => None,
            }
        };
        let mut found: Vec<ThreadDeadlock> = Vec::new();
        for start in self.waits.iter().map(|wait| wait.tid) {
            if found.iter().any(|deadlock| deadlock.tids.contains(&start)) {
                continue;
            }
            let (mut tids, mut is_certain, mut at) = (Vec::new(), true, start);
            while let Some((of, is_sure)) = next(at).filter(|_| !tids.contains(&at)) {
                tids.push(at);
                is_certain &= is_sure;
                at = of;
            }
            // Others only wait for a thread of the cycle.
            if at == start && !tids.is_empty() {
                found.push(ThreadDeadlock { tids, is_certain });
            }
        }
        self.deadlocks = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadlocks(waits: &[(u32, u32, bool)]) -> Vec<Vec<u32>> {
        let wait = |(tid, of, has_timeout): &(u32, u32, bool)| ThreadWait {
            tid: *tid,
            name: "".into(),
            what: ThreadTarget::End,
            at: None,
            has_timeout: *has_timeout,
            holders: vec![ThreadHolder {
                who: HolderId::Thread(*of),
                name: "".into(),
                at: None,
                is_certain: true,
            }],
        };
        let mut waits = ThreadWaits { waits: waits.iter().map(wait).collect(), deadlocks: Vec::new() };
        waits.find_deadlocks();
        waits.deadlocks.into_iter().map(|deadlock| deadlock.tids).collect()
    }

    #[test]
    fn cycles_of_threads() {
        // 1 waits for a cycle, 4 for itself, 5 for a thread that waits for nothing.
        let waits = [(1, 2, false), (2, 3, false), (3, 2, false), (4, 4, false), (5, 9, false)];
        assert_eq!(deadlocks(&waits), [vec![2, 3], vec![4]]);
        assert!(deadlocks(&[(2, 3, true), (3, 2, false)]).is_empty(), "one gives up after some time");
    }
}
