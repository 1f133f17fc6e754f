//! Whether a task that is alone in its list is a task, where no types are known.
//!
//! A task with neighbours in its runtime's list is one, since these lead back to it. One without neighbours looks like a freed
//! block. But the runtime's part that it points to has its lists, and the one with this task has no other: both its ends are
//! this task. tokio has several lists (`util/sharded_list.rs`), so that a few tasks may each be alone in theirs.
//!
//! No order of fields is assumed, except that of a pointer to an array and its length. The lists are recognised by what is beside
//! them in `OwnedTasks` (`runtime/task/list.rs`): the id that each of their tasks has as its owner, and the mask of their number.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use stackglass_process_view::pages::Pages;

/// Offset of the owner's id in a header, which is `#[repr(C)]` (`runtime/task/core.rs`).
pub(super) const OWNER: u64 = 24;
/// Words of a runtime's part that are searched.
const WORDS: u64 = 512;
/// Words of `OwnedTasks`, at most.
const NEAR: usize = 8;
/// Words of a list in the array: lock, first and last task.
const WORDS_OF_LIST: u64 = 3;
/// Most lists of a runtime.
const MOST_LISTS: u64 = 1 << 16;
/// Most words that are read for all tasks.
const MOST_WORDS: u64 = 1 << 22;

/// Finds the tasks that are alone in their list.
pub(super) struct Alone<'p, 'a> {
    pages: &'p Pages<'a>,
    left: u64,
    /// By the address of a runtime's part and its id: what is both the first and the last of a list.
    known: HashMap<(u64, u64), HashSet<u64>>,
}

impl<'p, 'a> Alone<'p, 'a> {
    pub fn new(pages: &'p Pages<'a>) -> Alone<'p, 'a> {
        Alone { pages, left: MOST_WORDS, known: HashMap::new() }
    }

    /// Whether the task with a header at an address is all of its list. `scheduler` is where it has the pointer to its runtime.
    pub fn is_only(&mut self, header: u64, scheduler: u64) -> bool {
        let part = self.pages.word(scheduler);
        let owner = header.checked_add(OWNER).and_then(|at| self.pages.word(at));
        let Some((part, owner)) = part.zip(owner).filter(|(part, owner)| *part != 0 && *owner != 0) else {
            return false;
        };
        if !self.known.contains_key(&(part, owner)) {
            let found = self.search(part, owner);
            self.known.insert((part, owner), found);
        }
        self.known.get(&(part, owner)).is_some_and(|found| found.contains(&header))
    }

    /// The ends of lists with one task, in a runtime's part and in the arrays that it points to.
    fn search(&mut self, part: u64, owner: u64) -> HashSet<u64> {
        let words = self.words(part, WORDS);
        let mut found = HashSet::new();
        for (at, pair) in words.windows(2).enumerate() {
            let near = &words[at.saturating_sub(NEAR)..words.len().min(at + NEAR)];
            let [first, second] = *pair else { continue };
            if first == 0 || !near.contains(&owner) {
                continue;
            }
            if first == second {
                // A `LocalSet` has one list, without an array.
                found.insert(first);
            }
            let is_array = first.is_multiple_of(8) && second.is_power_of_two() && second <= MOST_LISTS;
            if is_array && near.contains(&(second - 1)) {
                let lists = self.words(first, second * WORDS_OF_LIST);
                found.extend(
                    lists.windows(2).filter(|ends| ends[0] != 0 && ends[0] == ends[1]).map(|ends| ends[0]),
                );
            }
        }
        found
    }

    /// As many words as can be read.
    fn words(&mut self, address: u64, count: u64) -> Vec<u64> {
        let count = count.min(self.left);
        self.left -= count;
        let word = |number: u64| self.pages.word(address.checked_add(number * 8)?);
        (0..count).map_while(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_process_view::core_image::{CoreImage, Memory};
    use std::collections::BTreeMap;

    struct Words(BTreeMap<u64, u64>);

    impl Memory for Words {
        fn read(&self, address: u64, into: &mut [u8]) -> usize {
            for (number, bytes) in into.chunks_exact_mut(8).enumerate() {
                let word = self.0.get(&(address + number as u64 * 8)).copied().unwrap_or(0);
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            into.len()
        }
    }

    const TASK: u64 = 0x10_0000;
    const SCHEDULER: u64 = TASK + 32;
    const PART: u64 = 0x20_0000;
    const LISTS: u64 = 0x30_0000;
    const ID: u64 = 77;

    /// A task that is the only one in the third of four lists.
    fn memory() -> BTreeMap<u64, u64> {
        let list = LISTS + 2 * 24;
        // The fields of `OwnedTasks`, somewhere in the runtime's part: lists, count, mask, id.
        let owned = [(400, LISTS), (408, 4), (416, 9), (424, 3), (432, ID)];
        let mut words: BTreeMap<u64, u64> =
            owned.into_iter().map(|(offset, word)| (PART + offset, word)).collect();
        words.extend([(TASK + OWNER, ID), (SCHEDULER, PART), (list + 8, TASK), (list + 16, TASK)]);
        words
    }

    fn is_only(words: BTreeMap<u64, u64>) -> bool {
        let memory = Box::new(Words(words));
        let image = CoreImage {
            pid: 1,
            executable: String::new(),
            mappings: Vec::new(),
            threads: Vec::new(),
            memory,
        };
        Alone::new(&Pages::new(&image)).is_only(TASK, SCHEDULER)
    }

    #[test]
    fn the_lists_of_its_runtime_say_so() {
        assert!(is_only(memory()));
        let with = |address, word| {
            let mut words = memory();
            words.insert(address, word);
            is_only(words)
        };
        // A freed block: its list is empty, has another task, or has several.
        let list = LISTS + 2 * 24;
        for other in [0, TASK + 128] {
            assert!(!with(list + 8, other) && !with(list + 16, other));
        }
        // The owner is another one, or none.
        assert!(!with(TASK + OWNER, ID + 1) && !with(TASK + OWNER, 0) && !with(PART + 432, 5));
        // These are no lists: number and mask do not agree, or the pointer leads elsewhere.
        assert!(!with(PART + 408, 5) && !with(PART + 424, 7) && !with(PART + 400, LISTS + 4096));
        assert!(!with(SCHEDULER, 0) && !with(SCHEDULER, u64::MAX - 7));
        // Of a local set, the ends are in the runtime's part.
        let mut local = BTreeMap::from([(TASK + OWNER, ID), (SCHEDULER, PART), (PART + 64, ID)]);
        local.extend([(PART + 48, TASK), (PART + 56, TASK)]);
        assert!(is_only(local));
    }

    #[test]
    fn hostile_parts_are_left_after_a_limited_number_of_words() {
        let words =
            (0..WORDS).map(|number| (PART + number * 8, if number % 2 == 0 { LISTS } else { MOST_LISTS }));
        let mut words: BTreeMap<u64, u64> = words.collect();
        words.extend([(TASK + OWNER, MOST_LISTS), (SCHEDULER, PART)]);
        let ids = (0..WORDS / 8).map(|number| (PART + number * 64, MOST_LISTS - 1));
        words.extend(ids);
        assert!(!is_only(words));
    }
}
