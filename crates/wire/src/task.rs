//! Async tasks: a cell for each thread with the task it polls, and a table of all live tasks.
//!
//! A process has one [`TaskPool`]. The crate writes to it; the sampler reads it, either the crate's own or that of the
//! preload library, which gives its pool to the crate ([`TASKS_SYMBOL`](crate::TASKS_SYMBOL)). A poll costs a few plain
//! stores to cache lines without another writer. A signal handler on the polling thread reads its own thread's cell and
//! the entry of the task, which lives as long as the poll.
//!
//! The table holds the names of tasks that were created before sampling started, and of waiting tasks. All zeros is an empty
//! pool, which is what a forked child sees (`MADV_WIPEONFORK`).

mod remote;

use crate::event::pack;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, compiler_fence, fence};
pub use remote::{POOL_BYTES, PoolHead, ReadEntry};

/// Most threads that poll at a time.
pub const CELLS: usize = 32 * 1024;
/// Most tasks in the table; further tasks have no name and are not sampled while they wait.
pub const ENTRIES: usize = 128 * 1024;
/// Words of the text of an entry.
pub const TEXT_WORDS: usize = 24;
/// By this word others find the pool in the memory of the process.
pub const MARK: u64 = u64::from_le_bytes(*b"SGtasks2");
/// Longest name of a task in bytes; longer names are cut at the end.
const LONGEST_NAME: usize = 64;
/// Longest path of the source file in bytes; longer paths are cut at the start.
const LONGEST_FILE: usize = TEXT_WORDS * 8 - LONGEST_NAME;

/// The task that a thread polls, written by that thread.
#[repr(C, align(64))]
pub struct TaskCell {
    /// Kernel id of the thread; 0: free.
    owner: AtomicU32,
    /// Number of the task's entry, 0 for none.
    entry: AtomicU32,
    /// The task's id, 0 for none.
    task: AtomicU64,
}

/// A live task.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct TaskEntry {
    /// The task's id, 0 while free.
    id: AtomicU64,
    /// Number of the cell of the polling thread (its index + 1), 0 while the task waits.
    polled_by: AtomicU32,
    /// Next entry in the list of free entries.
    next: AtomicU32,
    /// CLOCK_MONOTONIC ns at the end of its last poll, if polls are timed; else its creation, or 0.
    since: AtomicU64,
    /// Where its text was sent: run of the sampler in the high half, lower half of the id.
    sent: AtomicU64,
    /// Bytes of the name, bytes of the path << 16, line << 32.
    lengths: AtomicU64,
    /// Odd while the future may change: during a poll, and from its end on. Each wait has a number of its own.
    sequence: AtomicU64,
    /// Address of the wrapped future, which does not move after the first poll; 0 before.
    future: AtomicU64,
    /// Address of the future's vtable as a `dyn Future`, whose debug information names the type.
    vtable: AtomicU64,
    /// The name's bytes, then the path's.
    text: [AtomicU64; TEXT_WORDS],
}

/// Name of a task and the source line where it was created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskText {
    /// Bytes of the name.
    pub name_len: u16,
    /// Bytes of the source file's path, right after the name.
    pub file_len: u16,
    /// Line, from 1; 0 unknown.
    pub line: u32,
    /// Name and path as little-endian words.
    pub words: [u64; TEXT_WORDS],
}

impl Default for TaskText {
    fn default() -> Self {
        TaskText::EMPTY
    }
}

impl TaskText {
    /// Nothing is known.
    pub const EMPTY: TaskText = TaskText { name_len: 0, file_len: 0, line: 0, words: [0; TEXT_WORDS] };

    /// A name and a source line, cut to fit.
    pub fn new(name: &str, file: &str, line: u32) -> TaskText {
        let mut end = name.len().min(LONGEST_NAME);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let mut start = file.len().saturating_sub(LONGEST_FILE);
        while !file.is_char_boundary(start) {
            start += 1;
        }
        let (name, file) = (&name.as_bytes()[..end], &file.as_bytes()[start..]);
        let mut words = [0; TEXT_WORDS];
        pack(name.iter().chain(file), &mut words);
        TaskText { name_len: name.len() as u16, file_len: file.len() as u16, line, words }
    }

