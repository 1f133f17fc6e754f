//! Events that stop a traced thread in user code only: by a timer of its CPU time, at one instruction, or after a page fault.
//!
//! The kernel sends SIGTRAP at the thread's return to user code. A system call is never interrupted: a timer that fires
//! inside one is skipped. All events are gone after an exec. The tracer of the
//! thread sees the signal first ([`is_of_user_stop`]) and must not pass it on. Without a tracer, it would end the program.
//!
//! An event that is switched off or closed may have fired before. Its signal is then still to come, and comes only when the thread next
//! runs. Each firing leaves a record, so that a tracer knows which signals to wait for ([`UserStop::fired`]).
//!
//! Source: perf_event_open(2) (`sigtrap`, since Linux 5.13); `perf_swevent_hrtimer` and `perf_sigtrap` of
//! kernel/events/core.c.

use crate::attributes::{
    self, Attributes, PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_PAGE_FAULTS, PERF_TYPE_SOFTWARE, count, flags,
    sample, set_enabled, set_output,
};
use crate::breakpoint;
use crate::records::PERF_RECORD_SAMPLE;
use crate::ring::Ring;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Bits of `flags`.
const REMOVE_ON_EXEC: u64 = 1 << 36;
const SIGTRAP: u64 = 1 << 37;
/// The period of a timer, ns. The kernel allows 10 µs. But in a busy virtual machine, an interrupt can take longer than that. The
/// thread then does nothing else, and neither does its CPU (measured: for 15 s, until the timer was switched off).
const PERIOD: u64 = 75_000;
/// Bytes of the buffer for records. There are few between two looks at it.
const RING: usize = 4096;
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
pub struct UserStop {
    event: Event,
    is_timer: bool,
    /// Records of firings that were read.
    fired: u64,
    /// Records of moments in user code that were read.
    moments: u64,
}

/// Notes moments at which a thread is in user code. It sends no signal.
pub struct UserMoments(OwnedFd);

enum Event {
    /// It has a buffer for records of firings.
    Recorded(Ring),
    /// It uses the buffer of another event, or has none because this user may lock no more memory.
    Bare(OwnedFd),
}

impl AsRawFd for Event {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Event::Recorded(ring) => ring.as_raw_fd(),
            Event::Bare(event) => event.as_raw_fd(),
        }
    }
}

impl UserStop {
    /// Stops the thread after less than 0.1 ms in which it ran, as soon as it runs user code.
    ///
    /// # Errors
    /// EACCES or EPERM if that is not allowed, EINVAL on kernels before 5.13, ESRCH if the thread has ended, EMFILE.
    pub fn by_timer(tid: u32) -> io::Result<UserStop> {
        let event = open(
            tid,
            Attributes {
                kind: PERF_TYPE_SOFTWARE,
                config: PERF_COUNT_SW_CPU_CLOCK,
                sample_period: PERIOD,
                wakeup: u32::MAX,
                ..Attributes::default()
            },
        )?;
        let event = match Ring::map(event, RING) {
            Ok(ring) => Event::Recorded(ring),
            Err((event, _)) => Event::Bare(event),
        };
        Ok(UserStop { event, is_timer: true, fired: 0, moments: 0 })
    }

    /// Stops the thread before it executes the instruction at an address. `timer` is a timer of the same thread, which counts the
    /// firings of both.
    ///
    /// # Errors
    /// As [`UserStop::by_timer`]; ENOSPC if the thread has no breakpoint left.
    pub fn at(tid: u32, address: u64, timer: &UserStop) -> io::Result<UserStop> {
        let attributes = Attributes { wakeup: u32::MAX, ..Attributes::default() };
        UserStop::beside(timer, tid, breakpoint::once(address, attributes))
    }

    /// Stops the thread after its next page fault, before the instruction is repeated. A thread that does little else is hardly ever
    /// in user code when its timer fires. Page faults in system calls count for nothing. `timer` as for [`UserStop::at`].
    ///
    /// # Errors
    /// As [`UserStop::by_timer`].
    pub fn after_page_fault(tid: u32, timer: &UserStop) -> io::Result<UserStop> {
        let attributes = Attributes {
            kind: PERF_TYPE_SOFTWARE,
            config: PERF_COUNT_SW_PAGE_FAULTS,
            sample_period: 1,
            wakeup: u32::MAX,
            ..Attributes::default()
        };
        UserStop::beside(timer, tid, attributes)
    }

    fn beside(timer: &UserStop, tid: u32, attributes: Attributes) -> io::Result<UserStop> {
        let event = open(tid, attributes)?;
        if let Event::Recorded(ring) = &timer.event {
            set_output(&event, ring)?;
        }
        Ok(UserStop { event: Event::Bare(event), is_timer: false, fired: 0, moments: 0 })
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
        breakpoint::enable_once(&self.event)
    }

    /// From here on it does not fire. A signal may be on its way.
    pub fn disarm(&self) {
        set_enabled(&self.event, false);
    }

    /// How long the thread of a timer has run while it was armed, in user code and in the kernel, ns: exactly, where the kernel's account
    /// lags behind by up to a tick. `None` if it cannot be read.
    pub fn ran(&self) -> Option<u64> {
        count(&self.event)
    }

    /// How often a timer, and the other events that it counts, have fired. The kernel sends a signal for each firing, or one for several,
    /// before the thread returns to user code. `None` if that is not known.
    pub fn fired(&mut self) -> Option<u64> {
        self.read_records().then_some(self.fired)
    }

    /// How many moments [`UserMoments`] has noted. `None` if that is not known.
    pub fn moments(&mut self) -> Option<u64> {
        self.read_records().then_some(self.moments)
    }

    /// Reads the buffer; `false` if there is none.
    fn read_records(&mut self) -> bool {
        let Event::Recorded(ring) = &mut self.event else { return false };
        ring.refresh();
        while let Some(record) = ring.peek() {
            // A firing has a header only.
            match (record.kind == PERF_RECORD_SAMPLE, record.body.is_empty()) {
                (true, true) => self.fired += 1,
                (true, false) => self.moments += 1,
                _ => {}
            }
            ring.advance();
        }
        ring.publish();
        true
    }
}

impl UserMoments {
    /// Begins to note moments of a thread: about one in 0.1 ms of user code, none in system calls. They share the buffer of the thread's
    /// timer. Drop this, and read the buffer, before anything that fires is armed: a full buffer loses firings.
    ///
    /// # Errors
    /// As [`UserStop::by_timer`].
    pub fn note(tid: u32, timer: &UserStop) -> io::Result<UserMoments> {
        let attributes = Attributes {
            kind: PERF_TYPE_SOFTWARE,
            config: PERF_COUNT_SW_CPU_CLOCK,
            sample_period: PERIOD,
            sample_type: sample::TID,
            flags: flags::DISABLED | flags::EXCLUDE_KERNEL | flags::EXCLUDE_HYPERVISOR,
            wakeup: u32::MAX,
            ..Attributes::default()
        };
        let event = attributes::open(&attributes, tid, None)?;
        if let Event::Recorded(ring) = &timer.event {
            set_output(&event, ring)?;
        }
        set_enabled(&event, true);
        Ok(UserMoments(event))
    }

    /// How long the thread has run meanwhile, in user code and in the kernel, ns. `None` if it cannot be read.
    pub fn ran(&self) -> Option<u64> {
        count(&self.0)
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

fn open(tid: u32, attributes: Attributes) -> io::Result<OwnedFd> {
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
    // SAFETY: a live struct of that size.
    unsafe { attributes::open_sized((&raw const attributes).cast(), tid, None) }
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
