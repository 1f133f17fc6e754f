//! A forked child that looks at its parent, and answers by a socket.
//!
//! A process cannot freeze itself, and reading debug information takes memory that the program should not pay. The child keeps no
//! descriptor of the program open, and blocks all signals, so that none of the program's handlers runs in it.
//!
//! Nobody who waits for any child finds this one: it is the child of a task in between, which shares the memory, has no exit signal,
//! and lives as long as the child. So neither the program nor a process that adopts orphans gets a SIGCHLD.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// `PR_SET_PTRACER`: lets a process trace this one where the security module Yama allows that only to parents.
const SET_PTRACER: libc::c_int = 0x5961_6d61;
/// Bytes of the child's stack, of which it takes what it needs, and of the guard below.
const STACK: usize = 8 << 20;
const GUARD: usize = 64 << 10;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// No child process could be made.
    #[error("no child process can be made: {0}")]
    NoChild(io::Error),
    /// The child was not ready in time, and was ended.
    #[error("it took longer than {0:?}")]
    TooLong(Duration),
}

/// Time between two looks whether the child was made.
const MADE_CHECK: Duration = Duration::from_micros(50);
/// Value of [`Job::child`] before the child was made.
const NOT_MADE: libc::c_int = 0;

/// What the task in between and the child need.
struct Job<'a> {
    parent: u32,
    socket: &'a UnixStream,
    /// Only the child calls it, in its own copy of the memory.
    work: *mut (dyn FnMut(u32) -> Vec<u8> + 'a),
    /// The child's process id, or a negative error.
    child: AtomicI32,
}

/// Makes a child, which calls `work` with the id of this process, and returns what it has answered: empty if it ended early.
///
/// # Errors
/// [`NoAnswer`].
pub(crate) fn ask(
    limit: Duration,
    most: u64,
    work: &mut dyn FnMut(u32) -> Vec<u8>,
) -> Result<Vec<u8>, NoAnswer> {
    let (mut ours, theirs) = UnixStream::pair().map_err(NoAnswer::NoChild)?;
    let until = Instant::now() + limit;
    let stack = Stack::new().map_err(NoAnswer::NoChild)?;
    let job = Job {
        parent: std::process::id(),
        socket: &theirs,
        work: &raw mut *work,
        child: AtomicI32::new(NOT_MADE),
    };
    let mask = block_all_signals();
    // SAFETY: the task runs on a stack of its own, and shares the memory and this thread's local storage. This thread only sleeps
    // and looks for its end until the child was made; afterwards the task only makes calls that touch no local storage. `job` and the stack live until
    // it has ended: it is waited for below. Without CLONE_SIGHAND its signals are its own, and all are blocked.
    let middle =
        unsafe { libc::clone(middle, stack.top(), libc::CLONE_VM, (&raw const job).cast_mut().cast()) };
    let error = io::Error::last_os_error();
    let mut child = NOT_MADE;
    while middle > 0 && child == NOT_MADE {
        std::thread::sleep(MADE_CHECK);
        let has_ended = has_ended(middle);
        child = job.child.load(Ordering::Acquire);
        if has_ended && child == NOT_MADE {
            child = -libc::EAGAIN;
        }
    }
    restore_signals(&mask);
    if middle < 0 {
        return Err(NoAnswer::NoChild(error));
    }
    if child < 0 {
        wait_for(middle);
        return Err(NoAnswer::NoChild(io::Error::from_raw_os_error(-child)));
    }
    drop(theirs);
    // The child waits for the permission to begin, so its id is not reused yet.
    let handle = open_process(child);
    // SAFETY: a call with integers; it fails where there is no Yama.
    unsafe { libc::prctl(SET_PTRACER, child as libc::c_ulong, 0, 0, 0) };
    let answer = begin_and_read(&mut ours, until, most);
    if answer.is_none() {
        kill(handle.as_ref(), child);
    }
    // SAFETY: a call with integers.
    unsafe { libc::prctl(SET_PTRACER, 0 as libc::c_ulong, 0, 0, 0) };
    wait_for(middle);
    answer.ok_or(NoAnswer::TooLong(limit))
}