    /// The words that hold the text.
    pub fn used(&self) -> &[u64] {
        let bytes = usize::from(self.name_len) + usize::from(self.file_len);
        &self.words[..bytes.div_ceil(8).min(TEXT_WORDS)]
    }
}

/// All cells and entries of a process.
#[repr(C)]
pub struct TaskPool {
    /// Cells taken so far.
    claims: AtomicU32,
    /// Cells from this index on were never taken.
    cells_used: AtomicU32,
    /// Run of the sampler, from 1; 0 before the first.
    run: AtomicU32,
    /// Not zero: the end of each poll is timed.
    timed: AtomicU32,
    /// Tasks for which the table had no room.
    lost: AtomicU64,
    /// [`MARK`] if the process uses this pool.
    mark: AtomicU64,
    _line: [AtomicU64; 4],
    /// Head of the list of free entries: a number, and above it a count that prevents ABA errors.
    free: AtomicU64,
    /// Entries from this index on were never used.
    entries_used: AtomicU32,
    _line2: AtomicU32,
    _line3: [AtomicU64; 6],
    cells: [TaskCell; CELLS],
    entries: [TaskEntry; ENTRIES],
}

// Two copies of this code, possibly of different builds, share a pool.
const _: () = assert!(size_of::<TaskCell>() == 64 && size_of::<TaskEntry>() == 256);

/// The task polled before, which [`TaskCell::leave`] restores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Previous {
    task: u64,
    entry: u32,
}

/// The task that a thread polls, and its entry.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Polled {
    /// The task's id, 0 for none.
    pub task: u64,
    /// Number of its entry, 0 for none.
    pub entry: u32,
}

impl TaskCell {
    /// A cell without owner.
    pub const fn unowned() -> TaskCell {
        TaskCell { owner: AtomicU32::new(0), entry: AtomicU32::new(0), task: AtomicU64::new(0) }
    }

    /// Kernel id of the owner, or 0.
    #[inline(always)]
    pub fn owner(&self) -> u32 {
        self.owner.load(Relaxed)
    }

    /// Sets the polled task. For the owner.
    #[inline(always)]
    pub fn enter(&self, task: u64, entry: u32) -> Previous {
        let before = Previous { task: self.task.load(Relaxed), entry: self.entry.load(Relaxed) };
        self.entry.store(entry, Relaxed);
        self.task.store(task, Relaxed);
        // A handler on this thread must see the task in all that follows.
        compiler_fence(SeqCst);
        before
    }

    /// Restores the task polled before. For the owner.
    #[inline(always)]
    pub fn leave(&self, before: Previous) {
        compiler_fence(SeqCst);
        self.task.store(before.task, Relaxed);
        self.entry.store(before.entry, Relaxed);
    }

    /// The task that thread `owner` polls.
    #[inline]
    pub fn polled_by(&self, owner: u32) -> Polled {
        if self.owner.load(Relaxed) != owner {
            return Polled { task: 0, entry: 0 };
        }
        Polled { task: self.task.load(Relaxed), entry: self.entry.load(Relaxed) }
    }

    /// Frees the cell when the thread ends. For the owner.
    pub fn release(&self) {
        self.task.store(0, Relaxed);
        self.entry.store(0, Relaxed);
        self.owner.store(0, Release);
    }
}

impl TaskEntry {
    /// Starts a poll. For the polling thread.
    #[inline(always)]
    pub fn begin(&self, cell: u32) {
        self.close();
        self.polled_by.store(cell, Relaxed);
    }

    /// From now on the future may change. For the thread that polls or drops it.
    #[inline(always)]
    pub fn close(&self) {
        // That thread is the only writer.
        self.sequence.store(self.sequence.load(Relaxed) | 1, Relaxed);
        // Whoever sees a change of the future sees this number as well.
        fence(Release);
    }

    /// Ends a poll. For the polling thread.
    #[inline(always)]
    pub fn end(&self) {
        self.polled_by.store(0, Relaxed);
        self.sequence.store((self.sequence.load(Relaxed) | 1).wrapping_add(1), Release);
    }

