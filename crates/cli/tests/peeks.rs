//! SIGUSR1 to programs under `run`, and under `record` if they are sampled from inside: a peek if the program leaves the
//! signal at its default action; otherwise the program keeps it.

use crate::support::{Place, end_of, text, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use stackglass_profile::End;
use std::fs::{self, File};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

/// A program that writes its id to `ready` and works until `stop` is there.
const WORKER: &str = "echo $$ > ready; while [ ! -e stop ]; do :; done; exit 5";

/// The two verbs that answer peeks.
const VERBS: [&[&str]; 2] = [&["record", "--sampler", "preload"], &["run"]];

struct Started {
    place: Place,
    child: Child,
    program: Pid,
}

impl Started {
    fn new(words: &[&str]) -> Started {
        let place = Place::new();
        let errors = File::create(place.file("errors")).unwrap();
        let child = place.stackglass(words).stdin(Stdio::null()).stderr(errors).spawn().unwrap();
        place.await_file("ready");
        let pid = fs::read_to_string(place.file("ready")).unwrap().trim().parse().unwrap();
        Started { place, child, program: Pid::from_raw(pid).unwrap() }
    }

    fn peek(&self) {
        kill_process(self.program, Signal::USR1).unwrap();
    }

    fn errors(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.place.file("errors")).unwrap()).into_owned()
    }

    fn await_text(&self, text: &str, times: usize) {
        wait_until(text, || self.errors().matches(text).count() >= times);
    }

    fn stop(mut self) -> (Option<i32>, String, Place) {
        fs::write(self.place.file("stop"), "").unwrap();
        let status = end_of(&mut self.child);
        (status, self.errors(), self.place)
    }
}

#[test]
fn a_recorded_program_is_shown_and_recorded_on() {
    let started = Started::new(&[
        "record",
        "--sampler",
        "preload",
        "--peek-duration",
        "300ms",
        "--",
        "sh",
        "-c",
        WORKER,
    ]);
    let asked = Instant::now();
    started.peek();
    started.await_text("Total snapshots: ", 1);
    assert!(asked.elapsed() > Duration::from_millis(250), "{:?}", asked.elapsed());
    started.peek();
    started.await_text("Profile collected.", 2);
    let pid = started.program.as_raw_nonzero();
    let (status, text, place) = started.stop();
    assert_eq!(status, Some(5));
    assert_eq!(text.matches("followed by a 0.3 second profile").count(), 2, "{text}");
    assert!(text.contains(&format!(" {pid} running 1 of 1\n")), "{text}");
    let snapshots = text.split("Total snapshots: ").nth(1).unwrap();
    let snapshots: u64 = snapshots.split('.').next().unwrap().parse().unwrap();
    assert!((200..600).contains(&snapshots), "{snapshots} of 300 ms\n{text}");
    let recording = place.recording("sh.glass");
    assert_eq!(recording.info.end, Some(End::Exit(5)));
    let time: u64 = recording.samples.iter().map(|sample| sample.time.0).sum();
    assert!(time > 600_000_000, "{time}");
}

