//! Time and hits that belong together.

/// Time, and the number of hits it rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Weight {
    /// Nanoseconds.
    pub time: u64,
    /// Times a stack was really taken.
    pub hits: u64,
}

impl std::ops::AddAssign for Weight {
    fn add_assign(&mut self, other: Weight) {
        self.time = self.time.saturating_add(other.time);
        self.hits = self.hits.saturating_add(other.hits);
    }
}
