//! Single words of a core image, through a small cache of pages: lists of free chunks jump back and forth.

use stackglass_process_view::core_image::CoreImage;

use super::layout::PAGE;

/// Pages in the cache.
const PAGES: u64 = 1024;

/// Reads aligned words.
pub(super) struct Words<'image> {
    image: &'image CoreImage,
    /// For each page of the cache: its number, and how many bytes of it could be read.
    pages: Vec<(u64, usize)>,
    bytes: Vec<u8>,
}

impl<'image> Words<'image> {
    pub fn new(image: &'image CoreImage) -> Self {
        Self { image, pages: vec![(u64::MAX, 0); PAGES as usize], bytes: vec![0; (PAGES * PAGE) as usize] }
    }

    /// The core image.
    pub fn image(&self) -> &'image CoreImage {
        self.image
    }

    /// The word at an address; `None` if it cannot be read, or is not aligned.
    pub fn get(&mut self, address: u64) -> Option<u64> {
        if !address.is_multiple_of(8) {
            return None;
        }
        let number = address / PAGE;
        let slot = (number % PAGES) as usize;
        let bytes = &mut self.bytes[slot * PAGE as usize..][..PAGE as usize];
        if self.pages[slot].0 != number {
            self.pages[slot] = (number, self.image.memory.read(number * PAGE, bytes).min(PAGE as usize));
        }
        let at = (address % PAGE) as usize;
        if at + 8 > self.pages[slot].1 {
            return None;
        }
        Some(u64::from_le_bytes(bytes[at..at + 8].try_into().ok()?))
    }

    /// A little-endian number of 1, 2, 4 or 8 bytes that does not cross words.
    pub fn number(&mut self, address: u64, size: u64) -> Option<u64> {
        let word = self.get(address & !7)?;
        let shifted = word >> ((address & 7) * 8);
        Some(if size >= 8 { shifted } else { shifted & ((1 << (size * 8)) - 1) })
    }

    /// Whether the address lies in memory that the process may write.
    pub fn is_writable(&self, address: u64) -> bool {
        self.image.mapping(address).is_some_and(|mapping| mapping.writable && mapping.readable)
    }
}