#[test]
fn a_program_that_is_only_ready_costs_nothing_until_it_is_asked() {
    let started = Started::new(&["run", "--peek-duration", "200ms", "--", "sh", "-c", WORKER]);
    let used = || -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", started.child.id())).unwrap().flatten();
        let used = tasks.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
        used.map(|schedstat| schedstat.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    std::thread::sleep(Duration::from_millis(200));
    let before = used();
    std::thread::sleep(Duration::from_secs(2));
    let idle = used() - before;
    assert!(idle < 4_000_000, "{idle} ns in 2 s");
    for n in 1..=3 {
        started.peek();
        started.await_text("Total snapshots: ", n);
    }
    let (status, text, place) = started.stop();
    assert_eq!(status, Some(5));
    assert_eq!(text.matches("Thread 1 (sh)").count(), 9, "{text}");
    assert!(!place.file("sh.glass").exists(), "nothing is recorded");
}

/// Threads and signals that a process sees in itself and in a child that it forks.
const SELF: &str = "import os, sys, time
def show(name):
    lines = open('/proc/self/status').read().splitlines()
    for line in lines:
        if line.split(':')[0] in ('Threads', 'SigPnd', 'ShdPnd', 'SigBlk', 'SigIgn', 'SigCgt'): print(name, line)
    sys.stdout.flush()
show('parent')
child = os.fork()
if child == 0:
    show('child')
    os._exit(0)
os.waitpid(child, 0)
import threading
threads = [threading.Thread(target=lambda: None) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
# A joined thread may still be exiting.
deadline = time.monotonic() + 5
while len(os.listdir('/proc/self/task')) > 1 and time.monotonic() < deadline: time.sleep(0.01)
show('later')";

#[test]
fn nothing_of_ours_is_in_a_program_that_is_ready_but_the_handler() {
    let place = Place::new();
    let alone = std::process::Command::new("python3").args(["-c", SELF]).output().unwrap();
    let ready = place.run(["run", "--", "python3", "-c", SELF]);
    assert_eq!((ready.status.code(), text(&ready.stderr).as_str()), (Some(0), ""));
    // SIGUSR1 is number 10.
    let without_ours = |line: &str| match line.split_once("SigCgt:") {
        Some((name, mask)) => {
            let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
            assert_eq!(mask >> 9 & 1, 1, "{line}");
            format!("{name}{:x}", mask & !(1 << 9))
        }
        None => line.to_owned(),
    };
    let plain = |line: &str| match line.split_once("SigCgt:") {
        Some((name, mask)) => format!("{name}{:x}", u64::from_str_radix(mask.trim(), 16).unwrap()),
        None => line.to_owned(),
    };
    let (alone, ready) = (text(&alone.stdout), text(&ready.stdout));
    let alone: Vec<String> = alone.lines().map(plain).collect();
    let ready: Vec<String> = ready.lines().map(without_ours).collect();
    assert_eq!(alone.len(), 18);
    assert_eq!(ready, alone);
}

#[test]
fn a_forked_child_is_answered_for_itself() {
    let script = "import os, signal, time
child = os.fork()
if child == 0:
    while not os.path.exists('stop'): sum(range(1000))
    os._exit(0)
open('ready', 'w').write(str(child))
os._exit(0 if os.waitpid(child, 0)[1] == 0 else 1)";
    let started = Started::new(&["run", "--peek-duration", "200ms", "--", "python3", "-c", script]);
    started.peek();
    started.await_text("Total snapshots: ", 1);
    let pid = started.program.as_raw_nonzero();
    let (status, printed, _) = started.stop();
    assert_eq!(status, Some(0), "{printed}");
    assert!(printed.contains(&format!(" {pid} running 1 of 1\n")), "{printed}");
}

#[test]
fn a_second_signal_shows_the_stacks_again_and_several_are_answered_at_once() {
    let script = "echo $$ > ready; sh -c 'echo $$ > other; while [ ! -e stop ]; do :; done' & \
                  while [ ! -e stop ]; do :; done; wait; exit 5";
    let started = Started::new(&["run", "--peek-duration", "3s", "--", "sh", "-c", script]);
    started.place.await_file("other");
    let other = fs::read_to_string(started.place.file("other")).unwrap().trim().parse().unwrap();
    started.peek();
    started.await_text("cmd: ", 1);
    started.peek();
    kill_process(Pid::from_raw(other).unwrap(), Signal::USR1).unwrap();
    started.await_text("cmd: ", 3);
    assert_eq!(started.errors().matches("Total snapshots: ").count(), 0, "while the first profile goes on");
    started.await_text("Total snapshots: ", 2);
    let (status, printed, _) = started.stop();
    assert_eq!(status, Some(5), "{printed}");
    assert_eq!(printed.matches("Information request").count(), 2, "{printed}");
    assert!(printed.contains(&format!(" {other} running 1 of 1\n")), "{printed}");
}

#[test]
fn under_record_the_signal_is_the_programs_own_affair() {
    let place = Place::new();
    let output = place.run(["record", "--quiet", "--", "sh", "-c", "kill -USR1 $$; exit 3"]);
    assert_eq!(output.status.code(), Some(128 + 10), "as alone: {}", text(&output.stderr));
    // Nor is it passed on to a program that it would end.
    let mut command = place.stackglass(["record", "-q", "-o", "r.glass", "--"]);
    command.args(["sh", "-c", "echo > ready; sleep 1; exit 4"]).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    place.await_file("ready");
    kill_process(Pid::from_child(&child), Signal::USR1).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("SIGUSR1 was not passed on"), "{}", text(&output.stderr));
    let started = Started::new(&["record", "--", "sh", "-c", WORKER]);
    let output = started.answer(&["--duration", "300ms", "--driver", "perf"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}{}", text(&output.stderr));
    assert!((200..600).contains(&snapshots(&printed)), "{printed}");
    let output = started.answer(&["--duration", "300ms", "--driver", "ptrace"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!((200..600).contains(&snapshots(&text(&output.stdout))), "{}", text(&output.stdout));
    let (status, _, place) = started.stop();
    assert_eq!(status, Some(5));
    assert_eq!(place.recording("sh.glass").info.end, Some(End::Exit(5)));
}

#[test]
fn a_program_that_owns_the_signal_keeps_it() {
    // The program reads the default action, handles the signal itself, restores the default, and peeks work again.
    let script = "import os, signal, time
assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
open('ready', 'w').write(str(os.getpid()))
while not got: time.sleep(0.01)
signal.signal(signal.SIGUSR1, signal.SIG_DFL)
open('given-back', 'w').write('x')
while not os.path.exists('stop'): time.sleep(0.01)
child = os.fork()
if child == 0:
    os.execvp('sleep', ['sleep', '60'])
time.sleep(0.5)
os.kill(child, signal.SIGTERM)
assert os.waitpid(child, 0)[1] == signal.SIGTERM
os._exit(6)";
    for verb in VERBS {
        let started =
            Started::new(&[verb, &["--peek-duration", "100ms", "--", "python3", "-c", script]].concat());
        started.peek();
        started.place.await_file("given-back");
        assert!(!started.errors().contains("Information request"), "{}", started.errors());
        started.peek();
        started.await_text("Total snapshots: ", 1);
        let (status, text, _) = started.stop();
        assert_eq!(status, Some(6), "{text}");
    }
}

#[test]
fn a_program_that_ends_during_a_peek_is_still_reported() {
    let started = Started::new(&["run", "--peek-duration", "30s", "--", "sh", "-c", WORKER]);
    started.peek();
    started.await_text("cmd: ", 1);
    let (status, text, _) = started.stop();
    assert_eq!(status, Some(5));
    assert!(text.contains("Total snapshots: "), "{text}");
}

#[test]
fn without_a_sampler_run_says_so_and_runs() {
    let place = Place::new();
    let output = place.run(["run", "--", "/nonexistent/program"]);
    assert_eq!(output.status.code(), Some(127));
    let output = place.run(["run", "--", "sh", "-c", "exit 3"]);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(3), 0));
}

impl Started {
    /// Runs `stackglass peek`. The program is asked for its answer, unless the flags name a driver.
    fn ask(&self, flags: &[&str]) -> Child {
        let pid = self.program.as_raw_nonzero().to_string();
        let ask: &[&str] = if flags.contains(&"--driver") { &[] } else { &["--ask"] };
        let mut command = self.place.stackglass([&["peek", &pid], ask, flags].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn answer(&self, flags: &[&str]) -> Output {
        self.ask(flags).wait_with_output().unwrap()
    }
}

/// The snapshots of the first thread in a report.
fn snapshots(printed: &str) -> u64 {
    let count = printed.split("Total snapshots: ").nth(1).unwrap_or_else(|| panic!("{printed}"));
    count.split('.').next().unwrap().parse().unwrap()
}

#[test]
fn who_asks_is_answered_as_he_wishes_and_nobody_else() {
    for verb in VERBS {
        let started = Started::new(&[verb, &["--peek-duration", "300ms", "--", "sh", "-c", WORKER]].concat());
        for (flags, seconds, looks, cols) in [
            (&["--cols", "70"][..], "0.3", 200..900, 70),
            (&["--duration", "900ms", "--cols", "70"], "0.9", 700..1500, 70),
            (&["--cols", "70"], "0.3", 200..900, 70),
        ] {
            let output = started.answer(flags);
            let printed = text(&output.stdout);
            assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{printed}");
            let words: Vec<&str> = printed.split_whitespace().collect();
            assert!(
                words.join(" ").contains(&format!("followed by a {seconds} second profile.")),
                "{printed}"
            );
            assert!(looks.contains(&snapshots(&printed)), "{verb:?} {flags:?}: {printed}");
            assert_eq!(printed.lines().find(|line| line.chars().count() > cols), None, "{verb:?} {flags:?}");
            assert!(printed.contains("\nIn short") && !printed.contains("Task 0x"), "{printed}");
        }
        let sparse = text(&started.answer(&["--duration", "600ms", "--delay", "20ms"]).stdout);
        let all = if verb == ["run"] { 20..50 } else { 400..900 };
        assert!(all.contains(&snapshots(&sparse)), "{verb:?}: {sparse}");
        assert_eq!(sparse.contains("--delay has no effect"), verb != ["run"], "{sparse}");
        let (_, errors, _) = started.stop();
        assert!(!errors.contains("Information request") && !errors.contains("Profile collected"), "{errors}");
    }
}

#[test]
fn a_peek_by_signal_ends_where_it_began_and_who_asks_meanwhile_has_his_own_afterwards() {
    for verb in VERBS {
        // The two that ask start within the first peek, also on a busy machine.
        let started = Started::new(&[verb, &["--peek-duration", "3s", "--", "sh", "-c", WORKER]].concat());
        started.peek();
        started.await_text("cmd: ", 1);
        let asked = [started.ask(&["--duration", "400ms"]), started.ask(&["--duration", "200ms"])];
        started.await_text("Total snapshots: ", 1);
        for child in asked {
            let output = child.wait_with_output().unwrap();
            let printed = text(&output.stdout);
            assert_eq!(
                (output.status.code(), text(&output.stderr).as_str()),
                (Some(0), ""),
                "{verb:?}: {printed}"
            );
            assert!(printed.contains("is being peeked at already;"), "{verb:?}: {printed}");
            for part in ["Information request", "cmd: ", "Profile collected.", "\nIn short"] {
                assert_eq!(printed.matches(part).count(), 1, "{verb:?}: {printed}");
            }
        }
        let (_, errors, _) = started.stop();
        for part in ["Information request", "cmd: ", "Profile collected.", "\nIn short"] {
            assert_eq!(errors.matches(part).count(), 1, "{verb:?}: {errors}");
        }
    }
}

#[test]
fn a_program_that_is_killed_fails_the_peek_and_a_peek_that_is_killed_ends() {
    for verb in VERBS {
        let mut started = Started::new(&[verb, &["--", "sh", "-c", WORKER]].concat());
        let mut first = started.ask(&["--duration", "100s"]);
        std::thread::sleep(Duration::from_millis(300));
        first.kill().unwrap();
        first.wait().unwrap();
        let asked = Instant::now();
        assert_eq!(started.answer(&["--duration", "100ms"]).status.code(), Some(0));
        assert!(asked.elapsed() < Duration::from_secs(10), "the peek of who was killed goes on");
        let child = started.ask(&["--duration", "100s"]);
        std::thread::sleep(Duration::from_millis(500));
        kill_process(started.program, Signal::KILL).unwrap();
        let output = child.wait_with_output().unwrap();
        let (printed, line) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(125), "{verb:?}: {printed}{line}");
        assert!(line.lines().count() == 1 && line.contains(" ended after "), "{verb:?}: {line}");
        assert!(printed.contains("\nIn short"), "{verb:?}: {printed}");
        assert_eq!(end_of(&mut started.child), Some(137));
    }
}

#[test]
fn our_threads_are_none_of_the_programs() {
    let started = Started::new(&["record", "--sampler", "preload", "--", "sh", "-c", WORKER]);
    for driver in ["ptrace", "perf"] {
        let printed = text(&started.answer(&["--duration", "200ms", "--driver", driver]).stdout);
        // The handler may be seen running; threads of stackglass are not.
        assert!(
            printed.contains(" running 1 of 1\n") && !printed.contains("(stackglass"),
            "{driver}: {printed}"
        );
    }
    started.stop();
}
