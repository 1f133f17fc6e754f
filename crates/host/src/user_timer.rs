//! A timer of one thread's CPU time that sends it the sampling signal while it runs its own code, never inside a system call.
//!
//! A signal that reaches a thread inside a system call ends calls that move data in steps with what they have so far. This timer
//! is a perf event of the kernel's CPU clock that leaves out the kernel (`exclude_kernel`). It fires in the interrupt of the CPU
//! on which the thread runs. If that has interrupted kernel code, nothing happens until the next period. If it has interrupted
//! the thread's own code, the kernel sends the signal before it returns there, so that the handler runs next.
//!
//! The event's descriptor must lie in a descriptor table that the program does not share. The signal carries the descriptor's
//! number, by which the handler finds its mailbox ([`ArmedTimers`]).
//!
//! Sources: perf_event_open(2), fcntl(2) (F_SETSIG, F_SETOWN_EX); `perf_swevent_hrtimer`, `__perf_event_overflow` and
//! `perf_event_wakeup` of kernel/events/core.c, `send_sigio_to_task` of fs/fcntl.c.

use crate::mailbox::SignalToken;
use crate::system::{self, Fd};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// Most timers of a process.
pub const TIMERS: usize = 512;

/// `PERF_TYPE_SOFTWARE`, and `PERF_ATTR_SIZE_VER0` in the upper half.
const TYPE_AND_SIZE: u64 = 1 | 64 << 32;
const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
/// `disabled`, `exclude_kernel`, `exclude_hv`.
const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;
const PERF_EVENT_IOC_REFRESH: u64 = 0x2402;
const PERF_EVENT_IOC_PERIOD: u64 = 0x4008_2404;
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const F_OWNER_TID: i32 = 0;

/// A timer of one thread. It is closed by [`UserTimer::close`] only, so that it can lie in memory that is never dropped.
#[derive(Clone, Copy, Debug)]
pub struct UserTimer {
    event: i32,
    /// The signal it sends.
    signal: i32,
}

impl UserTimer {
    /// A timer for a thread of this process, which fires `period` ns of the thread's CPU time after [`start`](UserTimer::start),
    /// or as many periods later as the thread is in the kernel at these moments.
    ///
    /// # Errors
    /// The errno: EACCES, EPERM or ENOSYS where events are forbidden, ESRCH if the thread has ended, EMFILE with too many timers.
    pub fn open(tid: u32, period: u64, signal: i32) -> Result<UserTimer, i32> {
        let attributes: [u64; 8] = [TYPE_AND_SIZE, PERF_COUNT_SW_CPU_CLOCK, period, 0, 0, FLAGS, 0, 0];
        let (any_cpu, no_group) = (-1i64, -1i64);
        // SAFETY: the kernel reads 64 bytes of a live array and returns a new descriptor.
        let event = unsafe {
            let flags = PERF_FLAG_FD_CLOEXEC;
            let attributes = attributes.as_ptr();
            libc::syscall(libc::SYS_perf_event_open, attributes, i64::from(tid), any_cpu, no_group, flags)
        };
        if event < 0 {
            return Err(system::errno());
        }
        let timer = UserTimer { event: event as i32, signal };
        // SAFETY: a new descriptor, which is forgotten below unless it is closed here.
        let close_on_error = unsafe { Fd::from_raw(timer.event) };
        if timer.number() >= TIMERS {
            return Err(libc::EMFILE);
        }
        let owner = [F_OWNER_TID, tid as i32];
        timer.control(F_SETOWN_EX, owner.as_ptr().addr())?;
        timer.control(F_SETSIG, signal as usize)?;
        timer.control(libc::F_SETFL, libc::O_ASYNC as usize)?;
        core::mem::forget(close_on_error);
        Ok(timer)
    }

    fn control(&self, command: i32, argument: usize) -> Result<(), i32> {
        // SAFETY: the commands take a number, or read two numbers of a live array.
        let answer = unsafe { libc::syscall(libc::SYS_fcntl, self.event, command, argument) };
        if answer == 0 { Ok(()) } else { Err(system::errno()) }
    }

    /// The number that its signals carry.
    pub fn number(&self) -> usize {
        self.event as usize
    }

    /// Changes the signal.
    pub fn set_signal(&mut self, signal: i32) {
        if self.signal != signal && self.control(F_SETSIG, signal as usize).is_ok() {
            self.signal = signal;
        }
    }

    /// Changes the period, ns. A period that is under way begins anew.
    pub fn set_period(&self, period: u64) {
        // SAFETY: the kernel reads eight bytes of a live number. A refusal leaves the period as it is.
        unsafe { libc::syscall(libc::SYS_ioctl, self.event, PERF_EVENT_IOC_PERIOD, &raw const period) };
    }

    /// Lets it fire once.
    ///
    /// # Errors
    /// The errno of ioctl(2).
    pub fn start(&self) -> Result<(), i32> {
        // SAFETY: a request with a number, on an open descriptor.
        match unsafe { libc::syscall(libc::SYS_ioctl, self.event, PERF_EVENT_IOC_REFRESH, 1) } {
            0 => Ok(()),
            _ => Err(system::errno()),
        }
    }

    /// What the thread ran while the timer was started, in all, ns. It stands still once the timer has fired.
    pub fn ran(&self) -> u64 {
        let mut count = 0u64;
        // SAFETY: the kernel writes eight bytes of a live number. Without an answer it stays 0.
        unsafe { libc::syscall(libc::SYS_read, self.event, &raw mut count, 8) };
        count
    }

