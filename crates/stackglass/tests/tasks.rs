//! Whose time it was: tasks in samples, against programs whose truth is known.
#![allow(unsafe_code, reason = "calls the C library")]

use stackglass::Recording;
use stackglass::model::{Sample, State};
use stackglass::task::{Instrumented, TaskExt, instrument};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Uses the CPU: some microseconds for each of `n`, always the same work.
#[inline(never)]
fn work(n: u64) {
    for _ in 0..n {
        black_box((0..4000u64).fold(1, |a, b| (black_box(a) * 31 % 1_000_003) ^ b));
    }
}

/// Drives a future to its end without a runtime.
fn drive<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

/// Lets others run once.
async fn pause() {
    let mut paused = false;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Milliseconds of CPU time by the name of the task; "" for samples outside of tasks, "?" for tasks without a
/// name. Helper threads of the test harness hardly run.
fn by_name(recording: &Recording) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for sample in recording.samples.iter().filter(|sample| sample.state.uses_cpu()) {
        *sums.entry(name_of(recording, sample).to_owned()).or_default() += sample.time.millis();
    }
    sums
}

fn name_of<'a>(recording: &'a Recording, sample: &Sample) -> &'a str {
    match sample.task {
        0 => "",
        task => recording.task(task.into()).map_or("?", |task| &*task.name),
    }
}

/// Polls once what is not ready yet.
fn poll_once<F: Future>(future: Pin<&mut F>) {
    assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// The share of all CPU time that a name has.
fn share(sums: &BTreeMap<String, f64>, name: &str) -> f64 {
    sums.get(name).copied().unwrap_or(0.0) / sums.values().sum::<f64>()
}

#[test]
fn time_in_a_poll_is_the_tasks_and_outside_it_is_nobodys() {
    let line = line!() + 1;
    let future = instrument(async { work(15_000) }, "alpha");
    let id = future.id();
    stackglass::profile!({
        work(5000);
        drive(future);
        work(5000);
    });
    let recording = stackglass::recording();
    let sums = by_name(&recording);
    assert!((share(&sums, "alpha") - 0.6).abs() < 0.05, "{sums:?}");
    let task = recording.task(id).unwrap();
    assert_eq!((&*task.file, task.line), (file!(), line));
}

#[test]
fn of_nested_tasks_the_innermost_counts_and_the_outer_goes_on_behind_it() {
    let inner = async {
        for _ in 0..10 {
            work(1000);
            pause().await;
        }
    };
    let outer = async {
        work(5000);
        inner.task("inner").await;
        work(5000);
    };
    stackglass::profile!(drive(outer.task("outer")));
    let sums = by_name(&stackglass::recording());
    assert!((share(&sums, "inner") - 0.5).abs() < 0.05, "{sums:?}");
    assert!((share(&sums, "outer") - 0.5).abs() < 0.05, "{sums:?}");
}

#[test]
fn a_task_that_moves_between_threads_is_one_task() {
    let mut future: Pin<Box<Instrumented<_>>> = Box::pin(instrument(
        async {
            for _ in 0..4 {
                work(5000);
                pause().await;
            }
        },
        "mover",
    ));
    let id = future.id();
    stackglass::profile!({
        for _ in 0..4 {
            future = std::thread::spawn(move || {
                poll_once(future.as_mut());
                work(100);
                future
            })
            .join()
            .unwrap();
        }
    });
    let recording = stackglass::recording();
    let samples = recording.samples.iter().filter(|sample| sample.task == id.0);
    let threads: BTreeSet<_> = samples.map(|sample| sample.thread).collect();
    assert_eq!(threads.len(), 4, "{threads:?}");
    assert!(share(&by_name(&recording), "mover") > 0.9);
}

#[test]
fn what_is_dropped_in_the_middle_leaves_nothing_behind() {
    stackglass::profile!({
        for round in 0..4 {
            let mut future = Box::pin(
                async {
                    work(3000);
                    pause().await;
                    work(1_000_000);
                }
                .task(format!("dropped {round}")),
            );
            poll_once(future.as_mut());
            drop(future);
            work(3000);
        }
    });
    let sums = by_name(&stackglass::recording());
    assert!((share(&sums, "") - 0.5).abs() < 0.06, "{sums:?}");
    // The table's place is used again; names are still each its own.
    for round in 0..4 {
        assert!((share(&sums, &format!("dropped {round}")) - 0.125).abs() < 0.05, "{sums:?}");
    }
}

#[test]
fn a_panic_in_a_poll_ends_it() {
    // To print the panic with its backtrace takes time, in the poll.
    std::panic::set_hook(Box::new(|_| {}));
    let inner = async {
        work(3000);
        panic!("as planned");
    };
    let outer = async {
        let mut inner = Box::pin(inner.task("panics"));
        let ended = catch_unwind(AssertUnwindSafe(|| poll_once(inner.as_mut())));
        assert!(ended.is_err());
        work(3000);
    };
    stackglass::profile!({
        drive(outer.task("outer"));
        work(3000);
    });
    let sums = by_name(&stackglass::recording());
    for name in ["panics", "outer", ""] {
        assert!((share(&sums, name) - 1.0 / 3.0).abs() < 0.06, "{sums:?}");
    }
}

#[test]
fn a_poll_that_began_before_anybody_sampled_is_seen() {
    let (begun, has_begun) = mpsc::channel();
    let (stop, stopped) = mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        drive(instrument(
            async {
                begun.send(()).unwrap();
                while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                    work(10);
                }
            },
            "early",
        ))
    });
    has_begun.recv().unwrap();
    stackglass::profile!(work(5000));
    stop.send(()).unwrap();
    thread.join().unwrap();
    let sums = by_name(&stackglass::recording());
    assert!(sums["early"] > 10.0 && sums[""] > 10.0 && !sums.contains_key("?"), "{sums:?}");
}

