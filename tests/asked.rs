//! A peek sends no signal to a program, not even to one that answers peeks itself, unless the user asks for it or perf events are
//! refused. A program that the signal may harm never gets it.

#![allow(unsafe_code, reason = "sends signals")]

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use whole_programs::{Folder, Language, host, repetitions, stackglass};

/// A program under `stackglass run`.
struct Program {
    folder: Folder,
    command: Child,
    id: String,
}

impl Program {
    fn start(words: &[&str]) -> Program {
        let folder = Folder::new();
        let mut command = Command::new(stackglass());
        command.args(["run", "--"]).args(words).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let command = command.spawn().expect("the command can be started");
        let begun = Instant::now();
        let id = loop {
            let id = std::fs::read_to_string(folder.path().join("ready")).unwrap_or_default();
            if id.ends_with('\n') {
                break id.trim().to_owned();
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{words:?} does not start");
            std::thread::sleep(Duration::from_millis(5));
        };
        Program { folder, command, id }
    }

    fn asked(what: &str) -> Program {
        Program::start(&[host("asked", Language::C).to_str().expect("a path is text"), what])
    }

    /// A short peek; perf events are refused to it if `refused`.
    fn peek(&self, refused: bool, flags: &[&str]) -> Output {
        let mut command = match refused {
            true => Command::new(host("refused", Language::C)),
            false => Command::new(stackglass()),
        };
        if refused {
            command.arg(stackglass());
        }
        command.args(["peek", &self.id, "--duration", "100ms"]).args(flags).current_dir(self.folder.path());
        command.stdin(Stdio::null()).output().expect("the command can be started")
    }

    /// Ends it. All that it and the command have said, and its exit status.
    fn end(self) -> (String, Option<i32>) {
        std::fs::write(self.folder.path().join("stop"), "").expect("a temporary file can be made");
        let output = self.command.wait_with_output().expect("it ends");
        (text(&output.stdout) + &text(&output.stderr), output.status.code())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether it printed a stack of a running thread of a program that computes.
#[track_caller]
fn shows(output: &Output, function: &str) {
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{printed}{said}");
    assert!(printed.contains(function) && printed.contains("Total snapshots: "), "{printed}{said}");
}

#[test]
fn a_program_that_waits_for_the_signal_gets_none() {
    let program = Program::asked("waits");
    for _ in 0..3 {
        shows(&program.peek(false, &[]), "compute");
        program.peek(true, &[]);
    }
    let refused = program.peek(false, &["--ask"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("blocks SIGUSR1"), "{}", text(&refused.stderr));
    assert_eq!(program.end(), ("waits: 0 signals\n".to_owned(), Some(0)));
}

/// Threads that have been woken from a wait for the signal and have no CPU yet look as if they computed.
#[test]
fn a_program_that_waits_for_the_signal_gets_none_on_a_busy_machine() {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut busy: Vec<Child> = (0..4 * cpus)
        .map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("there is a shell"))
        .collect();
    let program = Program::asked("waits");
    for _ in 0..repetitions(20) {
        program.peek(true, &[]);
    }
    for loops in &mut busy {
        loops.kill().expect("it runs");
        loops.wait().expect("it ends");
    }
    assert_eq!(program.end(), ("waits: 0 signals\n".to_owned(), Some(0)));
}

/// Before its handler is there, the signal would end the program.
#[test]
fn a_request_that_comes_while_the_program_starts_is_no_harm() {
    let rounds = repetitions(20) as u64;
    for round in 0..rounds {
        let mut command = Command::new(stackglass());
        command.args([
            "run",
            "--",
            "sh",
            "-c",
            "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done",
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = command.spawn().expect("the command can be started");
        let id = started.id() as i32;
        let begun = Instant::now();
        let children = format!("/proc/{id}/task/{id}/children");
        while std::fs::read_to_string(&children).unwrap_or_default().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not start");
        }
        std::thread::sleep(Duration::from_micros(6000 * round / rounds));
        // SAFETY: two numbers; the child was not reaped, so its id is valid.
        unsafe { libc::kill(id, libc::SIGUSR1) };
        let output = started.wait_with_output().expect("it ends");
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(0), "done\n"), "{round}: {said}");
    }
}

#[test]
fn a_confined_program_gets_none() {
    let program = Program::asked("confined");
    for _ in 0..3 {
        shows(&program.peek(false, &[]), "compute");
        program.peek(true, &[]);
    }
    let refused = program.peek(false, &["--ask"]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("a seccomp filter confines it"), "{}", text(&refused.stderr));
    assert_eq!(program.end(), ("confined: 0 signals\n".to_owned(), Some(0)));
}

#[test]
fn a_program_is_asked_where_nothing_else_sees_it_run() {
    let program = Program::asked("plain");
    // The stackglass that runs it has perf events.
    shows(&program.peek(true, &[]), "compute");
    shows(&program.peek(false, &["--ask"]), "compute");
    let printed = program.peek(false, &[]);
    shows(&printed, "compute");
    assert!(text(&printed.stderr).contains("no thread is stopped"), "{printed:?}");
    assert_eq!(program.end(), ("plain: 0 signals\n".to_owned(), Some(0)));
}

/// A signal that interrupts `sleep` makes perl return from it early, or before its own alarm.
#[test]
fn an_alarm_comes_when_it_should() {
    let script = r#"$SIG{ALRM} = sub { print "alarm\n" }; $| = 1; alarm 2;
        open(my $ready, ">", "ready"); print $ready "$$\n"; close $ready;
        my $end = time() + 1; 1 while time() < $end;
        my $slept = sleep 10; print $slept <= 2 ? "slept\n" : "overslept $slept\n";
        1 until -e "stop";"#;
    let program = Program::start(&["perl", "-e", script]);
    for _ in 0..8 {
        program.peek(false, &[]);
    }
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(program.end(), ("alarm\nslept\n".to_owned(), Some(0)));
}
