//! Whose time it was: tasks in samples, against programs whose truth is known.

use stackglass::Recording;
use stackglass::task::{TaskExt, instrument};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Uses the processor: some microseconds for each of `n`, always the same work.
#[inline(never)]
fn work(n: u64) {
    for _ in 0..n {
        black_box((0..4000u64).fold(1, |a, b| black_box(a) * 31 % 1_000_003 ^ b));
    }
}

/// Drives a future to its end without a runtime.
fn drive<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

/// Lets others run once.
async fn pause() {
    let mut paused = false;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Milliseconds of processor time by the name of the task; "" for samples outside of tasks, "?" for tasks without a
/// name. Helper threads of the test harness hardly run.
fn by_name(recording: &Recording) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for sample in recording.samples.iter().filter(|sample| sample.state.uses_processor()) {
        let name = match sample.task {
            0 => "",
            task => recording.task(task.into()).map_or("?", |task| &*task.name),
        };
        *sums.entry(name.to_owned()).or_default() += sample.time.millis();
    }
    sums
}

#[test]
fn time_in_a_poll_is_the_tasks_and_outside_it_is_nobodys() {
    let line = line!() + 1;
    let future = instrument(async { work(15_000) }, "alpha");
    let id = future.id();
    stackglass::profile!({
        work(5000);
        drive(future);
        work(5000);
    });
    let recording = stackglass::recording();
    let sums = by_name(&recording);
    let (inside, outside) = (sums["alpha"], sums[""]);
    let share = inside / (inside + outside);
    assert!((share - 0.6).abs() < 0.05, "{sums:?}");
    let task = recording.task(id).unwrap();
    assert_eq!((&*task.file, task.line), (file!(), line));
}