#[test]
fn who_sleeps_in_a_poll_sleeps_as_that_task() {
    stackglass::profile!({
        drive(instrument(async { std::thread::sleep(Duration::from_millis(200)) }, "sleeper"));
        std::thread::sleep(Duration::from_millis(200));
    });
    let recording = stackglass::recording();
    let mut asleep: BTreeMap<&str, f64> = BTreeMap::new();
    for sample in recording.samples.iter().filter(|sample| sample.state == State::Asleep) {
        *asleep.entry(name_of(&recording, sample)).or_default() += sample.time.millis();
    }
    // The harness's thread sleeps outside of tasks all the time.
    let as_sleeper = asleep.get("sleeper").copied().unwrap_or_default();
    assert!((190.0..350.0).contains(&as_sleeper), "{asleep:?}");
}

/// The `status` of the sampler's thread.
fn sampler() -> PathBuf {
    let is_sampler =
        |status: &PathBuf| std::fs::read(status).is_ok_and(|text| text.starts_with(b"Name:\tstackglass\n"));
    loop {
        // A listing may leave out a live thread if others end meanwhile.
        let threads = std::fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
        if let Some(found) = threads.map(|thread| thread.path().join("status")).find(is_sampler) {
            return found;
        }
    }
}

/// How often a thread has gone to sleep. The sampler's does after each tick, and seldom within one.
fn sleeps(status: &Path) -> u64 {
    let text = std::fs::read_to_string(status).unwrap();
    let sleeps = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    sleeps.trim().parse().unwrap()
}

/// Whether a thread sleeps in futex(2).
fn is_parked(tid: i32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).unwrap_or_default();
    call.starts_with(&format!("{} ", libc::SYS_futex))
}

/// Waits until the sampler has looked at all threads, however late it is, and then for some ticks more. Between the two, it knows where
/// each thread sleeps: the time, ms.
fn known_sleep() -> f64 {
    let sampler = sampler();
    let wait_for = |ticks| {
        let before = sleeps(&sampler);
        while sleeps(&sampler) < before + ticks {
            std::thread::sleep(Duration::from_micros(500));
        }
    };
    wait_for(5);
    let known = Instant::now();
    wait_for(20);
    known.elapsed().as_secs_f64() * 1e3
}

/// A thread claims its cell with its first poll, at any moment of a tick.
#[test]
fn who_sleeps_in_its_first_poll_sleeps_as_that_task() {
    const ROUNDS: u32 = 10;
    const THREADS: u32 = 20;
    let mut known = Vec::new();
    for _ in 0..ROUNDS {
        let (polling, is_open) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        stackglass::profile!(std::thread::scope(|scope| {
            let sleeper = |n| {
                let (polling, is_open) = (&polling, &is_open);
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_millis(10) + Duration::from_micros(50) * n);
                    let sleeps = async move {
                        // SAFETY: no arguments.
                        polling.lock().unwrap().push(unsafe { libc::gettid() });
                        while !is_open.load(Acquire) {
                            std::thread::park();
                        }
                    };
                    drive(instrument(sleeps, "sleeper"));
                })
            };
            let threads: Vec<_> = (0..THREADS).map(sleeper).collect();
            let are_polling = || polling.lock().unwrap().len() == threads.len();
            while !are_polling() || !polling.lock().unwrap().iter().all(|tid| is_parked(*tid)) {
                std::thread::sleep(Duration::from_millis(1));
            }
            known.push(known_sleep());
            is_open.store(true, Release);
            threads.iter().for_each(|thread| thread.thread().unpark());
        }));
    }
    let recording = stackglass::recording();
    let mut asleep: BTreeMap<_, f64> = BTreeMap::new();
    for sample in recording.samples.iter().filter(|sample| sample.state == State::Asleep) {
        if name_of(&recording, sample) == "sleeper" {
            *asleep.entry(sample.thread).or_default() += sample.time.millis();
        }
    }
    // Threads have their numbers in the order in which they began.
    let all = (ROUNDS * THREADS) as usize;
    let known: Vec<f64> = known.iter().flat_map(|known| [*known; THREADS as usize]).collect();
    let are_known = asleep.values().zip(&known).all(|(time, known)| time >= known);
    assert!(asleep.len() == all && are_known, "{} {asleep:?}, at least {known:?}", asleep.len());
}

