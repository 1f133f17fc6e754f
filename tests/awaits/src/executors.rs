//! Tasks of executors that are not tokio, wrapped by the crate's own wrapper. Each waits at a place that is known.

use crate::{HOUR, ready};
use futures::channel::oneshot;
use futures::executor::{LocalPool, ThreadPool};
use futures::task::LocalSpawnExt;
use stackglass::task::TaskExt;
use std::future::Future;
use std::sync::Arc;

/// Waits for ever. Its waker stays in use, since executors drop tasks that nobody can wake.
async fn parked() {
    let (sender, receiver) = oneshot::channel::<()>();
    std::mem::forget(sender);
    let _ = receiver.await; // @ex_parked
}

async fn nested(depth: u32) -> u32 {
    let value = inner(depth).await; // @ex_nested
    value + 1
}

async fn inner(depth: u32) -> u32 {
    if depth == 0 {
        parked().await; // @ex_inner
        return 0;
    }
    Box::pin(inner(depth - 1)).await // @ex_deeper
}

async fn joined() {
    let one = async { parked().await }; // @ex_one
    futures::join!(one, parked()); // @ex_join
}

async fn waits_for_lock(lock: Arc<futures::lock::Mutex<u32>>) {
    *lock.lock().await += 1; // @ex_lock
}

async fn outer() {
    parked().task("not a task of its own").await; // @ex_outer
}

fn known<F: Future>(name: &str, stack: &str, future: F) -> stackglass::task::Instrumented<F> {
    println!("{name} 0 {stack}");
    future.task(name)
}

/// A future whose poll does not return.
async fn polled() {
    std::thread::sleep(HOUR);
}

pub fn start_tasks() {
    let pool = ThreadPool::builder().pool_size(2).create().expect("a thread pool can be made");
    let block = async {
        let _ = nested(0).await; // @ex_block
    };
    pool.spawn_ok(known("pool_nested", "ex_block>ex_nested>ex_inner>ex_parked>!Receiver", block));
    pool.spawn_ok(known("pool_join", "ex_join>(ex_one>ex_parked>!Receiver,ex_parked>!Receiver)", joined()));
    pool.spawn_ok(known("pool_boxed", "ex_outer>ex_parked>!Receiver", futures::FutureExt::boxed(outer())));
    let lock = Arc::new(futures::lock::Mutex::new(0));
    std::mem::forget(lock.try_lock());
    pool.spawn_ok(known("pool_lock", "ex_lock>!*", waits_for_lock(lock.clone())));
    std::mem::forget(lock);

    std::thread::spawn(|| {
        let mut pool = LocalPool::new();
        let number = std::rc::Rc::new(1);
        let local = async move { drop((nested(*number).await, number)) }; // @ex_local
        let local = known("local_nested", "ex_local>ex_nested>ex_deeper>ex_inner>ex_parked>!Receiver", local);
        pool.spawner().spawn_local(local).expect("the pool runs");
        pool.run();
    });

    let executor: &'static async_executor::Executor<'_> = Box::leak(Box::default());
    for name in ["smol_first", "smol_second"] {
        executor
            .spawn(known(name, "ex_nested>ex_deeper>ex_deeper>ex_inner>ex_parked>!Receiver", nested(2)))
            .detach();
    }
    executor.spawn(known("smol_polled", "polled", polled())).detach();
    for _ in 0..2 {
        std::thread::spawn(|| futures::executor::block_on(executor.run(std::future::pending::<()>())));
    }
    std::mem::forget(known("not_polled", "nothing", parked()));
    std::thread::sleep(std::time::Duration::from_millis(500));
    ready();
    std::thread::sleep(HOUR);
}
