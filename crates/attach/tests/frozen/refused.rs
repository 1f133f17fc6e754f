//! Filters and limits.

use crate::program::{Program, compile, eventually, relatives};
use stackglass_attach::frozen::{FreezeError, FrozenProcess, Options};
use std::os::unix::process::CommandExt;
use std::process::Command;

fn is_root() -> bool {
    // SAFETY: a call without arguments.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn a_filter_is_suspended_or_the_copy_refused() {
    let (mut program, _) = Program::start("filtered", &[]);
    let pid = program.pid();
    for _ in 0..5 {
        match FrozenProcess::copy(pid, &Options::default()) {
            Ok(copy) => drop(copy),
            Err(error) => {
                assert!(!is_root(), "{error}");
                assert!(
                    matches!(error, FreezeError::Filtered { .. }) && error.to_string().contains("--stop")
                );
            }
        }
        assert!(program.lives());
    }
    drop(FrozenProcess::stop(pid, &Options::default()).unwrap());
    assert!(program.lives());
    eventually("no copy stays", || relatives(pid).is_empty());
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
            let two = libc::rlimit { rlim_cur: 2, rlim_max: 2 };
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

#[test]
fn processes_that_may_not_be_copied_are_refused() {
    let refused = |pid| FrozenProcess::copy(pid, &Options::default()).err().unwrap();
    assert!(matches!(refused(std::process::id()), FreezeError::Refused(_)));
    assert!(matches!(refused(0x3fff_ffff), FreezeError::Refused(_)));
}
