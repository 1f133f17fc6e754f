//! Finds the functions and inlined calls at given addresses, in one walk through their unit.
//!
//! The walk has a separate stack, so that nesting in the input takes memory in proportion to the input only.

use crate::dwarf::leb::read_leb;
use crate::dwarf::scopes::Scopes;
use crate::dwarf::shapes::{Kind, Shape, Shapes};
use crate::dwarf::unit::Unit;
use crate::sections::Reader;
use gimli::{AttributeValue, EndianSlice, EntriesRaw, Error, LittleEndian, UnitOffset, UnitRef};
use std::ops::Range;

/// A function with its own code, or an inlined call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The entry with its name: its own or, for an inlined call, the function's.
    pub named_by: UnitOffset,
    /// The call or function that it was inlined into, as an index into [`Calls::calls`]; `None` for a function with its
    /// own code.
    pub into: Option<u32>,
    /// File of the call: index into the unit's file table.
    pub call_file: Option<u64>,
    /// Line of the call; 0: unknown.
    pub call_line: u64,
}

/// Result of a walk.
#[derive(Debug, Default)]
pub struct Calls {
    /// Functions and inlined calls that hold one of the addresses.
    pub calls: Vec<Call>,
    /// The innermost of them for each address.
    pub innermost: Vec<Option<u32>>,
    /// Namespaces and types of the unit; `None` if the walk ended before the end of the unit.
    pub scopes: Option<Scopes>,
}

/// An entry whose children the walk is in.
struct Open {
    /// Depth of its children.
    depth: usize,
    what: Opened,
}

enum Opened {
    /// A scope, by its index.
    Scope(u32),
    /// A function or an inlined call, by its index; the addresses that it may hold; its depth of inlining.
    Call(u32, Range<usize>, usize),
}

/// Deepest inlining; deeper calls are left out. Compilers stay far below. Without a bound, a small file could demand
/// millions of frames for each address.
const DEEPEST: usize = 500;

/// Finds the functions and inlined calls that hold the sorted `addresses`. The walk ends when all are found; without
/// addresses, it covers the whole unit for its scopes. Results before an error are kept.
pub fn walk<'data>(
    unit: &Unit<'data>,
    dwarf: &gimli::Dwarf<Reader<'data>>,
    addresses: &[u64],
) -> (Calls, gimli::Result<()>) {
    let nothing = || Calls { innermost: vec![None; addresses.len()], ..Calls::default() };
    let (bytes, root) = match unit.entries() {
        Ok(entries) => entries,
        Err(error) => return (nothing(), Err(error)),
    };
    let mut walk = Walk {
        unit: unit.with(dwarf),
        bytes,
        base: root.0,
        addresses,
        // In C, types contain no code and can be skipped.
        skip_types: matches!(
            unit.language,
            Some(
                gimli::DW_LANG_C
                    | gimli::DW_LANG_C89
                    | gimli::DW_LANG_C99
                    | gimli::DW_LANG_C11
                    | gimli::DW_LANG_C17
            )
        ),
        remaining: addresses.len(),
        calls: nothing(),
        scopes: Scopes::default(),
        open: Vec::new(),
    };
    let mut shapes = Shapes::new(&unit.abbreviations, unit.unit.header);
    let end = walk.run(&mut shapes);
    walk.close(0, walk.bytes.len());
    let Walk { mut calls, scopes, .. } = walk;
    calls.scopes = matches!(end, Ok(End::OfUnit)).then_some(scopes);
    (calls, end.map(|_| ()))
}

