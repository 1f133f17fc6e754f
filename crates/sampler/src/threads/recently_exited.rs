//! Threads that ended before the sampler read their own start events.
//!
//! A scan can find a thread before its event is read, because events wait in the queue behind that of a thread which lost its
//! processor while it wrote (`host/src/thread_events.rs`). Such a late event must not be taken for a new thread.

/// Threads that are remembered: as many as may end while one thread waits for a processor.
const REMEMBERED: usize = 64;

/// An ended thread. Kernel id 0 is an empty place.
#[derive(Clone, Copy)]
struct Exited {
    tid: u32,
    at: u64,
}

/// The last threads that ended without a start event. All zeros is none.
pub struct RecentlyExited {
    threads: [Exited; REMEMBERED],
    next: usize,
}

impl RecentlyExited {
    /// Adds a thread that was removed at this time.
    pub fn insert(&mut self, tid: u32, at: u64) {
        self.threads[self.next % REMEMBERED] = Exited { tid, at };
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// Whether the start event of a thread that began at `began` belongs to one of these. If so, that thread is removed: a
    /// later thread with the same kernel id began after it.
    pub fn remove(&mut self, tid: u32, began: u64) -> bool {
        let exited =
            self.threads.iter_mut().find(|exited| exited.tid == tid && tid != 0 && began <= exited.at);
        exited.map(|exited| *exited = Exited { tid: 0, at: 0 }).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_event_is_told_apart_from_a_new_thread() {
        let mut exited = RecentlyExited { threads: [Exited { tid: 0, at: 0 }; REMEMBERED], next: 0 };
        assert!(!exited.remove(7, 100), "no thread has ended");
        exited.insert(7, 100);
        assert!(
            !exited.remove(8, 50) && !exited.remove(7, 101),
            "another thread, and a later one with that id"
        );
        assert!(exited.remove(7, 90));
        assert!(!exited.remove(7, 90), "only once");
        assert!(!exited.remove(0, 0));
        for tid in 1..=REMEMBERED as u32 + 1 {
            exited.insert(tid, 10);
        }
        assert!(!exited.remove(1, 5) && exited.remove(2, 5), "the oldest is forgotten");
    }
}
