//! A queue of events that the program's own threads report: a thread starts, a thread is about to exit.
//!
//! Bounded, with many writers and one reader, after Dmitry Vyukov (1024cores.net, "Bounded MPMC queue"): each cell has
//! a turn counter, so that no writer waits for another. When the queue is full, events are dropped; a scan of the task
//! folder finds such threads a little later.

use core::sync::atomic::{AtomicU64, Ordering::*};

/// Cells of the queue (a power of two).
const CELLS: usize = 4096;

/// An event that a thread reports about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadEvent {
    /// The thread starts.
    Start {
        /// Kernel id.
        tid: u32,
        /// CLOCK_MONOTONIC ns.
        at: u64,
    },
    /// The thread is about to exit.
    Exit {
        /// Kernel id.
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
    /// Kernel id; bit 32 is set for an exit.
    thread: AtomicU64,
    at: AtomicU64,
    value: AtomicU64,
}

/// The queue. All zeros is an empty one.
#[repr(C, align(64))]
pub struct ThreadEventQueue {
    tail: AtomicU64,
    _apart: [AtomicU64; 7],
    head: AtomicU64,
    _apart2: [AtomicU64; 7],
    cells: [Cell; CELLS],
}

impl ThreadEventQueue {
    /// Adds an event; false if the queue is full.
    pub fn push(&self, event: ThreadEvent) -> bool {
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
        let (tid, exit, at, value) = match event {
            ThreadEvent::Start { tid, at } => (tid, 0, at, 0),
            ThreadEvent::Exit { tid, at, cpu } => (tid, 1u64 << 32, at, cpu),
        };
        cell.thread.store(tid as u64 | exit, Relaxed);
        cell.at.store(at, Relaxed);
        cell.value.store(value, Relaxed);
        cell.turn.store(tail / CELLS as u64 * 2 + 1, Release);
        true
    }

    /// Removes the oldest event; for the sampler only.
    pub fn pop(&self) -> Option<ThreadEvent> {
        let head = self.head.load(Relaxed);
        let cell = &self.cells[head as usize & (CELLS - 1)];
        let round = head / CELLS as u64 * 2;
        if cell.turn.load(Acquire) != round + 1 {
            return None;
        }
        let (thread, at, value) =
            (cell.thread.load(Relaxed), cell.at.load(Relaxed), cell.value.load(Relaxed));
        cell.turn.store(round + 2, Release);
        self.head.store(head + 1, Relaxed);
        let tid = thread as u32;
        Some(match thread >> 32 {
            0 => ThreadEvent::Start { tid, at },
            _ => ThreadEvent::Exit { tid, at, cpu: value },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Box<ThreadEventQueue> {
        // SAFETY: all zeros is an empty queue.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn events_come_out_in_order_for_many_rounds() {
        let queue = queue();
        for round in 0..5u32 {
            for i in 0..3000 {
                assert!(queue.push(ThreadEvent::Start { tid: i, at: round as u64 }));
            }
            for i in 0..3000 {
                assert_eq!(queue.pop(), Some(ThreadEvent::Start { tid: i, at: round as u64 }));
            }
            assert_eq!(queue.pop(), None);
        }
    }

    #[test]
    fn a_full_queue_refuses_and_recovers() {
        let queue = queue();
        let end = ThreadEvent::Exit { tid: 1, at: 2, cpu: 3 };
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
                        while !queue.push(ThreadEvent::Start { tid: writer, at: i as u64 }) {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut total = 0;
            while total < writers * each {
                match queue.pop() {
                    Some(ThreadEvent::Start { tid, at }) => {
                        assert_eq!(at, seen[tid as usize] as u64, "each writer's events stay in order");
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
