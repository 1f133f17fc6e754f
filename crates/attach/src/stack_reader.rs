//! Walks stacks of the process, with the unwind rules of its modules.

use super::module_reader::ModuleReader;
use super::modules::Modules;
use super::perf_events::Dump;
use super::stream::EventWriter;
use stackglass_proc_text::SleepPlace;
use stackglass_sampling::{CachedStack, SPAN, SleepCache, SleepEntry};
use stackglass_unwind::memory::read_process;
use stackglass_unwind::walk::{Cut, End};
use stackglass_unwind::{ProcessStack, Registers, Scratch, StackMemory, Walk, Walker};
use stackglass_wire::MAX_FRAMES;

/// Bytes of a stack that are fetched at once.
const FETCH: usize = 8 << 10;
/// Stacks of sleeping threads that are stored.
const STORED: usize = 4096;

/// The modules of the process, and working memory for walks.
pub(crate) struct StackReader {
    /// The thread through which memory is read: not always the main one, which may have ended.
    living: u32,
    modules: Modules,
    reader: ModuleReader,
    /// Stacks that could not be read from a sleeping thread alone. Most programs need none, so the memory is allocated with the first one.
    cache: Option<Box<Cache>>,
    scratch: Box<Scratch>,
    frames: Vec<u64>,
    stack: Vec<u8>,
    /// A walk met code outside of all modules.
    met_unknown_code: bool,
}

struct Cache {
    stacks: SleepCache<Vec<SleepEntry>>,
    room: [u8; SPAN],
}

impl StackReader {
    /// A reader for the process of which `living` is a live thread; `None` if the process is gone.
    pub(crate) fn new(living: u32) -> Option<StackReader> {
        Some(StackReader {
            living,
            modules: Modules::new(living)?,
            reader: ModuleReader::new(living),
            cache: None,
            scratch: Box::default(),
            frames: vec![0; MAX_FRAMES],
            stack: vec![0; FETCH],
            met_unknown_code: false,
        })
    }

    /// The thread through which memory is read.
    pub(crate) fn living(&self) -> u32 {
        self.living
    }

    /// Reads memory through another thread from now on, because the one so far has ended.
    pub(crate) fn read_through(&mut self, living: u32) {
        self.living = living;
        self.modules.read_through(living);
        self.reader.read_through(living);
        self.cache = None;
    }

    /// Pushes modules that came or went. Whether any did.
    pub(crate) fn update_modules(&mut self, events: &mut EventWriter, now: u64) -> bool {
        let has_changed = self.modules.refresh(&mut self.reader, events, now);
        if has_changed {
            self.cache = None;
        }
        has_changed
    }

    /// Whether a walk has met code outside of all modules.
    pub(crate) fn met_unknown_code(&self) -> bool {
        self.met_unknown_code
    }

    /// Forgets that a walk has met code outside of all modules. Whether one had.
    pub(crate) fn take_unknown_code(&mut self) -> bool {
        std::mem::take(&mut self.met_unknown_code)
    }

    /// Walks a stack as it is in the process now.
    pub(crate) fn walk(&mut self, registers: &Registers) -> Walk {
        let mut bytes = std::mem::take(&mut self.stack);
        let walk = self.walk_in(registers, &mut ProcessStack::new(self.living as i32, &mut bytes));
        self.stack = bytes;
        walk
    }

    /// Walks a stack in other memory.
    pub(crate) fn walk_in(&mut self, registers: &Registers, stack: &mut impl StackMemory) -> Walk {
        let mut walker = Walker {
            modules: self.modules.list(),
            table: Some(&self.modules.table),
            memory: &self.reader,
            scratch: &mut self.scratch,
        };
        let walk = walker.walk(registers, stack, &mut self.frames);
        self.met_unknown_code |= walk.end == End::Cut(Cut::NoModule);
        walk
    }

    /// The frames of the last walk, or of the last stack found by [`StackReader::cached`].
    pub(crate) fn frames(&self, len: usize) -> &[u64] {
        &self.frames[..len]
    }

    /// The stack of a thread that sleeps at a place where a stop has taken its stack before, if it is still the same.
    pub(crate) fn cached(&mut self, tid: u32, place: SleepPlace) -> Option<CachedStack> {
        let Cache { stacks, room } = &mut **self.cache.as_mut()?;
        stacks.lookup(tid, place, read_of(self.living), room, &mut self.frames)
    }

    /// Whether a thread was stopped at this place before.
    pub(crate) fn was_tried(&self, tid: u32, place: SleepPlace) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.stacks.was_tried(tid, place))
    }

    /// Stores the last walk as the stack of a stopped thread that sleeps at this place.
    pub(crate) fn store(&mut self, tid: u32, place: SleepPlace, walk: &Walk) {
        let read = read_of(self.living);
        self.store_read(tid, place, walk, read);
    }

    /// Stores the last walk as the stack of a thread that slept at this place, with a copy of that stack.
    pub(crate) fn store_copied(&mut self, tid: u32, place: SleepPlace, walk: &Walk, copy: &Dump) {
        self.store_read(tid, place, walk, |address, into| copy.read(address, into));
    }

    fn store_read(
        &mut self,
        tid: u32,
        place: SleepPlace,
        walk: &Walk,
        read: impl FnOnce(u64, &mut [u8]) -> usize,
    ) {
        let cache = self.cache.get_or_insert_with(|| {
            let stacks = SleepCache::new(vec![SleepEntry::default(); STORED]);
            Box::new(Cache { stacks, room: [0; SPAN] })
        });
        let Cache { stacks, room } = &mut **cache;
        stacks.insert(tid, place, &self.frames[..walk.len], walk.end.code(), read, room);
    }
}

fn read_of(tid: u32) -> impl FnOnce(u64, &mut [u8]) -> usize {
    move |address, into| read_process(tid as i32, address, into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Stream;

    #[inline(never)]
    fn outermost(number: &mut u64) {
        *number = std::hint::black_box(*number + 1);
    }

    #[test]
    fn what_could_not_be_read_through_an_ended_thread_is_read_through_another() {
        let own = std::process::id();
        let mut ended = crate::ended_child::ended_child();
        let mut events = Stream::new(own, 0).events();
        let mut stacks = StackReader::new(own).unwrap();
        assert!(stacks.update_modules(&mut events, 0));
        // The function returns to address 0: it has no caller.
        let stack = [0u64; 64];
        let function: fn(&mut u64) = outermost;
        let registers = Registers::new(function as usize as u64, stack.as_ptr().addr() as u64, Some(0));
        stacks.read_through(ended.id());
        assert_ne!(stacks.walk(&registers).end, End::Complete);
        assert!(!stacks.update_modules(&mut events, 0), "it has no mappings");
        stacks.read_through(own);
        assert_eq!(stacks.walk(&registers).end, End::Complete);
        ended.wait().unwrap();
    }
}
