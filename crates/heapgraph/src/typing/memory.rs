//! Reads blocks, small ones through a cache: pointers lead back and forth.

use stackglass_process_view::core_image::CoreImage;

/// Bytes of a page of the cache, and pages.
const PAGE: u64 = 16 << 10;
const PAGES: u64 = 512;
/// Largest block that is read.
const LARGEST: u64 = 1 << 30;

pub(super) struct BlockMemory<'image> {
    image: &'image CoreImage,
    pages: Vec<(u64, usize)>,
    cached: Vec<u8>,
    direct: Vec<u8>,
}

impl<'image> BlockMemory<'image> {
    pub fn new(image: &'image CoreImage) -> Self {
        Self {
            image,
            pages: vec![(u64::MAX, 0); PAGES as usize],
            cached: vec![0; (PAGES * PAGE) as usize],
            direct: Vec::new(),
        }
    }

    /// As many of these bytes as can be read.
    pub fn read(&mut self, address: u64, size: u64) -> &[u8] {
        let number = address / PAGE;
        if address.checked_add(size).is_none_or(|end| end > (number + 1) * PAGE) {
            self.direct.resize(size.min(LARGEST) as usize, 0);
            let read = self.image.memory.read(address, &mut self.direct).min(self.direct.len());
            return &self.direct[..read];
        }
        // Heaps of threads begin at multiples of 64 MiB, which must not share a place.
        let slot = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % PAGES;
        let slot = slot as usize;
        let page = &mut self.cached[slot * PAGE as usize..][..PAGE as usize];
        if self.pages[slot].0 != number {
            // A mapping may begin within.
            let mut start = number * PAGE;
            let mut read = self.image.memory.read(start, page);
            if read == 0 {
                start = address & !4095;
                let from = (start - number * PAGE) as usize;
                read = self.image.memory.read(start, &mut page[from..]);
                read = if read == 0 { 0 } else { from + read };
            }
            let is_whole = start == number * PAGE;
            self.pages[slot] = (if is_whole { number } else { u64::MAX }, read);
        }
        let from = (address - number * PAGE) as usize;
        let end = self.pages[slot].1.min(from + size as usize);
        page.get(from..end).unwrap_or_default()
    }
}
