//! Whether a thread reaches an instruction: a hardware breakpoint that counts, or samples, once and then switches
//! itself off.
//!
//! The thread notices nothing. It loses a microsecond when it reaches the instruction for the first time.
//!
//! Source: perf_event_open(2), include/uapi/linux/hw_breakpoint.h.

use crate::attributes::{self, Attributes, flags};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

const PERF_TYPE_BREAKPOINT: u32 = 5;
const HW_BREAKPOINT_X: u32 = 4;
const PERF_FORMAT_TOTAL_TIME_ENABLED: u64 = 1 << 0;
const PERF_FORMAT_TOTAL_TIME_RUNNING: u64 = 1 << 1;
const PERF_EVENT_IOC_REFRESH: u64 = 0x2402;

/// The attributes of a breakpoint at an instruction, with what else an event needs. [`enable_once`] starts it.
pub fn once(address: u64, attributes: Attributes) -> Attributes {
    Attributes {
        kind: PERF_TYPE_BREAKPOINT,
        sample_period: 1,
        flags: attributes.flags | flags::DISABLED | flags::EXCLUDE_KERNEL | flags::EXCLUDE_HYPERVISOR,
        bp_type: HW_BREAKPOINT_X,
        // `bp_addr` and `bp_len`, which is that of a `long` for instructions.
        config1: address,
        config2: 8,
        ..attributes
    }
}

/// Starts an event until it has counted once.
///
/// # Errors
/// Those of the kernel.
pub fn enable_once(event: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: a request with a number, on an open descriptor.
    match unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_REFRESH, 1) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A breakpoint of one thread.
#[derive(Debug)]
pub struct Breakpoint {
    event: File,
}

impl Breakpoint {
    /// Watches whether a thread executes the instruction at an address of its process.
    ///
    /// # Errors
    /// As [`attributes::open`]; ENOSPC if the thread has no breakpoint left.
    pub fn set(tid: u32, address: u64) -> io::Result<Breakpoint> {
        let read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        let attributes = once(address, Attributes { read_format, ..Attributes::default() });
        let event = attributes::open(&attributes, tid, None)?;
        enable_once(&event)?;
        Ok(Breakpoint { event: event.into() })
    }

    /// Whether the thread has reached the instruction. `None` if the kernel has not watched it all the time.
    pub fn was_reached(&self) -> Option<bool> {
        let mut words = [0; 24];
        let read = (&self.event).read(&mut words).ok()?;
        let word = |number: usize| {
            let bytes = words.get(number * 8..number * 8 + 8)?;
            Some(u64::from_ne_bytes(bytes.try_into().ok()?))
        };
        let (count, enabled, running) = (word(0)?, word(1)?, word(2)?);
        match count {
            _ if read < words.len() => None,
            0 => (enabled == running).then_some(false),
            _ => Some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    extern "C" fn reached(number: u64) -> u64 {
        std::hint::black_box(number) + 1
    }

    #[inline(never)]
    extern "C" fn other(number: u64) -> u64 {
        std::hint::black_box(number) + 2
    }

    #[test]
    fn a_function_that_is_called_is_reached() {
        let function: extern "C" fn(u64) -> u64 = std::hint::black_box(reached);
        let breakpoint = match Breakpoint::set(0, function as usize as u64) {
            Ok(breakpoint) => breakpoint,
            Err(error) => return eprintln!("not tested here: {error}"),
        };
        for number in 0..1000 {
            std::hint::black_box(std::hint::black_box(other as extern "C" fn(u64) -> u64)(number));
        }
        assert_eq!(breakpoint.was_reached(), Some(false));
        for number in 0..1000 {
            std::hint::black_box(function(number));
        }
        assert_eq!(breakpoint.was_reached(), Some(true));
    }
}
