//! The memory of a stored image: pages, in which words can be changed. A page that is not stored cannot be read.
//!
//! Reads are counted: what a reader does is bounded by what it reads, whatever the clock says.

use crate::stored::PAGE;
use stackglass_process_view::core_image::Memory;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory of a stored image. Copies share their pages and the count.
#[derive(Clone, Debug)]
pub struct Pages {
    pages: Arc<BTreeMap<u64, Box<[u8]>>>,
    /// New words by address.
    changed: HashMap<u64, u64>,
    /// Memory from this address on is gone.
    end: u64,
    reads: Arc<AtomicU64>,
}

impl Pages {
    /// Unchanged memory.
    pub fn new(pages: BTreeMap<u64, Box<[u8]>>) -> Pages {
        Pages { pages: Arc::new(pages), changed: HashMap::new(), end: u64::MAX, reads: Arc::default() }
    }

    /// The same memory with another word at an address, and with a count of its own.
    pub fn with_word(&self, address: u64, word: u64) -> Pages {
        let mut changed = self.changed.clone();
        changed.insert(address & !7, word);
        Pages { changed, reads: Arc::default(), ..self.clone() }
    }

    /// The same memory without what lies at an address or behind it, and with a count of its own.
    pub fn cut_at(&self, end: u64) -> Pages {
        Pages { end, reads: Arc::default(), ..self.clone() }
    }

    /// The addresses of its pages.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
        self.pages.keys().copied()
    }

    /// Pages that were read, and parts of pages, with all repetitions.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// A word of its unchanged pages; 0 if there is none.
    pub fn word(&self, address: u64) -> u64 {
        let at = (address as usize % PAGE) & !7;
        let page = self.pages.get(&(address - address % PAGE as u64));
        page.map_or(0, |page| u64::from_le_bytes(std::array::from_fn(|byte| page[at + byte])))
    }
}

impl Memory for Pages {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            self.reads.fetch_add(1, Ordering::Relaxed);
            let Some(at) = address.checked_add(done as u64).filter(|at| *at < self.end) else { break };
            let from = at as usize % PAGE;
            let before_end = usize::try_from(self.end - at).unwrap_or(usize::MAX);
            let count = (PAGE - from).min(into.len() - done).min(before_end);
            let Some(page) = self.pages.get(&(at - from as u64)) else { break };
            into[done..done + count].copy_from_slice(&page[from..from + count]);
            done += count;
        }
        for (word, changed) in &self.changed {
            for (at, byte) in (*word..).zip(changed.to_le_bytes()) {
                let place = at.checked_sub(address).and_then(|place| usize::try_from(place).ok());
                if let Some(place) = place.filter(|place| *place < done) {
                    into[place] = byte;
                }
            }
        }
        done
    }

    fn resident(&self, address: u64, pages: &mut [bool]) {
        for (at, page) in (address & !(PAGE as u64 - 1)..).step_by(PAGE).zip(pages) {
            *page = at < self.end && self.pages.contains_key(&at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_up_to_a_gap_with_changed_words() {
        let pages = BTreeMap::from([(0x1000, [1; PAGE].into()), (0x2000, [2; PAGE].into())]);
        let plain = Pages::new(pages);
        let mut bytes = [0; PAGE];
        assert_eq!(plain.read(0x1ffe, &mut bytes[..4]), 4);
        assert_eq!(bytes[..4], [1, 1, 2, 2]);
        assert_eq!((plain.read(0x2ff0, &mut bytes[..64]), plain.read(0xfff, &mut bytes)), (16, 0));
        let changed = plain.with_word(0x2000, u64::MAX);
        assert_eq!(changed.read(0x1ffe, &mut bytes[..14]), 14);
        assert_eq!(bytes[..14], [1, 1, 255, 255, 255, 255, 255, 255, 255, 255, 2, 2, 2, 2]);
        assert_eq!((changed.reads(), changed.word(0x2004)), (2, 0x0202_0202_0202_0202));
        assert_eq!(changed.cut_at(0x2004).read(0x1ffe, &mut bytes[..14]), 6);
        let mut resident = [true; 4];
        changed.cut_at(0x2000).resident(0, &mut resident);
        assert_eq!(resident, [false, true, false, false]);
        plain.resident(0, &mut resident);
        assert_eq!(resident, [false, true, true, false]);
    }
}
