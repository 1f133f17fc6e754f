//! Wall-time profiles that a program takes of itself: the await stacks of waiting tasks whose parts of the time are known.

use stackglass::Recording;
use stackglass::model::{Sample, State};
use stackglass::task::TaskExt;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Profiles of different tests must not mix.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn profile<F: Future>(workers: usize, future: F) -> (F::Output, Recording) {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|error| error.into_inner());
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(workers).enable_time().build().unwrap();
    stackglass::clear();
    let output = stackglass::profile_walltime!(runtime.block_on(future));
    (output, stackglass::recording())
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

const SEVENTY: u32 = line!() + 5;
/// Waits in one line for 70 % of the time, and in another for 30 %. Returns how long in each.
async fn two_lines(end: Instant, unit: Duration) -> [f64; 2] {
    let mut sums = [0.0; 2];
    while Instant::now() < end {
        let begin = Instant::now();
        tokio::time::sleep(unit * 7).await;
        let middle = Instant::now();
        tokio::time::sleep(unit * 3).await;
        sums[0] += (middle - begin).as_secs_f64();
        sums[1] += middle.elapsed().as_secs_f64();
    }
    sums
}

/// Waits as long as a thread sleeps.
struct Short {
    sleep: Duration,
    state: Arc<Mutex<(bool, Option<Waker>)>>,
    thread: mpsc::Sender<(Duration, Arc<Mutex<(bool, Option<Waker>)>>)>,
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

/// Short waits in two lines. Returns how long in each.
async fn two_short_lines(end: Instant, first: Duration, second: Duration) -> [f64; 2] {
    let (thread, sleeps) = mpsc::channel::<(Duration, Arc<Mutex<(bool, Option<Waker>)>>)>();
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
#[ignore = "a measurement: how many short waits are over before they are read"]
fn short_waits() {
    for (first, second) in [(700, 300), (140, 60), (35, 15)] {
        let end = Instant::now() + Duration::from_secs(10);
        let (first, second) = (Duration::from_micros(first), Duration::from_micros(second));
        let (truth, recording) = profile(2, async move {
            let long = tokio::spawn(tokio::time::sleep(Duration::from_secs(9)).task("long"));
            let short = tokio::spawn(two_short_lines(end, first, second).task("short")).await.unwrap();
            drop(long.await);
            short
        });
        println!(
            "{first:?} {second:?}: {:.3} of the waits in the first line",
            truth[0] / (truth[0] + truth[1])
        );
        println!("{:.0?} {:?}", by_stack(&recording, "short"), recording.info.remarks);
    }
}
