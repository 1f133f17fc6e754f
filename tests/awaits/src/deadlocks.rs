//! Tasks that wait for each other, and tasks that only look so.

use crate::HOUR;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

type Shared = Arc<Mutex<u32>>;

pub async fn start_tasks() {
    let (a, b): (Shared, Shared) = Default::default();
    crate::start("first", "first>!Acquire", first(a.clone(), b.clone()));
    crate::start("second", "second>!Acquire", second(a, b));
    crate::start("itself", "itself>!Acquire", itself(Arc::default()));
    // One of the two gives up after a time.
    let (c, d): (Shared, Shared) = Default::default();
    crate::start("patient", "patient>!Acquire", patient(c.clone(), d.clone()));
    crate::start("impatient", "impatient>!Timeout>!Acquire", impatient(c, d));
    // A task that holds a lock while it sleeps, and others that wait for it.
    let e: Shared = Arc::default();
    crate::start("holder", "holder>!Sleep", holder(e.clone()));
    let f: Shared = Arc::default();
    crate::start("dropped", "dropped>!Sleep", dropped(f.clone()));
    sleep(Duration::from_millis(50)).await;
    crate::start("next_holder", "holder>!Sleep", holder(f.clone()));
    sleep(Duration::from_millis(50)).await;
    for _ in 0..3 {
        crate::start("waiter", "waiter>!Acquire", waiter(e.clone()));
        crate::start("other_waiter", "waiter>!Acquire", waiter(f.clone()));
    }
}

async fn first(a: Shared, b: Shared) {
    let held = a.lock().await;
    sleep(Duration::from_millis(100)).await;
    *b.lock().await = *held; // @first
}

async fn second(a: Shared, b: Shared) {
    let held = b.lock().await;
    sleep(Duration::from_millis(100)).await;
    *a.lock().await = *held; // @second
}

async fn itself(a: Shared) {
    let held = a.lock().await;
    *a.lock().await = *held; // @itself
}

async fn patient(a: Shared, b: Shared) {
    let held = a.lock().await;
    sleep(Duration::from_millis(100)).await;
    *b.lock().await = *held; // @patient
}

async fn impatient(a: Shared, b: Shared) {
    let held = b.lock().await;
    sleep(Duration::from_millis(100)).await;
    let _ = timeout(HOUR, a.lock()).await; // @impatient
    drop(held);
}

/// It has given the lock back, but its guard is still described as a variable.
async fn dropped(a: Shared) {
    let mut held = a.lock().await;
    *held += 1;
    drop(held);
    sleep(HOUR).await; // @dropped
}

async fn holder(a: Shared) {
    let mut held = a.lock().await;
    sleep(HOUR).await; // @holder
    *held += 1;
}

async fn waiter(a: Shared) {
    *a.lock().await += 1; // @waiter
}