/// The namespaces and types of a unit, found by a walk of the unit at first use.
pub fn scopes<'unit, 'data>(unit: &'unit Unit<'data>, dwarf: &gimli::Dwarf<Reader<'data>>) -> &'unit Scopes {
    unit.scopes_or(|| walk(unit, dwarf, &[]).0.scopes.unwrap_or_default())
}

/// How a walk ended.
enum End {
    OfUnit,
    AllFound,
}

struct Walk<'walk, 'data> {
    unit: UnitRef<'walk, Reader<'data>>,
    bytes: &'data [u8],
    /// Unit offset of the first byte.
    base: usize,
    addresses: &'walk [u64],
    skip_types: bool,
    /// Number of addresses without a function so far.
    remaining: usize,
    calls: Calls,
    scopes: Scopes,
    open: Vec<Open>,
}

impl<'walk, 'data> Walk<'walk, 'data> {
    fn run<'abbrev>(&mut self, shapes: &mut Shapes<'abbrev>) -> gimli::Result<End>
    where
        'data: 'abbrev,
    {
        let (mut at, mut depth) = (0, 0usize);
        while at < self.bytes.len() {
            let entry = at;
            let (code, attributes) = read_leb(self.bytes, at).ok_or_else(eof)?;
            if code == 0 {
                at = attributes;
                depth = depth.saturating_sub(1);
                self.close(depth, at);
                if depth == 0 {
                    break;
                }
                continue;
            }
            let shape = shapes.get(code)?;
            match shape.kind {
                Kind::Function if self.is_done() => {
                    return Ok(End::AllFound);
                }
                Kind::Function | Kind::Inlined => {
                    let (after, held) = self.enter(shape, entry, attributes)?;
                    at = after;
                    if shape.has_children {
                        match held {
                            Some(what) => {
                                depth += 1;
                                self.open.push(Open { depth, what });
                            }
                            None => at = self.skip_children(shapes, code, attributes, at)?,
                        }
                    }
                }
                Kind::Scope if shape.has_children => {
                    at = self.skip_entry(shape, attributes)?;
                    if self.skip_types {
                        at = self.skip_children(shapes, code, attributes, at)?;
                    } else {
                        depth += 1;
                        self.open_scope(entry, depth);
                    }
                }
                Kind::Scope | Kind::Other => {
                    at = self.skip_entry(shape, attributes)?;
                    depth += usize::from(shape.has_children);
                }
            }
            if depth == 0 {
                // The root has no children.
                break;
            }
        }
        Ok(End::OfUnit)
    }

    /// Whether the walk can end: all addresses have a function, and no function is open that may contain inlined calls.
    fn is_done(&self) -> bool {
        self.remaining == 0
            && !self.addresses.is_empty()
            && self.open.iter().all(|open| matches!(open.what, Opened::Scope(_)))
    }

    fn open_scope(&mut self, entry: usize, depth: usize) {
        let parent = self.open.iter().rev().find_map(|open| match open.what {
            Opened::Scope(scope) => Some(scope),
            Opened::Call(..) => None,
        });
        let index = self.scopes.open(self.base + entry, parent);
        self.open.push(Open { depth, what: Opened::Scope(index) });
    }

    /// Closes all entries deeper than `depth`.
    fn close(&mut self, depth: usize, at: usize) {
        while let Some(open) = self.open.pop_if(|open| open.depth > depth) {
            if let Opened::Scope(index) = open.what {
                self.scopes.close(index, self.base + at);
            }
        }
    }

    /// Reads a function or an inlined call. Returns the position behind it, and the entry to open if it holds one of the
    /// addresses.
    fn enter(
        &mut self,
        shape: &Shape,
        entry: usize,
        attributes: usize,
    ) -> gimli::Result<(usize, Option<Opened>)> {
        let (parent, window, level) = match (shape.kind, self.open.last()) {
            (Kind::Inlined, Some(Open { what: Opened::Call(index, window, level), .. }))
                if *level < DEEPEST =>
            {
                (Some(*index), window.clone(), level + 1)
            }
            // An inlined call outside of the functions with addresses.
            (Kind::Inlined, _) => return Ok((self.skip_entry(shape, attributes)?, None)),
            _ => (None, 0..self.addresses.len(), 0),
        };
        if window.is_empty() {
            return Ok((self.skip_entry(shape, attributes)?, None));
        }
        let mut reader = self.reader(attributes);
        let (mut low, mut high, mut size, mut ranges) = (None, None, None, None);
        let mut call =
            Call { named_by: UnitOffset(self.base + entry), into: parent, call_file: None, call_line: 0 };
        for spec in &shape.attributes {
            let value = match spec.name() {
                gimli::DW_AT_low_pc
                | gimli::DW_AT_high_pc
                | gimli::DW_AT_ranges
                | gimli::DW_AT_call_file
                | gimli::DW_AT_call_line
                | gimli::DW_AT_abstract_origin => reader.read_attribute_inline(*spec)?.value(),
                _ => {
                    reader.skip_attributes(std::slice::from_ref(spec))?;
                    continue;
                }
            };
            match (spec.name(), value) {
                (gimli::DW_AT_low_pc, value) => low = self.unit.attr_address(value)?,
                (gimli::DW_AT_high_pc, AttributeValue::Udata(bytes)) => size = Some(bytes),
                (gimli::DW_AT_high_pc, value) => high = self.unit.attr_address(value)?,
                (gimli::DW_AT_ranges, value) => ranges = self.unit.attr_ranges_offset(value)?,
                (gimli::DW_AT_call_file, AttributeValue::FileIndex(file)) => {
                    // Up to DWARF 4, file 0 is none.
                    call.call_file = (file > 0 || self.unit.header.version() >= 5).then_some(file);
                }
                (gimli::DW_AT_abstract_origin, AttributeValue::UnitRef(origin))
                    if shape.kind == Kind::Inlined =>
                {
                    call.named_by = origin;
                }
                (gimli::DW_AT_call_line, value) => call.call_line = value.udata_value().unwrap_or(0),
                _ => {}
            }
        }
        let after = self.base_relative(reader.next_offset());
        let index = self.calls.calls.len() as u32;
        self.calls.calls.push(call);
        let mut held: Option<Range<usize>> = None;
        let mut hold = |range: gimli::Range, calls: &mut Calls, remaining: &mut usize| {
            let wanted = &self.addresses[window.clone()];
            let first = window.start + wanted.partition_point(|address| *address < range.begin);
            let end = window.start + wanted.partition_point(|address| *address < range.end);
            for slot in calls.innermost.get_mut(first..end).unwrap_or_default() {
                if *slot == parent {
                    *remaining -= usize::from(slot.is_none());
                    *slot = Some(index);
                    held.get_or_insert(first..end);
                }
            }
            if let Some(held) = held.as_mut().filter(|_| first < end) {
                *held = held.start.min(first)..held.end.max(end);
            }
        };
        if let Some(ranges) = ranges {
            let mut list = self.unit.ranges(ranges)?;
            while let Some(range) = list.next()? {
                hold(range, &mut self.calls, &mut self.remaining);
            }
        } else if let Some(begin) = low
            && let Some(end) = size.map(|size| begin.saturating_add(size)).or(high)
        {
            hold(gimli::Range { begin, end }, &mut self.calls, &mut self.remaining);
        }
        if held.is_none() {
            self.calls.calls.pop();
        }
        let held = held.map(|window| Opened::Call(index, window, level));
        Ok((after, held))
    }

    /// The general parser, from the attributes of an entry on.
    fn reader(&self, attributes: usize) -> EntriesRaw<'walk, Reader<'data>> {
        let input = EndianSlice::new(self.bytes.get(attributes..).unwrap_or_default(), LittleEndian);
        let unit = self.unit.unit;
        EntriesRaw::new(input, unit.encoding(), &unit.abbreviations, UnitOffset(self.base + attributes))
    }

    fn base_relative(&self, offset: UnitOffset) -> usize {
        offset.0.saturating_sub(self.base)
    }

    #[inline]
    fn skip_entry(&self, shape: &Shape, attributes: usize) -> gimli::Result<usize> {
        match shape.skip(self.bytes, attributes) {
            Some(after) => Ok(after),
            None => self.parse_over(shape, attributes),
        }
    }

    #[cold]
    fn parse_over(&self, shape: &Shape, attributes: usize) -> gimli::Result<usize> {
        if !shape.needs_parser() {
            return Err(eof());
        }
        let mut reader = self.reader(attributes);
        reader.skip_attributes(&shape.attributes)?;
        Ok(self.base_relative(reader.next_offset()))
    }

    /// The position behind the children of an entry with this code, which start at `at`.
    fn skip_children(
        &self,
        shapes: &mut Shapes<'_>,
        code: u64,
        attributes: usize,
        mut at: usize,
    ) -> gimli::Result<usize> {
        let shape = shapes.get(code)?;
        if shape.has_sibling
            && let Some(sibling) = self.sibling(shape, attributes)?
            && (at..=self.bytes.len()).contains(&sibling)
        {
            return Ok(sibling);
        }
        let mut depth = 1usize;
        while depth > 0 && at < self.bytes.len() {
            let (code, attributes) = read_leb(self.bytes, at).ok_or_else(eof)?;
            if code == 0 {
                at = attributes;
                depth -= 1;
                continue;
            }
            let shape = shapes.get(code)?;
            at = self.skip_entry(shape, attributes)?;
            depth += usize::from(shape.has_children);
        }
        Ok(at)
    }

    fn sibling(&self, shape: &Shape, attributes: usize) -> gimli::Result<Option<usize>> {
        let mut reader = self.reader(attributes);
        for spec in &shape.attributes {
            let attribute = reader.read_attribute(*spec)?;
            if let (gimli::DW_AT_sibling, AttributeValue::UnitRef(offset)) =
                (attribute.name(), attribute.value())
            {
                return Ok(Some(self.base_relative(offset)));
            }
        }
        Ok(None)
    }
}

fn eof() -> Error {
    Error::UnexpectedEof(gimli::ReaderOffsetId(0))
}
