//! Filters and limits.

use crate::program::{Program, compile, eventually, is_root, relatives};
use stackglass_attach::frozen::{FreezeError, FrozenProcess, Options};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Whether this process may suspend seccomp for others.
fn may_suspend() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim();
    let capabilities = u64::from_str_radix(value("CapEff:"), 16).unwrap();
    value("Seccomp:") == "0" && capabilities >> 21 & 1 == 1
}

#[test]
fn seccomp_is_suspended_or_the_copy_refused() {
    // In "one", a thread without a filter makes the calls.
    for (kind, needs_right) in [("", true), ("strict", true), ("sleeps", true), ("one", false)] {
        let (mut program, line) = Program::start("filtered", &[kind]);
        assert_eq!(line, "ready", "{kind}");
        let pid = program.pid();
        let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        let before = threads();
        for _ in 0..5 {
            match FrozenProcess::copy(pid, &Options::default()) {
                Ok(copy) => drop(copy),
                Err(error) => {
                    assert!(needs_right && !may_suspend(), "{kind}: {error}");
                    assert!(matches!(error, FreezeError::Filtered { .. }), "{kind}: {error}");
                    assert!(error.to_string().contains("--stop"));
                }
            }
            std::thread::sleep(Duration::from_millis(20));
            assert!(program.lives(), "{kind}: a copy ends it");
        }
        for _ in 0..5 {
            drop(FrozenProcess::stop(pid, &Options::default()).unwrap());
            std::thread::sleep(Duration::from_millis(20));
            assert!(program.lives(), "{kind}: a stop ends it");
        }
        assert_eq!(threads(), before, "{kind}");
        eventually("no copy stays", || relatives(pid).is_empty());
    }
}

#[test]
fn a_limit_on_processes_is_an_error_and_the_program_lives() {
    // Root has no such limit.
    if !is_root() {
        return;
    }
    let compiled = compile("children");
    let there = std::env::temp_dir().join(compiled.file_name().unwrap());
    std::fs::copy(&compiled, &there).unwrap();
    let mut command = Command::new(&there);
    command.uid(54_321);
    // SAFETY: one call that may be made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let two = libc::rlimit { rlim_cur: 3, rlim_max: 3 };
            libc::setrlimit(libc::RLIMIT_NPROC, &two);
            Ok(())
        });
    }
    let (mut program, line) = Program::spawn(&mut command);
    let _ = (std::fs::remove_file(compiled), std::fs::remove_file(there));
    assert_eq!(line, "ready");
    let error = FrozenProcess::copy(program.pid(), &Options::default()).err().unwrap();
    assert!(matches!(error, FreezeError::NotCopied { .. }), "{error}");
    assert!(error.to_string().contains("--stop"));
    drop(FrozenProcess::stop(program.pid(), &Options::default()).unwrap());
    assert_eq!(program.finish(), "children 0 all 0 SIGCHLD 0 masks 0 sums 0");
}

/// The copy would share the pages on which its calls leave their frames.
#[test]
fn a_stack_in_shared_memory_is_not_borrowed() {
    let (mut program, line) = Program::start("shared_stack", &[]);
    assert_eq!(line, "ready");
    for _ in 0..10 {
        let refused = FrozenProcess::copy(program.pid(), &Options::default()).err().unwrap();
        assert!(matches!(refused, FreezeError::NoRoom { .. }), "{refused}");
        drop(FrozenProcess::stop(program.pid(), &Options::default()).unwrap());
    }
    assert_eq!(program.finish(), "0 wrong");
}

#[test]
fn a_busy_thread_that_blocks_all_signals_is_named() {
    if stackglass_perf::user_stop::are_allowed().is_err() {
        return;
    }
    let (mut program, _) = Program::start("masked", &[]);
    let error = FrozenProcess::copy(program.pid(), &Options::default()).err().unwrap();
    assert!(matches!(error, FreezeError::BlocksSignals { .. }), "{error}");
    assert!(error.to_string().contains("--interrupt-calls"));
    drop(
        FrozenProcess::copy(program.pid(), &Options { interrupt_calls: true, ..Options::default() }).unwrap(),
    );
    assert_eq!(program.finish(), "unharmed");
}

#[test]
fn processes_that_may_not_be_copied_are_refused() {
    let refused = |pid| FrozenProcess::copy(pid, &Options::default()).err().unwrap();
    assert!(matches!(refused(std::process::id()), FreezeError::Refused(_)));
    assert!(matches!(refused(0x3fff_ffff), FreezeError::Refused(_)));
}
