//! Threads that allocate and free as fast as possible. A profiler that uses the allocator in a signal handler hangs here.

use crate::options::Options;
use crate::report::Report;
use crate::spin::{Limit, Shuffle};

#[inline(never)]
fn allocating_thread(mut limit: Limit, mut order: Shuffle) -> (u64, u64) {
    let mut held: Vec<Vec<u8>> = vec![Vec::new(); 256];
    let (mut allocations, mut bytes) = (0, 0);
    while limit.go_on() {
        for _ in 0..1000 {
            let place = order.below(256) as usize;
            let size = 16 << order.below(9);
            held[place] = std::hint::black_box(Vec::with_capacity(size as usize));
            allocations += 1;
            bytes += size;
        }
    }
    (allocations, bytes)
}

/// `--threads` threads (4). Reports the number of blocks and their bytes, without those of the tables.
pub fn run(options: &Options, report: &mut Report) {
    let start = |i: usize| {
        let (limit, order) = (Limit::from_options(options), Shuffle::new(options.seed + i as u64));
        std::thread::spawn(move || allocating_thread(limit, order))
    };
    let handles: Vec<_> = (0..options.threads.unwrap_or(4)).map(start).collect();
    let counts = handles.into_iter().map(|h| h.join().expect("the thread ends well"));
    let (work, bytes) = counts.fold((0, 0), |sum: (u64, u64), one| (sum.0 + one.0, sum.1 + one.1));
    report.number("work", work);
    report.number("bytes", bytes);
}
