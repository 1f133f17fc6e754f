//! Threads that had a guard of a lock of `std::sync` or still have it, each named after what it has done with it. Another thread, with
//! a `?` behind the name, waits for the lock. Writes `ready` when all of them wait.

#[path = "asleep.rs"]
mod asleep;

use asleep::until_all_sleep;
use std::hint::black_box;
use std::panic::catch_unwind;
use std::sync::{Barrier, Mutex, MutexGuard, RwLock};
use std::thread::{Builder, sleep};
use std::time::Duration;

type Lock = &'static Mutex<u32>;
type Guard = MutexGuard<'static, u32>;

/// Until the second one waits for the first.
static SECOND_WAITS: Barrier = Barrier::new(2);

/// A guard within a value.
struct Session {
    _id: u32,
    guard: Option<Guard>,
}

fn for_ever() {
    sleep(Duration::from_secs(1000));
}

fn dropped(lock: Lock) {
    let guard = lock.lock().unwrap();
    drop(guard);
    for_ever();
}

fn flag(lock: Lock, is_dropped: bool) {
    let guard = lock.lock().unwrap();
    if black_box(is_dropped) {
        drop(guard);
    }
    for_ever();
}

#[inline(never)]
fn consumer(guard: Guard) {
    for_ever();
    drop(guard);
}

fn moved(lock: Lock) {
    let guard = lock.lock().unwrap();
    consumer(guard);
}

fn vector(lock: Lock) {
    let mut guards = Vec::new();
    guards.push(lock.lock().unwrap());
    for_ever();
    drop(black_box(guards));
}

fn boxed(lock: Lock) {
    let session = Box::new(Session { _id: 1, guard: Some(lock.lock().unwrap()) });
    for_ever();
    drop(black_box(session).guard);
}

fn if_let(lock: Lock) {
    if let 7 = *lock.lock().unwrap() {
        for_ever();
    }
}

fn matched(lock: Lock) {
    match *lock.lock().unwrap() {
        7 => for_ever(),
        _ => unreachable!(),
    }
}

#[inline(never)]
fn recursive(lock: Lock, depth: u32) {
    let guard = (depth == 2).then(|| lock.lock().unwrap());
    match black_box(depth) {
        0 => for_ever(),
        _ => recursive(lock, depth - 1),
    }
    drop(guard);
}

fn caught(lock: Lock) {
    let _ = catch_unwind(|| {
        let guard = lock.lock().unwrap();
        for_ever();
        drop(guard);
    });
}

mod c {
    unsafe extern "C" {
        pub safe fn sleep(seconds: u32) -> u32;
    }
}

#[inline(never)]
fn taken(lock: Lock) -> Guard {
    lock.lock().unwrap()
}

#[inline(never)]
fn reads(number: &u32) {
    assert_ne!(black_box(*number), 99);
}

#[cold]
#[inline(never)]
fn rarely(number: &u32) {
    assert_ne!(black_box(*number), 98);
}

/// A function of C does not panic. Between two calls that may, as compilers place the rare one last, its call is in the table with them.
fn before_c(lock: Lock, is_rare: bool) {
    {
        let guard = taken(lock);
        reads(&guard);
        if black_box(is_rare) {
            rarely(&guard);
        }
    }
    c::sleep(1000);
}

/// Nobody ever gives it back.
fn lose(lock: Lock) {
    std::mem::forget(lock.lock().unwrap());
}

/// It waits for a lock, and has given back that for which its owner waits.
fn first(other: Lock, lock: Lock) {
    let guard = other.lock().unwrap();
    drop(guard);
    lose(other);
    SECOND_WAITS.wait();
    drop(lock.lock());
}

fn second(lock: Lock, other: Lock) {
    let guard = lock.lock().unwrap();
    drop(other.lock());
    drop(guard);
}

fn itself(lock: Lock) {
    let guard = lock.lock().unwrap();
    drop(lock.lock());
    drop(guard);
}

fn new() -> Lock {
    Box::leak(Box::new(Mutex::new(7)))
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) {
    Builder::new().name(name.to_owned()).spawn(run).unwrap();
    until_all_sleep();
}

/// A thread, and one that waits for the same lock.
fn both(name: &str, run: fn(Lock)) {
    let lock = new();
    start(name, move || run(lock));
    if name.starts_with("gone") {
        lose(lock);
    }
    start(&format!("{name}?"), move || drop(lock.lock()));
}

fn main() {
    both("gone", dropped);
    both("gone by flag", |lock| flag(lock, true));
    both("gone before c", |lock| before_c(lock, false));
    both("kept by flag", |lock| flag(lock, false));
    both("moved", moved);
    both("vector", vector);
    both("boxed", boxed);
    both("if let", if_let);
    both("matched", matched);
    both("caught", caught);
    both("recursive", |lock| recursive(lock, 4));
    let (lock, other) = (new(), new());
    start("first", move || first(other, lock));
    start("second", move || second(lock, other));
    SECOND_WAITS.wait();
    let lock = new();
    start("itself", move || itself(lock));
    let shared: &'static RwLock<u32> = Box::leak(Box::new(RwLock::new(7)));
    for name in ["reader", "reader too"] {
        start(name, move || {
            let guard = shared.read().unwrap();
            for_ever();
            drop(guard);
        });
    }
    start("no reader", move || {
        drop(shared.read().unwrap());
        for_ever();
    });
    start("reader?", move || drop(shared.write()));
    let shared: &'static RwLock<u32> = Box::leak(Box::new(RwLock::new(7)));
    start("writer", move || {
        let guard = shared.write().unwrap();
        for_ever();
        drop(guard);
    });
    start("writer?", move || drop(shared.read()));
    until_all_sleep();
    std::fs::write("ready", format!("{}\n", std::process::id())).unwrap();
    for_ever();
}