    /// Closes it.
    pub fn close(self) {
        // SAFETY: a descriptor of this timer alone, which nobody uses afterwards.
        drop(unsafe { Fd::from_raw(self.event) });
    }
}

/// Whether timers work here: one is opened for the calling thread, which must block the signal, and has to send it. Where events
/// are forbidden, or signals between threads are, the answer is no.
pub fn work_here(signal: i32) -> bool {
    /// The shortest period of the kernel, and the longest wait for the signal, ns.
    const PERIOD: u64 = 10_000;
    const PATIENCE: u64 = 5_000_000;
    let bit = 1u64 << (signal - 1);
    // A signal that is pending for the process is not the timer's.
    if kernel_hangs() || system::blocked() & bit == 0 || system::pending() & bit != 0 {
        return false;
    }
    let Ok(timer) = UserTimer::open(system::thread_id(), PERIOD, signal) else { return false };
    let until = system::own_cpu() + PATIENCE;
    let mut came = false;
    if timer.start().is_ok() {
        // Reading the clock is user code, unlike the other two calls.
        while !came && system::own_cpu() < until {
            for _ in 0..200 {
                core::hint::black_box(system::now());
            }
            came = system::pending() & bit != 0;
        }
    }
    timer.close();
    if system::pending() & bit != 0 {
        system::take_pending(bit);
    }
    came
}

/// Whether a timer that fires once may hang the machine: Linux 6.16 and 6.17 waited inside the timer's interrupt for its end
/// (introduced by commit 18dbcbfabfff, "perf: Fix the POLL_HUP delivery breakage"; mended by eb3182ef0405 in 6.18).
fn kernel_hangs() -> bool {
    // SAFETY: all zeros is a value, and the kernel fills it.
    let release = unsafe {
        let mut name: libc::utsname = core::mem::zeroed();
        if libc::uname(&mut name) != 0 {
            return true;
        }
        name.release
    };
    hangs(&release.map(|letter| letter as u8))
}

fn hangs(release: &[u8]) -> bool {
    [&b"6.16"[..], b"6.17"].iter().any(|hanging| {
        release.strip_prefix(*hanging).is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_digit))
    })
}

/// Which mailbox the next signal of each timer is for. All zeros is no timer.
#[repr(C)]
pub struct ArmedTimers([AtomicU64; TIMERS]);

/// There is a timer of this number.
const OPEN: u64 = 1 << 63;
/// The other bits are a token.
const ARMED: u64 = 1 << 62;

/// Whose a signal with a descriptor's number is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerSignal {
    /// A timer's, for this token.
    Armed(SignalToken),
    /// A timer's, too late.
    Stale,
    /// No timer has this number.
    Foreign,
}

impl ArmedTimers {
    /// Sampler: there is a timer of this number.
    pub fn open(&self, number: usize) {
        self.0[number % TIMERS].store(OPEN, Release);
    }

    /// Sampler: its timer is closed.
    pub fn close(&self, number: usize) {
        self.0[number % TIMERS].store(0, Release);
    }

    /// Sampler: the next signal of the timer is for this token.
    pub fn arm(&self, number: usize, token: SignalToken) {
        self.0[number % TIMERS].store(OPEN | ARMED | token.to_word(), Release);
    }

    /// Sampler: whether no handler has taken the token yet.
    pub fn is_armed(&self, number: usize) -> bool {
        self.0[number % TIMERS].load(Acquire) & ARMED != 0
    }

    /// Handler: takes the token of the timer.
    #[inline]
    pub fn take(&self, number: i32) -> TimerSignal {
        let Some(cell) = usize::try_from(number).ok().and_then(|number| self.0.get(number)) else {
            return TimerSignal::Foreign;
        };
        let word = cell.load(Acquire);
        if word & OPEN == 0 {
            return TimerSignal::Foreign;
        }
        let token = SignalToken::from_word(word & !(OPEN | ARMED)).filter(|_| word & ARMED != 0);
        match token {
            Some(token) if cell.compare_exchange(word, OPEN, AcqRel, Relaxed).is_ok() => {
                TimerSignal::Armed(token)
            }
            _ => TimerSignal::Stale,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::SlotIndex;

    #[test]
    fn kernels_that_hang_are_known() {
        for (release, answer) in [
            (&b"6.16.0"[..], true),
            (b"6.17.5-300.fc43.x86_64\0", true),
            (b"6.17-rc3", true),
            (b"6.18.44", false),
            (b"6.1.170", false),
            (b"6.170.1", false),
            (b"16.17.1", false),
        ] {
            assert_eq!(hangs(release), answer, "{}", release.escape_ascii());
        }
    }

    #[test]
    fn each_token_is_taken_once() {
        // SAFETY: all zeros is no timer.
        let timers: Box<ArmedTimers> = unsafe { Box::new_zeroed().assume_init() };
        let token = SignalToken { mailbox: 63, slot: SlotIndex(32_767), generation: u32::MAX };
        assert_eq!(timers.take(7), TimerSignal::Foreign);
        timers.open(7);
        assert_eq!(timers.take(7), TimerSignal::Stale);
        timers.arm(7, token);
        assert!(timers.is_armed(7));
        assert_eq!([timers.take(7), timers.take(7)], [TimerSignal::Armed(token), TimerSignal::Stale]);
        timers.arm(7, token);
        timers.open(7);
        assert_eq!(timers.take(7), TimerSignal::Stale);
        timers.close(7);
        for number in [7, -1, TIMERS as i32, i32::MAX] {
            assert_eq!(timers.take(number), TimerSignal::Foreign);
        }
    }
}
