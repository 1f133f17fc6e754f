//! What the drop of a task does: what it gives back, closes and changes.

/// Permits that are given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Release {
    /// Address of the semaphore.
    pub semaphore: u64,
    /// Number of permits.
    pub permits: u64,
}

/// What the drop of a task does.
#[derive(Default)]
pub struct Dropped {
    /// Permits that it gives back.
    pub releases: Vec<Release>,
    /// Semaphores that it closes.
    pub(crate) closed: Vec<u64>,
    /// Locks for which it waits.
    pub(crate) locks: Vec<u64>,
    /// Words that are asked for and changed, as they are at the end, or before something is left out.
    pub(crate) words: Vec<(u64, u64)>,
    /// The same words as they are at the end, whatever was left out before.
    pub(crate) last: Vec<(u64, u64)>,
    /// Semaphores in which it changes something.
    pub(crate) touched: Vec<u64>,
    /// All of its code was followed.
    pub is_whole: bool,
    /// It is a landing pad, and was followed until the caller is unwound, or what is thrown is caught.
    pub resumes: bool,
}

impl Dropped {
    /// Whether it certainly gives permits of a semaphore back, besides some: `Some(false)` if it certainly does not.
    pub fn gives_back(&self, semaphore: u64, besides: u64) -> Option<bool> {
        match self.permits(semaphore).saturating_sub(besides) {
            0 => (self.is_whole && !self.touched.contains(&semaphore)).then_some(false),
            _ => Some(true),
        }
    }

    /// Number of permits of a semaphore that it gives back.
    pub fn permits(&self, semaphore: u64) -> u64 {
        let of = self.releases.iter().filter(|release| release.semaphore == semaphore);
        of.fold(0, |sum, release| sum.saturating_add(release.permits))
    }

    /// The same for whether it closes a semaphore.
    pub fn closes(&self, semaphore: u64) -> Option<bool> {
        match self.closed.contains(&semaphore) {
            true => Some(true),
            false => (self.is_whole && !self.touched.contains(&semaphore)).then_some(false),
        }
    }

    /// The same for whether it sets bits of a word.
    pub fn sets(&self, word: u64, bits: u64) -> Option<bool> {
        let sets = self.words.iter().any(|(address, value)| *address == word && value & bits == bits);
        (sets || self.is_whole).then_some(sets)
    }

    /// What it makes of a word that is asked for: `Some(None)` if it certainly leaves it as it is.
    pub fn changes(&self, word: u64) -> Option<Option<u64>> {
        match self.words.iter().find(|(address, _)| *address == word) {
            Some((_, value)) => Some(Some(*value)),
            None => self.is_whole.then_some(None),
        }
    }

    /// What it makes of such a word, if what was left out before makes no difference. `None` if it is not seen to change it.
    pub fn leaves(&self, word: u64) -> Option<u64> {
        self.last.iter().find(|(address, _)| *address == word).map(|(_, value)| *value)
    }

    /// Whether it waits for a lock.
    pub fn waits_for(&self, lock: u64) -> bool {
        self.locks.contains(&lock)
    }

    /// The addresses of all that it gives back, closes or changes.
    pub fn addresses(&self) -> impl Iterator<Item = u64> {
        let releases = self.releases.iter().map(|release| release.semaphore);
        releases.chain(self.closed.iter().copied()).chain(self.words.iter().map(|(address, _)| *address))
    }
}
