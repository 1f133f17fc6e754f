//! The limit on file sizes (`ulimit -f`), which must never end the program.
//!
//! A file that grows beyond it raises `SIGXFSZ`, whose default action ends the process. So the limit is read before a file
//! gets its size. Because the limit may change at any moment, the signal is blocked meanwhile as well.

use crate::system;

/// Bytes that a file may grow to.
pub fn largest_file() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is live; when the call fails it keeps saying "no limit".
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}

/// Runs `act`, which changes files, so that the limit is an error and not a signal.
pub fn without_signal<T>(act: impl FnOnce() -> T) -> T {
    const XFSZ: u64 = 1 << (libc::SIGXFSZ - 1);
    let before = system::blocked();
    system::set_blocked(before | XFSZ);
    // A signal that is pending already is the program's own.
    let theirs = system::pending() & XFSZ != 0;
    let done = act();
    if !theirs && system::pending() & XFSZ != 0 {
        system::take_pending(XFSZ);
    }
    system::set_blocked(before);
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_file_that_may_not_grow_is_an_error_and_no_signal() {
        let path = std::env::temp_dir().join(format!("stackglass-limit-{}", std::process::id()));
        // The limit holds for a process: a child of its own.
        // SAFETY: the child makes system calls only, and leaves by _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let file = std::fs::File::create(&path);
            let status = match file {
                // SAFETY: a live limit; a live descriptor.
                Ok(file) => unsafe {
                    let limit = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
                    libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
                    let grown = without_signal(|| libc::ftruncate(file.as_raw_fd(), 8192));
                    let why = *libc::__errno_location();
                    let left = system::pending() | system::blocked();
                    i32::from(grown == 0 || why != libc::EFBIG || largest_file() != 4096 || left != 0)
                },
                Err(_) => 2,
            };
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(status) };
        }
        let mut status = 0;
        // SAFETY: waits for our own child.
        unsafe { libc::waitpid(child, &mut status, 0) };
        let _ = std::fs::remove_file(&path);
        assert_eq!(status, 0, "0 is a normal end with status 0");
    }
}
