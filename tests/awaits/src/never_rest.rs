//! Tasks that are polled all the time: two chains that alternate. Tasks that end at once, and new ones instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub fn start_tasks(count: u64) {
    for _ in 0..count {
        crate::start("busy", "busy>*", busy(Arc::default()));
    }
}

/// Starts tasks for ever, as fast as they end.
pub fn start_and_end() {
    for _ in 0..2 {
        tokio::spawn(async {
            loop {
                let tasks: Vec<_> = (0..100).map(|_| tokio::spawn(left(1))).collect();
                for task in tasks {
                    let _ = task.await; // @churn
                }
            }
        });
    }
}

async fn busy(round: Arc<AtomicU64>) {
    loop {
        match round.fetch_add(1, Ordering::Relaxed) & 1 {
            0 => left(1).await,         // @busy_left
            _ => right([7; 200]).await, // @busy_right
        }
    }
}

async fn left(count: u32) {
    for _ in 0..count {
        tokio::task::yield_now().await; // @left
    }
}

async fn right(numbers: [u64; 200]) {
    for _ in 0..2 {
        deep(numbers[3]).await; // @right
    }
}

async fn deep(_number: u64) {
    Box::pin(tokio::task::yield_now()).await; // @deep
}
