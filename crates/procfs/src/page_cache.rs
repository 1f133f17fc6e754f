//! A cache of pages of a file or of a process's memory, so that repeated short reads need no system call.

use foldhash::HashMap;
use std::cell::RefCell;

const PAGE: u64 = 4096;

/// The cache. It never checks whether a page has changed.
pub struct PageCache {
    most: usize,
    pages: RefCell<HashMap<u64, Box<[u8]>>>,
}

impl PageCache {
    /// An empty cache of at most `most` pages of 4 KiB. When it is full, it is cleared.
    pub fn new(most: usize) -> PageCache {
        PageCache { most, pages: RefCell::default() }
    }

    /// Removes all pages.
    pub fn clear(&mut self) {
        self.pages.get_mut().clear();
    }

    /// Copies bytes from `at` on. `fetch` reads a whole page at an offset or address, and returns the number of bytes.
    /// Returns the number of bytes copied, which is smaller at the end of what can be read.
    pub fn read(&self, at: u64, into: &mut [u8], fetch: impl Fn(u64, &mut [u8]) -> usize) -> usize {
        let mut pages = self.pages.borrow_mut();
        let mut done = 0;
        while done < into.len() {
            let Some(at) = at.checked_add(done as u64) else { break };
            if pages.len() >= self.most {
                pages.clear();
            }
            let page = pages.entry(at / PAGE).or_insert_with(|| {
                let mut bytes = vec![0; PAGE as usize];
                let n = fetch(at / PAGE * PAGE, &mut bytes);
                bytes.truncate(n);
                bytes.into()
            });
            let rest = page.get((at % PAGE) as usize..).unwrap_or(&[]);
            if rest.is_empty() {
                break;
            }
            let n = rest.len().min(into.len() - done);
            into[done..done + n].copy_from_slice(&rest[..n]);
            done += n;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn bytes_are_right_and_each_page_is_fetched_once() {
        let bytes: Vec<u8> = (0..100_000u32).map(|i| (i * 7 % 251) as u8).collect();
        let fetched = Cell::new(0);
        let fetch = |at: u64, page: &mut [u8]| {
            fetched.set(fetched.get() + 1);
            let Some(rest) = bytes.get(at as usize..) else { return 0 };
            let n = rest.len().min(page.len());
            page[..n].copy_from_slice(&rest[..n]);
            n
        };
        let cache = PageCache::new(100);
        for (from, len) in [(0, 1), (5, 40_000), (16_380, 10), (99_990, 10), (0, 100_000)] {
            let mut into = vec![0; len];
            assert_eq!(cache.read(from as u64, &mut into, fetch), len);
            assert_eq!(into, bytes[from..from + len]);
        }
        assert_eq!(fetched.get(), 100_000usize.div_ceil(PAGE as usize));
        let mut into = [0; 64];
        assert_eq!(cache.read(99_990, &mut into, fetch), 10, "the end");
        assert_eq!(cache.read(200_000, &mut into, fetch), 0);
        assert_eq!(cache.read(u64::MAX - 3, &mut into, fetch), 0);
    }

    #[test]
    fn a_full_cache_is_cleared() {
        let cache = PageCache::new(2);
        let mut into = [0; 3 * PAGE as usize];
        assert_eq!(cache.read(0, &mut into, |_, page| page.len()), into.len());
        assert!(cache.pages.borrow().len() <= 2);
    }
}
