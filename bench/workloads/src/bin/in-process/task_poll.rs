//! The additional time of a poll if the future is a task: a bare and an instrumented future, alternating.

use serde_json::{Value, json};
use stackglass::task::instrument;
use std::future::poll_fn;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use workloads::clock::thread_cpu;

/// Polls in a block: about ten milliseconds.
const POLLS: u32 = 4_000_000;

/// Nanoseconds for each poll, bare and instrumented, in each round.
pub fn rounds(rounds: usize) -> Value {
    let mut bare = pin!(future());
    let mut task = pin!(instrument(future(), "polled"));
    let rounds: Vec<Value> = (0..rounds)
        .map(|round| {
            let mut times = [0.0; 2];
            for turn in 0..2 {
                let which = (round + turn) % 2;
                times[which] = if which == 0 { block(bare.as_mut()) } else { block(task.as_mut()) };
            }
            json!({"bare_ns": times[0], "task_ns": times[1]})
        })
        .collect();
    json!({"rounds": rounds})
}

/// A future that does some work and is never ready.
fn future() -> impl Future<Output = ()> {
    let mut polls = 0u64;
    poll_fn(move |_| {
        polls = black_box(polls + 1);
        Poll::Pending
    })
}

/// Mean CPU time of a poll in a block, ns. The executor has only addresses of futures.
fn block(mut future: std::pin::Pin<&mut dyn Future<Output = ()>>) -> f64 {
    let mut context = Context::from_waker(Waker::noop());
    let begin = thread_cpu();
    for _ in 0..POLLS {
        assert!(black_box(future.as_mut()).poll(&mut context).is_pending());
    }
    (thread_cpu() - begin).as_nanos() as f64 / f64::from(POLLS)
}
