//! A program ends as it does alone, in all ways, and its samples are kept.
#![allow(unsafe_code, reason = "calls the C library")]

use std::time::Duration;
use whole_programs::{Language, Outcome, Record, Seen, host, workloads};

fn ending(how: &str) -> Outcome {
    Record::new(host("ends", Language::C)).args([how]).run()
}

/// The program works for 0.3 s by its own CPU clock. No time is added to what the kernel counts.
#[track_caller]
fn nothing_is_lost(outcome: &Outcome) {
    let seen = outcome.seen("ends");
    seen.is_true(200);
    let recording = outcome.recording();
    let kernel = recording.info.kernel_cpu.expect("the kernel's count");
    println!("the kernel counts {kernel:?}");
    seen.has_time("work_before_the_end", 298_000_000..306_000_000);
    assert!(seen.awake as f64 <= kernel.0 as f64 * 1.000_001, "{kernel:?}: {seen:#?}");
}

macro_rules! endings {
    ($($name:ident: $how:literal => $code:literal;)*) => { $(
        #[test]
        fn $name() {
            let outcome = ending($how);
            outcome.program_did("working\n", $code);
            nothing_is_lost(&outcome);
        }
    )* }
}

endings! {
    returns: "return" => 0;
    exits: "exit" => 3;
    leaves_by_underscore_exit: "_exit" => 4;
    leaves_by_system_call: "syscall" => 5;
    leaves_by_quick_exit: "quick_exit" => 6;
    aborts: "abort" => 134;
    segfaults: "segfault" => 139;
    divides_by_zero: "divide" => 136;
    kills_itself: "kill" => 137;
    is_terminated: "term" => 143;
}

/// Waits until the program reports that it works.
fn until_it_works(running: &whole_programs::Running) {
    for _ in 0..2000 {
        if running.stdout().contains("working") {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the program does not start");
}

/// The profiled program's process id: the only child of the command.
fn child_of(parent: u32) -> Option<i32> {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// CPU time of a process's first thread so far, ns.
fn cpu_time(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).expect("the program has used CPU time")
}

fn killed_at_random_moments(times: u64) {
    let mut moment = 12_345u64;
    let mut losses = Vec::new();
    for _ in 0..times {
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let running = Record::new(host("ends", Language::C)).args(["forever"]).start();
        until_it_works(&running);
        let child = child_of(running.id()).expect("the program runs as a child of the command");
        let before = cpu_time(child);
        std::thread::sleep(Duration::from_millis((moment >> 33) % 400));
        let used = cpu_time(child) - before;
        // SAFETY: takes two numbers; the command was not reaped, so its child is still the program.
        assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
        let outcome = running.wait();
        outcome.program_did("working\n", 137);
        let seen = outcome.seen("ends");
        let worked = seen.functions.get("work_before_the_end").copied().unwrap_or(0);
        let lost = (used as f64 - worked as f64) * 1e-6;
        // With other load, the last tick of the sampler may be earlier.
        assert!(lost < 15.0, "of {:.1} ms {lost:.1} ms are missing\n{seen:#?}", used as f64 * 1e-6);
        losses.push(lost);
    }
    losses.sort_by(f64::total_cmp);
    let median = losses[losses.len() / 2];
    assert!(median < 2.5, "more than the last tick is missing: {losses:?} ms");
}

#[test]
fn killed_at_ten_random_moments() {
    killed_at_random_moments(10);
}

#[test]
#[ignore = "long: a hundred kills"]
fn killed_at_a_hundred_random_moments() {
    killed_at_random_moments(100);
}

/// The command is killed: the program goes on, and the recording is readable up to then.
#[test]
fn the_command_is_killed() {
    let marker = tempfile::tempdir().unwrap();
    let done = marker.path().join("done");
    let script = format!("{} exit; echo $? > {}", host("ends", Language::C).display(), done.display());
    let running = Record::new("sh").args(["-c", &script]).start();
    until_it_works(&running);
    std::thread::sleep(Duration::from_millis(30));
    running.signal(libc::SIGKILL);
    let outcome = running.wait();
    for _ in 0..1000 {
        if std::fs::read_to_string(&done).is_ok_and(|text| text.ends_with('\n')) {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(std::fs::read_to_string(&done).ok().as_deref(), Some("3\n"), "the program lives on");
    let (_, completeness) = outcome.read();
    assert!(!completeness.is_complete(), "nobody was left to complete it");
}

/// SIGTERM and SIGHUP to the command end it cleanly: the program gets the signal too, and the recording is complete.
#[test]
fn the_command_is_asked_to_end() {
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        let running = Record::new(host("ends", Language::C)).args(["forever"]).start();
        until_it_works(&running);
        std::thread::sleep(Duration::from_millis(200));
        let child = child_of(running.id()).expect("the program runs as a child of the command");
        if signal == libc::SIGINT {
            // A terminal sends the signal to both.
            // SAFETY: takes two numbers; the command was not reaped.
            assert_eq!(unsafe { libc::kill(child, signal) }, 0);
        }
        running.signal(signal);
        let outcome = running.wait();
        let seen = Seen::from_recording(&outcome.recording(), "ends");
        seen.is_true(20);
        assert!(outcome.wall < Duration::from_secs(5), "it takes {:?} to end by {signal}", outcome.wall);
        // SAFETY: signal 0 only tests whether the process exists.
        assert_ne!(unsafe { libc::kill(child, 0) }, 0, "the program is still there after signal {signal}");
    }
}

/// `--duration`: the report is printed, and the program goes on to its end.
#[test]
fn a_server_that_never_exits_is_saved_by_duration() {
    let outcome =
        Record::new(workloads()).args(["chain", "--seconds", "2"]).flag("--duration").flag("500ms").run();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let seen = outcome.seen("workloads");
    let all = seen.awake + seen.asleep;
    assert!((400_000_000..700_000_000).contains(&all), "{seen:#?}");
}
