//! Events that stop a traced thread in user code only: by a timer of its CPU time, or at one instruction.
//!
//! The kernel sends SIGTRAP at the thread's return to user code. A system call is never interrupted: a timer that fires
//! inside one is skipped. All events are gone after an exec. The tracer of the
//! thread sees the signal first ([`is_of_user_stop`]) and must not pass it on. Without a tracer, it would end the program.
//!
//! Source: perf_event_open(2) (`sigtrap`, since Linux 5.13); `perf_swevent_hrtimer` and `perf_sigtrap` of
//! kernel/events/core.c.

use crate::attributes::{Attributes, PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_SOFTWARE, flags, set_enabled};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const PERF_TYPE_BREAKPOINT: u32 = 5;
const HW_BREAKPOINT_X: u32 = 4;
/// Bits of `flags`.
const REMOVE_ON_EXEC: u64 = 1 << 36;
const SIGTRAP: u64 = 1 << 37;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;
const PERF_EVENT_IOC_REFRESH: u64 = 0x2402;
/// The shortest period of a timer that the kernel grants, ns.
const PERIOD: u64 = 10_000;
/// `sig_data`: tells our signals from others.
const MARK: u64 = 0x7374_6f70_7367;
/// `si_code` of these signals.
const TRAP_PERF: i32 = 6;

/// `struct perf_event_attr` of Linux 5.13.
#[repr(C)]
struct WithSignal {
    attributes: Attributes,
    aux_sample_size: u32,
    reserved: u32,
    sig_data: u64,
}
const _: () = assert!(size_of::<WithSignal>() == 128);

/// An event that stops one thread.
#[derive(Debug)]
pub struct UserStop {
    event: OwnedFd,
    is_timer: bool,
}

impl UserStop {
    /// Stops the thread after some microseconds in which it ran, as soon as it runs user code.
    ///
    /// # Errors
    /// EACCES or EPERM if that is not allowed, EINVAL on kernels before 5.13, ESRCH if the thread has ended, EMFILE.
    pub fn by_timer(tid: u32) -> io::Result<UserStop> {
        open(
            tid,
            Attributes {
                kind: PERF_TYPE_SOFTWARE,
                config: PERF_COUNT_SW_CPU_CLOCK,
                sample_period: PERIOD,
                ..Attributes::default()
            },
        )
    }

    /// Stops the thread before it executes the instruction at an address.
    ///
    /// # Errors
    /// As [`UserStop::by_timer`]; ENOSPC if the thread has no breakpoint left.
    pub fn at(tid: u32, address: u64) -> io::Result<UserStop> {
        open(
            tid,
            Attributes {
                kind: PERF_TYPE_BREAKPOINT,
                sample_period: 1,
                bp_type: HW_BREAKPOINT_X,
                config1: address,
                // That of a `long` for instructions.
                config2: 8,
                ..Attributes::default()
            },
        )
    }

    /// Lets it fire. A timer fires again and again while the thread runs, until [`UserStop::disarm`].
    ///
    /// # Errors
    /// Those of ioctl(2).
    pub fn arm(&self) -> io::Result<()> {
        // A timer with a limit hangs Linux 6.16 and 6.17 (mended by eb3182ef0405).
        if self.is_timer {
            set_enabled(&self.event, true);
            return Ok(());
        }
        // SAFETY: a request with a number, on an open descriptor.
        match unsafe { libc::ioctl(self.event.as_raw_fd(), PERF_EVENT_IOC_REFRESH, 1) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// From here on it does not fire.
    pub fn disarm(&self) {
        set_enabled(&self.event, false);
    }
}

/// Whether this thread may be stopped so. What holds for it holds for threads of programs that this user may trace.
///
/// # Errors
/// As [`UserStop::by_timer`].
pub fn are_allowed() -> io::Result<()> {
    let the_calling_thread = 0;
    UserStop::by_timer(the_calling_thread).map(drop)
}

fn open(tid: u32, attributes: Attributes) -> io::Result<UserStop> {
    let attributes = WithSignal {
        attributes: Attributes {
            size: size_of::<WithSignal>() as u32,
            flags: flags::DISABLED
                | flags::EXCLUDE_KERNEL
                | flags::EXCLUDE_HYPERVISOR
                | REMOVE_ON_EXEC
                | SIGTRAP,
            ..attributes
        },
        aux_sample_size: 0,
        reserved: 0,
        sig_data: MARK,
    };
    let (any_cpu, no_group) = (-1i64, -1i64);
    // SAFETY: the kernel reads `size` bytes of a live struct and returns a new descriptor.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            i64::from(tid),
            any_cpu,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        );
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let is_timer = attributes.attributes.kind == PERF_TYPE_SOFTWARE;
        Ok(UserStop { event: OwnedFd::from_raw_fd(fd as i32), is_timer })
    }
}

/// Whether a signal is one of such an event, by the 128 bytes of its `siginfo_t`.
pub fn is_of_user_stop(signal: &[u8; 128]) -> bool {
    let number = |at: usize| i32::from_ne_bytes([signal[at], signal[at + 1], signal[at + 2], signal[at + 3]]);
    // `si_code` and `si_perf_data`.
    number(0) == libc::SIGTRAP && number(8) == TRAP_PERF && signal[24..32] == MARK.to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_of_the_program_is_not_ours() {
        let mut signal = [0; 128];
        signal[0] = libc::SIGTRAP as u8;
        signal[8] = TRAP_PERF as u8;
        signal[24..32].copy_from_slice(&MARK.to_ne_bytes());
        assert!(is_of_user_stop(&signal));
        for at in [0, 8, 24, 31] {
            let mut other = signal;
            other[at] ^= 1;
            assert!(!is_of_user_stop(&other), "{at}");
        }
    }
}
