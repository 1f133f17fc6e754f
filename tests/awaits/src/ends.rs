//! Tasks that wait for what other tasks have: the other ends of channels, notifications, barriers, and threads for functions.
//!
//! `waits.X` waits for what `has.X` has. Of `self.X`, the task has it itself. Nothing can wake `forgotten`, and nothing
//! else has what `alone` waits for.

use crate::{HOUR, start};
use std::sync::Arc;
use tokio::sync::{Barrier, Mutex, Notify, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::time::{Duration, sleep};

/// Starts a task of each kind.
pub async fn start_tasks() {
    let (sender, receiver) = mpsc::channel(1);
    start("waits.empty", "e_recv>!PollFn", receives(receiver));
    start("has.empty", "e_has>!Sleep", has(sender));
    let (sender, receiver) = mpsc::unbounded_channel::<u32>();
    start("waits.unbounded", "e_urecv>!PollFn", receives_unbounded(receiver));
    // It has the sender as a part of what it shares with others.
    start("has.unbounded", "e_has>!Sleep", has(Arc::new((7, sender))));
    let (sender, receiver) = mpsc::channel(1);
    start("waits.full", "e_send>!Acquire", sends(sender));
    start("has.full", "e_has>!Sleep", has(receiver));
    let (sender, receiver) = oneshot::channel::<u32>();
    start("waits.oneshot", "e_one>!Receiver", waits(receiver));
    start("has.oneshot", "e_has>!Sleep", has(sender));
    let (sender, receiver) = watch::channel(1);
    start("waits.watch", "e_watch>!Notified", watches(receiver));
    start("has.watch", "e_has>!Sleep", has(sender));
    let (sender, receiver) = broadcast::channel::<u32>(1);
    start("waits.broadcast", "e_broad>!Recv", hears(receiver));
    start("has.broadcast", "e_has>!Sleep", has(sender));
    let notify = Arc::new(Notify::new());
    start("waits.notify", "e_notify>!Notified", is_notified(Arc::clone(&notify)));
    start("has.notify", "e_has>!Sleep", has(notify));
    // Nothing else has it.
    start("alone", "e_notify>!Notified", is_notified(Arc::new(Notify::new())));
    gives_away();
    let barrier = Arc::new(Barrier::new(3));
    start("waits.barrier", "e_barrier>!Notified", arrives(Arc::clone(&barrier)));
    start("waits.barrier", "e_barrier>!Notified", arrives(Arc::clone(&barrier)));
    start("has.barrier", "e_has>!Sleep", has(barrier));
    // It had a sender, which another has now.
    let (sender, receiver) = mpsc::channel(1);
    start("waits.moved", "e_recv>!PollFn", receives(receiver));
    let (there, other) = mpsc::channel(1);
    start("had.moved", "e_had>!Sleep", had(sender, there));
    start("has.moved", "e_got>!Sleep", got(other));
    // The sender of the reply is in the queue of a task that does something else.
    let (sender, receiver) = mpsc::channel(8);
    start("waits.queue", "e_ask>e_reply>!Receiver", asks(sender));
    start("has.queue", "e_has>!Sleep", has(receiver));
    start("forgotten", "e_never>!Pending", never());
    // An actor that asks itself, and two tasks that need a second permit each.
    let (sender, receiver) = mpsc::channel(8);
    start("self.actor", "e_serve>e_reply>!Receiver", serves(receiver, sender.clone()));
    start("waits.actor", "e_ask>e_reply>!Receiver", asks(sender));
    // These look like it, and are none: another task serves the queue as well, a timer ends the wait, another task has taken the
    // request, or has the other queue.
    let (sender, receiver) = mpsc::channel(8);
    let receiver = Arc::new(Mutex::new(receiver));
    start("free.shared", "e_ask_shared>e_reply>!Receiver", asks_with(sender, Arc::clone(&receiver)));
    start("serves.shared", "e_has>!Sleep", has(receiver));
    let (sender, receiver) = mpsc::channel(8);
    start("free.timer", "e_ask_timer>(e_reply>!Receiver,!Sleep)", asks_or_ends(receiver, sender));
    let (sender, receiver) = mpsc::channel(8);
    let (own, own_receiver) = mpsc::channel::<Request>(8);
    start("free.taken", "e_ask_other>e_reply>!Receiver", asks_other(own_receiver, own, sender));
    start("serves.taken", "e_taken>!Sleep", takes(receiver));
    let (sender, receiver) = mpsc::channel(8);
    let (own, own_receiver) = mpsc::channel::<Request>(8);
    start("free.second", "e_ask_other>e_reply>!Receiver", asks_other(own_receiver, own, sender));
    start("serves.second", "e_has>!Sleep", has(receiver));
    let permits = Arc::new(Semaphore::new(2));
    start("self.permits", "e_permits>!Acquire", needs_two(Arc::clone(&permits)));
    start("self.permits", "e_permits>!Acquire", needs_two(permits));
}

/// Starts functions on threads that wait for channels of threads, or have what tasks wait for. Nobody known has what `open` waits for.
pub async fn start_functions() {
    let (sender, receiver) = std::sync::mpsc::channel();
    start_function("waits.empty", move || receives_on_thread(receiver));
    start("has.empty", "e_has>!Sleep", has(sender));
    // It has the sender by an `Arc`, which others may have as well.
    let (sender, receiver) = std::sync::mpsc::channel();
    start_function("waits.shared", move || receives_on_thread(receiver));
    start("has.shared", "e_has>!Sleep", has(Arc::new(std::sync::Mutex::new((7, sender)))));
    let (sender, receiver) = mpsc::channel(1);
    start("waits.function", "e_recv>!PollFn", receives(receiver));
    start_function("has.function", move || keeps(sender));
    let (sender, receiver) = std::sync::mpsc::channel();
    start_function("open", move || receives_on_thread(receiver));
    std::thread::spawn(move || keeps(sender));
}

fn start_function(name: &str, function: impl FnOnce() + Send + 'static) {
    println!("{name} {} -", tokio::task::spawn_blocking(function).id());
}

fn receives_on_thread(receiver: std::sync::mpsc::Receiver<u32>) {
    while receiver.recv().is_ok() {}
}

fn keeps<T>(end: T) {
    std::thread::sleep(HOUR);
    drop(end);
}

/// The future of a `block_on` had what another task has now: no code that drops it says so.
fn gives_away() {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime can be made").block_on(async move {
            let notify = Arc::new(Notify::new());
            start("waits.given", "e_notify>!Notified", is_notified(Arc::clone(&notify)));
            start("has.given", "e_has>!Sleep", has(notify));
            sleep(Duration::from_millis(20)).await;
            tell.send(()).expect("it is waited for");
            sleep(HOUR).await;
        });
    });
    told.recv().expect("the other runtime starts");
}

