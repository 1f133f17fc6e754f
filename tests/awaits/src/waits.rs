//! Tasks that wait in known lines for known parts of the time, for profiles by wall time. The program measures them.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Repeats the same work on a worker, and prints how long each repetition takes, ns.
pub async fn work(repetitions: u64) {
    let work = async move {
        for _ in 0..repetitions {
            let begin = Instant::now();
            for _ in 0..100 {
                black_box((0..600_000u64).fold(1, |a, b| (black_box(a) * 31 % 1_000_003) ^ b));
                tokio::task::yield_now().await;
            }
            println!("slice {}", begin.elapsed().as_nanos());
        }
    };
    tokio::spawn(work).await.expect("no task panics");
}

/// Sleeps again and again, and prints how much longer that takes than it should, ms: the median, which waits for a CPU hardly change.
pub async fn timers(seconds: u64) {
    let end = Instant::now() + Duration::from_secs(seconds);
    let busy = tokio::spawn(busy(end));
    let mut late = Vec::new();
    while Instant::now() < end {
        let begin = Instant::now();
        tokio::time::sleep(Duration::from_millis(100)).await;
        late.push(begin.elapsed().as_secs_f64() * 1e3 - 100.0);
    }
    busy.await.expect("no task panics");
    late.sort_by(f64::total_cmp);
    println!("late {}", late[late.len() / 2]);
}

/// A task that lives all of the time, and some hundred that live for a tenth of it, all at once. Prints how long the one and the
/// others have lived, s.
pub async fn crowd(seconds: u64) {
    let (one, others) = tokio::spawn(accepts(Duration::from_secs(seconds))).await.expect("no task panics");
    println!("lived {one} {others}");
}

async fn accepts(length: Duration) -> (f64, f64) {
    const REQUESTS: usize = 200;
    let begin = Instant::now();
    let mut others = 0.0;
    while begin.elapsed() < length {
        tokio::time::sleep(Duration::from_millis(450)).await; // @accepts
        let requests: Vec<_> = (0..REQUESTS).map(|_| tokio::spawn(request())).collect();
        for request in requests {
            others += request.await.expect("no task panics"); // @answers
        }
    }
    (begin.elapsed().as_secs_f64(), others)
}

async fn request() -> f64 {
    let begin = Instant::now();
    tokio::time::sleep(Duration::from_millis(50)).await; // @request
    begin.elapsed().as_secs_f64()
}

/// Runs for some seconds, and prints the part of the time that one of the tasks waits in the first of its two lines.
pub async fn run(seconds: u64) {
    let end = Instant::now() + Duration::from_secs(seconds);
    let parts = tokio::spawn(two_lines(end));
    tokio::spawn(one_line());
    tokio::spawn(one_line());
    tokio::spawn(two_branches());
    tokio::spawn(both(end));
    let busy = tokio::spawn(busy(end));
    let mut child = std::process::Command::new("sleep").arg("3600").spawn().expect("sleep can be started");
    let blocking = tokio::task::spawn_blocking(move || blocking(end));
    let (first, both) = parts.await.expect("no task panics");
    println!("first {first} {both}");
    busy.await.expect("no task panics");
    blocking.await.expect("no function panics");
    child.kill().expect("it can be ended");
    child.wait().expect("it ends");
}

/// Waits in one line for 70 % of the time, and in another for 30 %.
async fn two_lines(end: Instant) -> (f64, f64) {
    let (mut first, mut both) = (0.0, 0.0);
    while Instant::now() < end {
        let begin = Instant::now();
        tokio::time::sleep(Duration::from_millis(35)).await; // @first_line
        first += begin.elapsed().as_secs_f64();
        tokio::time::sleep(Duration::from_millis(15)).await; // @second_line
        both += begin.elapsed().as_secs_f64();
    }
    (first, both)
}

/// Waits in one line all of the time.
async fn one_line() {
    nested().await; // @outer_line
}

async fn nested() {
    tokio::time::sleep(super::HOUR).await; // @only_line
}

/// Waits in two branches all of the time.
async fn two_branches() {
    tokio::join!(nested(), nested()); // @branches
}

/// Waits for one that is polled and waits in turns, and for one that only waits.
async fn both(end: Instant) {
    tokio::join!(turns(end), nested()); // @both
}

async fn turns(end: Instant) {
    while Instant::now() < end {
        burn();
        tokio::time::sleep(Duration::from_millis(20)).await; // @turns
    }
    nested().await; // @after
}

/// Is polled all of the time.
async fn busy(end: Instant) {
    while Instant::now() < end {
        burn();
        tokio::task::yield_now().await; // @yields
    }
}

/// Some milliseconds.
#[inline(never)]
fn burn() {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(20) {
        black_box((0..4000u64).fold(1, |a, b| (black_box(a) * 31 % 1_000_003) ^ b));
    }
}

#[inline(never)]
fn blocking(end: Instant) {
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
}
