//! Time with its number of hits.

/// Time and the number of hits that it is based on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Weight {
    /// Nanoseconds.
    pub time: u64,
    /// Number of stacks taken.
    pub hits: u64,
}

impl std::ops::AddAssign for Weight {
    fn add_assign(&mut self, other: Weight) {
        self.time = self.time.saturating_add(other.time);
        self.hits = self.hits.saturating_add(other.hits);
    }
}
