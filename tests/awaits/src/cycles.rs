//! Tasks that wait for each other through all kinds of things, and tasks that only look so.
//!
//! The names of tasks of one cycle begin with the same word.

use crate::{HOUR, start};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, RwLock, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Starts a task and prints what is known of it.
fn spawn<F>(name: &str, stack: &str, future: F) -> JoinHandle<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let task = tokio::spawn(future);
    println!("{name} {} {stack}", task.id());
    task
}

/// Starts a task that gets the handle of another one later.
fn spawn_for_handle<F>(
    name: &str,
    stack: &str,
    future: impl FnOnce(oneshot::Receiver<JoinHandle<()>>) -> F,
) -> (JoinHandle<()>, oneshot::Sender<JoinHandle<()>>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    (spawn(name, stack, future(receiver)), sender)
}

pub async fn start_tasks() {
    // Cycles.
    let (first, handle) = spawn_for_handle("join.1", "cj>(cslp>!Sleep,!JoinHandle)", joins);
    let _ = handle.send(spawn("join.2", "end>!JoinHandle", waits_for_end(first)));
    let (sender, receiver) = oneshot::channel();
    let (other_sender, other_receiver) = oneshot::channel();
    start("oneshot.1", "cos>!Receiver", receives_then_sends(receiver, other_sender));
    start("oneshot.2", "cos>!Receiver", receives_then_sends(other_receiver, sender));
    let (a, b) = (Arc::new(RwLock::new(0)), Arc::new(RwLock::new(0)));
    start("rwlock.1", "crw>!Acquire", reads_then_writes(a.clone(), b.clone()));
    start("rwlock.2", "crw>!Acquire", reads_then_writes(b, a));
    let (sender, receiver) = mpsc::channel(1);
    let sends = spawn("channel.1", "full>!Acquire", fills(sender));
    start("channel.2", "owner>!JoinHandle", owns_receiver(receiver, sends));
    // A guard that shadows another variable, or that is in a list, is found as well.
    let (c, d) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    start("shadow.1", "shd>!Acquire", shadows(c.clone(), d.clone()));
    start("shadow.2", "lst>!Acquire", keeps_in_list(c, d));

    // Look-alikes.
    let (first, handle) = spawn_for_handle("", "none_select>(!JoinHandle,cslp>!Sleep)", selects);
    let _ = handle.send(spawn("", "end>!JoinHandle", waits_for_end(first)));
    let (first, handle) = spawn_for_handle("", "none_timeout>*", gives_up);
    let _ = handle.send(spawn("", "end>!JoinHandle", waits_for_end(first)));
    let lock = Arc::new(Mutex::new(0));
    let (_, handle) = spawn_for_handle("", "nj>(nj1>cslp>!Sleep,!JoinHandle)", |handle| {
        one_branch_holds(lock.clone(), handle)
    });
    sleep(Duration::from_millis(50)).await;
    let _ = handle.send(spawn("", "lk>!Acquire", locks(lock)));
    let (c, d) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    start("", "dr>!Acquire", drops_one(c.clone(), d.clone()));
    start("", "hn>!Acquire", holds_one(c, d));
    let (sender, receiver) = oneshot::channel();
    let (other_sender, other_receiver) = oneshot::channel();
    start("", "cos>!Receiver", receives_then_sends(receiver, other_sender));
    start("", "gv>!Receiver", gives_away(other_receiver, sender));
    let lock = Arc::new(RwLock::new(0));
    let (_, handle) = spawn_for_handle("", "rh>!JoinHandle", |handle| reads_then_waits(lock.clone(), handle));
    sleep(Duration::from_millis(50)).await;
    start("", "wt>!Timeout>!Acquire", writes_with_timeout(lock.clone()));
    sleep(Duration::from_millis(50)).await;
    let _ = handle.send(spawn("", "rd2>!Acquire", reads(lock)));
}

async fn sleeps() {
    sleep(HOUR).await // @cslp
}

async fn joins(handle: oneshot::Receiver<JoinHandle<()>>) {
    let handle = handle.await.expect("it is sent");
    let _ = tokio::join!(sleeps(), handle); // @cj
}

