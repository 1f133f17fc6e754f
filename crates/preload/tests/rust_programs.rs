//! Rust programs: sleeping in the standard library, and programs that link the sampler.
//!
//! The programs are tests of this file, run as children; a variable enables them.

mod launcher;
use launcher::*;
use stackglass_wire::*;
use std::hint::black_box;
use std::sync::{Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Variable with the program to run.
const ROLE: &str = "STACKGLASS_TEST_ROLE";

fn run(role: &str) -> Run {
    let session = Session::new();
    let mut command = session.command(std::env::current_exe().unwrap());
    command.args(["--exact", role, "--nocapture", "--test-threads", "1"]).env(ROLE, role);
    let run = session.run(&mut command);
    assert!(run.status.success(), "{} {}", run.stdout, run.stderr);
    run
}

fn is_asked(role: &str) -> bool {
    std::env::var(ROLE).is_ok_and(|r| r == role)
}

#[inline(never)]
fn in_sleep(until: Instant) {
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(3));
    }
    black_box(());
}

#[inline(never)]
fn in_channel(until: Instant) {
    let (_keep, receiver) = mpsc::channel::<()>();
    while Instant::now() < until {
        assert_eq!(receiver.recv_timeout(Duration::from_millis(3)), Err(mpsc::RecvTimeoutError::Timeout));
    }
    black_box(());
}

#[inline(never)]
fn in_condvar(until: Instant) {
    let (lock, condvar) = (Mutex::new(()), Condvar::new());
    let mut held = lock.lock().unwrap();
    while Instant::now() < until {
        held = condvar.wait_timeout(held, Duration::from_millis(3)).unwrap().0;
    }
    black_box(());
}

#[inline(never)]
fn in_park(until: Instant) {
    while Instant::now() < until {
        std::thread::park_timeout(Duration::from_millis(3));
    }
    black_box(());
}

#[inline(never)]
fn in_socket(until: Instant) {
    use std::io::Read;
    let (mut one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    one.set_read_timeout(Some(Duration::from_millis(4))).unwrap();
    while Instant::now() < until {
        let error = one.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "not interrupted");
    }
    black_box(());
}

#[inline(never)]
fn in_lock(until: Instant, lock: &Mutex<()>) {
    while Instant::now() < until {
        drop(lock.lock().unwrap());
        std::thread::sleep(Duration::from_micros(200));
    }
    black_box(());
}

const SLEEPERS: [&str; 5] = ["in_sleep", "in_channel", "in_condvar", "in_park", "in_socket"];

#[test]
fn program_that_sleeps() {
    if !is_asked("program_that_sleeps") {
        return;
    }
    let until = Instant::now() + Duration::from_millis(1500);
    let lock = Mutex::new(());
    std::thread::scope(|scope| {
        let work: [fn(Instant); 5] = [in_sleep, in_channel, in_condvar, in_park, in_socket];
        for i in 0..20 {
            let name = SLEEPERS[i % 5].to_string();
            std::thread::Builder::new().name(name).spawn_scoped(scope, move || work[i % 5](until)).unwrap();
        }
        std::thread::Builder::new()
            .name("in_lock".into())
            .spawn_scoped(scope, || in_lock(until, &lock))
            .unwrap();
        while Instant::now() < until {
            let _held = lock.lock().unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn sleepers_of_the_standard_library_are_not_disturbed() {
    let run = run("program_that_sleeps");
    let process = &run.processes[0];
    let threads = process.threads(&Symbols::from_program(&std::env::current_exe().unwrap()));
    for name in SLEEPERS.iter().chain(&["in_lock"]) {
        let (mut right, mut all) = (0, 0);
        for thread in threads.values().filter(|t| t.name == *name) {
            right += thread.time_in(name);
            all += thread.awake + thread.asleep;
        }
        assert!(all > 0, "no thread {name}");
        let share = right as f64 / all as f64;
        assert!(share >= 0.99, "{name}: {share}");
    }
    assert_eq!(process.counter(Counter::SignalsAsleep), 0);
}

#[test]
fn program_that_samples_itself() {
    if !is_asked("program_that_samples_itself") {
        return;
    }
    let started = stackglass_sampler::start(stackglass_sampler::Config::default());
    assert_eq!(started.err(), Some(stackglass_sampler::NotStarted::Delegated));
}

#[test]
fn a_program_that_samples_itself_leaves_it_to_us() {
    let run = run("program_that_samples_itself");
    assert_eq!(run.processes.len(), 1);
}
