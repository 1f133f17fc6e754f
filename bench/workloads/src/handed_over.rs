//! Pairs of threads: one allocates blocks, the other frees them, some of them late.

use crate::options::Options;
use crate::report::Report;
use crate::spin::{Limit, Shuffle};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Blocks that are handed over together.
type Batch = Vec<Box<[u8]>>;

/// Batches on the way.
const ON_THE_WAY: usize = 64;
/// Blocks of a batch.
const BLOCKS: usize = 8;
/// Batches that the second thread keeps before it frees them all.
const KEPT: usize = 1000;

fn allocating(mut limit: Limit, mut order: Shuffle, to: &SyncSender<Batch>) {
    while limit.go_on() {
        let block = |_| vec![1; 16 + order.below(200) as usize].into_boxed_slice();
        to.send((0..BLOCKS).map(block).collect()).expect("the other thread still receives");
    }
}

fn freeing(from: Receiver<Batch>) -> usize {
    let (mut bytes, mut kept) = (0, Vec::new());
    for batch in from {
        bytes += batch.iter().map(|block| block.len()).sum::<usize>();
        if bytes % 16 == 0 {
            kept.push(batch);
        }
        if kept.len() > KEPT {
            kept.clear();
        }
    }
    bytes
}

/// `--threads` threads (4), an even number. Each pair hands over `--work` batches.
pub fn run(options: &Options, report: &mut Report) {
    let pairs = options.threads.unwrap_or(4) / 2;
    let mut handles = Vec::new();
    for pair in 0..pairs {
        let (limit, order) = (Limit::from_options(options), Shuffle::new(options.seed + pair as u64));
        let (to, from) = sync_channel(ON_THE_WAY);
        std::thread::spawn(move || allocating(limit, order, &to));
        handles.push(std::thread::spawn(move || freeing(from)));
    }
    let bytes: usize = handles.into_iter().map(|handle| handle.join().expect("the thread ends well")).sum();
    report.number("bytes", bytes);
}