async fn waits_for_end(task: JoinHandle<()>) {
    let _ = task.await; // @end
}

async fn receives_then_sends(receiver: oneshot::Receiver<u32>, sender: oneshot::Sender<u32>) {
    let number = receiver.await.unwrap_or(0); // @cos
    let _ = sender.send(number);
}

async fn reads_then_writes(first: Arc<RwLock<u32>>, second: Arc<RwLock<u32>>) {
    let held = first.read().await;
    sleep(Duration::from_millis(100)).await;
    *second.write().await = *held; // @crw
}

async fn fills(sender: mpsc::Sender<u32>) {
    for number in 0..3 {
        let _ = sender.send(number).await; // @full
    }
}

async fn owns_receiver(mut receiver: mpsc::Receiver<u32>, sends: JoinHandle<()>) {
    let _ = sends.await; // @owner
    while receiver.recv().await.is_some() {}
}

async fn shadows(first: Arc<Mutex<u32>>, second: Arc<Mutex<u32>>) {
    let first = first.lock().await;
    sleep(Duration::from_millis(100)).await;
    *second.lock().await = *first; // @shd
}

async fn keeps_in_list(first: Arc<Mutex<u32>>, second: Arc<Mutex<u32>>) {
    let mut all = std::collections::HashMap::new();
    all.insert(3, second.lock_owned().await);
    sleep(Duration::from_millis(100)).await;
    *first.lock().await = all.len() as u32; // @lst
}

async fn selects(handle: oneshot::Receiver<JoinHandle<()>>) {
    let handle = handle.await.expect("it is sent");
    tokio::select! { // @none_select
        _ = handle => {}
        _ = sleeps() => {}
    }
}

async fn gives_up(handle: oneshot::Receiver<JoinHandle<()>>) {
    let handle = handle.await.expect("it is sent");
    let _ = timeout(HOUR, handle).await; // @none_timeout
}

/// The branch that holds the lock ends by itself.
async fn one_branch_holds(lock: Arc<Mutex<u32>>, handle: oneshot::Receiver<JoinHandle<()>>) {
    let held = async {
        let mut held = lock.lock().await;
        sleeps().await; // @nj1
        *held += 1;
    };
    tokio::pin!(held);
    let handle = tokio::select! {
        biased;
        () = &mut held => return,
        handle = handle => handle.expect("it is sent"),
    };
    let _ = tokio::join!(held, handle); // @nj
}

async fn locks(lock: Arc<Mutex<u32>>) {
    *lock.lock().await += 1; // @lk
}

/// It does not hold the first lock any longer. Nobody does: its guard is forgotten.
async fn drops_one(first: Arc<Mutex<u32>>, second: Arc<Mutex<u32>>) {
    let mut held = first.lock().await;
    *held += 1;
    drop(held);
    std::mem::forget(first.clone().lock_owned().await);
    sleep(Duration::from_millis(100)).await;
    *second.lock().await += 1; // @dr
}

async fn holds_one(first: Arc<Mutex<u32>>, second: Arc<Mutex<u32>>) {
    let held = second.lock().await;
    sleep(Duration::from_millis(100)).await;
    *first.lock().await = *held; // @hn
}

/// Another task sends.
async fn gives_away(receiver: oneshot::Receiver<u32>, sender: oneshot::Sender<u32>) {
    start("", "later>!Sleep", sends_later(sender));
    let _ = receiver.await; // @gv
}

async fn sends_later(sender: oneshot::Sender<u32>) {
    sleep(HOUR).await; // @later
    let _ = sender.send(1);
}

async fn reads_then_waits(lock: Arc<RwLock<u32>>, handle: oneshot::Receiver<JoinHandle<()>>) {
    let held = lock.read().await;
    let handle = handle.await.expect("it is sent");
    let _ = handle.await; // @rh
    drop(held);
}

/// It gives up, and then the reader behind it goes on.
async fn writes_with_timeout(lock: Arc<RwLock<u32>>) {
    let _ = timeout(HOUR, lock.write()).await; // @wt
}

async fn reads(lock: Arc<RwLock<u32>>) {
    let _ = lock.read().await; // @rd2
}
