//! A program whose tasks wait for each other, for timers and for channels, in each shape that the reader of await stacks knows.

use futures_util::future::{BoxFuture, FutureExt, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, RwLock, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::sleep;

const LONG: Duration = Duration::from_secs(3600);

async fn nap() {
    sleep(LONG).await;
}

fn nested(depth: u32) -> BoxFuture<'static, ()> {
    async move {
        match depth {
            0 => nap().await,
            _ => nested(depth - 1).await,
        }
    }
    .boxed()
}

async fn hold_and_wait(first: Arc<Mutex<u32>>, second: Arc<Mutex<u32>>) {
    let mut one = first.lock().await;
    sleep(Duration::from_millis(10)).await;
    let two = second.lock().await;
    *one += *two;
}

async fn shapes() {
    let (one, two) = (Arc::new(Mutex::new(1)), Arc::new(Mutex::new(2)));
    tokio::spawn(hold_and_wait(Arc::clone(&one), Arc::clone(&two)));
    tokio::spawn(hold_and_wait(two, one));
    let lock = Arc::new(RwLock::new(0));
    for _ in 0..2 {
        let lock = Arc::clone(&lock);
        tokio::spawn(async move {
            let guard = lock.write().await;
            nap().await;
            drop(guard);
        });
    }
    let (sender, mut receiver) = mpsc::channel::<u32>(1);
    let (answer, question) = oneshot::channel::<u32>();
    tokio::spawn(async move {
        tokio::select! {
            _ = receiver.recv() => (),
            _ = question => (),
            () = nap() => (),
        }
        drop((sender, answer));
    });
    let sleeper = tokio::spawn(nested(4));
    tokio::spawn(async move {
        let mut set = JoinSet::new();
        set.spawn(nap());
        tokio::join!(nap(), async { drop(sleeper.await) }, async { drop(set.join_next().await) });
    });
    tokio::spawn(async {
        let mut some: FuturesUnordered<_> = (0..3).map(nested).collect();
        some.next().await;
    });
    tokio::spawn(async {
        join_all((0..3).map(nested)).await;
    });
    let permits = Arc::new(Semaphore::new(1));
    for _ in 0..2 {
        let permits = Arc::clone(&permits);
        tokio::spawn(async move {
            let permit = permits.acquire().await;
            tokio::time::timeout(LONG, nap()).await.ok();
            drop(permit);
        });
    }
    sleep(Duration::from_millis(200)).await;
    println!("READY");
    std::io::stdout().flush().ok();
    nap().await;
}

/// Runs until it is killed. Prints `READY` when all tasks wait.
pub fn run() -> ! {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    runtime.expect("tokio starts").block_on(shapes());
    std::process::exit(0)
}
