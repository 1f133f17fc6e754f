//! Finds the range that covers each of some sorted addresses, with one search for each range.

use std::ops::Range;

/// The ranges inserted so far that cover one of the addresses.
pub(crate) struct Covering<'a> {
    addresses: &'a [u64],
    /// Each range at the first address in it.
    ranges: Vec<Option<Range<u64>>>,
}

impl<'a> Covering<'a> {
    /// No ranges, for these sorted addresses.
    pub fn new(addresses: &'a [u64]) -> Covering<'a> {
        Covering { addresses, ranges: vec![None; addresses.len()] }
    }

    /// Adds a range. Of ranges with the same first address, the one that starts last counts.
    pub fn insert(&mut self, range: Range<u64>) {
        let first = self.addresses.partition_point(|address| *address < range.start);
        if self.addresses.get(first).is_none_or(|address| *address >= range.end) {
            return;
        }
        let known = &mut self.ranges[first];
        if known.as_ref().is_none_or(|known| known.start < range.start) {
            *known = Some(range);
        }
    }

    /// The range that covers each address.
    pub fn finish(self) -> impl Iterator<Item = Option<Range<u64>>> {
        let mut last: Option<Range<u64>> = None;
        self.addresses.iter().zip(self.ranges).map(move |(address, range)| {
            last = range.or(last.take()).filter(|last| last.contains(address));
            last.clone()
        })
    }
}
