//! Calls that move data in steps, from threads of a runtime: a stop inside one would cut it short.

use std::io::{Read, Write, pipe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bytes of a read of random bytes, which takes some milliseconds.
const RANDOM: usize = 2 << 20;
/// Bytes of a write to a pipe, which sleeps and moves data in turns.
const WRITTEN: usize = 4 << 20;
/// Bytes that the other end reads at once.
const READ: usize = 40_000;

/// Bytes that are allocated in each turn.
const HELD: usize = 32 << 10;

static CALLS: AtomicU64 = AtomicU64::new(0);
static SHORT: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Makes such calls for some time, and prints how many there were.
pub async fn run(time: Duration) {
    let until = Instant::now() + time;
    let (mut reader, mut writer) = pipe().expect("a pipe can be made");
    let random = tokio::task::spawn_blocking(move || {
        let mut file = std::fs::File::open("/dev/urandom").expect("/dev/urandom can be read");
        let mut bytes = vec![0; RANDOM];
        while Instant::now() < until {
            count(file.read(&mut bytes), RANDOM);
        }
    });
    let written = tokio::task::spawn_blocking(move || {
        let bytes = vec![1; WRITTEN];
        while Instant::now() < until {
            count(writer.write(&bytes), WRITTEN);
        }
    });
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = vec![0; READ];
        while reader.read(&mut bytes).is_ok_and(|read| read > 0) {}
    });
    let computes = tokio::spawn(async move {
        // Live bytes keep growing, so that a snapshot of their peak is taken again and again.
        let mut held = Vec::new();
        while !IS_OVER.load(Relaxed) {
            computes_a_little();
            held.push(vec![1u8; HELD]);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    for task in [random, written, read] {
        task.await.expect("no task panics");
    }
    IS_OVER.store(true, Relaxed);
    computes.await.expect("no task panics");
    let [calls, short, failed] = [&CALLS, &SHORT, &FAILED].map(|number| number.load(Relaxed));
    println!("{calls} calls\n{short} short, {failed} failed");
}

fn count(done: std::io::Result<usize>, asked: usize) {
    CALLS.fetch_add(1, Relaxed);
    match done {
        Ok(bytes) if bytes == asked => {}
        Ok(_) => {
            SHORT.fetch_add(1, Relaxed);
        }
        Err(_) => {
            FAILED.fetch_add(1, Relaxed);
        }
    }
}

#[inline(never)]
fn computes_a_little() {
    for number in 0..200_000u64 {
        std::hint::black_box(number);
    }
}
