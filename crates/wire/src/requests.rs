//! Requests for peeks by signal, counted for each process in one page that all processes of a session share.
//!
//! Children of `fork`, a bare `clone` and `vfork` share the page too and count under their own id, without any setup. The
//! signal handler adds requests, the launcher takes them; neither waits for the other.

use core::sync::atomic::{AtomicU64, Ordering::*};

/// File of the page in the session folder. It exists only in the state [`SessionState::Ready`](crate::SessionState::Ready).
pub const REQUESTS_FILE: &str = "requests";

/// Most processes with requests that the launcher has not taken; requests of further processes are lost.
const PROCESSES: usize = 512;

/// Requests by process id. A page of zeros is empty.
#[repr(C)]
pub struct Requests {
    /// Process id in the upper half, number of requests in the lower; 0: free.
    counts: [AtomicU64; PROCESSES],
}

const _: () = assert!(core::mem::size_of::<Requests>() == 4096);

impl Requests {
    /// An empty page.
    pub const fn new() -> Requests {
        Requests { counts: [const { AtomicU64::new(0) }; PROCESSES] }
    }

    /// Counts a request to process `pid`. False without room.
    pub fn add(&self, pid: u32) -> bool {
        let from = pid as usize % PROCESSES;
        for count in self.counts[from..].iter().chain(&self.counts[..from]) {
            let added = count.fetch_update(AcqRel, Acquire, |word| match word {
                0 => Some(u64::from(pid) << 32 | 1),
                word if word >> 32 == u64::from(pid) => {
                    // Saturates.
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

    /// Takes all requests: process ids, in the namespace of each process, and counts. An id may occur twice.
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
    fn requests_are_counted_for_each_process_and_taken_once() {
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
    fn concurrent_requests_are_not_lost() {
        let requests = Requests::new();
        let mut counts: HashMap<u32, u32> = HashMap::new();
        std::thread::scope(|scope| {
            let requesting: Vec<_> = (1..=4u32)
                .map(|n| {
                    let requests = &requests;
                    scope.spawn(move || {
                        (0..20_000).for_each(|i| assert!(requests.add(n % 2 * 512 + 5 + i % 3)))
                    })
                })
                .collect();
            while !requesting.iter().all(|thread| thread.is_finished()) {
                requests.take().for_each(|(pid, n)| *counts.entry(pid).or_default() += n);
            }
        });
        requests.take().for_each(|(pid, n)| *counts.entry(pid).or_default() += n);
        assert_eq!(counts.values().sum::<u32>(), 80_000);
        assert_eq!(counts.len(), 6);
    }
}
