//! Threads that were found by a scan and are gone before their own news was heard: it is late news then, not a new
//! thread.
//!
//! News waits in its queue behind that of a thread which lost its processor while it wrote (`host/src/arrivals.rs`).

/// Such threads that are remembered: as many as may end while one thread waits for a processor.
const REMEMBERED: usize = 64;

/// The last of them. All zeros is none.
pub struct Departed {
    /// Kernel id, 0 for none, and when it was let go.
    threads: [(u32, u64); REMEMBERED],
    next: usize,
}

impl Departed {
    /// A thread is let go, at this time, of which no news was heard.
    pub fn remember(&mut self, tid: u32, at: u64) {
        self.threads[self.next % REMEMBERED] = (tid, at);
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// Whether news of a thread that began at this time is of one that is gone. It is, once: a later thread with
    /// the same kernel id began after that.
    pub fn was(&mut self, tid: u32, began: u64) -> bool {
        let known = self.threads.iter_mut().find(|(gone, at)| *gone == tid && tid != 0 && began <= *at);
        known.map(|entry| *entry = (0, 0)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_news_is_told_from_a_new_thread() {
        let mut departed = Departed { threads: [(0, 0); REMEMBERED], next: 0 };
        assert!(!departed.was(7, 100), "nobody is gone");
        departed.remember(7, 100);
        assert!(
            !departed.was(8, 50) && !departed.was(7, 101),
            "another thread, and a later one with that id"
        );
        assert!(departed.was(7, 90));
        assert!(!departed.was(7, 90), "once");
        assert!(!departed.was(0, 0));
        for tid in 1..=REMEMBERED as u32 + 1 {
            departed.remember(tid, 10);
        }
        assert!(!departed.was(1, 5) && departed.was(2, 5), "the oldest is forgotten");
    }
}