#[test]
fn ten_thousand_tasks_each_have_their_name() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let place = std::sync::OnceLock::new();
    stackglass::profile!(runtime.block_on(async {
        let spawned: Vec<_> = (0..10_000)
            .map(|n| {
                let future = async move {
                    work(3);
                    tokio::task::yield_now().await;
                    work(3);
                };
                place.get_or_init(|| line!() + 1);
                tokio::spawn(future.task(format!("task {n}")))
            })
            .collect();
        for handle in spawned {
            handle.await.unwrap();
        }
    }));
    let recording = stackglass::recording();
    let (mut named, mut nameless) = (0.0, 0.0);
    for sample in recording.samples.iter().filter(|sample| sample.task != 0) {
        match recording.task(sample.task.into()) {
            Some(task) => {
                assert!(
                    task.name.starts_with("task ") && task.line == place.get().copied().unwrap(),
                    "{task:?}"
                );
                named += sample.time.millis();
            }
            None => nameless += sample.time.millis(),
        }
    }
    let names: BTreeSet<_> = recording.tasks.iter().map(|task| &task.name).collect();
    assert_eq!(names.len(), recording.tasks.len());
    assert!(named > 100.0 && nameless == 0.0, "{named} ms with names, {nameless} ms without");
}

#[test]
fn threads_that_come_and_go_use_their_cells_again() {
    stackglass::profile!({
        for n in 0..300 {
            let name = format!("thread {}", n % 3);
            let spawn = || std::thread::spawn(move || drive(instrument(async { work(100) }, name)));
            spawn().join().unwrap();
            std::thread::spawn(|| work(100)).join().unwrap();
        }
    });
    let sums = by_name(&stackglass::recording());
    for n in 0..3 {
        assert!((share(&sums, &format!("thread {n}")) - 1.0 / 6.0).abs() < 0.06, "{sums:?}");
    }
    assert!((share(&sums, "") - 0.5).abs() < 0.1, "{sums:?}");
}

#[test]
fn a_child_made_by_fork_inside_a_poll_lives_on_and_can_be_profiled() {
    let status = drive(instrument(
        async {
            // SAFETY: the child uses no lock that another thread may hold: nothing else runs in this process.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    drive(instrument(async { work(10) }, "in the child"));
                    stackglass::profile!(drive(instrument(async { work(3000) }, "sampled in the child")));
                    let sums = by_name(&stackglass::recording());
                    libc::_exit(if share(&sums, "sampled in the child") > 0.9 { 7 } else { 1 });
                }
                let mut status = 0;
                libc::waitpid(child, &raw mut status, 0);
                status
            }
        },
        "parent",
    ));
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "status {status:#x}");
}

/// Three tasks with CPU shares 1 : 2 : 5 on a runtime of two threads: the worst of their deviations from what each has
/// really used, in standard errors.
fn worst_of_shares(scale: u64) -> f64 {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (parts, names) = ([1u64, 2, 5], ["one", "two", "five"]);
    let sums: Vec<Duration> = stackglass::profile!(runtime.block_on(async {
        let tasks = parts.iter().zip(names).map(|(part, name)| {
            let part = *part;
            let measured = async move {
                let mut used = Duration::ZERO;
                for _ in 0..part * scale {
                    let begin = thread_cpu();
                    work(20);
                    used += thread_cpu() - begin;
                    tokio::task::yield_now().await;
                }
                used
            };
            tokio::spawn(measured.task(name))
        });
        let tasks: Vec<_> = tasks.collect();
        let mut used = Vec::new();
        for task in tasks {
            used.push(task.await.unwrap());
        }
        used
    }));
    let recording = stackglass::recording();
    stackglass::clear();
    // Where others keep the CPUs busy fewer stacks are taken of who waits much; each then stands for more time.
    let hits: u32 =
        recording.samples.iter().filter(|sample| sample.task != 0).map(|sample| sample.hits).sum();
    let times = by_name(&recording);
    let seen: f64 = names.iter().map(|name| times[*name]).sum();
    let used: f64 = sums.iter().map(Duration::as_secs_f64).sum();
    let sigma = |(name, sum): (&&str, &Duration)| {
        let share = sum.as_secs_f64() / used;
        (times[*name] / seen - share).abs() / (share * (1.0 - share) / f64::from(hits)).sqrt()
    };
    names.iter().zip(&sums).map(sigma).fold(0.0, f64::max)
}

