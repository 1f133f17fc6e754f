//! Heaps of equal blocks: one that is written all the time, and one that only exists.

use crate::clock::monotonic;
use crate::live_graph::wait;
use crate::options::Options;
use crate::report::Report;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes each of `--work` blocks of 48 bytes (1000) over and over, until standard input ends or for `--seconds`. Prints
/// `ready` on stderr. Reports when each pass ended, by CLOCK_MONOTONIC.
pub fn rewritten(options: &Options, report: &mut Report) {
    let mut blocks: Vec<Box<[u64; 6]>> = blocks(options);
    let stop = AtomicBool::new(false);
    eprintln!("ready");
    let ends = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut ends = Vec::with_capacity(1 << 16);
            while !stop.load(Ordering::Relaxed) {
                blocks.iter_mut().for_each(|block| block[1] += 1);
                ends.push(monotonic().as_nanos().to_string());
            }
            ends
        });
        wait(options.seconds);
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("the writer ends")
    });
    report.list("ends", &ends);
    std::mem::forget(blocks);
}

/// `--work` blocks of 32 bytes (1000), which stay.
pub fn of_32(options: &Options, report: &mut Report) {
    let blocks: Vec<Box<[u64; 4]>> = blocks(options);
    report.number("work", blocks.len());
    std::mem::forget(black_box(blocks));
}

/// `--work` blocks of 24 bytes (1000), which stay. With its head, a block takes 32 bytes of the heap.
pub fn of_24(options: &Options, report: &mut Report) {
    let blocks: Vec<Box<[u64; 3]>> = blocks(options);
    report.number("work", blocks.len());
    std::mem::forget(black_box(blocks));
}

fn blocks<const WORDS: usize>(options: &Options) -> Vec<Box<[u64; WORDS]>> {
    let number = options.work.unwrap_or(1000);
    (0..number).map(|number| Box::new([number; WORDS])).collect()
}
