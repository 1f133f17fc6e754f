//! A program does not notice that it is copied.

use crate::program::{Program, compile, eventually, is_root, relatives, renamed, unique};
use stackglass_attach::frozen::{FreezeError, FrozenProcess, Options};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use whole_programs::{Language, host};

fn take(pid: u32) -> FrozenProcess {
    FrozenProcess::copy(pid, &Options::default()).unwrap()
}

#[test]
fn no_interrupted_call_is_seen() {
    let (mut program, calls) = Program::start("calls", &[]);
    assert_eq!(calls, "20");
    for _ in 0..12 {
        drop(take(program.pid()));
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(FrozenProcess::stop(program.pid(), &Options::default()).unwrap());
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(program.finish(), "interrupted:");
}

#[test]
fn children_and_signals_stay_as_they_are() {
    for arguments in [&[][..], &["subreaper"]] {
        let (mut program, line) = Program::start("children", arguments);
        assert_eq!(line, "ready");
        for _ in 0..20 {
            let copy = take(program.pid());
            std::thread::sleep(Duration::from_millis(5));
            let running = relatives(program.pid()).iter().filter(|relative| !relative.is_zombie).count();
            // None while all threads sleep: the program itself is read.
            assert!(running <= 1, "the copy alone: {running}");
            drop(copy);
        }
        eventually("neither copy nor zombie stays", || relatives(program.pid()).is_empty());
        assert_eq!(program.finish(), "children 0 all 0 SIGCHLD 0 masks 0 sums 0");
    }
}

/// The task that makes the copy is a child for a moment, which such a wait would return.
#[test]
fn a_program_that_waits_for_children_of_any_kind_is_refused() {
    let compiled = compile("children");
    let (mut program, line) = Program::spawn(Command::new(&compiled).arg("waits").process_group(0));
    let _ = std::fs::remove_file(compiled);
    assert_eq!(line, "ready");
    let refused = FrozenProcess::copy(program.pid(), &Options::default()).err().unwrap();
    assert!(matches!(refused, FreezeError::WaitsForCopies { .. }), "{refused}");
    let said = refused.to_string();
    assert!(said.contains("__WALL") && said.contains("--stop") && !said.contains('\n'), "{said}");
    drop(FrozenProcess::stop(program.pid(), &Options::default()).unwrap());
    assert!(program.lives());
    // It ends its child, and itself.
    program.finish();
}

fn child_of(pid: u32) -> u32 {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    list.split_ascii_whitespace().next().expect("it has a child").parse().unwrap()
}

/// In a container, the copy has another id for the program.
#[test]
fn no_zombie_stays_in_a_pid_namespace() {
    if !is_root() {
        return;
    }
    // The first process of the namespace, and another one.
    for is_first in [true, false] {
        let children = compile("children");
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child"]);
        if !is_first {
            command.args(["sh", "-c", "exec 3<&0; \"$0\" \"$1\" <&3 & wait"]);
        }
        command.arg(&children).arg("parent");
        let (mut started, line) = Program::spawn(&mut command);
        assert_eq!(line, "ready", "unshare (util-linux) starts the program");
        let _ = std::fs::remove_file(children);
        let first = child_of(started.pid());
        let pid = if is_first { first } else { child_of(first) };
        for _ in 0..5 {
            drop(take(pid));
        }
        eventually("neither copy nor zombie stays", || relatives(pid).is_empty());
        assert_eq!(started.finish(), "children 0 all 0 SIGCHLD 0 masks 0 sums 0");
    }
}

/// The first process of a container may be an application, which adopts orphans.
#[test]
fn the_first_process_of_a_pid_namespace_gets_no_unknown_child() {
    if !is_root() {
        return;
    }
    let (first, children) = (compile("first"), compile("children"));
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child"]).args([&first, &children]).arg("parent");
    let (mut started, line) = Program::spawn(&mut command);
    assert_eq!(line, "ready", "unshare (util-linux) starts the program");
    let pid = child_of(child_of(child_of(started.pid())));
    for _ in 0..20 {
        drop(take(pid));
    }
    assert_eq!(started.finish(), "children 0 all 0 SIGCHLD 0 masks 0 sums 0");
    assert_eq!(started.line(), "SIGCHLD 1 unknown 0");
    for program in [first, children] {
        let _ = std::fs::remove_file(program);
    }
}

/// A copy would be the first process of the namespace, and no other could be created after its end.
#[test]
fn a_namespace_for_children_is_left_alone() {
    if !is_root() {
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--pid", "sh", "-c", "echo ready; read end; (echo child)"]);
    let (mut program, line) = Program::spawn(&mut command);
    assert_eq!(line, "ready");
    let refused = FrozenProcess::copy(program.pid(), &Options::default()).err().unwrap();
    assert!(matches!(refused, FreezeError::ChildNamespace { .. }), "{refused}");
    drop(FrozenProcess::stop(program.pid(), &Options::default()).unwrap());
    assert_eq!(program.finish(), "child");
}

#[test]
fn a_group_stop_stays_a_group_stop() {
    let (mut program, _) = Program::start("sweep", &[]);
    let pid = program.pid();
    // SAFETY: a signal to a child that has not been waited for.
    let signal = |signal| unsafe { libc::kill(pid as i32, signal) };
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next())
    };
    signal(libc::SIGSTOP);
    eventually("it stops", || state() == Some('T'));
    drop(take(pid));
    eventually("it is stopped again", || state() == Some('T'));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(state(), Some('T'));
    signal(libc::SIGCONT);
    eventually("it continues", || matches!(state(), Some('R' | 'S')));
    assert!(program.lives());
}

