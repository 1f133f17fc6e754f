//! Small reads of the process's memory, by pages that are kept.
//!
//! A page that is used again stays: those of vtables and runtimes are read once, however many tasks lie on pages of their own.
//! Pages are kept in two generations. A full young one becomes the old one, whose pages are dropped unless they are used.

use crate::core_image::CoreImage;
use foldhash::HashMap;
use std::cell::RefCell;

const PAGE: u64 = 4096;
/// Most pages of a generation: 16 MiB.
const MOST: usize = 4096;

/// The memory of a process, of which pages are kept.
pub struct Pages<'a> {
    image: &'a CoreImage,
    kept: RefCell<Kept>,
}

/// Pages by number, up to the first byte that cannot be read.
type Generation = HashMap<u64, Box<[u8]>>;

#[derive(Default)]
struct Kept {
    young: Generation,
    old: Generation,
    /// Memory for pages.
    spare: Vec<Box<[u8]>>,
}

impl Kept {
    /// A page, which `read` reads into other memory if it is not kept.
    fn page(&mut self, number: u64, read: impl FnOnce(Vec<u8>) -> Vec<u8>) -> &[u8] {
        if self.young.len() >= MOST && !self.young.contains_key(&number) {
            let known = self.old.remove(&number);
            self.spare
                .extend(self.old.drain().map(|(_, page)| page).filter(|page| page.len() as u64 == PAGE));
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.extend(known.map(|page| (number, page)));
        }
        let Kept { young, old, spare } = self;
        young.entry(number).or_insert_with(|| {
            old.remove(&number).unwrap_or_else(|| {
                let memory = spare.pop().map_or_else(|| vec![0; PAGE as usize], Vec::from);
                read(memory).into()
            })
        })
    }
}

impl<'a> Pages<'a> {
    /// Nothing is read yet.
    pub fn new(image: &'a CoreImage) -> Pages<'a> {
        Pages { image, kept: RefCell::default() }
    }

    /// The process.
    pub fn image(&self) -> &'a CoreImage {
        self.image
    }

    /// Copies bytes. `None` if not all of them can be read.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let mut done = 0;
        while done < into.len() {
            let at = address.checked_add(done as u64)?;
            let from = (at % PAGE) as usize;
            let count = (into.len() - done).min(PAGE as usize - from);
            let mut kept = self.kept.borrow_mut();
            let page = kept.page(at / PAGE, |mut page| {
                let count = self.image.memory.read(at & !(PAGE - 1), &mut page);
                page.truncate(count);
                page
            });
            into[done..done + count].copy_from_slice(page.get(from..from + count)?);
            done += count;
        }
        Some(())
    }

    /// An unsigned number of up to 16 bytes, little-endian.
    pub fn number(&self, address: u64, size: u64) -> Option<u128> {
        let mut bytes = [0; 16];
        self.read(address, bytes.get_mut(..usize::try_from(size).ok()?)?)?;
        Some(u128::from_le_bytes(bytes))
    }

    /// A word of 8 bytes.
    pub fn word(&self, address: u64) -> Option<u64> {
        self.number(address, 8).map(|word| word as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core_image::Memory;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Each byte is its page's number; counts the reads of page 0.
    struct Numbered(Arc<AtomicUsize>);

    impl Memory for Numbered {
        fn read(&self, address: u64, into: &mut [u8]) -> usize {
            self.0.fetch_add(usize::from(address == 0), Ordering::Relaxed);
            into.fill((address / PAGE) as u8);
            into.len()
        }
    }

    #[test]
    fn pages_in_use_stay_and_the_number_of_others_is_bounded() {
        let reads = Arc::new(AtomicUsize::new(0));
        let memory = Box::new(Numbered(reads.clone()));
        let image = CoreImage {
            pid: 1,
            executable: String::new(),
            mappings: Vec::new(),
            threads: Vec::new(),
            memory,
        };
        let pages = Pages::new(&image);
        for number in 0..20 * MOST as u64 {
            assert_eq!(pages.number(number * PAGE + 8, 1), Some(u128::from(number as u8)));
            assert_eq!(pages.word(16), Some(0));
            let kept = pages.kept.borrow();
            assert!(kept.young.len() + kept.old.len() + kept.spare.len() <= 2 * MOST);
        }
        assert_eq!(reads.load(Ordering::Relaxed), 1);
    }
}
