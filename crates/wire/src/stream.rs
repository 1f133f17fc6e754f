//! The stream: a ring of words with one writer and one reader, in memory that an untrusted program may share.
//!
//! Each word is an atomic with relaxed loads and stores. `head` (words ever written) is stored with Release after the
//! words, `tail` (words ever read) after they were copied. An event is written as a whole; without room, it is lost and
//! counted.

use crate::event::{self, Event, Malformed};
use crate::{ControlPage, Counter};
use core::sync::atomic::{AtomicU64, Ordering::*};

/// The writing end. A stream must have one writer at a time.
pub struct Writer<'a> {
    control: &'a ControlPage,
    ring: &'a [AtomicU64],
}

impl<'a> Writer<'a> {
    /// A writer for `ring`.
    ///
    /// # Panics
    /// When the length is not a power of two.
    pub fn new(control: &'a ControlPage, ring: &'a [AtomicU64]) -> Writer<'a> {
        assert!(ring.len().is_power_of_two(), "a stream has a power of two words");
        Writer { control, ring }
    }

    /// Appends an event. Without room for it, it is counted as lost, and the result is false.
    pub fn push(&mut self, event: &Event<'_>) -> bool {
        let (fixed, n, tail_words) = event.encode();
        let len = n + tail_words.len();
        let head = self.control.head.load(Relaxed);
        let used = head.wrapping_sub(self.control.tail.load(Acquire));
        let room = (self.ring.len() as u64).saturating_sub(used);
        if len as u64 > room || len > event::MAX_WORDS {
            self.control.counters.add(Counter::StreamFull, 1);
            return false;
        }
        let mask = self.ring.len() - 1;
        let words = fixed[..n].iter().chain(tail_words);
        for (i, word) in words.enumerate() {
            self.ring[(head as usize).wrapping_add(i) & mask].store(*word, Relaxed);
        }
        self.control.head.store(head.wrapping_add(len as u64), Release);
        true
    }
}

/// The reading end. It has its own position and ignores what the program writes to `tail`.
pub struct Reader<'a> {
    control: &'a ControlPage,
    ring: &'a [AtomicU64],
    tail: u64,
    buffer: [u64; event::MAX_WORDS],
}

/// Error of [`Reader::read`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// A malformed event, which was skipped.
    Event(Malformed),
    /// Inconsistent lengths or positions: nothing more can be read from this stream.
    Broken,
}

impl<'a> Reader<'a> {
    /// A reader that starts at the first word ever written.
    ///
    /// # Panics
    /// When the length of `ring` is not a power of two.
    pub fn new(control: &'a ControlPage, ring: &'a [AtomicU64]) -> Reader<'a> {
        assert!(ring.len().is_power_of_two(), "a stream has a power of two words");
        Reader { control, ring, tail: 0, buffer: [0; event::MAX_WORDS] }
    }

    /// Words written and not yet read, by the program's account; at most the size of the ring.
    pub fn waiting(&self) -> u64 {
        self.control.head.load(Acquire).wrapping_sub(self.tail).min(self.ring.len() as u64)
    }

    /// The next event, or `None` if all are read.
    ///
    /// # Errors
    /// [`ReadError`]; after [`ReadError::Event`], reading can go on.
    pub fn read(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        let waiting = self.control.head.load(Acquire).wrapping_sub(self.tail);
        if waiting == 0 {
            return Ok(None);
        }
        let mask = self.ring.len() - 1;
        let at = |i: usize| self.ring[(self.tail as usize).wrapping_add(i) & mask].load(Relaxed);
        let first = at(0);
        let len = event::head_len(first);
        if waiting > self.ring.len() as u64 || len == 0 || len as u64 > waiting || len > event::MAX_WORDS {
            return Err(ReadError::Broken);
        }
        // Copy before checking: the program may still write to these words.
        self.buffer[0] = first;
        for i in 1..len {
            self.buffer[i] = at(i);
        }
        self.tail = self.tail.wrapping_add(len as u64);
        self.control.tail.store(self.tail, Release);
        match Event::decode(&self.buffer[..len]) {
            Ok(event) => Ok(Some(event)),
            Err(bad) => Err(ReadError::Event(bad)),
        }
    }
}

/// The control page and the ring in a mapping.
///
/// `None` if the mapping is misaligned or too small for the stream, or if the stream's size is no power of two.
///
/// # Safety
/// `base` must be valid for reads and writes of `len` bytes for `'a`. All accesses to them must be atomic, also those of
/// other processes.
pub unsafe fn view<'a>(
    base: *mut u8,
    len: usize,
    stream_words: usize,
) -> Option<(&'a ControlPage, &'a [AtomicU64])> {
    let whole = crate::CONTROL_BYTES.checked_add(stream_words.checked_mul(8)?)?;
    if base.is_null() || !base.addr().is_multiple_of(64) || len < whole || !stream_words.is_power_of_two() {
        return None;
    }
    // SAFETY: the caller guarantees `len` bytes. `whole <= len` and the alignment were checked above. Both types
    // consist of atomics, for which all bytes are valid.
    unsafe {
        let control = &*base.cast::<ControlPage>();
        let ring =
            core::slice::from_raw_parts(base.add(crate::CONTROL_BYTES).cast::<AtomicU64>(), stream_words);
        Some((control, ring))
    }
}
