//! Wall-time profiles that a program takes of itself: the await stacks of waiting tasks whose parts of the time are known.

use stackglass::Recording;
use stackglass::model::{Sample, State};
use stackglass::task::TaskExt;
use stackglass_inspect::tasks::AwaitStacks;
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Profiles of different tests must not mix.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Profiles a future from the moment on at which types are known. In a test, which is not optimized, reading them takes seconds.
fn profile<F: Future>(delay: Duration, future: F) -> (F::Output, Recording) {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|error| error.into_inner());
    let runtime = runtime();
    stackglass::clear();
    stackglass::init(None, Some(delay)).unwrap();
    let output = stackglass::profile_walltime!({
        let warm = runtime.spawn(std::future::pending::<()>().task("warm"));
        while !stackglass::recording().has_await_stacks() {
            std::thread::sleep(Duration::from_millis(100));
        }
        warm.abort();
        stackglass::clear();
        runtime.block_on(future)
    });
    (output, stackglass::recording())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

fn name_of<'a>(recording: &'a Recording, sample: &Sample) -> &'a str {
    recording.task(stackglass::model::TaskId(sample.task)).map_or("", |task| &task.name)
}

/// A stack as `function:line`, outermost first.
fn text(recording: &Recording, sample: &Sample) -> String {
    let locations = recording.stacks.walk(sample.stack);
    let mut frames: Vec<_> = locations.flat_map(|location| recording.symbols.frames_of(location)).collect();
    frames.reverse();
    let mut parts = Vec::new();
    for frame in frames {
        parts.push(match frame.line {
            line if line > 0 && frame.file.ends_with("await_stacks.rs") => format!("{}:{line}", frame.func),
            _ => frame.func.to_string(),
        });
    }
    parts.join(" > ").replace("await_stacks::", "")
}

/// Time in ms by stack, of tasks with a name.
fn by_stack(recording: &Recording, name: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for sample in recording.samples.iter().filter(|sample| name_of(recording, sample) == name) {
        assert_eq!(sample.state, State::Task);
        *sums.entry(text(recording, sample)).or_default() += sample.time.millis();
    }
    sums
}

const FIRST_LINE: u32 = line!() + 6;
/// Waits in one line for 70 % of the time, and in another for 30 %. Returns how long in each.
async fn two_lines(end: Instant) -> [f64; 2] {
    let mut sums = [0.0; 2];
    while Instant::now() < end {
        let begin = Instant::now();
        tokio::time::sleep(Duration::from_millis(35)).await;
        let middle = Instant::now();
        tokio::time::sleep(Duration::from_millis(15)).await;
        sums[0] += (middle - begin).as_secs_f64();
        sums[1] += middle.elapsed().as_secs_f64();
    }
    sums
}

const NESTED: u32 = line!() + 2;
async fn nested() {
    Box::pin(innermost()).await
}

async fn innermost() {
    std::future::pending().await
}

/// Is polled all the time.
async fn busy(end: Instant) {
    while Instant::now() < end {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(5) {}
        tokio::task::yield_now().await;
    }
}

#[test]
fn waits_are_told_by_line_and_are_in_one_tree_with_polls() {
    let length = Duration::from_secs(4);
    let (truth, recording) = profile(Duration::from_millis(1), async move {
        let end = Instant::now() + length;
        let two = tokio::spawn(two_lines(end).task("two"));
        let nested = tokio::spawn(nested().task("nested"));
        let no_coroutine = tokio::spawn(tokio::time::sleep(length * 100).task("sleep"));
        tokio::spawn(busy(end).task("busy")).await.unwrap();
        nested.abort();
        no_coroutine.abort();
        two.await.unwrap()
    });
    let all: f64 = recording.samples.iter().map(|sample| sample.time.millis()).sum();
    assert!(all > 0.9 * length.as_secs_f64() * 1e3, "{all} ms");

    let two = by_stack(&recording, "two");
    let at = |line: u32| two.get(&format!("two_lines:{line} > tokio::time::sleep::Sleep")).copied();
    let (first, second) = (at(FIRST_LINE).unwrap_or(0.0), at(FIRST_LINE + 2).unwrap_or(0.0));
    let (share, truth) = (first / (first + second), truth[0] / (truth[0] + truth[1]));
    // Of some hundred looks.
    let looks = recording.samples.iter().filter(|sample| name_of(&recording, sample) == "two");
    let looks = f64::from(looks.map(|sample| sample.hits).sum::<u32>());
    let error = 4.0 * (truth * (1.0 - truth) / looks).sqrt() + 0.02;
    assert!((share - truth).abs() < error, "{share} {truth} {looks}: {two:#?}");
    // Few waits of some milliseconds are over before they are read.
    let sum: f64 = two.values().sum();
    assert!(first + second > 0.8 * sum, "{first} + {second} of {sum}: {two:#?}");

    let nested = by_stack(&recording, "nested");
    let stack = format!("nested:{NESTED} > innermost:{} > core::future::pending::Pending", NESTED + 4);
    assert!(nested[&stack] > 0.95 * nested.values().sum::<f64>(), "{nested:#?}");

    let sleep = by_stack(&recording, "sleep");
    assert!(sleep["tokio::time::sleep::Sleep"] > 0.95 * sleep.values().sum::<f64>(), "{sleep:#?}");

    // Polls begin at the function of the task, whatever polls it.
    for (name, function) in [("two", "two_lines"), ("busy", "busy"), ("nested", "nested")] {
        for (stack, time) in by_stack(&recording, name) {
            assert!(stack.starts_with(function), "{time} ms of {stack}");
        }
    }
    let mut text = Vec::new();
    stackglass::Report::new().cols(200).write(&recording, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(&format!("await_stacks.rs:{FIRST_LINE}")), "{text}");
}

