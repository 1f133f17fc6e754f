//! Pages of a process at one moment, read while it stands still.
//!
//! Repeated snapshots of the tasks of one process need few of its pages, and mostly those of the last one: their working set (Denning,
//! 1968). Reading it holds the process up for less time than clone(2), makes no second process, and the program need not duplicate pages
//! that it writes.
//!
//! While the process stands still, only pages that are present are read. For another one, the kernel may wait for the program itself:
//! for a monitor of userfaultfd(2), or a file system in user space. An anonymous page that is not present was never written.

use super::memory_files::MemoryFiles;
use foldhash::{HashMap, HashMapExt};
use stackglass_procfs::maps::{self, Mapping};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

const PAGE: u64 = 4096;
/// A page that so many snapshots have not used is no longer read.
const SNAPSHOTS: u32 = 32;
/// Bytes above the stack pointer of each thread that are read as well.
const STACK: u64 = 32 << 10;
/// Bytes below the stack pointer that a function may use (System V ABI x86-64).
const RED_ZONE: u64 = 128;

/// What is read of pages that are not in the working set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherPages {
    /// Nothing: [`FrozenProcess::is_incomplete`](super::FrozenProcess::is_incomplete) tells, and the next snapshot has them.
    Missing,
    /// What they hold later, while the process runs on. They do not come into the working set.
    Live,
    /// What they hold: the process stays stopped.
    Stopped,
}

/// The pages that snapshots of a process use. Clones share them.
#[derive(Clone, Default, Debug)]
pub struct WorkingSet(Arc<Mutex<Used>>);

#[derive(Default, Debug)]
struct Used {
    snapshot: u32,
    /// Pages by address, and the snapshot that last used them.
    pages: HashMap<u64, u32>,
}

impl WorkingSet {
    /// Begins a snapshot. Returns the pages of the last ones, by address.
    fn begin(&self) -> Vec<u64> {
        let mut used = self.used();
        used.snapshot += 1;
        let snapshot = used.snapshot;
        used.pages.retain(|_, last| snapshot - *last <= SNAPSHOTS);
        let mut pages: Vec<u64> = used.pages.keys().copied().collect();
        pages.sort_unstable();
        pages
    }

