//! Julia's profile buffer: a flat vector of words.
//!
//! A sample consists of addresses, leaf first, then thread id, task id, clock, state, and two zero words. Without metadata,
//! a single zero word ends a sample. All rules, including surprising ones, are those of Julia's `Profile` standard library
//! (1.12 and later).

use std::fmt;

/// The state word of a running thread; see [`State::word`](crate::State::word).
pub const AWAKE: u64 = 1;
/// The state word of a sleeping thread.
pub const ASLEEP: u64 = 2;
/// The state word of samples of a wall-time profile of tasks.
pub const TASK: u64 = 3;

/// Number of words of a sample besides addresses: thread, task, clock, state, two zeros.
pub const OVERHEAD_WORDS: usize = 6;

/// A profile buffer in Julia's layout.
///
/// ```
/// use stackglass_profile::Data;
///
/// // Two samples without metadata; a zero ends each.
/// let bare = Data::new(vec![11, 12, 0, 13, 0]);
/// assert!(!bare.has_meta());
///
/// let data = bare.add_fake_meta(1, 7)?;
/// assert_eq!(data.words(), [11, 12, 1, 7, 100, 1, 0, 0, 13, 1, 7, 101, 1, 0, 0]);
/// assert!(data.has_meta());
/// assert_eq!((data.thread_ids(None), data.task_ids(Some(1))), (vec![1], vec![7]));
///
/// let newest = data.blocks().next().unwrap();
/// assert_eq!((newest.addresses, newest.clock), (&[13][..], 101));
/// assert_eq!(data.strip_meta()?, bare);
/// # Ok::<(), stackglass_profile::DataError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Data {
    words: Vec<u64>,
}

/// An error in the use of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DataError {
    /// Reports need metadata.
    #[error("the profile data has no metadata (thread, task, clock, state); add_fake_meta() adds some")]
    MissingMetadata,
    /// `add_fake_meta` on data that has metadata.
    #[error("the profile data already has metadata; strip_meta() removes it")]
    HasMetadata,
    /// A thread id of 0 would look like the end of a sample.
    #[error("the thread id of fake metadata cannot be 0")]
    ZeroThread,
    /// A task id of 0 would look like the end of a sample.
    #[error("the task id of fake metadata cannot be 0")]
    ZeroTask,
    /// A sample ends before its metadata is complete.
    #[error("the sample that ends at word {word} is shorter than its metadata")]
    Inconsistent {
        /// Index of the sample's last word.
        word: usize,
    },
}

/// One sample of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block<'a> {
    /// Addresses, leaf first.
    pub addresses: &'a [u64],
    /// Thread id, 1-based.
    pub thread: u64,
    /// Task id.
    pub task: u64,
    /// Clock, in the unit of the recorder.
    pub clock: u64,
    /// 1 awake, 2 asleep, 3 sample of a task profile.
    pub state: u64,
}

