//! The ring of one event: the kernel writes records, this side reads them in place.
//!
//! A record is borrowed from the ring and stays untouched by the kernel until the ring is [advanced](Ring::advance)
//! past it. One that wraps around the end of the ring is copied.

use super::attributes::{self, Attributes};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 4096;
/// Where head and tail lie in the first page (`struct perf_event_mmap_page`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
/// `struct perf_event_header`.
const HEADER: usize = 8;

/// An event and its ring.
pub(crate) struct Ring {
    fd: OwnedFd,
    map: *mut u8,
    /// A power of two.
    size: usize,
    head: u64,
    tail: u64,
    wrapped: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Ring {}

/// A record as the kernel wrote it.
#[derive(Clone, Copy)]
pub(crate) struct Raw<'a> {
    pub kind: u32,
    pub misc: u16,
    /// What follows the header.
    pub body: &'a [u8],
}

impl Ring {
    /// Opens an event (see [`attributes::open`]) with a ring of `size` bytes, a power of two of at least a page.
    ///
    /// # Errors
    /// Those of perf_event_open(2); EPERM when the ring would exceed what this user may lock in memory.
    pub(crate) fn open(
        attributes: &Attributes,
        tid: u32,
        processor: Option<u32>,
        size: usize,
    ) -> io::Result<Ring> {
        assert!(size.is_power_of_two() && size >= PAGE);
        let fd = attributes::open(attributes, tid, processor)?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE + size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring { fd, map: map.cast(), size, head: 0, tail: 0, wrapped: Vec::new() })
    }

    /// Takes notice of what was written since the last call; how full the ring is, 0 to 1.
    pub(crate) fn refresh(&mut self) -> f64 {
        // What was written before the head is seen: it is read with Acquire.
        self.head = self.word(DATA_HEAD).load(Ordering::Acquire);
        self.head.wrapping_sub(self.tail) as f64 / self.size as f64
    }

    /// The oldest record that was noticed; `None` when there is none.
    pub(crate) fn peek(&mut self) -> Option<Raw<'_>> {
        let left = self.head.wrapping_sub(self.tail);
        if left < HEADER as u64 {
            return None;
        }
        let (kind, misc, size) = self.header();
        if size < HEADER || size as u64 > left {
            // It cannot be, since the kernel writes it; nothing after it can be read.
            self.tail = self.head;
            self.publish();
            return None;
        }
        let from = self.tail as usize & (self.size - 1);
        let body = if from + size <= self.size {
            // SAFETY: `from + size` lies inside the ring; the kernel does not write there before the tail has passed,
            // which `advance` does, and that needs `&mut self`.
            unsafe { std::slice::from_raw_parts(self.data().add(from + HEADER), size - HEADER) }
        } else {
            let first = self.size - from;
            self.wrapped.clear();
            // SAFETY: both pieces lie inside the ring, see above.
            unsafe {
                self.wrapped.extend_from_slice(std::slice::from_raw_parts(self.data().add(from), first));
                self.wrapped.extend_from_slice(std::slice::from_raw_parts(self.data(), size - first));
            }
            &self.wrapped[HEADER..]
        };
        Some(Raw { kind, misc, body })
    }

    /// Done with the oldest record.
    pub(crate) fn advance(&mut self) {
        let left = self.head.wrapping_sub(self.tail);
        if left >= HEADER as u64 {
            let (.., size) = self.header();
            self.tail += (size.max(HEADER) as u64).min(left);
        }
    }

    /// Gives the room of all records that were passed back to the kernel.
    pub(crate) fn publish(&self) {
        self.word(DATA_TAIL).store(self.tail, Ordering::Release);
    }

    /// `type`, `misc` and `size` of the oldest record. Records are aligned to eight bytes: no header wraps around.
    fn header(&self) -> (u32, u16, usize) {
        let from = self.tail as usize & (self.size - 1) & !7;
        // SAFETY: eight aligned bytes inside the ring, which the kernel does not write to before the tail has passed.
        let word = unsafe { self.data().add(from).cast::<u64>().read() };
        (word as u32, (word >> 32) as u16, (word >> 48) as usize)
    }

    fn data(&self) -> *const u8 {
        // SAFETY: the mapping has `PAGE + size` bytes.
        unsafe { self.map.add(PAGE) }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: inside the first page, aligned, and changed by the kernel and us atomically only.
        unsafe { AtomicU64::from_ptr(self.map.add(at).cast()) }
    }
}

impl AsRawFd for Ring {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this length, and not used any more.
        unsafe { libc::munmap(self.map.cast(), PAGE + self.size) };
    }
}
