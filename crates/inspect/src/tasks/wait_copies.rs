//! Copies of the memory of waiting tasks, for as long as no types say what it means.
//!
//! Types take some tenths of a second to read, and most waits are over by then. So the memory that a task's future may lead to is
//! copied while the task waits: the future, what its words may point to, and so on, up to some pages. A later walk through the copy
//! counts only if it needs no memory that was not copied.

use crate::core_image::own;
use foldhash::{HashMap, HashSet};
use stackglass_process_view::core_image::{CoreImage, Memory};
use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PAGE: u64 = 4096;
const WORD: u64 = 8;
/// Most pages of one wait.
const MOST_OF_WAIT: usize = 48;
/// Most pages of all waits: 32 MiB.
const MOST: usize = 8192;
/// Most addresses of one wait that are tried.
const MOST_TRIED: usize = 64;
/// Largest future that is copied.
const LARGEST: u64 = 128 << 10;
/// Bytes that are copied of a value of unknown size.
const UNSIZED: u64 = 1024;

/// Copies waits of this process.
pub struct WaitCopies {
    image: CoreImage,
    /// The last wait that was copied, by task.
    kept: HashMap<u64, (u64, Arc<WaitCopy>)>,
    /// Pages that may still be copied.
    left: usize,
}

/// What was copied of a wait.
pub struct WaitCopy {
    /// The address of the future, and of its vtable.
    pub(super) future: (u64, u64),
    /// By number.
    pages: HashMap<u64, Box<[u8]>>,
}

impl WaitCopies {
    /// Nothing is copied yet.
    ///
    /// # Errors
    /// If the kernel refuses reads of memory.
    pub fn new() -> io::Result<WaitCopies> {
        Ok(WaitCopies { image: own::image()?, kept: HashMap::default(), left: MOST })
    }

    /// Copies what a task waits for in one of its waits, which has a number. `future` gives the addresses of its future and of the
    /// future's vtable as long as the task is in that wait. `None` if the wait ends too soon, or too much was copied before.
    pub fn of(
        &mut self,
        task: u64,
        wait: u64,
        future: &dyn Fn() -> Option<(u64, u64)>,
    ) -> Option<Arc<WaitCopy>> {
        if let Some((known, copy)) = self.kept.get(&task)
            && *known == wait
        {
            return Some(copy.clone());
        }
        let place = future().filter(|(address, _)| *address != 0)?;
        let pages = self.pages(place)?;
        // All of it is of that wait, or nothing counts.
        future().filter(|again| *again == place)?;
        self.left = self.left.saturating_sub(pages.len());
        let copy = Arc::new(WaitCopy { future: place, pages });
        self.kept.insert(task, (wait, copy.clone()));
        Some(copy)
    }

    /// The pages of a future and of what it may lead to, nearest first. Each read is a call of the kernel, so there are few.
    fn pages(&self, (address, vtable): (u64, u64)) -> Option<HashMap<u64, Box<[u8]>>> {
        let most = MOST_OF_WAIT.min(self.left);
        let size = self.size_by_vtable(vtable).filter(|_| most > 0)?;
        let mut pages: HashMap<u64, Box<[u8]>> = HashMap::default();
        // Addresses, and the words behind their pointers.
        let mut open = VecDeque::from([(address, None, Some(size))]);
        let mut tried: HashSet<u64> = HashSet::default();
        while let Some((begin, next, known)) = open.pop_front() {
            self.copy(begin / PAGE, &mut pages);
            let size = known.unwrap_or_else(|| self.size_of(begin, next, &pages));
            let Some(end) = begin.checked_add(size) else { continue };
            for number in begin / PAGE..=end.saturating_sub(1) / PAGE {
                if pages.len() >= most {
                    return Some(pages);
                }
                self.copy(number, &mut pages);
            }
            for at in (begin.next_multiple_of(WORD)..end).step_by(WORD as usize) {
                let Some(word) = word(&pages, at) else { break };
                if tried.len() < MOST_TRIED && self.may_be_pointer(word) && tried.insert(word) {
                    open.push_back((word, self::word(&pages, at + WORD), None));
                }
            }
        }
        Some(pages)
    }

