//! Small reads of the process's memory, by pages that are kept.

use foldhash::{HashMap, HashMapExt};
use stackglass_heapgraph::image::Image;
use std::cell::RefCell;

const PAGE: u64 = 4096;
/// Most pages that are kept: 32 MiB.
const MOST: usize = 8192;

pub(crate) struct Pages<'a> {
    image: &'a Image,
    /// Pages by number, up to the first byte that cannot be read.
    pages: RefCell<HashMap<u64, Box<[u8]>>>,
}

impl<'a> Pages<'a> {
    pub fn new(image: &'a Image) -> Pages<'a> {
        Pages { image, pages: RefCell::new(HashMap::new()) }
    }

    pub fn image(&self) -> &'a Image {
        self.image
    }

    /// Copies bytes. `None` if not all of them can be read.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let mut done = 0;
        while done < into.len() {
            let at = address.checked_add(done as u64)?;
            let from = (at % PAGE) as usize;
            let count = (into.len() - done).min(PAGE as usize - from);
            let mut pages = self.pages.borrow_mut();
            if pages.len() >= MOST && !pages.contains_key(&(at / PAGE)) {
                pages.clear();
            }
            let page = pages.entry(at / PAGE).or_insert_with(|| {
                let mut page = vec![0; PAGE as usize];
                let count = self.image.memory.read(at & !(PAGE - 1), &mut page);
                page.truncate(count);
                page.into()
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
