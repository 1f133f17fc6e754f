//! Programs that know nothing of us, looked at from outside: what is seen is true, and nothing happens to them.
#![allow(unsafe_code, reason = "calls the C library")]

mod program;

use program::{Program, Seen, asleep, hits};
use stackglass_attach::Driver;
use stackglass_profile::{Recording, Sample, State};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn shares_and_stacks_of_a_busy_program_are_right() {
    for (flags, driver) in [
        (&[][..], Driver::Ptrace),
        (&["-static"], Driver::Ptrace),
        (&[], Driver::Perf),
        (&["-static"], Driver::Perf),
    ] {
        let program = Program::compile(flags).start(&["known"]);
        let seen = Seen::until(driver, program.pid(), SECOND, |recording| hits(recording) > 250);
        let hits = seen.hits("burn");
        assert!(hits > 200, "{hits} stacks {flags:?}");
        for (function, share) in [("one", 1.0 / 8.0), ("two", 2.0 / 8.0), ("five", 5.0 / 8.0)] {
            let measured = seen.hits(function) as f64 / hits as f64;
            let sigma = (share * (1.0 - share) / hits as f64).sqrt();
            assert!((measured - share).abs() < 4.5 * sigma, "{function}: {measured} of {share} {flags:?}");
        }
        for (path, hits) in seen.stacks() {
            let inner = path.rsplit("main;").next().unwrap_or("");
            let expected = ["one", "two", "five"].map(|f| format!("known;turn;{f};burn"));
            let between = ["known", "known;turn", "known;turn;one", "known;turn;two", "known;turn;five"];
            assert!(
                path.contains("main;") && (expected.iter().any(|e| e == inner) || between.contains(&inner)),
                "{hits} of {path} {flags:?}"
            );
        }
        assert_eq!(seen.cut(), 0, "{flags:?} {driver:?} {:?}", seen.cut_samples());
        // What the kernel counts: CPU time and waiting make up the time.
        let (all, passed) = (seen.all(), seen.passed);
        assert!((0.9..1.15).contains(&(all / passed)), "{all} s of one thread in {passed} s");
        assert!(seen.asleep() < 0.05 * passed, "{} of {passed} s asleep", seen.asleep());
    }
}

#[test]
fn deep_stacks_are_whole() {
    let program = Program::compile(&[]).start(&["deep", "3000"]);
    for driver in [Driver::Ptrace, Driver::Perf] {
        // A busy machine takes few of such stacks in a time.
        let (mut hits, mut whole) = (0, 0);
        for _ in 0..8 {
            let seen = Seen::until(driver, program.pid(), SECOND / 2, |_| true);
            // The first one of a stack deeper than what perf events copy says so; the thread is stopped from then on.
            assert!(seen.cut() <= 8, "{} of {} {driver:?}", seen.cut(), seen.hits("burn"));
            whole += seen.stacks().keys().filter(|path| path.matches("deep;").count() == 3001).count();
            hits += seen.hits("burn");
            if hits > 50 && whole > 0 {
                break;
            }
        }
        assert!(hits > 50 && whole > 0, "{hits} stacks in 4 s, {whole} whole ones, {driver:?}");
    }
}

#[test]
fn five_hundred_sleepers_are_seen_and_never_woken() {
    let program = Program::compile(&[]).start(&["parked", "500"]);
    program.await_line("ready");
    let before = program.switches();
    assert_eq!(before.len(), 501);
    let is_enough = |recording: &_| hits(recording) > 150;
    let (seen, [_, end]) = Seen::with(Driver::Ptrace, program.pid(), SECOND, is_enough, own_cpu);
    let (after, passed) = (own_cpu() - end, seen.passed);
    assert!(after < 0.5, "{after} s of CPU time after {passed} s");
    assert_eq!(seen.threads_in("parked"), 500);
    assert!(seen.hits("burn") > 100);
    let woken =
        program.switches().iter().filter(|(tid, n)| **tid != program.pid() && before[tid] != **n).count();
    assert_eq!(woken, 0, "threads that slept were given a CPU");
    assert!((seen.asleep() / 500.0 / passed - 1.0).abs() < 0.15, "{} in {passed} s", seen.asleep());
}

/// CPU time of this process, in seconds.
fn own_cpu() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives for the call.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Its threads have the name of a profiler's thread, until they get one of their own.
#[test]
fn threads_of_a_program_with_our_name_are_its_own() {
    let program = Program::compile_as("stackglass", &[]).start(&["parked", "5"]);
    program.await_line("ready");
    let all_slept = |recording: &Recording| recording.threads.len() >= 6;
    let seen = Seen::until(Driver::Ptrace, program.pid(), SECOND / 2, all_slept);
    assert_eq!(seen.threads_in("parked"), 5);
}