const BOXED: u32 = line!() + 4;
/// Waits for futures in boxes, of known size and of any.
async fn boxed(end: Instant) {
    while Instant::now() < end {
        Box::pin(brief()).await;
        let any: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(brief());
        any.await;
    }
}

async fn brief() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// In a test, which is not optimized, the profile is long over before the types are known.
#[test]
fn waits_of_a_short_profile_are_told_by_line() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|error| error.into_inner());
    let runtime = runtime();
    stackglass::clear();
    stackglass::init(None, Some(Duration::from_millis(1))).unwrap();
    let truth = stackglass::profile_walltime!(runtime.block_on(async {
        let end = Instant::now() + Duration::from_millis(450);
        let boxed = tokio::spawn(boxed(end).task("boxed"));
        let truth = tokio::spawn(two_lines(end).task("two")).await.unwrap();
        boxed.await.unwrap();
        truth
    }));
    let recording = stackglass::recording();
    let two = by_stack(&recording, "two");
    let at = |line: u32| two.get(&format!("two_lines:{line} > tokio::time::sleep::Sleep")).copied();
    let (first, second) = (at(FIRST_LINE).unwrap_or(0.0), at(FIRST_LINE + 2).unwrap_or(0.0));
    let (share, truth) = (first / (first + second), truth[0] / (truth[0] + truth[1]));
    let looks = recording.samples.iter().filter(|sample| name_of(&recording, sample) == "two");
    let looks = f64::from(looks.map(|sample| sample.hits).sum::<u32>());
    let error = 4.0 * (truth * (1.0 - truth) / looks).sqrt() + 0.02;
    assert!((share - truth).abs() < error, "{share} {truth} {looks}: {two:#?}");
    let sum: f64 = two.values().sum();
    assert!(first + second > 0.8 * sum, "{first} + {second} of {sum}: {two:#?}");

    let boxed = by_stack(&recording, "boxed");
    let sum: f64 = boxed.values().sum();
    let inner = BOXED + 7;
    for line in [BOXED, BOXED + 2] {
        let stack = format!("boxed:{line} > brief:{inner} > tokio::time::sleep::Sleep");
        let time = boxed.get(&stack).copied().unwrap_or(0.0);
        assert!(time > 0.2 * sum, "{time} of {sum} in {stack}: {boxed:#?}");
    }
    let waiting = boxed.iter().filter(|(stack, _)| stack.contains("[waiting]"));
    let waiting: f64 = waiting.map(|(_, time)| time).sum();
    assert!(waiting < 0.2 * sum, "{waiting} of {sum}: {boxed:#?}");
}

const LEFT: u32 = line!() + 4;
async fn never_rests(round: Arc<AtomicU64>) {
    loop {
        match round.fetch_add(1, Ordering::Relaxed) & 1 {
            0 => left(1).await,
            _ => right([7; 200]).await,
        }
    }
}

async fn left(count: u32) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

async fn right(numbers: [u64; 200]) {
    for _ in 0..2 {
        deep(numbers[3]).await;
    }
}

async fn deep(_number: u64) {
    Box::pin(tokio::task::yield_now()).await;
}

