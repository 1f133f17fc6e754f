//! Memory of the process, read in large parts in the order of addresses.
//!
//! Neighbouring blocks need one read. Ranges of any size are visited in pieces, so that the memory needed does not grow with them.

use stackglass_process_view::core_image::CoreImage;
use std::ops::Range;

/// Bytes that are read at once.
const WINDOW: usize = 1 << 20;
/// Pages that are checked together, to skip memory that was never written.
const EMPTY_PAGES: usize = 16 << 10;
/// Largest block that is read whole. What lies behind is not followed.
const LARGEST_READ: usize = 4 << 30;
/// Unreadable pages after which a range is given up: sizes may be wrong.
const MOST_UNREADABLE: u32 = 1 << 18;
const PAGE: u64 = 4096;

/// A part of the memory that was read last.
pub(crate) struct Window<'a> {
    image: &'a CoreImage,
    start: u64,
    /// The first `len` of these are bytes of the process.
    bytes: Vec<u8>,
    len: usize,
    /// Least number of bytes that are read.
    least: usize,
}

impl<'a> Window<'a> {
    /// For blocks, which lie side by side.
    pub fn new(image: &'a CoreImage) -> Window<'a> {
        Window { image, start: 0, bytes: Vec::new(), len: 0, least: WINDOW }
    }

    /// For values that lie apart from each other, such as frames on stacks.
    pub fn near(image: &'a CoreImage) -> Window<'a> {
        Window { least: PAGE as usize, ..Window::new(image) }
    }

    /// As many of these bytes as can be read.
    pub fn read(&mut self, address: u64, len: u64) -> &[u8] {
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(LARGEST_READ);
        let end = self.start + self.len as u64;
        if address < self.start || address.saturating_add(len as u64) > end {
            // Up to the end of a page: what is read counts as written from then on.
            let size = len.max(self.least - (address % PAGE) as usize);
            if self.bytes.len() < size {
                // The old buffer is freed first.
                self.bytes = Vec::new();
                self.bytes = vec![0; size];
            }
            self.len = self.image.memory.read(address, &mut self.bytes[..size]).min(size);
            self.start = address;
        }
        let from = (address - self.start) as usize;
        &self.bytes[from..self.len.min(from + len)]
    }

    /// Visits a range of memory: calls `visit` with an address and the bytes from there on. Pages that were never written and
    /// pages that cannot be read are left out.
    pub fn pieces(&mut self, range: Range<u64>, visit: &mut dyn FnMut(u64, &[u8])) {
        let mut address = range.start;
        let mut unreadable = 0;
        while address < range.end && unreadable < MOST_UNREADABLE {
            let left = range.end - address;
            if left > WINDOW as u64
                && let Some(empty) = self.empty_pages(address, left)
            {
                address += empty;
                continue;
            }
            let bytes = self.read(address, left.min(WINDOW as u64 - address % PAGE));
            if bytes.is_empty() {
                unreadable += 1;
                address = (address | (PAGE - 1)).saturating_add(1);
                continue;
            }
            visit(address, bytes);
            address += bytes.len() as u64;
        }
    }

    /// Bytes from `address` on that are zero since their pages were never written. The page of the first may have been read.
    pub fn empty(&self, address: u64, len: u64) -> u64 {
        let mut head = [0; PAGE as usize];
        let size = (address.next_multiple_of(PAGE) - address).min(len);
        let read = self.image.memory.read(address, &mut head[..size as usize]);
        if head[..read.min(size as usize)].iter().any(|byte| *byte != 0) {
            return 0;
        }
        self.empty_pages(address + size, len - size).map_or(0, |empty| size + empty)
    }

    /// Bytes from `address` on in pages that were never written, if the next [`WINDOW`] has no other.
    fn empty_pages(&self, address: u64, len: u64) -> Option<u64> {
        let mut pages = [true; EMPTY_PAGES];
        let count = (len / PAGE).min(EMPTY_PAGES as u64) as usize;
        // Few pages first: most memory is in use.
        for count in [count.min(WINDOW / PAGE as usize), count] {
            self.image.memory.resident(address, &mut pages[..count]);
            let empty = pages[..count].iter().take_while(|resident| !**resident).count();
            if empty < count.min(WINDOW / PAGE as usize) {
                return None;
            }
            if empty < count || count == EMPTY_PAGES {
                return Some(empty as u64 * PAGE - address % PAGE);
            }
        }
        Some(count as u64 * PAGE - address % PAGE)
    }
}