/// CPU time of the calling thread.
fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to a live time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn shares_of_one_two_and_five_are_told() {
    let worst = worst_of_shares(400);
    assert!(worst <= 4.0, "{worst:.1} sigma");
}

#[test]
#[ignore = "long: ten runs of the above"]
fn shares_are_told_in_each_of_ten_runs() {
    let worst: Vec<f64> = (0..10).map(|_| worst_of_shares(800)).collect();
    println!("{worst:.1?} sigma");
    assert!(worst.iter().all(|worst| *worst <= 4.0), "{worst:.1?}");
}

/// Time by the innermost frame's function, within samples of tasks of one name, ms.
fn by_leaf(recording: &Recording, name: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for sample in recording.samples.iter().filter(|sample| name_of(recording, sample) == name) {
        assert_eq!(sample.state, State::Task);
        let leaf = recording.stacks.walk(sample.stack).next();
        let frame = leaf.and_then(|leaf| recording.symbols.frames_of(leaf).next());
        let func = frame.map_or("nothing".to_owned(), |frame| frame.func.to_string());
        *sums.entry(func).or_default() += sample.time.millis();
    }
    sums
}

#[test]
fn by_wall_time_tasks_that_wait_have_the_share_of_those_that_run() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let line = line!() + 2;
    stackglass::profile_walltime!(runtime.block_on(async {
        let waits = tokio::spawn(tokio::time::sleep(Duration::from_secs(2)).task("waits"));
        let runs = async {
            while !waits.is_finished() {
                work(10);
                tokio::task::yield_now().await;
            }
        };
        let half = async {
            while !waits.is_finished() {
                work(300);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // One runs and one waits half of the time, all polled by this thread alone.
        futures_join(runs.task("runs"), half.task("half")).await;
    }));
    let recording = stackglass::recording();
    let sum = |name: &str| by_leaf(&recording, name).values().sum::<f64>();
    let all: f64 = recording.samples.iter().map(|sample| sample.time.millis()).sum();
    assert!((1900.0..3000.0).contains(&all), "{all} ms in all");
    // Looks at random: 4 standard errors of a third of some thousand of them.
    let hits: u32 = recording.samples.iter().map(|sample| sample.hits).sum();
    let off = 4.0 * (2.0 / 9.0 / f64::from(hits)).sqrt();
    for name in ["waits", "runs", "half"] {
        assert!(
            (sum(name) / all - 1.0 / 3.0).abs() < off,
            "{name}: {:?} of {all}",
            by_leaf(&recording, name)
        );
    }
    // The types are read first.
    let waits = by_leaf(&recording, "waits");
    let waiting = |leaf: &str| waits.get(leaf).copied().unwrap_or(0.0);
    assert!(waiting("[waiting]") + waiting("tokio::time::sleep::Sleep") > 0.95 * sum("waits"), "{waits:?}");
    let task = recording.tasks.iter().find(|task| &*task.name == "waits").unwrap();
    assert_eq!((&*task.file, task.line), (file!(), line));
    assert!((1500.0..3000.0).contains(&task.waited.millis()), "{task:?}");
    let mut text = Vec::new();
    stackglass::Report::new().cols(200).write(&recording, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("tokio::time::sleep::Sleep") || text.contains("task waits"), "{text}");
    let error = stackglass::profile_walltime!(stackglass::Profiler::start().unwrap_err());
    assert!(error.to_string().contains("stop it before"), "{error}");
}

/// Polls two futures until both are ready.
async fn futures_join(a: impl Future, b: impl Future) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut a_done, mut b_done) = (false, false);
    poll_fn(|context| {
        a_done = a_done || a.as_mut().poll(context).is_ready();
        b_done = b_done || b.as_mut().poll(context).is_ready();
        if a_done && b_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[test]
fn by_wall_time_a_program_without_tasks_shows_threads() {
    stackglass::profile_walltime!({
        let other = std::thread::Builder::new().name("other".into());
        let other = other.spawn(|| std::thread::sleep(Duration::from_millis(500))).unwrap();
        other.join().unwrap();
    });
    let recording = stackglass::recording();
    let times = |name: &str| -> f64 {
        let of =
            |sample: &&Sample| recording.thread(sample.thread).is_some_and(|thread| &*thread.name == name);
        recording.samples.iter().filter(of).map(|sample| sample.time.millis()).sum()
    };
    assert!(recording.samples.iter().all(|sample| sample.state == State::Task && sample.task == 0));
    assert!(times("other") > 50.0, "{:?}", recording.threads);
}