/// Reads tasks that are polled all the time, again and again, as the thread of a profile does, until so many reads count.
fn read_tasks_that_never_rest(reads: u64) {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|error| error.into_inner());
    let runtime = runtime();
    let tasks: Vec<_> = (0..4).map(|_| runtime.spawn(never_rests(Arc::default()).task("never"))).collect();
    // Some are dropped while they are read, and others come.
    let ends = Arc::new(AtomicU64::new(0));
    let churn = {
        let ends = ends.clone();
        runtime.spawn(async move {
            while ends.load(Ordering::Relaxed) == 0 {
                let task = tokio::spawn(never_rests(Arc::default()).task("never"));
                tokio::time::sleep(Duration::from_millis(1)).await;
                task.abort();
            }
        })
    };
    let mut stacks = AwaitStacks::read_types().unwrap();
    let pool = stackglass_sampler::task::pool().unwrap();
    // The own frames, and how many there are in all: also `yield_now`, and its leaf.
    let possible = [
        (format!("left:{} never_rests:{LEFT}", LEFT + 8), 4),
        (format!("deep:{} right:{} never_rests:{}", LEFT + 19, LEFT + 14, LEFT + 1), 5),
    ];
    let (mut tried, mut counted, mut seen) = (0u64, 0, [0u64; 2]);
    let (mut last, mut waits) = (HashMap::new(), 0);
    while counted < reads {
        for number in 1..=pool.entries_used() {
            let entry = pool.entry(number).unwrap();
            let task = entry.id();
            tried += 1;
            let Some(wait) = entry.wait_of(task).filter(|_| task != 0) else { continue };
            waits += u64::from(last.insert(task, wait) != Some(wait));
            let future = || {
                let future = entry.future();
                (entry.wait_of(task) == Some(wait)).then_some(future)
            };
            // With another number each time, each read is a new one.
            let Some(found) = stacks.of(task, tried, &future) else { continue };
            counted += 1;
            let (frames, _) = found.stacks().next().unwrap();
            let own = frames.iter().filter(|frame| frame.file.ends_with("await_stacks.rs"));
            let own: Vec<String> = own
                .map(|frame| format!("{}:{}", frame.function.replace("await_stacks::", ""), frame.line))
                .collect();
            let found = (own.join(" "), frames.len());
            let is_whole = frames.iter().all(|frame| !frame.function.starts_with('['));
            match possible.iter().position(|possible| *possible == found && is_whole) {
                Some(which) => seen[which] += 1,
                None => panic!("{found:?} is impossible, after {counted} of {tried} reads: {frames:#?}"),
            }
        }
    }
    ends.store(1, Ordering::Relaxed);
    println!("{counted} of {tried} reads count, of {waits} waits: {seen:?}");
    assert!(seen.iter().all(|seen| *seen > reads / 20), "{seen:?}");
    runtime.block_on(churn).unwrap();
    drop(tasks);
}

#[test]
fn tasks_that_never_rest_have_possible_stacks() {
    read_tasks_that_never_rest(3000);
}

#[test]
#[ignore = "long: a million reads"]
fn a_million_reads_of_tasks_that_never_rest() {
    read_tasks_that_never_rest(1_000_000);
}

/// Whether the wait is over, and who waits.
type Shared = Arc<Mutex<(bool, Option<Waker>)>>;

/// Waits as long as a thread sleeps.
struct Short {
    sleep: Duration,
    state: Shared,
    thread: mpsc::Sender<(Duration, Shared)>,
    is_begun: bool,
}

impl Future for Short {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock().unwrap();
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(context.waker().clone());
        drop(state);
        if !std::mem::replace(&mut self.is_begun, true) {
            self.thread.send((self.sleep, self.state.clone())).unwrap();
        }
        Poll::Pending
    }
}

const SHORT_LINE: u32 = line!() + 18;
/// Short waits in two lines. Returns how long in each.
async fn two_short_lines(end: Instant, first: Duration, second: Duration) -> [f64; 2] {
    let (thread, sleeps) = mpsc::channel::<(Duration, Shared)>();
    std::thread::spawn(move || {
        for (sleep, state) in sleeps {
            std::thread::sleep(sleep);
            let mut state = state.lock().unwrap();
            state.0 = true;
            if let Some(waker) = state.1.take() {
                waker.wake();
            }
        }
    });
    let short = |sleep| Short { sleep, state: Arc::default(), thread: thread.clone(), is_begun: false };
    let mut sums = [0.0; 2];
    while Instant::now() < end {
        let begin = Instant::now();
        short(first).await;
        let middle = Instant::now();
        short(second).await;
        sums[0] += (middle - begin).as_secs_f64();
        sums[1] += middle.elapsed().as_secs_f64();
    }
    sums
}

#[test]
#[ignore = "long: a measurement of how many short waits are over before they are read"]
fn short_waits() {
    for (first, second) in [(700, 300), (140, 60), (35, 15)] {
        let (first, second) = (Duration::from_micros(first), Duration::from_micros(second));
        let (truth, recording) = profile(Duration::from_millis(1), async move {
            let end = Instant::now() + Duration::from_secs(10);
            tokio::spawn(two_short_lines(end, first, second).task("short")).await.unwrap()
        });
        let short = by_stack(&recording, "short");
        let sum = |part: &str| -> f64 {
            short.iter().filter(|(stack, _)| stack.contains(part)).map(|(_, time)| time).sum()
        };
        let (first_line, second_line) =
            (sum(&format!(":{SHORT_LINE} > Short")), sum(&format!(":{} > Short", SHORT_LINE + 2)));
        println!(
            "{first:?} {second:?}: {:.3} of the waits in the first line, shown {:.3}; of {:.0} ms, {:.0} ms without a stack",
            truth[0] / (truth[0] + truth[1]),
            first_line / (first_line + second_line),
            short.values().sum::<f64>(),
            sum("[waiting]"),
        );
    }
}
