//! Tasks of tokio in awaits that are known. Each task says its id, its state and the marked lines where it waits, outermost first.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Barrier, Mutex, Notify, mpsc};

type Lock = Arc<Mutex<u64>>;

async fn second_lock(own: Lock, other: Lock, both_have_one: Arc<Barrier>) {
    let mut guard = own.lock().await;
    both_have_one.wait().await;
    *guard += *other.lock().await; // deadlocked
}

async fn sleeps(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await; // sleeps
}

async fn outer(seconds: u64) {
    sleeps(seconds).await; // outer
}

async fn receives(mut messages: mpsc::Receiver<u64>) -> Option<u64> {
    messages.recv().await // receives
}

async fn notified(notify: Arc<Notify>) {
    notify.notified().await; // notified
}

async fn joins(task: tokio::task::JoinHandle<()>) {
    let _ = task.await; // joins
}

fn say<F>(what: &str, future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let task = tokio::spawn(future);
    eprintln!("task {} {what}", task.id());
    task
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("the runtime starts").block_on(async {
        let (one, other) = (Lock::default(), Lock::default());
        let barrier = Arc::new(Barrier::new(2));
        say("waiting deadlocked", second_lock(one.clone(), other.clone(), barrier.clone()));
        say("waiting deadlocked", second_lock(other.clone(), one.clone(), barrier));
        say("waiting sleeps", sleeps(100_000));
        let slept = say("waiting outer sleeps", outer(200_000));
        say("waiting joins", joins(slept));
        let (sender, receiver) = mpsc::channel(4);
        say("waiting receives", receives(receiver));
        let notify = Arc::new(Notify::new());
        say("waiting notified", notified(notify.clone()));
        // All tasks have reached their places when they were polled some times.
        for _ in 0..64 {
            tokio::task::yield_now().await;
        }
        eprintln!("ready");
        std::future::pending::<()>().await; // main
        drop((sender, notify));
    });
}