/// Whether the task in between has ended. Its end is not consumed.
fn has_ended(middle: libc::pid_t) -> bool {
    // SAFETY: the kernel fills the structure; zero is a value of each field. `__WALL` since the task has no exit signal.
    unsafe {
        let mut ended = MaybeUninit::<libc::siginfo_t>::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        let result = libc::waitid(libc::P_PID, middle as libc::id_t, ended.as_mut_ptr(), flags);
        result != 0 || ended.assume_init().si_pid() != 0
    }
}

/// Waits for the end of the task in between, which comes with that of the child.
fn wait_for(middle: libc::pid_t) {
    // SAFETY: as above. The call fails if the end was consumed already.
    while unsafe { libc::waitpid(middle, null_mut(), libc::__WALL) } < 0
        && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
    {}
}

/// In the task in between: forks, and ends after the child.
extern "C" fn middle(job: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `ask` passes a job that lives until this task has ended. All of it is read only, but for the atomic number.
    let job = unsafe { &*job.cast_const().cast::<Job<'_>>() };
    // SAFETY: the C library's fork leaves its allocator usable in the child. The child ends by `_exit` and returns to no
    // caller.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // A panic must not unwind into the program's code.
        let _ = catch_unwind(AssertUnwindSafe(|| run(job)));
        // SAFETY: ends the child without running anything of the program.
        unsafe { libc::_exit(0) }
    }
    let error = || -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN);
    let child = if child > 0 { child } else { error() };
    // What the program closes is closed. The table of descriptors is a copy.
    // SAFETY: this task uses none.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    job.child.store(child, Ordering::Release);
    // SAFETY: calls with integers. From here on, the thread that waits for this task uses the same local storage: `waitpid` would
    // mark that thread as one that may be cancelled anywhere, and a failure would set its `errno`. This call does not fail, as all
    // signals are blocked.
    unsafe {
        if child > 0 {
            libc::syscall(libc::SYS_wait4, child, null_mut::<libc::c_int>(), 0, null_mut::<libc::rusage>());
        }
        libc::_exit(0)
    }
}

/// In the child: waits for the permission to trace, and answers.
fn run(job: &Job<'_>) {
    let mut socket = job.socket;
    let kept = socket.as_raw_fd() as libc::c_uint;
    // SAFETY: the child uses no other descriptor of the program.
    unsafe {
        if kept > 3 {
            libc::syscall(libc::SYS_close_range, 3, kept - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, kept + 1, libc::c_uint::MAX, 0);
    }
    // If memory runs out, it goes before the program does.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    if socket.read_exact(&mut [0]).is_err() {
        return;
    }
    // SAFETY: `ask` has it exclusively, and this is the only use in the child's copy of the memory.
    let work = unsafe { &mut *job.work };
    // If the program does not wait any more, nobody needs it.
    let _ = socket.write_all(&work(job.parent));
}

/// Lets the child begin, and reads its answer; `None` if it is not there in time, or too long.
fn begin_and_read(child: &mut UnixStream, until: Instant, most: u64) -> Option<Vec<u8>> {
    // If the child has ended, reading finds that out.
    let _ = child.write_all(&[1]);
    let mut bytes = Vec::new();
    loop {
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        child.set_read_timeout(Some(left)).ok()?;
        let mut part = [0; 4096];
        match child.read(&mut part) {
            Ok(0) => return Some(bytes),
            Ok(_) if bytes.len() as u64 > most => return None,
            Ok(read) => bytes.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return None;
            }
            // The child was killed.
            Err(_) => return Some(Vec::new()),
        }
    }
}

fn open_process(pid: libc::pid_t) -> Option<OwnedFd> {
    // SAFETY: pidfd_open returns a new descriptor, which nobody else has.
    unsafe {
        let handle = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        (handle >= 0).then(|| OwnedFd::from_raw_fd(handle as libc::c_int))
    }
}