async fn has<T>(end: T) {
    sleep(HOUR).await; // @e_has
    drop(end);
}

async fn never() {
    std::future::pending::<()>().await // @e_never
}

async fn receives(mut receiver: mpsc::Receiver<u32>) {
    receiver.recv().await; // @e_recv
}

async fn receives_unbounded(mut receiver: mpsc::UnboundedReceiver<u32>) {
    receiver.recv().await; // @e_urecv
}

async fn sends(sender: mpsc::Sender<u32>) {
    loop {
        let _ = sender.send(1).await; // @e_send
    }
}

async fn waits(receiver: oneshot::Receiver<u32>) {
    let _ = receiver.await; // @e_one
}

async fn watches(mut receiver: watch::Receiver<u32>) {
    let _ = receiver.changed().await; // @e_watch
}

async fn hears(mut receiver: broadcast::Receiver<u32>) {
    let _ = receiver.recv().await; // @e_broad
}

async fn is_notified(notify: Arc<Notify>) {
    notify.notified().await; // @e_notify
}

async fn arrives(barrier: Arc<Barrier>) {
    barrier.wait().await; // @e_barrier
}

async fn had(sender: mpsc::Sender<u32>, there: mpsc::Sender<mpsc::Sender<u32>>) {
    let _ = there.send(sender).await;
    sleep(HOUR).await; // @e_had
}

async fn got(mut other: mpsc::Receiver<mpsc::Sender<u32>>) {
    let sender = other.recv().await;
    sleep(HOUR).await; // @e_got
    drop(sender);
}

struct Request(oneshot::Sender<u32>);

async fn ask(sender: &mpsc::Sender<Request>) -> Option<u32> {
    let (reply, receiver) = oneshot::channel();
    sender.send(Request(reply)).await.ok()?;
    receiver.await.ok() // @e_reply
}

async fn asks(sender: mpsc::Sender<Request>) {
    ask(&sender).await; // @e_ask
}

async fn serves(mut receiver: mpsc::Receiver<Request>, own: mpsc::Sender<Request>) {
    while let Some(request) = receiver.recv().await {
        let value = ask(&own).await; // @e_serve
        let _ = request.0.send(value.unwrap_or(0));
    }
}

async fn asks_with<T>(sender: mpsc::Sender<Request>, receiver: T) {
    ask(&sender).await; // @e_ask_shared
    drop(receiver);
}

async fn asks_or_ends(mut receiver: mpsc::Receiver<Request>, own: mpsc::Sender<Request>) {
    tokio::select! { // @e_ask_timer
        _ = ask(&own) => {}
        () = sleep(HOUR) => {}
    }
    receiver.recv().await;
}

/// It serves one queue, and asks another.
async fn asks_other(
    mut receiver: mpsc::Receiver<Request>,
    own: mpsc::Sender<Request>,
    other: mpsc::Sender<Request>,
) {
    ask(&other).await; // @e_ask_other
    receiver.recv().await;
    drop(own);
}

async fn takes(mut receiver: mpsc::Receiver<Request>) {
    let request = receiver.recv().await;
    sleep(HOUR).await; // @e_taken
    drop(request);
}

async fn needs_two(permits: Arc<Semaphore>) {
    let first = permits.acquire().await;
    sleep(Duration::from_millis(50)).await;
    let second = permits.acquire().await; // @e_permits
    drop((first, second));
}