    /// The number of the task's wait. `None` while its future may change, and if the entry is that of another task.
    ///
    /// What was read of the future between two calls with the same result is of that wait.
    #[inline]
    pub fn wait_of(&self, task: u64) -> Option<u64> {
        // What was read before precedes these loads.
        fence(Acquire);
        let sequence = self.sequence.load(Acquire);
        (self.id.load(Acquire) == task && sequence & 1 == 0).then_some(sequence)
    }

    /// Address of the future, and of its vtable; 0 before the first poll.
    #[inline]
    pub fn future(&self) -> (u64, u64) {
        (self.future.load(Relaxed), self.vtable.load(Relaxed))
    }

    /// Says where the future is that is polled. For the polling thread.
    #[inline(always)]
    pub fn set_future(&self, address: u64, vtable: u64) {
        self.future.store(address, Relaxed);
        self.vtable.store(vtable, Relaxed);
    }

    /// Since when it waits, CLOCK_MONOTONIC ns; 0: unknown.
    pub fn since(&self) -> u64 {
        self.since.load(Relaxed)
    }

    /// Sets since when it waits, CLOCK_MONOTONIC ns.
    pub fn set_since(&self, at: u64) {
        self.since.store(at, Relaxed);
    }

    /// Id of its task, 0 if it is free.
    #[inline]
    pub fn id(&self) -> u64 {
        self.id.load(Acquire)
    }

    /// The text of `task`, unless it was sent in this run of the sampler, or the entry is that of another task.
    #[inline]
    pub fn unsent_text(&self, task: u64, run: u32) -> Option<TaskText> {
        if self.id() != task || self.sent.load(Relaxed) == u64::from(run) << 32 | task & 0xffff_ffff {
            return None;
        }
        let lengths = self.lengths.load(Relaxed);
        let mut text =
            TaskText { name_len: lengths as u16, file_len: (lengths >> 16) as u16, ..TaskText::EMPTY };
        text.line = (lengths >> 32) as u32;
        for (to, from) in text.words.iter_mut().zip(&self.text) {
            *to = from.load(Relaxed);
        }
        // On another thread, the entry may have been reused meanwhile.
        fence(Acquire);
        (self.id.load(Relaxed) == task).then_some(text)
    }

    /// Marks the text of `task` as sent. For the sampler.
    pub fn set_text_sent(&self, task: u64, run: u32) {
        self.sent.store(u64::from(run) << 32 | task & 0xffff_ffff, Relaxed);
    }
}

impl TaskPool {
    /// Takes a cell for the thread with this kernel id, and returns it with its number. `None` if all are taken.
    pub fn claim(&self, tid: u32) -> Option<(&TaskCell, u32)> {
        let free = |cell: &TaskCell| cell.owner.compare_exchange(0, tid, AcqRel, Relaxed).is_ok();
        let used = (self.cells_used.load(Acquire) as usize).min(CELLS);
        let index = self.cells[..used].iter().position(free).or_else(|| {
            (used..CELLS).find(|index| {
                let taken = free(&self.cells[*index]);
                self.cells_used.fetch_max(*index as u32 + 1, AcqRel);
                taken
            })
        })?;
        self.claims.fetch_add(1, AcqRel);
        Some((&self.cells[index], index as u32 + 1))
    }

    /// Changes whenever a thread takes a cell.
    pub fn claims(&self) -> u32 {
        self.claims.load(Acquire)
    }

    /// All cells that are or were taken.
    pub fn cells(&self) -> &[TaskCell] {
        &self.cells[..(self.cells_used.load(Acquire) as usize).min(CELLS)]
    }

    /// Adds a task to the table. Returns the number of its entry, 0 if the table is full.
    pub fn register(&self, task: u64, text: &TaskText, now: u64) -> u32 {
        let Some(number) = self.take_free().or_else(|| self.take_new()) else {
            self.lost.fetch_add(1, Relaxed);
            return 0;
        };
        let entry = &self.entries[number as usize - 1];
        entry.polled_by.store(0, Relaxed);
        // Another number than before: the entry may have been that of another task.
        entry.sequence.store((entry.sequence.load(Relaxed) | 1).wrapping_add(1), Relaxed);
        entry.since.store(now, Relaxed);
        entry.future.store(0, Relaxed);
        entry.vtable.store(0, Relaxed);
        let lengths = u64::from(text.name_len) | u64::from(text.file_len) << 16 | u64::from(text.line) << 32;
        entry.lengths.store(lengths, Relaxed);
        for (to, from) in entry.text.iter().zip(text.used()) {
            to.store(*from, Relaxed);
        }
        entry.id.store(task, Release);
        number
    }

