//! A program inherits signal settings as it does without the library.
#![allow(unsafe_code, reason = "calls the C library")]

use crate::launcher::*;
use std::os::unix::process::CommandExt;

/// The signal lines of `/proc/self/status` in `grep`.
fn lines(mut command: std::process::Command, session: Option<&Session>) -> String {
    command.args(["-E", "^Sig(Ign|Blk|Pnd)|^ShdPnd", "/proc/self/status"]);
    // SAFETY: only system calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for number in [libc::SIGPIPE, libc::SIGCHLD, libc::SIGHUP, libc::SIGUSR2] {
                libc::signal(number, libc::SIG_IGN);
            }
            Ok(())
        });
    }
    match session {
        Some(session) => session.run(&mut command).stdout,
        None => String::from_utf8(command.output().unwrap().stdout).unwrap(),
    }
}

#[test]
fn ignored_signals_stay_ignored() {
    let session = Session::new();
    let plain = lines(std::process::Command::new("grep"), None);
    assert!(plain.lines().any(|line| line.starts_with("SigIgn:") && line.ends_with("11801")), "{plain}");
    assert_eq!(lines(session.command("grep"), Some(&session)), plain);
}
