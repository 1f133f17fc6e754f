//! Tasks that wait for other tasks and for shared futures in several ways, and one whose future is where nobody can follow.

use crate::{HOUR, start};
use futures::future::{BoxFuture, FutureExt, Shared, join_all};
use futures::stream::{FuturesUnordered, StreamExt};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// Starts a task of each kind.
pub async fn start_tasks() {
    start("timeout", "th>!Timeout>!JoinHandle", waits_for_a_time(sleeper()));
    start("join_all", "jah>(!JoinHandle,!JoinHandle)", waits_for_all(vec![sleeper(), sleeper()]));
    start("unordered", "fuh>(!JoinHandle,!JoinHandle)", waits_for_any(vec![sleeper(), sleeper()]));
    start("join_set", "jsh>!PollFn", waits_for_set());
    let shared = sleeps().boxed().shared();
    start("shared.1", "shr>!Shared>lslp>!Sleep", waits_for_shared(shared.clone()));
    start("shared.2", "shr>!Shared>lslp>!Sleep", waits_for_shared(shared));
    start("arc", "arc>*", waits_behind_arc());
}

fn sleeper() -> JoinHandle<()> {
    let task = tokio::spawn(sleeps());
    println!("sleeper {} lslp>!Sleep", task.id());
    task
}

async fn sleeps() {
    sleep(HOUR).await // @lslp
}

async fn waits_for_a_time(task: JoinHandle<()>) {
    let _ = timeout(HOUR, task).await; // @th
}

async fn waits_for_all(tasks: Vec<JoinHandle<()>>) {
    join_all(tasks).await; // @jah
}

async fn waits_for_any(tasks: Vec<JoinHandle<()>>) {
    let mut tasks: FuturesUnordered<_> = tasks.into_iter().collect();
    while tasks.next().await.is_some() {} // @fuh
}

async fn waits_for_set() {
    let mut set = JoinSet::new();
    for _ in 0..2 {
        let task = set.spawn(sleeps());
        println!("of_set {} lslp>!Sleep", task.id());
    }
    while set.join_next().await.is_some() {} // @jsh
}

async fn waits_for_shared(shared: Shared<BoxFuture<'static, ()>>) {
    shared.await // @shr
}

async fn waits_behind_arc() {
    BehindArc(Arc::new(Mutex::new(sleeps().boxed()))).await // @arc
}

struct BehindArc(Arc<Mutex<BoxFuture<'static, ()>>>);

impl Future for BehindArc {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.lock().expect("nobody panics").poll_unpin(context)
    }
}