impl Data {
    /// A buffer of these words.
    pub fn new(words: Vec<u64>) -> Data {
        Data { words }
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the words.
    pub fn into_words(self) -> Vec<u64> {
        self.words
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether a sample has metadata.
    pub fn has_meta(&self) -> bool {
        self.words.windows(OVERHEAD_WORDS).any(|w| {
            matches!(w, [thread, task, clock, state, 0, 0]
                if *thread != 0 && *task != 0 && *clock != 0 && (AWAKE..=TASK).contains(state))
        })
    }

    /// Whether a sample with metadata ends at this word, its second zero.
    fn is_block_end(&self, index: usize) -> bool {
        // A third consecutive zero is not an end: the word before the two zeros must be the state.
        index >= OVERHEAD_WORDS - 1
            && index < self.words.len()
            && self.words[index] == 0
            && self.words[index - 1] == 0
            && self.words[index - 2] != 0
    }

    /// Samples, newest (last in the buffer) first. Words after the last complete sample are ignored.
    pub fn blocks(&self) -> Blocks<'_> {
        let last = (0..self.words.len()).rev().find(|i| self.is_block_end(*i));
        Blocks { data: self, end: last }
    }

    /// For each word: whether it is one of the six metadata words of a sample.
    pub(crate) fn metadata_mask(&self) -> Vec<bool> {
        let mut mask = vec![false; self.words.len()];
        let mut blocks = self.blocks();
        while let Some(end) = blocks.end {
            mask[end - 5..=end].fill(true);
            blocks.next();
        }
        mask
    }

    /// The buffer without metadata. A single zero ends each sample.
    ///
    /// # Errors
    /// [`DataError::Inconsistent`] when metadata overlap.
    pub fn strip_meta(&self) -> Result<Data, DataError> {
        let mut reversed = Vec::with_capacity(self.words.len());
        let mut next = self.words.len();
        while next > 0 {
            let index = next - 1;
            reversed.push(self.words[index]);
            next = match self.is_block_end(index) {
                true => index.checked_sub(5).ok_or(DataError::Inconsistent { word: index })?,
                false => index,
            };
        }
        reversed.reverse();
        Ok(Data { words: reversed })
    }

    /// Adds metadata to a buffer without any. Each zero becomes thread, task, a clock that counts from 100, awake, 0, 0. Words
    /// after the last zero are kept as they are.
    ///
    /// # Errors
    /// When an id is 0 or the buffer has metadata.
    pub fn add_fake_meta(&self, thread: u64, task: u64) -> Result<Data, DataError> {
        if thread == 0 {
            return Err(DataError::ZeroThread);
        }
        if task == 0 {
            return Err(DataError::ZeroTask);
        }
        if self.has_meta() {
            return Err(DataError::HasMetadata);
        }
        let mut words = Vec::with_capacity(self.words.len() * 2);
        let mut clock = 99;
        for word in &self.words {
            if *word == 0 {
                clock += 1;
                words.extend([thread, task, clock, AWAKE, 0, 0]);
            } else {
                words.push(*word);
            }
        }
        Ok(Data { words })
    }

    /// Thread ids in ascending order; of one task if given.
    pub fn thread_ids(&self, task: Option<u64>) -> Vec<u64> {
        let wanted = |block: &Block<'_>| task.is_none_or(|task| block.task == task);
        let ids: std::collections::BTreeSet<u64> =
            self.blocks().filter(wanted).map(|block| block.thread).collect();
        ids.into_iter().collect()
    }

    /// Task ids, the last sampled one first; of one thread if given.
    pub fn task_ids(&self, thread: Option<u64>) -> Vec<u64> {
        let mut seen = foldhash::HashSet::default();
        let wanted = |block: &Block<'_>| thread.is_none_or(|thread| block.thread == thread);
        self.blocks().filter(wanted).map(|block| block.task).filter(|task| seen.insert(*task)).collect()
    }
}

/// Iterator of [`Data::blocks`].
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    data: &'a Data,
    end: Option<usize>,
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Block<'a>;

    fn next(&mut self) -> Option<Block<'a>> {
        let words = &self.data.words;
        let end = self.end?;
        let stop = end - 5;
        // The metadata is not searched for the end of an earlier sample.
        self.end = (0..stop).rev().find(|i| words[*i] == 0 && self.data.is_block_end(*i));
        let mut addresses = &words[self.end.map_or(0, |previous| previous + 1)..stop];
        // A third zero after the earlier sample is not an address.
        while let [0, rest @ ..] = addresses {
            addresses = rest;
        }
        let meta = &words[stop..end];
        Some(Block { addresses, thread: meta[0], task: meta[1], clock: meta[2], state: meta[3] })
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Data({} words)", self.words.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Data {
        Data::new(vec![11, 12, 1, 7, 100, 1, 0, 0, 13, 2, 8, 101, 2, 0, 0])
    }

    #[test]
    fn blocks_come_newest_first() {
        let data = two();
        let blocks: Vec<_> = data.blocks().collect();
        assert_eq!(blocks[0], Block { addresses: &[13], thread: 2, task: 8, clock: 101, state: 2 });
        assert_eq!(blocks[1], Block { addresses: &[11, 12], thread: 1, task: 7, clock: 100, state: 1 });
        assert_eq!(blocks.len(), 2);
        assert_eq!((data.thread_ids(None), data.task_ids(None)), (vec![1, 2], vec![8, 7]));
        assert_eq!((data.thread_ids(Some(8)), data.task_ids(Some(1))), (vec![2], vec![7]));
    }

    #[test]
    fn metadata_come_off_and_on() {
        let bare = two().strip_meta().unwrap();
        assert_eq!(bare.words(), [11, 12, 0, 13, 0]);
        assert!(!bare.has_meta() && two().has_meta());
        let faked = bare.add_fake_meta(1, 7).unwrap();
        assert_eq!(faked.words(), [11, 12, 1, 7, 100, 1, 0, 0, 13, 1, 7, 101, 1, 0, 0]);
        assert_eq!(faked.add_fake_meta(1, 7), Err(DataError::HasMetadata));
        assert_eq!(bare.add_fake_meta(0, 7), Err(DataError::ZeroThread));
        assert_eq!(bare.add_fake_meta(1, 0), Err(DataError::ZeroTask));
    }

    #[test]
    fn a_third_zero_ends_nothing() {
        let data = Data::new(vec![11, 1, 7, 100, 1, 0, 0, 0, 12, 1, 7, 101, 1, 0, 0, 99]);
        let stacks: Vec<_> = data.blocks().map(|b| b.addresses).collect();
        assert_eq!(stacks, [&[12], &[11]]);
    }
}
