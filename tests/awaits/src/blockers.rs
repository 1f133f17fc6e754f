//! Tasks whose polls last: they block the worker that polls them. Others that only seem to: they never rest.

use crate::HOUR;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::yield_now;

/// Threads for functions of `spawn_blocking`, in `pool`.
const POOL: usize = 4;

static LOCK: Mutex<u32> = Mutex::new(1);
/// How many tasks have come to the place where they block.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// `multi` starts all kinds on one runtime. Every other kind is alone on a current-thread runtime.
pub fn run(kind: &str) {
    let mut builder = match kind {
        "multi" => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    if kind == "pool" {
        builder.max_blocking_threads(POOL);
    }
    let runtime = builder.worker_threads(12).enable_all().build().expect("a runtime can be made");
    let held = LOCK.lock().expect("nothing panics");
    // The current-thread runtime runs nothing before `block_on`.
    let entered = runtime.enter();
    match kind {
        "multi" => {
            // One after the other: a task that waits behind one that blocks its worker may never be polled (13 of 600 runs).
            for (kind, begun) in ["sleeps", "loops", "locks", "in_place", "function"].into_iter().zip(1..) {
                start(kind);
                while BEGUN.load(SeqCst) < begun {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            for kind in ["yields", "short", "woken"] {
                start(kind);
            }
        }
        kind => start(kind),
    }
    drop(entered);
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(300));
        crate::ready();
    });
    runtime.block_on(async { tokio::time::sleep(HOUR).await });
    drop(held);
}

fn start(kind: &str) {
    match kind {
        "sleeps" => crate::start("sleeps", "block_sleep", sleeps()),
        "loops" => crate::start("loops", "block_loop", loops()),
        "locks" => crate::start("locks", "block_lock", locks()),
        "in_place" => crate::start("in_place", "", in_place()),
        "function" => crate::start("function", "", calls_function()),
        "yields" => crate::start("yields", "", yields()),
        "short" => crate::start("short", "", short()),
        "pool" => crate::start("pool", "", fills_pool()),
        "woken" => {
            let (there, back) = (mpsc::channel(1), mpsc::channel(1));
            crate::start("woken", "", plays(there.0, back.1));
            crate::start("wakes", "", plays(back.0, there.1));
        }
        _ => panic!("no such kind"),
    }
}

/// Starts more functions than there are threads for them.
async fn fills_pool() {
    for _ in 0..POOL + 3 {
        tokio::task::spawn_blocking(|| std::thread::sleep(HOUR));
    }
    tokio::time::sleep(HOUR).await;
}

async fn sleeps() {
    yield_now().await;
    BEGUN.fetch_add(1, SeqCst);
    std::thread::sleep(HOUR); // @block_sleep
    yield_now().await;
}

async fn loops() {
    yield_now().await;
    BEGUN.fetch_add(1, SeqCst);
    while black_box(true) {} // @block_loop
    yield_now().await;
}

async fn locks() {
    yield_now().await;
    BEGUN.fetch_add(1, SeqCst);
    *LOCK.lock().expect("nothing panics") += 1; // @block_lock
    yield_now().await;
}

/// Legal: the runtime gives the other tasks of this worker to another thread.
async fn in_place() {
    yield_now().await;
    BEGUN.fetch_add(1, SeqCst);
    tokio::task::block_in_place(|| std::thread::sleep(HOUR)); // @block_in_place
}

async fn calls_function() {
    let _ = tokio::task::spawn_blocking(|| {
        BEGUN.fetch_add(1, SeqCst);
        std::thread::sleep(HOUR); // @block_function
    })
    .await;
}

/// Polled all the time, but each poll returns at once.
async fn yields() {
    loop {
        yield_now().await;
    }
}

/// Each poll takes 20 ms.
async fn short() {
    loop {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(20) {}
        yield_now().await;
    }
}

/// Two of them wake each other.
async fn plays(there: mpsc::Sender<u32>, mut back: mpsc::Receiver<u32>) {
    loop {
        let _ = there.send(1).await;
        let _ = back.recv().await;
    }
}
