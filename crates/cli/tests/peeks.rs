//! SIGUSR1 to programs under `record` and `run`: a peek where the program leaves the signal alone, its own business
//! where it does not.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use stackglass_profile::End;
use std::fs::{self, File};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};
use support::{Place, end_of, text, wait_until};

/// A program that writes its id to `ready` and works until `stop` is there.
const WORKER: &str = "echo $$ > ready; while [ ! -e stop ]; do :; done; exit 5";

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
    let started = Started::new(&["record", "--peek-duration", "300ms", "--", "sh", "-c", WORKER]);
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
    assert_eq!(recording.about.end, Some(End::Exit(5)));
    let time: u64 = recording.samples.iter().map(|sample| sample.time.0).sum();
    assert!(time > 600_000_000, "{time}");
}

#[test]
fn a_program_that_is_only_ready_costs_nothing_until_it_is_asked() {
    let started = Started::new(&["run", "--peek-duration", "200ms", "--", "sh", "-c", WORKER]);
    let used = || -> u64 {
        let mut used = 0;
        for task in fs::read_dir(format!("/proc/{}/task", started.program)).unwrap().flatten() {
            if fs::read_to_string(task.path().join("comm")).unwrap().trim() == "stackglass" {
                let schedstat = fs::read_to_string(task.path().join("schedstat")).unwrap();
                used += schedstat.split(' ').next().unwrap().parse::<u64>().unwrap();
            }
        }
        used
    };
    std::thread::sleep(Duration::from_millis(200));
    let before = used();
    assert!(before > 0, "there is a sampler");
    std::thread::sleep(Duration::from_secs(2));
    let idle = used() - before;
    assert!(idle < 2_000_000, "{idle} ns in 2 s");
    for n in 1..=3 {
        started.peek();
        started.await_text("Total snapshots: ", n);
    }
    let (status, text, place) = started.stop();
    assert_eq!(status, Some(5));
    // The thread keeps its number.
    assert_eq!(text.matches("Thread 1 (sh)").count(), 9, "{text}");
    assert!(!place.file("sh.glass").exists(), "nothing is recorded");
}

#[test]
fn a_program_that_owns_the_signal_keeps_it() {
    // It finds the default where ours was, handles the signal itself, gives it back, and is peeked at again.
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
    for verb in ["record", "run"] {
        let started = Started::new(&[verb, "--peek-duration", "100ms", "--", "python3", "-c", script]);
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
    /// `stackglass peek` of it.
    fn ask(&self, flags: &[&str]) -> Child {
        let pid = self.program.as_raw_nonzero().to_string();
        let mut command = self.place.stackglass([&["peek", &pid], flags].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn answer(&self, flags: &[&str]) -> Output {
        self.ask(flags).wait_with_output().unwrap()
    }
}

/// The snapshots of the first thread in a report.
fn snapshots(shown: &str) -> u64 {
    let count = shown.split("Total snapshots: ").nth(1).unwrap_or_else(|| panic!("{shown}"));
    count.split('.').next().unwrap().parse().unwrap()
}

#[test]
fn who_asks_is_answered_as_he_wishes_and_nobody_else() {
    for verb in ["record", "run"] {
        let started = Started::new(&[verb, "--peek-duration", "300ms", "--", "sh", "-c", WORKER]);
        for (flags, seconds, looks, cols) in [
            (&["--cols", "70"][..], "0.3", 200..900, 70),
            (&["--duration", "900ms", "--cols", "70"], "0.9", 700..1500, 70),
            (&["--cols", "70"], "0.3", 200..900, 70),
        ] {
            let output = started.answer(flags);
            let shown = text(&output.stdout);
            assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{shown}");
            let words: Vec<&str> = shown.split_whitespace().collect();
            assert!(words.join(" ").contains(&format!("followed by a {seconds} second profile.")), "{shown}");
            assert!(looks.contains(&snapshots(&shown)), "{verb} {flags:?}: {shown}");
            assert_eq!(shown.lines().find(|line| line.chars().count() > cols), None, "{verb} {flags:?}");
            assert!(shown.contains("\nIn short") && !shown.contains("Task 0x"), "{shown}");
        }
        let sparse = text(&started.answer(&["--duration", "600ms", "--delay", "20ms"]).stdout);
        let all = if verb == "run" { 20..50 } else { 400..900 };
        assert!(all.contains(&snapshots(&sparse)), "{verb}: {sparse}");
        assert_eq!(sparse.contains("--delay changes nothing"), verb == "record", "{sparse}");
        let (_, errors, _) = started.stop();
        assert!(!errors.contains("Information request") && !errors.contains("Profile collected"), "{errors}");
    }
}

#[test]
fn a_peek_by_signal_ends_where_it_began_and_who_asks_meanwhile_has_his_own_afterwards() {
    for verb in ["record", "run"] {
        let started = Started::new(&[verb, "--peek-duration", "1s", "--", "sh", "-c", WORKER]);
        started.peek();
        started.await_text("cmd: ", 1);
        let asked = [started.ask(&["--duration", "400ms"]), started.ask(&["--duration", "200ms"])];
        started.await_text("Total snapshots: ", 1);
        for child in asked {
            let output = child.wait_with_output().unwrap();
            let shown = text(&output.stdout);
            assert_eq!(
                (output.status.code(), text(&output.stderr).as_str()),
                (Some(0), ""),
                "{verb}: {shown}"
            );
            assert!(shown.contains("is being peeked at already;"), "{verb}: {shown}");
            for part in ["Information request", "cmd: ", "Profile collected.", "\nIn short"] {
                assert_eq!(shown.matches(part).count(), 1, "{verb}: {shown}");
            }
        }
        let (_, errors, _) = started.stop();
        for part in ["Information request", "cmd: ", "Profile collected.", "\nIn short"] {
            assert_eq!(errors.matches(part).count(), 1, "{verb}: {errors}");
        }
    }
}

#[test]
fn a_program_that_is_killed_fails_the_peek_and_a_peek_that_is_killed_ends() {
    for verb in ["record", "run"] {
        let mut started = Started::new(&[verb, "--", "sh", "-c", WORKER]);
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
        let (shown, line) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(125), "{verb}: {shown}{line}");
        assert!(line.lines().count() == 1 && line.contains(" ended after "), "{verb}: {line}");
        assert!(shown.contains("\nIn short"), "{verb}: {shown}");
        assert_eq!(end_of(&mut started.child), Some(137));
    }
}

#[test]
fn our_threads_are_none_of_the_programs() {
    let started = Started::new(&["run", "--", "sh", "-c", WORKER]);
    for driver in ["ptrace", "perf"] {
        let shown = text(&started.answer(&["--duration", "200ms", "--driver", driver]).stdout);
        assert!(shown.contains(" running 1 of 1\n") && !shown.contains("stackglass"), "{driver}: {shown}");
    }
    started.stop();
}
