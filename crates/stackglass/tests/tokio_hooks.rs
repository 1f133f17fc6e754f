//! The runtime's own hooks, for who compiles with `RUSTFLAGS="--cfg tokio_unstable"` and the feature `tokio`.
#![cfg(all(tokio_unstable, feature = "tokio"))]

use std::hint::black_box;

fn work(n: u64) {
    for _ in 0..n {
        black_box((0..4000u64).fold(1, |a, b| (black_box(a) * 31 % 1_000_003) ^ b));
    }
}

#[test]
fn every_task_of_the_runtime_is_one_of_ours() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = stackglass::task::hook(builder.worker_threads(2)).build().unwrap();
    let mut line = 0;
    stackglass::profile!(runtime.block_on(async {
        let spawned: Vec<_> = (0..8)
            .map(|_| {
                line = line!() + 1;
                tokio::spawn(async {
                    work(2000);
                    tokio::task::yield_now().await;
                    assert!(std::panic::catch_unwind(|| work(2000)).is_ok());
                    work(1000);
                })
            })
            .collect();
        let panics = tokio::spawn(async { panic!("as planned") });
        for task in spawned {
            task.await.unwrap();
        }
        assert!(panics.await.is_err());
    }));
    let recording = stackglass::recording();
    let time = |task: bool| -> f64 {
        let awake = recording.samples.iter().filter(|sample| sample.state.uses_cpu());
        awake.filter(|sample| (sample.task != 0) == task).map(|sample| sample.time.millis()).sum()
    };
    assert!(time(true) > 10.0 * time(false), "{} ms in tasks, {} outside", time(true), time(false));
    let ours: Vec<_> = recording.tasks.iter().filter(|task| task.line == line).collect();
    assert_eq!(ours.len(), 8, "{:?}", recording.tasks);
    assert!(ours.iter().all(|task| &*task.name == "tokio task" && &*task.file == file!()));
}
