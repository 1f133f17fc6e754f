//! A program saves its own heap: a forked child freezes its parent, reads the frozen copy and writes the file.
//!
//! The program itself allocates nothing for it, and waits no longer than a time limit. The child keeps no descriptor of the
//! program open, and blocks all signals, so that none of the program's handlers runs in it.

use super::{SiteFrames, TakeOptions, take};
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// `PR_SET_PTRACER`: lets a process trace this one where the security module Yama allows that only to parents.
const SET_PTRACER: libc::c_int = 0x5961_6d61;
/// Longest result that is read.
const LONGEST_RESULT: u64 = 1 << 20;

/// What a heap snapshot of the own process contains, and what it cost.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OwnTaken {
    /// Live blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks of known type.
    pub typed_blocks: u64,
    /// How long the program was held up, except for the fork.
    pub pause: Duration,
    /// Remarks for the user.
    pub remarks: Vec<String>,
}

/// Why there is no heap snapshot of the own process.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// No child process could be made.
    #[error("no child process can be made for a heap snapshot: {0}")]
    NoChild(io::Error),
    /// The child could not save the heap.
    #[error("{0}")]
    NotTaken(String),
    /// The child was not ready in time, and was ended.
    #[error("the heap snapshot took longer than {0:?} and was given up")]
    TooLong(Duration),
    /// The child ended without a result.
    #[error("the child process that saved the heap has ended early (was it killed for lack of memory?)")]
    Lost,
}

/// Saves the heap of this process to `output`, within `limit`.
///
/// # Errors
/// [`OwnError`].
pub fn take_own(
    options: &TakeOptions,
    site_frames: SiteFrames<'_>,
    output: &Path,
    limit: Duration,
) -> Result<OwnTaken, OwnError> {
    let (mut ours, theirs) = UnixStream::pair().map_err(OwnError::NoChild)?;
    let until = Instant::now() + limit;
    let parent = std::process::id();
    let mask = block_all_signals();
    // SAFETY: the C library's fork leaves its allocator usable in the child. The child ends by `_exit` and returns to no
    // caller.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let work = || work(parent, &theirs, options, site_frames, output);
        // A panic must not unwind into the program's code.
        let _ = catch_unwind(AssertUnwindSafe(work));
        // SAFETY: ends the child without running anything of the program.
        unsafe { libc::_exit(0) }
    }
    let error = io::Error::last_os_error();
    restore_signals(&mask);
    if child < 0 {
        return Err(OwnError::NoChild(error));
    }
    drop(theirs);
    // SAFETY: a call with integers; it fails where there is no Yama.
    unsafe { libc::prctl(SET_PTRACER, child as libc::c_ulong, 0, 0, 0) };
    let answer = begin_and_read(&mut ours, until);
    // SAFETY: the child was not waited for yet. If a handler of the program did so, the worst is a signal to a process with a
    // reused id, which the time between makes impossible in practice.
    unsafe {
        if answer.is_none() {
            libc::kill(child, libc::SIGKILL);
        }
        while libc::waitpid(child, std::ptr::null_mut(), 0) < 0
            && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
        {}
        libc::prctl(SET_PTRACER, 0 as libc::c_ulong, 0, 0, 0);
    }
    parse(&answer.ok_or(OwnError::TooLong(limit))?)
}

/// Lets the child begin, and reads its result; `None` if it is not there in time.
fn begin_and_read(child: &mut UnixStream, until: Instant) -> Option<String> {
    // If the child has ended, reading finds that out.
    let _ = child.write_all(&[1]);
    let mut bytes = Vec::new();
    loop {
        let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
        child.set_read_timeout(Some(left)).ok()?;
        let mut part = [0; 4096];
        match child.read(&mut part) {
            Ok(0) => return Some(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(_) if bytes.len() as u64 > LONGEST_RESULT => return None,
            Ok(read) => bytes.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return None;
            }
            // The child was killed.
            Err(_) => return Some(String::new()),
        }
    }
}

/// In the child: waits for the permission to trace, saves the heap, and sends the result.
fn work(
    parent: u32,
    mut ours: &UnixStream,
    options: &TakeOptions,
    site_frames: SiteFrames<'_>,
    output: &Path,
) {
    let kept = ours.as_raw_fd() as libc::c_uint;
    // SAFETY: the child uses no other descriptor of the program. It ends with its parent, and before it if memory runs out.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, kept - 1, 0);
        libc::syscall(libc::SYS_close_range, kept + 1, libc::c_uint::MAX, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong, 0, 0, 0);
    }
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    if ours.read_exact(&mut [0]).is_err() {
        return;
    }
    let text = match take(parent, options, site_frames, output) {
        Ok(taken) => {
            let totals = &taken.totals;
            let pause = taken.pause.whole.as_nanos();
            let mut text = format!("ok {} {} {} {pause}\n", totals.blocks, totals.bytes, totals.typed_blocks);
            taken.remarks.iter().for_each(|remark| {
                text.push_str(&remark.replace('\n', " "));
                text.push('\n');
            });
            text
        }
        Err(error) => format!("error {error}"),
    };
    // If the program does not wait any more, nobody needs it.
    let _ = ours.write_all(text.as_bytes());
}

fn parse(text: &str) -> Result<OwnTaken, OwnError> {
    if let Some(error) = text.strip_prefix("error ") {
        return Err(OwnError::NotTaken(error.to_owned()));
    }
    let mut lines = text.lines();
    let numbers = lines.next().and_then(|line| line.strip_prefix("ok ")).ok_or(OwnError::Lost)?;
    let numbers: Vec<u64> = numbers.split(' ').map_while(|number| number.parse().ok()).collect();
    let &[blocks, bytes, typed_blocks, pause] = &numbers[..] else { return Err(OwnError::Lost) };
    let remarks = lines.map(str::to_owned).collect();
    Ok(OwnTaken { blocks, bytes, typed_blocks, pause: Duration::from_nanos(pause), remarks })
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
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_their_absence_are_read() {
        let taken = parse("ok 12 345 6 7000\na remark\n").unwrap();
        assert_eq!((taken.blocks, taken.bytes, taken.typed_blocks), (12, 345, 6));
        assert_eq!((taken.pause, taken.remarks), (Duration::from_nanos(7000), vec!["a remark".to_owned()]));
        assert!(matches!(parse("error no memory"), Err(OwnError::NotTaken(why)) if why == "no memory"));
        for lost in ["", "ok 1 2", "o", "ok 1 2 3 x"] {
            assert!(matches!(parse(lost), Err(OwnError::Lost)), "{lost}");
        }
    }
}