/// Kills the child.
fn kill(handle: Option<&OwnedFd>, child: libc::pid_t) {
    // SAFETY: calls with integers. Without a handle (Linux before 5.3), the child has not ended: it has not closed its socket.
    unsafe {
        match handle {
            Some(handle) => {
                libc::syscall(libc::SYS_pidfd_send_signal, handle.as_raw_fd(), libc::SIGKILL, 0, 0);
            }
            None => {
                libc::kill(child, libc::SIGKILL);
            }
        }
    }
}

/// A stack, with a guard below.
struct Stack(*mut libc::c_void);

impl Stack {
    fn new() -> io::Result<Stack> {
        // SAFETY: a new mapping; then its lowest pages lose all rights.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let at = libc::mmap(null_mut(), GUARD + STACK, rights, flags, -1, 0);
            if at == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::mprotect(at, GUARD, libc::PROT_NONE);
            Ok(Stack(at))
        }
    }

    fn top(&self) -> *mut libc::c_void {
        self.0.wrapping_byte_add(GUARD + STACK)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nobody uses any more.
        unsafe { libc::munmap(self.0, GUARD + STACK) };
    }
}

fn block_all_signals() -> libc::sigset_t {
    // SAFETY: the first call initializes the first set, the second fills the other one.
    unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: a set that the kernel has filled.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_answers_and_nobody_else_finds_it() {
        // A thread that waits for any child all the time, as some programs do.
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let mut found = Vec::new();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    // SAFETY: WNOWAIT leaves children to those who wait for them.
                    let pid = unsafe {
                        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
                        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
                        libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), flags);
                        info.assume_init().si_pid()
                    };
                    if pid != 0 {
                        found.push(pid);
                    }
                }
                found
            });
            let mut pids = Vec::new();
            for round in 0..20u8 {
                let own = std::process::id();
                let answer = ask(Duration::from_secs(20), 1 << 20, &mut |parent| {
                    let mut bytes = parent.to_le_bytes().to_vec();
                    bytes.extend(std::process::id().to_le_bytes());
                    bytes.extend([round; 100_000]);
                    bytes
                });
                let answer = answer.unwrap();
                assert_eq!(answer[..4], own.to_le_bytes());
                assert_eq!(answer[8..], [round; 100_000]);
                pids.push(i32::from_le_bytes(answer[4..8].try_into().unwrap()));
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            let found = waits.join().unwrap();
            assert!(pids.iter().all(|pid| !found.contains(pid)), "{pids:?} {found:?}");
        });
    }

    /// The task in between is a child of the program, holds no descriptor, and is reaped.
    #[test]
    fn the_child_is_no_orphan_and_nothing_stays() {
        let own = std::process::id();
        let answer = ask(Duration::from_secs(20), 1 << 20, &mut |_| {
            let parent = std::os::unix::process::parent_id();
            let status = std::fs::read_to_string(format!("/proc/{parent}/status")).unwrap();
            let descriptors = std::fs::read_dir(format!("/proc/{parent}/fd")).unwrap().count();
            format!("{status}descriptors {descriptors}").into_bytes()
        });
        let answer = String::from_utf8(answer.unwrap()).unwrap();
        let has = |line: &str| answer.lines().any(|one| one == line);
        assert!(has(&format!("PPid:\t{own}")) && has("descriptors 0"), "{answer}");
        // SAFETY: a call without memory.
        let any = unsafe { libc::waitpid(-1, null_mut(), libc::__WALL | libc::WNOHANG) };
        assert_eq!((any, io::Error::last_os_error().raw_os_error()), (-1, Some(libc::ECHILD)));
    }

    #[test]
    fn a_child_that_panics_or_hangs_ends() {
        assert_eq!(ask(Duration::from_secs(20), 10, &mut |_| panic!("on purpose")).unwrap(), []);
        let begin = Instant::now();
        let answer = ask(Duration::from_millis(200), 10, &mut |_| {
            std::thread::sleep(Duration::from_secs(600));
            Vec::new()
        });
        assert!(matches!(answer, Err(NoAnswer::TooLong(_))) && begin.elapsed() < Duration::from_secs(60));
        // Too long an answer is none.
        assert!(ask(Duration::from_secs(20), 10, &mut |_| vec![1; 1 << 20]).is_err());
    }
}
