//! Threads that wait for locks of `std::sync`, each named after how it waits. Writes `ready` when all of them wait.

#[path = "asleep.rs"]
mod asleep;

use asleep::until_all_sleep;
use std::sync::{Barrier, Condvar, Mutex, RwLock};
use std::thread::{Builder, sleep};
use std::time::Duration;

static KEPT: Mutex<u32> = Mutex::new(0);
static WRITTEN: RwLock<u32> = RwLock::new(0);
static READ: RwLock<u32> = RwLock::new(0);
static LEFT: Mutex<u32> = Mutex::new(0);
static RIGHT: Mutex<u32> = Mutex::new(0);
static WATCHED: Mutex<u32> = Mutex::new(0);
static OTHER: Mutex<u32> = Mutex::new(0);
static SIGNAL: Condvar = Condvar::new();
static BOTH: Barrier = Barrier::new(2);

/// A guard within a value.
struct Session {
    guard: Option<std::sync::MutexGuard<'static, u32>>,
}

fn for_ever() {
    sleep(Duration::from_secs(1000));
}

fn keeper() {
    let session = Session { guard: Some(KEPT.lock().unwrap()) };
    let written = WRITTEN.write().unwrap();
    let read = READ.read().unwrap();
    for_ever();
    drop((session.guard, written, read));
}

fn left() {
    let left = LEFT.lock().unwrap();
    BOTH.wait();
    let right = RIGHT.lock().unwrap();
    drop((left, right));
}

fn right() {
    let right = RIGHT.lock().unwrap();
    BOTH.wait();
    let left = LEFT.lock().unwrap();
    drop((left, right));
}

/// It has given the lock back while it waits, and keeps another one.
fn condition() {
    let other = OTHER.lock().unwrap();
    let mut watched = WATCHED.lock().unwrap();
    while *watched == 0 {
        watched = SIGNAL.wait(watched).unwrap();
    }
    drop((other, watched));
}

fn watcher() {
    let watched = WATCHED.lock().unwrap();
    for_ever();
    drop(watched);
}

fn start(name: &str, run: fn()) {
    Builder::new().name(name.to_owned()).spawn(run).unwrap();
    until_all_sleep();
}

fn main() {
    start("keeper", keeper);
    start("waiter", || drop(KEPT.lock()));
    start("reader", || drop(WRITTEN.read()));
    start("writer", || drop(READ.write()));
    start("left", left);
    start("right", right);
    start("condition", condition);
    start("watcher", watcher);
    start("late", || drop(WATCHED.lock()));
    start("behind", || drop(OTHER.lock()));
    std::fs::write("ready", format!("{}\n", std::process::id())).unwrap();
    for_ever();
}
