//! The launcher's signals, read one at a time instead of interrupting anything.
//!
//! They are blocked and read from a signalfd. The program gets the signal mask that the launcher was started with.
//! Dispositions do not change, so signals that are ignored (nohup, `&` in a script) stay ignored in the program.
//! A signal that would end this process and is not read for a second ends it all the same.

use super::signal_watch::{self, Reading};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// Signals that are read. SIGCHLD is the first: it is not always read.
const READ: [i32; 10] = [
    libc::SIGCHLD,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCONT,
    libc::SIGTSTP,
    // Without this, a file that reaches its limit (ulimit -f) would kill this process. With it, write(2) fails.
    libc::SIGXFSZ,
];

/// A signal that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signal {
    /// Its number.
    pub number: i32,
    /// Sent by the kernel (a key at the terminal, a hang-up), not by a process.
    pub from_kernel: bool,
    /// The process that sent it, if one did.
    pub sender: u32,
}

/// Blocks the launcher's signals for the rest of its life, and reads them.
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
    reading: Arc<Reading>,
}

impl Signals {
    /// Blocks the signals in the calling thread. Call it before other threads start.
    ///
    /// # Errors
    /// If the kernel creates no signalfd.
    pub fn block() -> io::Result<Signals> {
        Signals::block_and_read(&READ)
    }

    /// Like [`Signals::block`], but leaves SIGCHLD to the thread that traces another process. That thread waits for
    /// SIGCHLD, and each one that is read here would keep a tracee stopped for longer.
    ///
    /// # Errors
    /// If the kernel creates no signalfd.
    pub fn block_as_onlooker() -> io::Result<Signals> {
        Signals::block_and_read(READ.split_first().map_or(&[], |(_, others)| others))
    }

    fn block_and_read(read: &[i32]) -> io::Result<Signals> {
        // SAFETY: sigemptyset initialises the sets (or the kernel fills them) before use. The new descriptor is not
        // shared.
        unsafe {
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            for number in READ {
                libc::sigaddset(&mut set, number);
            }
            let mut read_set = MaybeUninit::<libc::sigset_t>::uninit();
            libc::sigemptyset(read_set.as_mut_ptr());
            let mut read_set = read_set.assume_init();
            for number in read {
                libc::sigaddset(&mut read_set, *number);
            }
            // If the parent ignores SIGCHLD, this process has inherited that, and would not be notified of the end of
            // its children.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            let mut before = MaybeUninit::<libc::sigset_t>::uninit();
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, before.as_mut_ptr());
            let fd = libc::signalfd(-1, &read_set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                let error = io::Error::last_os_error();
                libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
                return Err(error);
            }
            let reading = Arc::<Reading>::default();
            reading.note_read();
            signal_watch::start(Arc::clone(&reading));
            Ok(Signals { fd: OwnedFd::from_raw_fd(fd), before: before.assume_init(), reading })
        }
    }

    /// The signal mask of the program: the one from before.
    pub fn mask_before(&self) -> libc::sigset_t {
        self.before
    }

    /// No more signals are read, unless [`Signals::next`] is called again: from now on, a new one ends this process.
    pub fn finish(&self) {
        self.reading.finish();
    }

    /// The next signal; waits at most `patience`.
    pub fn next(&self, patience: Duration) -> Option<Signal> {
        self.next_or(&[], patience)
    }

    /// Like [`Signals::next`]. Also returns, with `None`, if one of these descriptors becomes readable.
    pub fn next_or(&self, others: &[RawFd], patience: Duration) -> Option<Signal> {
        self.reading.note_read();
        let waits = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut polls: Vec<libc::pollfd> =
            [self.fd.as_raw_fd()].iter().chain(others).map(|fd| waits(*fd)).collect();
        let time = libc::timespec {
            tv_sec: patience.as_secs().min(3600) as libc::time_t,
            tv_nsec: patience.subsec_nanos().into(),
        };
        // SAFETY: an array of live pollfds with its length, a live timespec; no mask.
        let n =
            unsafe { libc::ppoll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, &time, std::ptr::null()) };
        if n > 0 && polls[0].revents != 0 { self.read() } else { None }
    }

    /// Stops this process until it is continued, as SIGTSTP does by default.
    pub fn stop_here(&self) {
        // SAFETY: a system call without pointers.
        unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
    }

    fn read(&self) -> Option<Signal> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes into `info`, for which zeros are a value.
        let info = unsafe {
            let n = libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size);
            if n != size as isize {
                return None;
            }
            info.assume_init()
        };
        Some(Signal { number: info.ssi_signo as i32, from_kernel: info.ssi_code > 0, sender: info.ssi_pid })
    }
}
