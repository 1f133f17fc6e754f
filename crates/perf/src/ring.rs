//! The ring buffer of one event: the kernel writes records, this side reads them in place.
//!
//! A record is borrowed from the buffer. The kernel does not overwrite it before the ring is [advanced](Ring::advance)
//! past it and [published](Ring::publish). A record that wraps around the end is copied.

use crate::attributes::{self, Attributes};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 4096;
/// Offsets of head and tail in the first page (`struct perf_event_mmap_page`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
/// Size of `struct perf_event_header`.
const HEADER: usize = 8;

/// An event and its ring buffer.
pub struct Ring {
    fd: OwnedFd,
    map: *mut u8,
    /// Bytes, a power of two.
    size: usize,
    head: u64,
    tail: u64,
    /// The last record that wraps around the end.
    wrapped: Vec<u8>,
    /// Its place, by the count of `tail`.
    wrapped_at: Option<u64>,
}

// SAFETY: only this value refers to the mapping.
unsafe impl Send for Ring {}

/// A record as written by the kernel.
#[derive(Clone, Copy)]
pub struct Raw<'a> {
    /// `type` of the header (`PERF_RECORD_...`).
    pub kind: u32,
    /// `misc` of the header.
    pub misc: u16,
    /// The bytes after the header.
    pub body: &'a [u8],
}

impl Ring {
    /// Opens an event (see [`attributes::open`]) with a ring buffer of `size` bytes.
    ///
    /// # Errors
    /// Those of perf_event_open(2); EPERM if the buffer would exceed the memory that this user may lock.
    ///
    /// # Panics
    /// If `size` is not a power of two or less than a page.
    pub fn open(attributes: &Attributes, tid: u32, cpu: Option<u32>, size: usize) -> io::Result<Ring> {
        Ring::map(attributes::open(attributes, tid, cpu)?, size).map_err(|(_, error)| error)
    }

    /// Gives an open event a ring buffer of `size` bytes.
    ///
    /// # Errors
    /// Those of mmap(2), and the event; EPERM as above.
    ///
    /// # Panics
    /// As [`Ring::open`].
    pub fn map(event: OwnedFd, size: usize) -> Result<Ring, (OwnedFd, io::Error)> {
        assert!(size.is_power_of_two() && size >= PAGE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE + size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err((event, io::Error::last_os_error()));
        }
        Ok(Ring { fd: event, map: map.cast(), size, head: 0, tail: 0, wrapped: Vec::new(), wrapped_at: None })
    }

    /// Makes the records written since the last call visible.
    pub fn refresh(&mut self) {
        // Acquire: everything written before the head is visible.
        self.head = self.word(DATA_HEAD).load(Ordering::Acquire);
    }

    /// The oldest visible record; `None` if there is none.
    pub fn peek(&mut self) -> Option<Raw<'_>> {
        let left = self.head.wrapping_sub(self.tail);
        if left < HEADER as u64 {
            return None;
        }
        let (kind, misc, size) = self.header();
        if size < HEADER || size as u64 > left {
            // The kernel never writes such a header. Nothing after it can be read.
            self.tail = self.head;
            self.publish();
            return None;
        }
        let from = self.tail as usize & (self.size - 1);
        let body = if from + size <= self.size {
            // SAFETY: `from + size` is inside the buffer. The kernel does not write there before the tail has passed,
            // which `advance` does, and that needs `&mut self`.
            unsafe { std::slice::from_raw_parts(self.data().add(from + HEADER), size - HEADER) }
        } else {
            // A record may be looked at several times, and the kernel does not change it meanwhile.
            if self.wrapped_at.replace(self.tail) != Some(self.tail) {
                let first = self.size - from;
                self.wrapped.clear();
                // SAFETY: both pieces are inside the buffer, see above.
                unsafe {
                    self.wrapped.extend_from_slice(std::slice::from_raw_parts(self.data().add(from), first));
                    self.wrapped.extend_from_slice(std::slice::from_raw_parts(self.data(), size - first));
                }
            }
            &self.wrapped[HEADER..]
        };
        Some(Raw { kind, misc, body })
    }

    /// Removes the oldest record.
    pub fn advance(&mut self) {
        let left = self.head.wrapping_sub(self.tail);
        if left >= HEADER as u64 {
            let (.., size) = self.header();
            self.tail += (size.max(HEADER) as u64).min(left);
        }
    }

    /// Returns the space of all removed records to the kernel.
    pub fn publish(&self) {
        self.word(DATA_TAIL).store(self.tail, Ordering::Release);
    }

    /// `type`, `misc` and `size` of the oldest record. Records are aligned to eight bytes: no header wraps around.
    fn header(&self) -> (u32, u16, usize) {
        let from = self.tail as usize & (self.size - 1) & !7;
        // SAFETY: eight aligned bytes inside the buffer, which the kernel does not overwrite before the tail has passed.
        let word = unsafe { self.data().add(from).cast::<u64>().read() };
        (word as u32, (word >> 32) as u16, (word >> 48) as usize)
    }

    fn data(&self) -> *const u8 {
        // SAFETY: the mapping has `PAGE + size` bytes.
        unsafe { self.map.add(PAGE) }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: inside the first page and aligned; the kernel and this side access it only atomically.
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
        // SAFETY: mapped by `open` with this length and no longer used.
        unsafe { libc::munmap(self.map.cast(), PAGE + self.size) };
    }
}
