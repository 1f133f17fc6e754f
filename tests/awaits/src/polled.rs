//! Tasks that look alike at any two moments: those that rest, and those that are polled again and again at the same `.await`.

use crate::{HOUR, start};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use tokio::sync::Notify;
use tokio::time::{Duration, sleep};

/// A task is polled as often.
const STEP: Duration = Duration::from_millis(20);

/// Each task of a kind has memory of its own around it: what others write tells nothing of it.
pub fn start_tasks() {
    let notify = Arc::new(Notify::new());
    let waker = Arc::new(Mutex::new(None));
    let space = || std::mem::forget(vec![1_u8; 64 << 10]);
    for _ in 0..3 {
        space();
        start("rests", "p_rests>!Sleep", rests());
        space();
    }
    start("polled.notified", "p_notified>!Notified", notified(Arc::clone(&notify)));
    space();
    start("polled.woken", "p_woken>!PollFn", woken(Arc::clone(&waker)));
    space();
    start("polled.timer", "p_timer>!Sleep", timer());
    space();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(STEP);
            notify.notify_waiters();
            let waker = waker.lock().expect("nothing panics").clone();
            waker.iter().for_each(Waker::wake_by_ref);
        }
    });
}

async fn rests() {
    sleep(HOUR).await; // @p_rests
}

async fn notified(notify: Arc<Notify>) {
    loop {
        notify.notified().await; // @p_notified
    }
}

/// Its future says each time that it is not ready.
async fn woken(waker: Arc<Mutex<Option<Waker>>>) {
    let future = poll_fn(|context| {
        waker.lock().expect("nothing panics").get_or_insert_with(|| context.waker().clone());
        Poll::<()>::Pending
    });
    future.await; // @p_woken
}

async fn timer() {
    loop {
        sleep(STEP).await; // @p_timer
    }
}
