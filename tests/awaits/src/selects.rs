//! Tasks that wait in `select!` for futures of libraries, which have no line of the program's own.

use crate::{HOUR, start};
use futures::FutureExt;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::{Interval, interval, sleep};

/// Starts a task of each kind. The other ends of their channels are not dropped.
pub async fn start_tasks() {
    let (sender, receiver) = mpsc::channel(4);
    std::mem::forget(sender);
    start("bounded", "selb>(!PollFn,!Sleep)", bounded(receiver));
    let (sender, receiver) = mpsc::channel(4);
    std::mem::forget(sender);
    start("biased", "seli>(!PollFn,!Sleep)", biased(receiver));
    let (sender, receiver) = mpsc::unbounded_channel();
    std::mem::forget(sender);
    let (other_sender, other) = mpsc::unbounded_channel();
    std::mem::forget(other_sender);
    start("unbounded", "selu>(!PollFn,!PollFn)", unbounded(receiver, other));
    let (sender, receiver) = broadcast::channel(4);
    std::mem::forget(sender);
    let (other_sender, other) = watch::channel(1);
    std::mem::forget(other_sender);
    start("shared", "sels>(!Recv,!Notified)", shared(receiver, other));
    let (sender, receiver) = oneshot::channel();
    std::mem::forget(sender);
    start("once", "selo>(!Receiver,!PollFn)", once(receiver, interval(HOUR)));
    let (sender, receiver) = mpsc::channel(4);
    std::mem::forget(sender);
    start("actor", "sela>(!PollFn,sela2>!Sleep)", Actor { receiver }.run());
    let (sender, receiver) = mpsc::channel(4);
    std::mem::forget(sender);
    start("of_futures", "self>*", of_futures(receiver));
}

/// Values do not matter.
fn got<T>(_: T) {}

async fn bounded(mut receiver: mpsc::Receiver<u8>) {
    loop {
        tokio::select! { // @selb
            value = receiver.recv() => got(value),
            () = sleep(HOUR) => return,
        }
    }
}

async fn biased(mut receiver: mpsc::Receiver<u8>) {
    while let Some(value) = {
        tokio::select! { // @seli
            biased;
            value = receiver.recv() => value,
            () = sleep(HOUR) => None,
        }
    } {
        got(value);
    }
}

async fn unbounded(mut receiver: mpsc::UnboundedReceiver<u8>, mut other: mpsc::UnboundedReceiver<u8>) {
    tokio::select! { // @selu
        value = receiver.recv() => got(value),
        Some(value) = other.recv() => got(value),
    }
}

async fn shared(mut receiver: broadcast::Receiver<u8>, mut other: watch::Receiver<u8>) {
    tokio::select! { // @sels
        value = receiver.recv() => got(value),
        value = other.changed() => got(value),
    }
}

async fn once(mut receiver: oneshot::Receiver<u8>, mut interval: Interval) {
    interval.tick().await;
    loop {
        tokio::select! { // @selo
            value = &mut receiver => return got(value),
            _ = interval.tick() => {}
        }
    }
}

struct Actor {
    receiver: mpsc::Receiver<u8>,
}

impl Actor {
    async fn run(mut self) {
        loop {
            tokio::select! { // @sela
                Some(value) = self.receiver.recv() => got(value),
                () = Actor::rests() => {}
                else => return,
            }
        }
    }

    async fn rests() {
        sleep(HOUR).await // @sela2
    }
}

async fn of_futures(mut receiver: mpsc::Receiver<u8>) {
    futures::select! { // @self
        value = receiver.recv().fuse() => got(value),
        () = sleep(HOUR).fuse() => {}
    }
}
