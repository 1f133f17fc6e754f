//! System calls that signals interrupt, in programs with and without handlers. Each ends as the kernel defines for that call,
//! no wake-up is lost, and only signals of the program interrupt calls visibly.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::{Compare, Folder, Language, host, stackglass};

fn interrupted(how: &str) -> Compare {
    Compare::new(host("interrupted", Language::C)).args([how])
}

/// Lines of interrupted calls.
fn broken(printed: &str) -> usize {
    printed.lines().filter(|line| line.ends_with(" EINTR")).count()
}

#[test]
fn calls_under_a_handler_without_restart() {
    let equal = interrupted("once").times(4).is_equal();
    assert_eq!(
        (broken(&equal.did.stdout), equal.did.stdout.lines().count()),
        (22, 22),
        "{}",
        equal.did.stdout
    );
}

#[test]
fn calls_under_a_handler_with_restart() {
    let equal = interrupted("restart").times(4).is_equal();
    assert_eq!(
        (broken(&equal.did.stdout), equal.did.stdout.lines().count()),
        (17, 22),
        "{}",
        equal.did.stdout
    );
}

#[test]
fn calls_without_any_handler_are_never_interrupted() {
    let equal = interrupted("without").times(2).is_equal();
    assert_eq!(
        (broken(&equal.did.stdout), equal.did.stdout.lines().count()),
        (0, 14),
        "{}",
        equal.did.stdout
    );
}

const ALL_SEEN: &str = "sigsuspend: 150 of 150\nppoll: 150 of 150\npselect: 150 of 150\nepoll_pwait: 150 of 150\n\
                        sigwaitinfo: 150 of 150\nsignalfd: 150 of 150\n";

#[test]
fn a_signal_that_is_only_open_in_the_call_is_never_missed() {
    interrupted("pending").times(3).is_equal().did(ALL_SEEN, 0);
}

#[test]
fn nor_under_a_handler_with_restart() {
    interrupted("pending-restart").times(3).is_equal().did(ALL_SEEN, 0);
}

/// The same while the process is sampled from outside, by stopping its threads and by perf events.
#[test]
fn wake_ups_are_not_lost_while_a_process_is_looked_at() {
    for how in ["pending", "pending-restart", "once", "restart"] {
        let alone = interrupted(how).alone();
        for driver in ["ptrace", "perf"] {
            let folder = Folder::new();
            let file =
                |name: &str| File::create(folder.path().join(name)).expect("a temporary file can be made");
            let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
            let mut program = Command::new(host("interrupted", Language::C));
            program.arg(how).stdin(Stdio::null()).stdout(file("out")).current_dir(folder.path());
            let mut program = program.spawn().expect("the program can be started");
            // ptrace is used only where perf events are refused.
            let mut look = match driver {
                "ptrace" => Command::new(host("refused", Language::C)),
                _ => Command::new("env"),
            };
            look.arg(stackglass()).args([
                "record", "--quiet", "--delay", "100us", "--driver", driver, "-o", "r.glass", "--pid",
            ]);
            look.arg(program.id().to_string()).stdin(Stdio::null()).stderr(file("said"));
            let mut look = look.current_dir(folder.path()).spawn().expect("the command can be started");
            let begin = Instant::now();
            let status = loop {
                if let Some(status) = program.try_wait().expect("a child can be waited for") {
                    break status;
                }
                let hangs = begin.elapsed() > Duration::from_secs(60);
                assert!(!hangs, "{how}, {driver}: it hangs after\n{}{}", read("out"), read("said"));
                std::thread::sleep(Duration::from_millis(5));
            };
            look.wait().expect("a child can be waited for");
            if read("said").contains("perf events are refused here") {
                continue;
            }
            let did = (status.code(), read("out"));
            assert_eq!(did, (alone.code, alone.stdout.clone()), "{how}, {driver}: {}", read("said"));
        }
    }
}

#[test]
fn a_time_limit_by_a_signal() {
    Compare::new("timeout").args(["0.3", "sleep", "20"]).times(15).is_equal().did("", 124);
    Compare::new("timeout").args(["10", "true"]).times(60).is_equal().did("", 0);
}

const PAUSES: &str = "
import signal, time
signal.signal(signal.SIGALRM, lambda *_: None)
for i in range(200):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    assert signal.sigwait([signal.SIGALRM]) == signal.SIGALRM
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.02)
for i in range(30):
    signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0)
print('woken')
";

#[test]
fn an_interpreter_that_pauses() {
    Compare::new("python3").args(["-c", PAUSES]).times(5).is_equal().did("woken\n", 0);
}
