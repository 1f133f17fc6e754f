//! The part of a stack that is deeper than what a perf sample holds.
//!
//! It is read from the process, which runs on meanwhile. It is accepted only if it was the same before and after the
//! sample, from the last bytes of the sample's part to the outermost frame, and those bytes are the same in the sample.

use super::clock::monotonic;
use super::perf_events::Dump;
use stackglass_unwind::StackMemory;
use stackglass_unwind::memory::read_process;

/// Most bytes that are read.
const MOST: usize = 1 << 20;
/// Bytes at the end of the sample's part that must be the same.
const SEAM: u64 = 8 << 10;

/// Part of a stack at one moment.
#[derive(Default)]
struct Copy {
    /// When it was read, CLOCK_MONOTONIC ns; 0 for no copy.
    began: u64,
    ended: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Copy {
    fn from(&self, address: u64) -> Option<&[u8]> {
        self.bytes.get(usize::try_from(address.checked_sub(self.start)?).ok()?..)
    }
}

/// The last two copies of the lower part of one thread's stack.
#[derive(Default)]
pub(crate) struct DeepStack {
    before: Copy,
    now: Copy,
}

impl DeepStack {
    /// The part below a sample that was taken `at` a moment, if it is certain. `living` is a thread of the process.
    pub(crate) fn below(&mut self, living: u32, at: u64, dump: &Dump) -> Option<&[u8]> {
        let seam = dump.end().checked_sub(SEAM)?;
        if self.now.began < at {
            std::mem::swap(&mut self.before, &mut self.now);
            let copy = &mut self.now;
            copy.bytes.resize(MOST, 0);
            copy.began = monotonic();
            // A copy begins lower than this sample's part ends: the next sample may end elsewhere.
            copy.start = seam.saturating_sub(4 * SEAM).max(dump.start());
            let len = read_process(living as i32, copy.start, &mut copy.bytes);
            copy.bytes.truncate(len);
            copy.ended = monotonic();
        }
        let (before, now) = (self.before.from(seam)?, self.now.from(seam)?);
        let is_same = self.before.ended > 0 && self.before.ended < at && before == now;
        let mut end = [0; SEAM as usize];
        let is_joined = dump.read(seam, &mut end) == end.len() && now.starts_with(&end);
        (is_same && is_joined).then(|| &now[end.len()..])
    }
}

/// A sample's part of a stack, and what is below it.
pub(crate) struct WholeStack<'a> {
    pub(crate) dump: &'a mut Dump,
    pub(crate) below: &'a [u8],
}

impl StackMemory for WholeStack<'_> {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        self.dump.read_u64(address).or_else(|| {
            let from = usize::try_from(address.checked_sub(self.dump.end())?).ok()?;
            Some(u64::from_le_bytes(self.below.get(from..from.checked_add(8)?)?.try_into().ok()?))
        })
    }
}