#[test]
fn waits_are_not_broken() {
    let program = Program::compile(&[]).start(&["waits"]);
    let seen =
        Seen::until(Driver::Ptrace, program.pid(), SECOND, |seen| hits(seen) > 50 && asleep(seen) > 0.2);
    assert!(seen.hits("burn") > 20 && seen.asleep() > 0.2, "{} {}", seen.hits("burn"), seen.asleep());
    assert_eq!(program.output(), "");
}

/// Other threads want all CPUs: each time it is woken, it waits for one. The kernel's account is the truth.
#[test]
fn a_thread_that_was_woken_and_waits_for_a_cpu_does_not_sleep() {
    if stackglass_attach::choice::perf(std::process::id()).is_err() {
        // A stop of ptrace counts as such a wait, and is none by the kernel's account.
        return;
    }
    let program = Program::compile(&[]).start(&["waits"]);
    // Threads end when the test does, however that is.
    let load = Arc::new(());
    for _ in 0..4 * std::thread::available_parallelism().unwrap().get() {
        let load = Arc::downgrade(&load);
        std::thread::spawn(move || {
            while load.strong_count() > 0 {
                std::hint::spin_loop();
            }
        });
    }
    let (seen, [before, after]) =
        Seen::with(Driver::Perf, program.pid(), SECOND * 2, |_| true, || program.waited());
    let (waited, passed, all) = ((after - before) as f64 * 1e-9, seen.passed, seen.all());
    assert!(
        waited > 0.02 && ((seen.waiting() / all) / (waited / passed) - 1.0).abs() < 0.2,
        "{} of {all} s ready, {waited} of {passed} by the kernel's account; {} s asleep",
        seen.waiting(),
        seen.asleep()
    );
}

#[test]
fn a_wait_that_a_signal_ends_is_never_lost_nor_ended_by_us() {
    let program = Program::compile(&[]).start(&["wakes", "600"]);
    program.await_line("ready");
    let pid = program.pid();
    let sampling =
        std::thread::spawn(move || Seen::until(Driver::Ptrace, pid, SECOND * 6, |seen| hits(seen) > 150));
    program.await_line("all");
    assert!(program.output().contains("\n0 lost, 0 early\n"), "{}", program.output());
    assert!(sampling.join().unwrap().hits("burn") > 100);
}

#[test]
fn a_main_thread_that_has_left_is_not_the_end() {
    for driver in [Driver::Ptrace, Driver::Perf] {
        for after in ["0", "300"] {
            let program = Program::compile(&[]).start(&["leaves", after]);
            if after == "0" {
                let start = Instant::now();
                while program.state() != 'Z' && start.elapsed() < SECOND * 20 {
                    std::thread::yield_now();
                }
            }
            let seen = Seen::until(driver, program.pid(), SECOND, |seen| hits(seen) > 100);
            assert_eq!(seen.stopped, None, "{driver:?} {after}");
            assert_eq!(program.state(), 'Z');
            assert_eq!(seen.recording.processes.len(), 1, "{driver:?} {after}");
            let expected = seen.passed + if after == "0" { 0.0 } else { 0.3 };
            assert!((seen.all() / expected - 1.0).abs() < 0.2, "{driver:?} {after}: {} s", seen.all());
            assert!(
                seen.hits("left") > 50 && seen.cut() * 10 < seen.hits("left"),
                "{driver:?} {after}: {} stacks, {} cut; {} s awake, {} waiting, {} asleep: {:?}, cut: {:?}",
                seen.hits("left"),
                seen.cut(),
                seen.awake(),
                seen.waiting(),
                seen.asleep(),
                seen.stacks(),
                seen.cut_samples()
            );
            let exe = &seen.recording.processes[0].exe;
            assert!(exe.ends_with("/attached"), "{exe}");
        }
    }
}

