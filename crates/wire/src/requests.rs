//! Peeks that were asked for by signal: which process got how many, in one page that all processes of a session share.
//!
//! It is shared as it is: a child of fork, of a bare `clone` and of `vfork` counts under its own id, without a step of ours at
//! its start. The handler of the signal adds one, the launcher takes; neither waits for the other.

use core::sync::atomic::{AtomicU64, Ordering::*};

/// Name of the page's file in the session folder. Only sessions that are [ready](crate::SessionState::Ready) have one.
pub const REQUESTS_FILE: &str = "requests";

/// Processes that can ask between two looks of the launcher; a request of a further one is lost.
const PROCESSES: usize = 512;

/// Requests by process id. A page of zeros has none.
#[repr(C)]
pub struct Requests {
    /// Process id in the upper half, number of requests in the lower; 0: free.
    counts: [AtomicU64; PROCESSES],
}

const _: () = assert!(core::mem::size_of::<Requests>() == 4096);

impl Requests {
    /// None.
    pub const fn new() -> Requests {
        Requests { counts: [const { AtomicU64::new(0) }; PROCESSES] }
    }

    /// Counts a request to process `pid`. False when there is no room.
    pub fn add(&self, pid: u32) -> bool {
        let from = pid as usize % PROCESSES;
        for count in self.counts[from..].iter().chain(&self.counts[..from]) {
            let added = count.fetch_update(AcqRel, Acquire, |word| match word {
                0 => Some(u64::from(pid) << 32 | 1),
                word if word >> 32 == u64::from(pid) => {
                    // So many in so short a time are as good as one more.
                    Some(if word as u32 == u32::MAX { word } else { word + 1 })
                }
                _ => None,
            });
            if added.is_ok() {
                return true;
            }
        }
        false
    }

    /// Takes all requests: process ids as those who asked know them, and how many of each. The same id may come twice.
    pub fn take(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let waiting = self.counts.iter().filter(|count| count.load(Relaxed) != 0);
        waiting.map(|count| count.swap(0, AcqRel)).map(|word| ((word >> 32) as u32, word as u32))
    }
}

impl Default for Requests {
    fn default() -> Self {
        Requests::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::HashMap;
    use std::vec::Vec;

    fn taken(requests: &Requests) -> Vec<(u32, u32)> {
        let mut taken: Vec<_> = requests.take().collect();
        taken.sort_unstable();
        taken
    }

    #[test]
    fn each_process_is_counted_once_and_taken_once() {
        let requests = Requests::new();
        assert_eq!(taken(&requests), []);
        for pid in [7, 7 + PROCESSES as u32, 7, 511, u32::MAX] {
            assert!(requests.add(pid));
        }
        assert_eq!(taken(&requests), [(7, 2), (511, 1), (519, 1), (u32::MAX, 1)]);
        assert_eq!(taken(&requests), []);
        assert!((1..=PROCESSES as u32).all(|pid| requests.add(pid)) && !requests.add(1000));
        assert!(requests.add(3));
        assert_eq!(taken(&requests).len(), PROCESSES);
    }

    #[test]
    fn none_is_lost_between_those_who_ask_and_who_takes() {
        let requests = Requests::new();
        let mut counts: HashMap<u32, u32> = HashMap::new();
        std::thread::scope(|scope| {
            let asking: Vec<_> = (1..=4u32)
                .map(|n| {
                    let requests = &requests;
                    scope.spawn(move || {
                        (0..20_000).for_each(|i| assert!(requests.add(n % 2 * 512 + 5 + i % 3)))
                    })
                })
                .collect();
            while !asking.iter().all(|thread| thread.is_finished()) {
                requests.take().for_each(|(pid, n)| *counts.entry(pid).or_default() += n);
            }
        });
        requests.take().for_each(|(pid, n)| *counts.entry(pid).or_default() += n);
        assert_eq!(counts.values().sum::<u32>(), 80_000);
        assert_eq!(counts.len(), 6);
    }
}
