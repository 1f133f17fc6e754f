//! News from the program's own threads for the sampler: a thread begins, a thread ends.
//!
//! A bounded queue with many writers and one reader, after Dmitry Vyukov's (1024cores.net, "Bounded MPMC
//! queue"): each cell has a turn counter, so that nobody ever waits for anybody. When it is full, news is
//! dropped; the scan of the task folder finds the thread a little later.

use core::sync::atomic::{AtomicU64, Ordering::*};

/// Cells of the queue (a power of two).
const CELLS: usize = 4096;

/// What a thread tells about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// It begins.
    Begin {
        /// Its kernel id.
        tid: u32,
        /// CLOCK_MONOTONIC ns.
        at: u64,
    },
    /// It is about to end.
    End {
        /// Its kernel id.
        tid: u32,
        /// CLOCK_MONOTONIC ns.
        at: u64,
        /// CPU time it has used, ns.
        cpu: u64,
    },
}

#[repr(C)]
struct Cell {
    turn: AtomicU64,
    /// Kernel id, and in bit 32 whether this is an end.
    who: AtomicU64,
    at: AtomicU64,
    value: AtomicU64,
}

/// The queue. All zeros is an empty one.
#[repr(C, align(64))]
pub struct Arrivals {
    tail: AtomicU64,
    _apart: [AtomicU64; 7],
    head: AtomicU64,
    _apart2: [AtomicU64; 7],
    cells: [Cell; CELLS],
}

impl Arrivals {
    /// Tells the sampler; false when the queue is full.
    pub fn push(&self, news: News) -> bool {
        let mut tail = self.tail.load(Relaxed);
        let cell = loop {
            let cell = &self.cells[tail as usize & (CELLS - 1)];
            // A cell's turn counts its uses: 2 × round when it may be written, one more when it may be read.
            let free = tail / CELLS as u64 * 2;
            let turn = cell.turn.load(Acquire);
            if turn == free {
                match self.tail.compare_exchange_weak(tail, tail + 1, Relaxed, Relaxed) {
                    Ok(_) => break cell,
                    Err(now) => tail = now,
                }
            } else if turn < free {
                return false;
            } else {
                tail = self.tail.load(Relaxed);
            }
        };
        let (tid, end, at, value) = match news {
            News::Begin { tid, at } => (tid, 0, at, 0),
            News::End { tid, at, cpu } => (tid, 1u64 << 32, at, cpu),
        };
        cell.who.store(tid as u64 | end, Relaxed);
        cell.at.store(at, Relaxed);
        cell.value.store(value, Relaxed);
        cell.turn.store(tail / CELLS as u64 * 2 + 1, Release);
        true
    }

    /// The oldest news; for the sampler only.
    pub fn pop(&self) -> Option<News> {
        let head = self.head.load(Relaxed);
        let cell = &self.cells[head as usize & (CELLS - 1)];
        let round = head / CELLS as u64 * 2;
        if cell.turn.load(Acquire) != round + 1 {
            return None;
        }
        let (who, at, value) = (cell.who.load(Relaxed), cell.at.load(Relaxed), cell.value.load(Relaxed));
        cell.turn.store(round + 2, Release);
        self.head.store(head + 1, Relaxed);
        let tid = who as u32;
        Some(match who >> 32 {
            0 => News::Begin { tid, at },
            _ => News::End { tid, at, cpu: value },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Box<Arrivals> {
        // SAFETY: all zeros is an empty queue.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn news_comes_out_in_order_for_many_rounds() {
        let queue = queue();
        for round in 0..5u32 {
            for i in 0..3000 {
                assert!(queue.push(News::Begin { tid: i, at: round as u64 }));
            }
            for i in 0..3000 {
                assert_eq!(queue.pop(), Some(News::Begin { tid: i, at: round as u64 }));
            }
            assert_eq!(queue.pop(), None);
        }
    }

    #[test]
    fn a_full_queue_refuses_and_recovers() {
        let queue = queue();
        let end = News::End { tid: 1, at: 2, cpu: 3 };
        let taken = (0..5000).filter(|_| queue.push(end)).count();
        assert_eq!(taken, CELLS);
        assert_eq!(queue.pop(), Some(end));
        assert!(queue.push(end));
        assert!(!queue.push(end));
    }

    #[test]
    fn many_writers_lose_nothing() {
        let queue = queue();
        let (writers, each) = (4u32, 20_000u32);
        let mut seen = vec![0u32; writers as usize];
        std::thread::scope(|scope| {
            for writer in 0..writers {
                let queue = &queue;
                scope.spawn(move || {
                    for i in 0..each {
                        while !queue.push(News::Begin { tid: writer, at: i as u64 }) {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut total = 0;
            while total < writers * each {
                match queue.pop() {
                    Some(News::Begin { tid, at }) => {
                        assert_eq!(at, seen[tid as usize] as u64, "each writer's news stays in order");
                        seen[tid as usize] += 1;
                        total += 1;
                    }
                    Some(other) => panic!("never pushed: {other:?}"),
                    None => std::thread::yield_now(),
                }
            }
        });
        assert_eq!(queue.pop(), None);
    }
}