#[test]
fn signals_reach_a_program_that_is_looked_at() {
    let program = Program::compile(&[]).start(&["signals", "300"]);
    program.await_line("ready");
    let pid = program.pid();
    let sender = std::thread::spawn(move || {
        for _ in 0..300 {
            // Real-time signals are counted one by one.
            // SAFETY: a system call without pointers.
            assert_eq!(unsafe { libc::kill(pid as i32, libc::SIGRTMIN()) }, 0);
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let seen = Seen::until(Driver::Ptrace, pid, SECOND, |seen| hits(seen) > 150);
    sender.join().unwrap();
    assert!(seen.hits("burn") > 100);
    program.await_line("all");
}

#[test]
fn a_stopped_program_stays_stopped_and_goes_on_when_told() {
    let program = Program::compile(&[]).start(&["known"]);
    let pid = program.pid();
    let sampling =
        std::thread::spawn(move || Seen::until(Driver::Ptrace, pid, SECOND, |seen| hits(seen) > 100));
    std::thread::sleep(SECOND / 5);
    program.signal(libc::SIGSTOP);
    std::thread::sleep(SECOND / 5);
    let cpu = program.cpu();
    assert!(matches!(program.state(), 't' | 'T'), "{}", program.state());
    std::thread::sleep(SECOND / 5);
    assert_eq!(program.cpu(), cpu, "it ran although it was stopped");
    program.signal(libc::SIGCONT);
    let seen = sampling.join().unwrap();
    assert!(program.is_untouched());
    assert!(seen.hits("burn") > 50);
    // Stopped before we come: it stays so.
    program.signal(libc::SIGSTOP);
    while program.state() != 'T' {
        std::thread::yield_now();
    }
    let seen = Seen::until(Driver::Ptrace, pid, SECOND / 4, |seen| !seen.samples.is_empty());
    assert!(seen.hits("known") > 0 && seen.awake() < 0.01);
    assert_eq!(program.state(), 'T');
    program.signal(libc::SIGCONT);
    assert!(program.is_untouched());
}

#[test]
fn forks_are_not_harmed() {
    let program = Program::compile(&[]).start(&["forks"]);
    let seen = Seen::until(Driver::Ptrace, program.pid(), SECOND, |seen| hits(seen) > 50);
    assert!(seen.hits("burn") > 20);
    assert_eq!(program.output(), "");
    assert!(program.is_untouched());
}

#[test]
fn threads_that_come_later_are_seen() {
    let program = Program::compile(&[]).start(&["threads"]);
    let is_enough = |seen: &Recording| hits(seen) > 100 && seen.threads.len() > 4;
    let seen = Seen::until(Driver::Perf, program.pid(), SECOND, is_enough);
    let late = seen.recording.threads.iter().filter(|thread| &*thread.name == "late");
    let (all, ended) = late.fold((0, 0), |(all, ended), t| (all + 1, ended + usize::from(t.end.is_some())));
    assert!(all >= 3 && ended >= all - 1, "{all} came, {ended} went");
    assert!(seen.hits("brief") > 50);
}

#[test]
fn an_exec_is_another_image_of_the_same_process() {
    for driver in [Driver::Ptrace, Driver::Perf] {
        exec_by(driver);
    }
}

fn exec_by(driver: Driver) {
    let program = Program::compile(&[]).start(&["execs"]);
    let is_enough = |seen: &Recording| {
        let is_second = |sample: &Sample| seen.thread(sample.thread).is_some_and(|t| t.process.0 == 1);
        let awake = seen.samples.iter().filter(|sample| sample.state == State::Awake);
        awake.filter(|sample| is_second(sample)).count() > 20
    };
    let seen = Seen::until(driver, program.pid(), SECOND * 3 / 2, is_enough);
    let images = &seen.recording.processes;
    assert_eq!(images.len(), 2, "{images:?}");
    assert!(images[0].end.is_some() && images[1].arguments[1..] == ["deep", "3"]);
    assert!(seen.stacks().keys().any(|path| path.contains("deep;deep;deep;deep;turn;")));
    assert!(program.is_untouched());
}

#[test]
fn a_program_that_ends_is_told_so() {
    let mut program = Program::compile(&[]).start(&["known"]);
    let pid = program.pid();
    let (is_seen, seen) = mpsc::channel();
    let sampling = std::thread::spawn(move || {
        let is_enough = |recording: &_| {
            if hits(recording) > 100 {
                let _ = is_seen.send(());
            }
            false
        };
        Seen::until(Driver::Ptrace, pid, Duration::ZERO, is_enough)
    });
    seen.recv().unwrap();
    program.kill();
    let start = Instant::now();
    let seen = sampling.join().unwrap();
    assert!(start.elapsed() < SECOND * 2);
    assert_eq!(seen.stopped, Some(stackglass_attach::Stopped::Gone));
    assert!(seen.hits("burn") > 50);
}

#[test]
fn a_sleeper_is_left_in_peace() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    while program::name_of(child.id()) != "sleep" || program::state_of(child.id()) != 'S' {
        std::thread::yield_now();
    }
    let before = program::switches_of(child.id());
    let seen = Seen::by_ptrace(child.id(), SECOND / 2);
    let after = program::switches_of(child.id());
    let ended = child.try_wait().unwrap();
    let _ = child.kill();
    child.wait().unwrap();
    assert!((0.8..1.4).contains(&(seen.asleep() / seen.passed)), "{} of {}", seen.asleep(), seen.passed);
    assert_eq!((after, ended), (before, None), "it was given a CPU, or is gone");
}
