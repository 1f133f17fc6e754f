//! A timer of one thread's CPU time that sends it the sampling signal while it runs its own code, never inside a system call.
//!
//! A signal that reaches a thread inside a system call ends calls that move data in steps with what they have so far. This timer
//! is a perf event of the kernel's CPU clock that leaves out the kernel (`exclude_kernel`). It fires in the interrupt of the CPU
//! on which the thread runs. If that has interrupted kernel code, nothing happens until the next period. If it has interrupted
//! the thread's own code, the kernel sends the signal before it returns there, so that the handler runs next.
//! [`CallTimer`](crate::call_timer::CallTimer) tells what the thread does in the kernel.
//!
//! The event's descriptor must lie in a descriptor table that the program does not share. The signal carries the descriptor's
//! number, by which the handler finds the thread ([`TimedThreads`]). The timer is never limited to a number of signals: on
//! Linux 6.16 and 6.17 that can hang the machine.
//!
//! Sources: perf_event_open(2), fcntl(2) (F_SETSIG, F_SETOWN_EX); `perf_swevent_hrtimer`, `__perf_event_overflow` and
//! `perf_event_wakeup` of kernel/events/core.c, `send_sigio_to_task` of fs/fcntl.c.

use crate::slot::SlotIndex;
use crate::system::{self, Fd};
use core::sync::atomic::{AtomicU32, Ordering::*};

/// Larger than every descriptor of a timer.
pub const TIMERS: usize = 512;
/// The shortest period, ns. The kernel allows 10 µs. But in a busy virtual machine an interrupt can take longer than that, so
/// that a thread with such a timer does nothing else (measured: 2 s for some hundred readings of the clock).
pub const SHORTEST: u64 = 75_000;

/// `PERF_TYPE_SOFTWARE`, and `PERF_ATTR_SIZE_VER0` in the upper half.
const TYPE_AND_SIZE: u64 = 1 | 64 << 32;
const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
/// `exclude_kernel`, `exclude_hv`.
const FLAGS: u64 = 1 << 5 | 1 << 6;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;
const PERF_EVENT_IOC_PERIOD: u64 = 0x4008_2404;
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const F_OWNER_TID: i32 = 0;

/// A timer of one thread. It is closed by [`UserTimer::close`] only, so that it can lie in memory that is never dropped.
#[derive(Clone, Copy, Debug)]
pub struct UserTimer {
    event: i32,
}

impl UserTimer {
    /// A timer for a thread of this process. It fires for the first time after `period` ns of the thread's CPU time. A period that
    /// is not over when the thread sleeps goes on when it runs again.
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
        let timer = UserTimer { event: event as i32 };
        // SAFETY: a new descriptor, which is forgotten below unless it is closed here.
        let close_on_error = unsafe { Fd::from_raw(timer.event) };
        if timer.number() >= TIMERS {
            return Err(libc::EMFILE);
        }
        let owner = [F_OWNER_TID, tid as i32];
        timer.control(F_SETOWN_EX, owner.as_ptr().addr())?;
        timer.control(F_SETSIG, signal as usize)?;
        Ok(timer).inspect(|_| core::mem::forget(close_on_error))
    }

    fn control(&self, command: i32, argument: usize) -> Result<(), i32> {
        // SAFETY: the commands take a number, or read two numbers of a live array.
        let answer = unsafe { libc::syscall(libc::SYS_fcntl, self.event, command, argument) };
        if answer == 0 { Ok(()) } else { Err(system::errno()) }
    }

    /// Lets it send signals from now on.
    ///
    /// # Errors
    /// The errno of fcntl(2).
    pub fn start(&self) -> Result<(), i32> {
        self.control(libc::F_SETFL, libc::O_ASYNC as usize)
    }

    /// The number that its signals carry.
    pub fn number(&self) -> usize {
        self.event as usize
    }

    /// Changes the period, ns. A period that is under way begins anew.
    pub fn set_period(&self, period: u64) {
        // SAFETY: the kernel reads eight bytes of a live number. A refusal leaves the period as it is.
        unsafe { libc::syscall(libc::SYS_ioctl, self.event, PERF_EVENT_IOC_PERIOD, &raw const period) };
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
    /// The longest wait for the signal, ns.
    const PATIENCE: u64 = 5_000_000;
    /// Readings of the clock between two looks: some microseconds.
    const READINGS: u32 = 200;
    let bit = 1u64 << (signal - 1);
    // A signal that is pending for the process is not the timer's.
    if system::blocked() & bit == 0 || system::pending() & bit != 0 {
        return false;
    }
    let Ok(timer) = UserTimer::open(system::thread_id(), SHORTEST, signal) else { return false };
    let until = system::own_cpu() + PATIENCE;
    let mut came = false;
    if timer.start().is_ok() {
        // Reading the clock is user code, unlike the other two calls.
        while !came && system::own_cpu() < until {
            for _ in 0..READINGS {
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

/// Which thread each timer is of, by the descriptor's number. All zeros is no timer.
#[repr(C)]
pub struct TimedThreads([AtomicU32; TIMERS]);

/// There is, or was, a timer of this number.
const KNOWN: u32 = 1 << 31;
/// It is open, and the low bits are its thread's slot.
const OPEN: u32 = 1 << 30;

/// Whose a signal with a descriptor's number is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerSignal {
    /// That of the timer of this thread.
    Of(SlotIndex),
    /// A timer's that is closed.
    Stale,
    /// No timer has had this number.
    Foreign,
}

impl TimedThreads {
    /// Sampler: a timer of this number is that of a thread.
    pub fn insert(&self, number: usize, slot: SlotIndex) {
        self.0[number % TIMERS].store(KNOWN | OPEN | u32::from(slot.0), Release);
    }

    /// Sampler: the timer is about to be closed. A signal of it may still be on its way.
    pub fn remove(&self, number: usize) {
        self.0[number % TIMERS].store(KNOWN, Release);
    }

    /// Handler: whose the signal is.
    #[inline]
    pub fn whose(&self, number: i32) -> TimerSignal {
        let Some(cell) = usize::try_from(number).ok().and_then(|number| self.0.get(number)) else {
            return TimerSignal::Foreign;
        };
        match cell.load(Acquire) {
            word if word & OPEN != 0 => TimerSignal::Of(SlotIndex(word as u16)),
            word if word & KNOWN != 0 => TimerSignal::Stale,
            _ => TimerSignal::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_told_apart_by_their_number() {
        // SAFETY: all zeros is no timer.
        let timers: Box<TimedThreads> = unsafe { Box::new_zeroed().assume_init() };
        assert_eq!(timers.whose(7), TimerSignal::Foreign);
        timers.insert(7, SlotIndex(32_767));
        assert_eq!(timers.whose(7), TimerSignal::Of(SlotIndex(32_767)));
        timers.remove(7);
        assert_eq!(timers.whose(7), TimerSignal::Stale);
        for number in [8, -1, TIMERS as i32, i32::MAX] {
            assert_eq!(timers.whose(number), TimerSignal::Foreign);
        }
    }
}