    /// Copies a page, if it can be read.
    fn copy(&self, number: u64, pages: &mut HashMap<u64, Box<[u8]>>) {
        if let Entry::Vacant(entry) = pages.entry(number) {
            let mut page = vec![0; PAGE as usize];
            if self.image.memory.read(number * PAGE, &mut page) == page.len() {
                entry.insert(page.into());
            }
        }
    }

    /// The size of a value behind a `dyn` pointer, by its vtable: the address of a function that drops it, then its size.
    fn size_by_vtable(&self, vtable: u64) -> Option<u64> {
        if !vtable.is_multiple_of(WORD) || !is_constant(&self.image, vtable) {
            return None;
        }
        self.image.word(vtable.checked_add(WORD)?).filter(|size| *size <= LARGEST)
    }

    /// Bytes of what is at an address. If the next word is the address of a vtable, this one is of a `dyn` value. Else it may be the
    /// begin of a block of malloc, which has its size before it. A wrong size costs memory, and no more.
    fn size_of(&self, address: u64, next: Option<u64>, pages: &HashMap<u64, Box<[u8]>>) -> u64 {
        if let Some(size) = next.and_then(|vtable| self.size_by_vtable(vtable)) {
            return size;
        }
        let head = address.checked_sub(WORD).and_then(|head| word(pages, head));
        head.map(|head| head & !7).filter(|size| (16..=LARGEST).contains(size)).unwrap_or(UNSIZED)
    }

    fn may_be_pointer(&self, word: u64) -> bool {
        const LOWEST: u64 = 1 << 16;
        const HIGHEST: u64 = 1 << 47;
        // A new mapping is in no list.
        (LOWEST..HIGHEST).contains(&word) && word.is_multiple_of(WORD) && !is_constant(&self.image, word)
    }
}

impl WaitCopy {
    /// This process, as far as it was copied.
    pub(super) fn image(self: &Arc<WaitCopy>, process: &CoreImage) -> (CoreImage, Arc<AtomicBool>) {
        let is_missing = Arc::new(AtomicBool::new(false));
        let live = own::memory();
        let constant = process.mappings.iter().filter(|mapping| !mapping.writable);
        let memory = CopiedMemory {
            copy: self.clone(),
            constant: constant.map(|mapping| mapping.range.clone()).collect(),
            live,
            is_missing: is_missing.clone(),
        };
        let image = CoreImage {
            pid: process.pid,
            executable: process.executable.clone(),
            mappings: process.mappings.clone(),
            threads: Vec::new(),
            memory: Box::new(memory),
        };
        (image, is_missing)
    }
}

/// Pages that were copied, and memory that is never written.
struct CopiedMemory {
    copy: Arc<WaitCopy>,
    constant: Vec<std::ops::Range<u64>>,
    live: Box<dyn Memory>,
    /// Other memory was asked for.
    is_missing: Arc<AtomicBool>,
}

impl Memory for CopiedMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let from = (at % PAGE) as usize;
            let count = (PAGE as usize - from).min(into.len() - done);
            let part = &mut into[done..done + count];
            match self.copy.pages.get(&(at / PAGE)) {
                Some(page) => part.copy_from_slice(&page[from..from + count]),
                None if self.constant.iter().any(|range| range.contains(&at)) => {
                    if self.live.read(at, part) < count {
                        break;
                    }
                }
                None => {
                    self.is_missing.store(true, Ordering::Relaxed);
                    break;
                }
            }
            done += count;
        }
        done
    }
}

/// Whether an address is in memory that nobody writes.
fn is_constant(image: &CoreImage, address: u64) -> bool {
    image.mapping(address).is_some_and(|mapping| !mapping.writable)
}

/// A word in pages.
fn word(pages: &HashMap<u64, Box<[u8]>>, address: u64) -> Option<u64> {
    let from = (address % PAGE) as usize;
    let bytes = pages.get(&(address / PAGE))?.get(from..from + WORD as usize)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
