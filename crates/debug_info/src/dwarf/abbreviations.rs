//! The abbreviations of a unit, as an index into the bytes of their table.
//!
//! gimli's table holds every attribute of every abbreviation. Where few entries of each of a thousand units are read, that
//! takes longer than all else. Here, declarations are only indexed; they are read when an entry uses them.

use crate::dwarf::leb::{read_leb, read_signed_leb};
use foldhash::HashMap;
use gimli::{AttributeSpecification, DwTag, LittleEndian};
use std::sync::Arc;

/// The declarations of a unit by their codes.
#[derive(Debug, Default)]
pub struct Abbreviations<'data> {
    table: &'data [u8],
    /// Positions of the tags of codes `i + 1`; producers number from 1.
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
}

/// The declaration of an abbreviation.
#[derive(Clone, Copy, Debug)]
pub struct Declaration<'data> {
    /// The tag of its entries.
    pub tag: DwTag,
    /// Whether entries follow that belong to it.
    pub has_children: bool,
    attributes: &'data [u8],
}

impl<'data> Abbreviations<'data> {
    /// Indexes the table that starts at `offset`. Of a truncated table, the complete declarations are used.
    pub fn new(section: &'data [u8], offset: usize) -> Abbreviations<'data> {
        let table = section.get(offset..).unwrap_or_default();
        let mut found = Abbreviations { table, ..Abbreviations::default() };
        let mut at = 0;
        while let Some((code, start)) = read_leb(table, at).filter(|(code, _)| *code != 0) {
            let Some(end) = end_of(table, start) else { break };
            let Ok(place) = u32::try_from(start) else { break };
            if code == found.dense.len() as u64 + 1 && found.sparse.is_empty() {
                found.dense.push(place);
            } else {
                found.sparse.entry(code).or_insert(place);
            }
            at = end;
        }
        found
    }

    fn place(&self, code: u64) -> Option<usize> {
        let index = usize::try_from(code.checked_sub(1)?).ok()?;
        let place = self.dense.get(index).or_else(|| self.sparse.get(&code))?;
        Some(*place as usize)
    }

    /// The declaration of a code.
    pub fn get(&self, code: u64) -> Option<Declaration<'data>> {
        let (tag, at) = read_leb(self.table, self.place(code)?)?;
        let children = self.table.get(at)?;
        Some(Declaration {
            tag: DwTag(u16::try_from(tag).ok()?),
            has_children: *children != 0,
            attributes: self.table.get(at + 1..)?,
        })
    }

    /// A table for gimli with the declaration of one code, which suffices to read a unit's root entry.
    pub fn only(&self, code: u64) -> Option<Arc<gimli::Abbreviations>> {
        let place = self.place(code)?;
        let end = end_of(self.table, place)?;
        // The code precedes the tag, in as few bytes as possible.
        let digits = (u64::BITS - code.leading_zeros()).div_ceil(7) as usize;
        let start = place.checked_sub(digits)?;
        if read_leb(self.table, start) != Some((code, place)) {
            return None;
        }
        let one = gimli::DebugAbbrev::new(self.table.get(start..end)?, LittleEndian);
        one.abbreviations(gimli::DebugAbbrevOffset(0)).ok().map(Arc::new)
    }
}

impl Declaration<'_> {
    /// Its attributes, in order, up to the first that cannot be read.
    pub fn attributes(&self) -> impl Iterator<Item = AttributeSpecification> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (name, form, value, after) = attribute(self.attributes, at)?;
            at = after;
            let (name, form) = (u16::try_from(name).ok()?, u16::try_from(form).ok()?);
            let known = name != 0 && form != 0;
            known.then(|| AttributeSpecification::new(gimli::DwAt(name), gimli::DwForm(form), value))
        })
    }
}

/// Name, form, implicit value, and the position behind them.
#[inline]
fn attribute(bytes: &[u8], at: usize) -> Option<(u64, u64, Option<i64>, usize)> {
    let (name, at) = read_leb(bytes, at)?;
    let (form, at) = read_leb(bytes, at)?;
    if form == u64::from(gimli::DW_FORM_implicit_const.0) {
        let (value, at) = read_signed_leb(bytes, at)?;
        return Some((name, form, Some(value), at));
    }
    Some((name, form, None, at))
}

/// The position behind the declaration whose tag is at `at`.
fn end_of(table: &[u8], at: usize) -> Option<usize> {
    let (_tag, at) = read_leb(table, at)?;
    let mut at = at + 1;
    loop {
        let (name, form, _, after) = attribute(table, at)?;
        at = after;
        if name == 0 && form == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// The same declarations as gimli's wherever it accepts the table.
        #[test]
        fn any_table_reads_the_same(
            entries in proptest::collection::vec(
                (1u8..12, 1u8..90, 0u8..2, proptest::collection::vec((1u8..120, 1u8..44), 0..8)),
                0..12,
            ),
            cut in 0usize..4,
        ) {
            let mut table = vec![0xff; 3];
            for (code, tag, children, attributes) in entries {
                table.extend([code, tag, children]);
                for (name, form) in attributes {
                    table.extend([name, form]);
                    if form == 0x21 {
                        table.push(name & 0x7f);
                    }
                }
                table.extend([0, 0]);
            }
            table.truncate(table.len() - cut.min(table.len() - 3));
            let theirs = gimli::DebugAbbrev::new(&table, LittleEndian).abbreviations(gimli::DebugAbbrevOffset(3));
            let ours = Abbreviations::new(&table, 3);
            for code in 0..14 {
                let our = ours.get(code);
                if let Ok(theirs) = &theirs {
                    let their = theirs.get(code);
                    proptest::prop_assert_eq!(our.is_some(), their.is_some());
                    let alone = ours.only(code);
                    proptest::prop_assert_eq!(alone.as_ref().and_then(|alone| alone.get(code)), their);
                    if let (Some(our), Some(their)) = (our, their) {
                        proptest::prop_assert_eq!(our.tag, their.tag());
                        proptest::prop_assert_eq!(our.has_children, their.has_children());
                        proptest::prop_assert_eq!(&our.attributes().collect::<Vec<_>>(), their.attributes());
                    }
                }
            }
        }
    }
}
