//! A set of nodes, one bit for each node of the graph.

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// An empty set of numbers below `len`.
    pub fn new(len: usize) -> Bits {
        Bits(vec![0; len.div_ceil(64)])
    }

    /// A set of these numbers, all below `len`.
    pub fn from_members(len: usize, members: impl IntoIterator<Item = u32>) -> Bits {
        let mut bits = Bits::new(len);
        for member in members {
            bits.insert(member as usize);
        }
        bits
    }

    /// Whether a number is in the set.
    #[inline]
    pub fn get(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 != 0
    }

    /// Inserts a number, and returns whether it is new.
    #[inline]
    pub fn insert(&mut self, at: usize) -> bool {
        let (word, bit) = (&mut self.0[at / 64], 1 << (at % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