    fn insert(&self, page: u64) {
        let mut used = self.used();
        let snapshot = used.snapshot;
        used.pages.insert(page, snapshot);
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pages of a process that stands still, or did when they were read.
#[derive(Debug)]
pub(super) struct PagesOfMoment {
    set: WorkingSet,
    /// Memory that can change, by address. All other memory is read as it is.
    changeable: Vec<Changeable>,
    pages: RwLock<Pages>,
    /// What is done about other pages.
    others: Mutex<OtherPages>,
    is_incomplete: AtomicBool,
}

#[derive(Debug)]
struct Changeable {
    range: Range<u64>,
    /// Its pages are zeros until they are written.
    is_anonymous: bool,
}

#[derive(Debug)]
struct Pages {
    /// Where the bytes of each page begin; `None` for a page of zeros.
    places: HashMap<u64, Option<usize>>,
    bytes: Vec<u8>,
}

impl PagesOfMoment {
    /// Has the kernel load pages of files, so that they are present soon: memory of the process that is not stopped yet.
    pub(super) fn load(set: &WorkingSet, mappings: &[Mapping], memory: &MemoryFiles) {
        let changeable = changeable(mappings);
        let pages: Vec<u64> = set.used().pages.keys().copied().collect();
        for page in pages {
            let is_of_file = at(&changeable, page).is_some_and(|area| !area.is_anonymous);
            if is_of_file && !is_resident(memory, page) {
                memory.read_now(page, &mut [0]);
            }
        }
    }

    /// Reads the working set of a process that stands still, and the top of the stacks with these stack pointers.
    pub(super) fn read(
        set: &WorkingSet,
        mappings: &[Mapping],
        memory: &MemoryFiles,
        stack_pointers: &[u64],
    ) -> PagesOfMoment {
        let changeable = changeable(mappings);
        let mut wanted = set.begin();
        for sp in stack_pointers {
            let Some(stack) = maps::at(mappings, *sp) else { continue };
            let first = page_of(sp.saturating_sub(RED_ZONE).max(stack.range.start));
            wanted.extend((first..stack.range.end.min(sp.saturating_add(STACK))).step_by(PAGE as usize));
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted.retain(|page| at(&changeable, *page).is_some());
        let pages = Pages {
            places: HashMap::with_capacity(wanted.len()),
            bytes: Vec::with_capacity(wanted.len() * PAGE as usize),
        };
        let moment = PagesOfMoment {
            set: set.clone(),
            changeable,
            pages: RwLock::new(pages),
            others: Mutex::new(OtherPages::Stopped),
            is_incomplete: AtomicBool::new(false),
        };
        moment.fetch(&wanted, memory);
        moment
    }

    /// Says what is read of other pages from here on.
    pub(super) fn set_others(&self, others: OtherPages) {
        *self.others.lock().unwrap_or_else(PoisonError::into_inner) = others;
    }

    /// A thread has run, so that pages may not be those of one moment.
    pub(super) fn note_change(&self) {
        self.is_incomplete.store(true, Ordering::Release);
    }

    /// Whether pages were needed that were not read, or may have changed.
    pub(super) fn is_incomplete(&self) -> bool {
        self.is_incomplete.load(Ordering::Acquire)
    }

    /// Copies as many bytes from `address` on as can be read, and returns how many.
    pub(super) fn copy(&self, address: u64, into: &mut [u8], memory: &MemoryFiles) -> usize {
        let others = *self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let mut done = 0;
        while done < into.len() {
            let Some(from) = address.checked_add(done as u64) else { break };
            let mut count = ((PAGE - from % PAGE) as usize).min(into.len() - done);
            let read = if at(&self.changeable, from).is_none() {
                memory.read_now(from, &mut into[done..done + count])
            } else if others == OtherPages::Live && !self.is_known(from) {
                // As many pages at once as are not known.
                while done + count < into.len() && !self.is_known(from + count as u64) {
                    count = (count + PAGE as usize).min(into.len() - done);
                }
                memory.read_now(from, &mut into[done..done + count])
            } else {
                self.copy_within_page(from, &mut into[done..done + count], others, memory)
            };
            done += read;
            if read < count {
                break;
            }
        }
        done
    }

    fn copy_within_page(
        &self,
        address: u64,
        into: &mut [u8],
        others: OtherPages,
        memory: &MemoryFiles,
    ) -> usize {
        let page = page_of(address);
        self.set.insert(page);
        if self.copy_known(address, into) {
            return into.len();
        }
        if others == OtherPages::Stopped {
            self.fetch(&[page], memory);
            if self.copy_known(address, into) {
                return into.len();
            }
        }
        self.is_incomplete.store(true, Ordering::Release);
        0
    }

    fn is_known(&self, address: u64) -> bool {
        let pages = self.pages.read().unwrap_or_else(PoisonError::into_inner);
        pages.places.contains_key(&page_of(address))
    }

    /// Copies bytes of a page that was read.
    fn copy_known(&self, address: u64, into: &mut [u8]) -> bool {
        let pages = self.pages.read().unwrap_or_else(PoisonError::into_inner);
        match pages.places.get(&page_of(address)) {
            Some(Some(place)) => {
                let from = place + (address % PAGE) as usize;
                into.copy_from_slice(&pages.bytes[from..from + into.len()]);
                true
            }
            Some(None) => {
                into.fill(0);
                true
            }
            None => false,
        }
    }

    /// Reads pages that are present. They are sorted, and lie in changeable memory.
    fn fetch(&self, wanted: &[u64], memory: &MemoryFiles) {
        let mut pages = self.pages.write().unwrap_or_else(PoisonError::into_inner);
        let mut present = Vec::new();
        for run in wanted.chunk_by(|page, next| page + PAGE == *next) {
            present.clear();
            present.resize(run.len(), false);
            memory.resident(run[0], &mut present);
            let parts: Vec<(u64, bool)> = run.iter().copied().zip(present.iter().copied()).collect();
            for part in parts.chunk_by(|(_, present), (_, next)| present == next) {
                match part[0].1 {
                    true => pages.push(part[0].0, part.len(), memory),
                    false => {
                        let is_zero =
                            |page: &u64| at(&self.changeable, *page).is_some_and(|area| area.is_anonymous);
                        let zeros = part.iter().map(|(page, _)| *page).filter(is_zero);
                        pages.places.extend(zeros.map(|page| (page, None)));
                    }
                }
            }
        }
    }
}

impl Pages {
    /// Reads neighbouring pages.
    fn push(&mut self, first: u64, count: usize, memory: &MemoryFiles) {
        let start = self.bytes.len();
        self.bytes.resize(start + count * PAGE as usize, 0);
        let read = memory.read_now(first, &mut self.bytes[start..]) / PAGE as usize;
        self.bytes.truncate(start + read * PAGE as usize);
        let place = |number: usize| (first + number as u64 * PAGE, Some(start + number * PAGE as usize));
        self.places.extend((0..read).map(place));
    }
}

fn page_of(address: u64) -> u64 {
    address & !(PAGE - 1)
}

fn is_resident(memory: &MemoryFiles, page: u64) -> bool {
    let mut present = [false];
    memory.resident(page, &mut present);
    present[0]
}

/// The memory that a program can write.
fn changeable(mappings: &[Mapping]) -> Vec<Changeable> {
    let writable = mappings.iter().filter(|mapping| mapping.readable && mapping.writable);
    let changeable = writable.map(|mapping| Changeable {
        range: mapping.range.clone(),
        is_anonymous: mapping.inode == 0 && !mapping.shared,
    });
    changeable.collect()
}

fn at(changeable: &[Changeable], address: u64) -> Option<&Changeable> {
    let behind = changeable.partition_point(|area| area.range.start <= address);
    changeable[..behind].last().filter(|area| area.range.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_snapshots_do_not_use_leave_the_set() {
        let set = WorkingSet::default();
        assert!(set.begin().is_empty());
        set.insert(0x3000);
        set.insert(0x1000);
        assert_eq!(set.begin(), [0x1000, 0x3000]);
        for _ in 0..SNAPSHOTS - 1 {
            set.insert(0x1000);
            assert_eq!(set.begin(), [0x1000, 0x3000]);
        }
        set.insert(0x1000);
        assert_eq!(set.begin(), [0x1000]);
    }
}