#[test]
fn a_second_snapshot_waits_for_the_first() {
    let (mut program, _) = Program::start("sweep", &[]);
    let pid = program.pid();
    // Snapshots that wait are not made in turn.
    let patient = Options { wait: Duration::from_secs(60), ..Options::default() };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..5).for_each(|_| drop(FrozenProcess::copy(pid, &patient).unwrap())));
        }
    });
    let (first, second) = (take(pid), take(pid));
    assert!(first.is_alive() && second.is_alive());
    drop((first, second));
    let stopped = FrozenProcess::stop(pid, &Options::default()).unwrap();
    let refused =
        FrozenProcess::copy(pid, &Options { wait: Duration::from_millis(50), ..Options::default() });
    assert!(refused.is_err_and(|error| error.to_string().contains("another stackglass")));
    drop(stopped);
    drop(take(pid));
    assert!(program.lives());
    eventually("no copy stays", || relatives(pid).is_empty());
}

/// Reads of random bytes and of a full pipe come back whole, however often the process is copied and stopped.
#[test]
fn no_call_comes_back_short() {
    let bulk = renamed(&host("bulk", Language::C));
    let mut command = Command::new(&bulk);
    let program =
        command.args(["all", "0", "150"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let pid = program.id();
    let mut copies = 0;
    // Its end is seen without a wait for it.
    while FrozenProcess::copy(pid, &Options::default()).map(drop).is_ok() {
        copies += 1;
        let _ = FrozenProcess::stop(pid, &Options::default());
    }
    let output = program.wait_with_output().unwrap();
    let _ = std::fs::remove_file(bulk);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.ends_with("in all: 0 short, 0 EINTR, 0 other errors\n"), "{text}");
    assert!(copies > 0);
}

/// A copy that shared the program's descriptors would cost it its record locks at an exec (fcntl(2)).
#[test]
fn record_locks_survive_an_exec_while_a_copy_lives() {
    const EXECS: usize = 40;
    let file = tempfile_name();
    let arguments = [&*file, &EXECS.to_string()];
    let (mut program, first) = Program::start("locks", &arguments);
    let mut states = vec![first];
    for _ in 0..EXECS {
        let copy = take(program.pid());
        assert!(copy.is_alive());
        program.order("e");
        states.push(program.line());
    }
    let _ = std::fs::remove_file(&file);
    assert_eq!(states, vec!["held"; EXECS + 1]);
}

/// The same at any moment: the program executes itself as soon as it has worked a little.
#[test]
fn record_locks_survive_execs_at_any_moment() {
    const EXECS: usize = 40;
    let (program, file) = (compile("locks"), tempfile_name());
    let mut command = Command::new(&program);
    let child = command.args([&*file, &EXECS.to_string()]).stdin(Stdio::null()).stdout(Stdio::piped());
    let child = child.spawn().unwrap();
    let pid = child.id();
    let mut copies = 0;
    while std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        copies += usize::from(FrozenProcess::copy(pid, &Options::default()).is_ok());
    }
    let output = child.wait_with_output().unwrap();
    let _ = (std::fs::remove_file(&program), std::fs::remove_file(&file));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "held\n".repeat(EXECS + 1));
    assert!(output.status.success() && copies > 0, "{}, {copies} copies", output.status);
}

fn tempfile_name() -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique("lock"));
    path.to_str().expect("the path is text").to_owned()
}
