//! Runs a program while other threads compute, for tests on a machine with other load.
//!
//! The threads belong to this process: they end with it, and are not in recordings of the program.

use std::hint::black_box;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// `N PROGRAM ARGS…`: ends with the program, with its status.
pub fn run(arguments: &[String]) -> ExitCode {
    let [number, program, rest @ ..] = arguments else {
        eprintln!("beside N PROGRAM ARGS");
        return ExitCode::from(2);
    };
    let Ok(number) = number.parse::<usize>() else {
        eprintln!("{number:?} is no number");
        return ExitCode::from(2);
    };
    for _ in 0..number {
        // Never joined: they end with the process.
        std::thread::spawn(|| {
            let mut x = 1u64;
            loop {
                x = black_box(x.wrapping_mul(6_364_136_223_846_793_005) | 1);
            }
        });
    }
    let mut command = Command::new(program);
    command.args(rest);
    // SAFETY: the call between fork and exec is a bare system call that takes numbers.
    unsafe {
        command.pre_exec(|| {
            // If this process is killed, the program is too.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        });
    }
    match command.status() {
        Ok(status) => ExitCode::from(status.code().unwrap_or(1) as u8),
        Err(error) => {
            eprintln!("cannot start {program}: {error}");
            ExitCode::from(127)
        }
    }
}
