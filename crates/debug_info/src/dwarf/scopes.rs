//! The namespaces and types of a unit, which are parts of the paths of functions.

use gimli::UnitOffset;

/// Namespaces and types with children, in order of their offsets.
#[derive(Debug, Default)]
pub struct Scopes(Vec<Scope>);

#[derive(Debug)]
struct Scope {
    /// Unit offset of the entry.
    entry: usize,
    /// Unit offset behind its children.
    end: usize,
    parent: Option<u32>,
}

impl Scopes {
    /// Adds a scope whose end is unknown, and returns its index. Scopes are added in order of their offsets.
    pub fn open(&mut self, entry: usize, parent: Option<u32>) -> u32 {
        let index = self.0.len() as u32;
        self.0.push(Scope { entry, end: usize::MAX, parent });
        index
    }

    /// Sets the end of a scope.
    pub fn close(&mut self, index: u32, end: usize) {
        self.0[index as usize].end = end;
    }

    /// The entries of the scopes around an entry, innermost first.
    pub fn around(&self, entry: UnitOffset) -> impl Iterator<Item = UnitOffset> + '_ {
        let before = self.0.partition_point(|scope| scope.entry < entry.0);
        let mut at = before.checked_sub(1).map(|index| index as u32);
        std::iter::from_fn(move || {
            loop {
                let scope = &self.0[at? as usize];
                at = scope.parent;
                if scope.end > entry.0 {
                    return Some(UnitOffset(scope.entry));
                }
            }
        })
    }
}