    /// Removes a task from the table. Does nothing if the entry is no longer its own.
    pub fn unregister(&self, task: u64, number: u32) {
        let Some(entry) = self.entry(number) else { return };
        // The entry may be wiped, or have another task.
        if entry.id.compare_exchange(task, 0, AcqRel, Relaxed).is_err() {
            return;
        }
        let mut head = self.free.load(Relaxed);
        loop {
            entry.next.store(head as u32, Relaxed);
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(number);
            match self.free.compare_exchange_weak(head, new, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn take_free(&self) -> Option<u32> {
        let mut head = self.free.load(Acquire);
        loop {
            let number = head as u32;
            let entry = self.entry(number)?;
            let new = (head >> 32).wrapping_add(1) << 32 | u64::from(entry.next.load(Relaxed));
            match self.free.compare_exchange_weak(head, new, AcqRel, Acquire) {
                Ok(_) => return Some(number),
                Err(now) => head = now,
            }
        }
    }

    fn take_new(&self) -> Option<u32> {
        let more = |used: u32| ((used as usize) < ENTRIES).then_some(used + 1);
        self.entries_used.fetch_update(AcqRel, Relaxed, more).ok().map(|used| used + 1)
    }

    /// The entry with this number.
    #[inline]
    pub fn entry(&self, number: u32) -> Option<&TaskEntry> {
        self.entries.get((number as usize).wrapping_sub(1))
    }

    /// Highest number of an entry that is or was in use.
    pub fn entries_used(&self) -> u32 {
        self.entries_used.load(Acquire).min(ENTRIES as u32)
    }

    /// Kernel id of the thread that polls this task.
    pub fn owner_of(&self, entry: &TaskEntry) -> Option<u32> {
        let number = entry.polled_by.load(Acquire) as usize;
        self.cells.get(number.wrapping_sub(1)).map(TaskCell::owner).filter(|owner| *owner != 0)
    }

    /// Marks the pool as that of the process.
    pub fn set_mark(&self) {
        self.mark.store(MARK, Release);
    }

    /// Tasks for which the table had no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Starts a run and returns its number. For the sampler.
    pub fn begin_run(&self) -> u32 {
        self.run.fetch_add(1, AcqRel) + 1
    }

    /// The current or last run of the sampler.
    #[inline]
    pub fn run(&self) -> u32 {
        self.run.load(Relaxed)
    }

    /// Whether the end of each poll is timed.
    #[inline(always)]
    pub fn is_timed(&self) -> bool {
        self.timed.load(Relaxed) != 0
    }

    /// Sets whether polls are timed. For the sampler.
    pub fn set_timed(&self, on: bool) {
        self.timed.store(on.into(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::boxed::Box;
    use std::collections::BTreeSet;
    use std::string::String;
    use std::vec::Vec;

    fn pool() -> Box<TaskPool> {
        // SAFETY: all zeros is an empty pool.
        unsafe { Box::new_zeroed().assume_init() }
    }

    fn name_of(text: &TaskText) -> (String, String) {
        let bytes: Vec<u8> = text.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (name, file) = (usize::from(text.name_len), usize::from(text.file_len));
        let string = |from: usize, n: usize| String::from_utf8(bytes[from..from + n].to_vec()).unwrap();
        (string(0, name), string(name, file))
    }

    #[test]
    fn names_are_cut_at_their_end_and_paths_at_their_beginning() {
        let text = TaskText::new("serve", "src/main.rs", 7);
        assert_eq!(name_of(&text), ("serve".into(), "src/main.rs".into()));
        assert_eq!(text.used().len(), 2);
        let (name, file) = ("ä".repeat(100), "/a".repeat(100) + "/ö.rs");
        let (name, file) = name_of(&TaskText::new(&name, &file, 7));
        assert_eq!((name.len(), file.len()), (LONGEST_NAME, LONGEST_FILE));
        assert!(name.chars().all(|c| c == 'ä') && file.ends_with("/ö.rs"));
        // A character is never cut in two.
        let text = TaskText::new(&("x".repeat(63) + "ä"), &("ö".repeat(64) + "x"), 7);
        assert_eq!((text.name_len, text.file_len), (63, 127));
    }

    #[test]
    fn a_text_is_sent_once_in_a_run_and_for_its_own_task_only() {
        let pool = pool();
        let run = pool.begin_run();
        let number = pool.register(7, &TaskText::new("a", "f", 1), 0);
        let entry = pool.entry(number).unwrap();
        assert_eq!(name_of(&entry.unsent_text(7, run).unwrap()), ("a".into(), "f".into()));
        assert_eq!(entry.unsent_text(8, run), None);
        entry.set_text_sent(7, run);
        assert_eq!(entry.unsent_text(7, run), None);
        assert!(entry.unsent_text(7, pool.begin_run()).is_some());
        // The entry of another task stays.
        pool.unregister(8, number);
        assert_eq!(entry.id(), 7);
        pool.unregister(7, number);
        assert_eq!(pool.register(9, &TaskText::new("b", "f", 1), 0), number, "the entry is reused");
        assert_eq!(name_of(&entry.unsent_text(9, run).unwrap()).0, "b");
    }

    #[test]
    fn each_wait_has_a_number_and_a_poll_has_none() {
        let pool = pool();
        let text = TaskText::new("a", "f", 1);
        let number = pool.register(7, &text, 0);
        let entry = pool.entry(number).unwrap();
        let first = entry.wait_of(7).expect("it waits for its first poll");
        assert_eq!(entry.wait_of(8), None);
        entry.begin(1);
        assert_eq!(entry.wait_of(7), None);
        entry.end();
        let second = entry.wait_of(7).expect("it waits");
        assert!(first != second);
        // Its future is dropped, and then the task.
        entry.close();
        assert_eq!(entry.wait_of(7), None);
        pool.unregister(7, number);
        assert_eq!(pool.register(9, &text, 0), number);
        assert!(entry.wait_of(9).is_some_and(|wait| wait != first && wait != second));
    }

    #[test]
    fn a_full_table_refuses_and_recovers() {
        let pool = pool();
        let text = TaskText::new("a", "f", 1);
        let numbers: BTreeSet<u32> = (1..=ENTRIES as u64).map(|task| pool.register(task, &text, 0)).collect();
        assert_eq!((numbers.len(), numbers.first()), (ENTRIES, Some(&1)));
        assert_eq!((pool.register(1 << 40, &text, 0), pool.lost()), (0, 1));
        assert!(pool.entry(0).is_none());
        pool.unregister(77, 77);
        assert_eq!(pool.register(1 << 40, &text, 0), 77);
    }

    #[test]
    fn concurrent_threads_never_get_the_same_entry() {
        let pool = pool();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let pool = &pool;
                scope.spawn(move || {
                    let text = TaskText::new("a", "f", 1);
                    for round in 0..2000 {
                        let tasks: Vec<u64> = (0..5).map(|i| (thread << 32 | round << 8 | i) + 1).collect();
                        let held: Vec<u32> =
                            tasks.iter().map(|task| pool.register(*task, &text, 0)).collect();
                        for (task, number) in tasks.iter().zip(held) {
                            assert_eq!(pool.entry(number).unwrap().id(), *task);
                            pool.unregister(*task, number);
                        }
                    }
                });
            }
        });
        assert!(pool.entries_used() <= 20, "{} entries for 20 tasks at a time", pool.entries_used());
    }

    #[test]
    fn cells_are_taken_and_freed() {
        let pool = pool();
        let (cell, number) = pool.claim(70).unwrap();
        let outer = cell.enter(7, 1);
        let inner = cell.enter(8, 2);
        assert_eq!(cell.polled_by(70), Polled { task: 8, entry: 2 });
        assert_eq!(cell.polled_by(71), Polled::default());
        cell.leave(inner);
        assert_eq!(cell.polled_by(70), Polled { task: 7, entry: 1 });
        cell.leave(outer);
        assert_eq!(cell.polled_by(70), Polled::default());
        assert_eq!(pool.claim(71).unwrap().1, number + 1);
        cell.release();
        assert_eq!(pool.claim(72).unwrap().1, number, "the first free one");
        assert_eq!((pool.claims(), pool.cells().len()), (3, 2));
    }
}
