//! Finds the variables in the entries of the functions that contain given addresses.

use super::evaluate::{Evaluator, Expression};
use super::{Local, ReadMemory, StoppedFrame};
use crate::TypeId;
use crate::describe::{self, Types};
use crate::entries::{Entries, Entry, Head, Value};
use crate::units::TypeUnit;
use crate::variables;
use foldhash::HashMap;
use stackglass_debug_info::dwarf::shapes::is_scope;
use std::sync::Arc;

/// Deepest nesting of entries in a function.
const DEEPEST: usize = 512;
/// Most variables of a function at one address.
const MOST: usize = 4096;

/// A variable that has a location at an address.
struct Found<'data> {
    name: Arc<str>,
    type_id: TypeId,
    location: Expression<'data>,
}

/// The variables at an address.
struct AtAddress<'data> {
    unit: usize,
    frame_base: Option<Value<'data>>,
    variables: Vec<Found<'data>>,
}

/// The variables of frames whose values can be found.
pub(crate) fn of_frames(
    types: &Types<'_, '_>,
    frames: &[StoppedFrame],
    memory: ReadMemory<'_>,
) -> Vec<Vec<Local>> {
    let mut wanted: HashMap<usize, Vec<u64>> = HashMap::default();
    for frame in frames {
        wanted.entry(frame.module).or_default().push(frame.lookup);
    }
    for addresses in wanted.values_mut() {
        addresses.sort_unstable();
        addresses.dedup();
    }
    let mut reader = describe::Reader::new(types);
    let mut known: HashMap<(usize, u64), AtAddress<'_>> = HashMap::default();
    for (number, unit) in types.units.units.iter().enumerate() {
        let Some(addresses) = wanted.get(&unit.module) else { continue };
        let within = in_unit(unit, addresses);
        if !within.is_empty() {
            let _ = functions(&mut reader, number, unit, &within, &mut known);
        }
    }
    let locals = frames.iter().map(|frame| {
        let Some(at) = known.get(&(frame.module, frame.lookup)) else { return Vec::new() };
        let unit = &types.units.units[at.unit];
        let mut evaluator = Evaluator::new(unit.unit.with(unit.dwarf), frame, memory);
        evaluator.set_frame_base(at.frame_base);
        let found = at.variables.iter().filter_map(|variable| {
            let place = evaluator.place(variable.location)?;
            Some(Local { name: variable.name.clone(), type_id: variable.type_id, place })
        });
        found.collect()
    });
    locals.collect()
}

/// The addresses that may be in a unit.
fn in_unit(unit: &TypeUnit<'_, '_>, addresses: &[u64]) -> Vec<u64> {
    // Units in split files (.dwo) do not have their ranges, so all addresses are searched.
    if unit.dwarf.file_type == gimli::DwarfFileType::Dwo {
        return addresses.to_vec();
    }
    let mut within = Vec::new();
    if let Ok(mut ranges) = unit.dwarf.unit_ranges(&unit.unit.unit) {
        while let Ok(Some(range)) = ranges.next() {
            let first = addresses.partition_point(|address| *address < range.begin);
            within.extend(addresses[first..].iter().take_while(|address| **address < range.end));
        }
    }
    within
}

/// Walks to the functions of a unit that contain one of the addresses.
fn functions<'data>(
    reader: &mut describe::Reader<'_, 'data>,
    number: usize,
    unit: &TypeUnit<'_, 'data>,
    addresses: &[u64],
    known: &mut HashMap<(usize, u64), AtAddress<'data>>,
) -> Option<()> {
    let mut entries = Entries::new(&unit.unit, unit.dwarf)?;
    let root = entries.head(entries.root())?;
    let mut at = entries.skip(root)?;
    let mut depth = usize::from(root.has_children);
    while depth > 0 {
        let head = entries.head(at)?;
        let after = entries.skip(head)?;
        at = match head.tag {
            None => {
                depth -= 1;
                after
            }
            Some(gimli::DW_TAG_subprogram) => {
                let code = entries.code(head);
                for address in addresses.iter().filter(|address| code.contains(**address)) {
                    let std::collections::hash_map::Entry::Vacant(free) =
                        known.entry((unit.module, *address))
                    else {
                        continue;
                    };
                    let new = AtAddress { unit: number, frame_base: code.frame_base, variables: Vec::new() };
                    let found = free.insert(new);
                    let _ = Search { reader, number, address: *address, found }.function(
                        &mut entries,
                        head,
                        after,
                    );
                }
                entries.skip_children(head, after)?
            }
            Some(tag) if is_scope(tag) && head.has_children => {
                depth += 1;
                after
            }
            Some(_) => entries.skip_children(head, after)?,
        };
    }
    Some(())
}

struct Search<'a, 'types, 'data> {
    reader: &'a mut describe::Reader<'types, 'data>,
    number: usize,
    address: u64,
    found: &'a mut AtAddress<'data>,
}

impl<'data> Search<'_, '_, 'data> {
    /// The variables of a function, of its blocks and of the calls inlined into it, at the address.
    fn function(&mut self, entries: &mut Entries<'_, 'data>, function: Head, after: usize) -> Option<()> {
        if !function.has_children {
            return None;
        }
        // For each open entry: the inlined function that it is part of.
        let mut open: Vec<Option<Arc<str>>> = vec![None];
        let mut at = after;
        while let Some(inlined) = open.last() {
            let head = entries.head(at)?;
            let after = entries.skip(head)?;
            let inlined = inlined.clone();
            at = match head.tag {
                None => {
                    open.pop();
                    after
                }
                Some(gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter) => {
                    let entry = entries.entry(head)?;
                    self.variable(entries, &entry, inlined.as_deref());
                    entries.skip_children(head, after)?
                }
                Some(tag @ (gimli::DW_TAG_lexical_block | gimli::DW_TAG_inlined_subroutine))
                    if head.has_children && open.len() < DEEPEST =>
                {
                    let code = entries.code(head);
                    let is_block = tag == gimli::DW_TAG_lexical_block;
                    if code.contains(self.address) || is_block && code.ranges.is_empty() {
                        open.push(match tag {
                            gimli::DW_TAG_inlined_subroutine => {
                                let entry = entries.entry(head)?;
                                Some(self.reader.variable(self.number, &entry).0)
                            }
                            _ => inlined,
                        });
                        after
                    } else {
                        entries.skip_children(head, after)?
                    }
                }
                // Functions in functions have their own frames.
                Some(_) => entries.skip_children(head, after)?,
            };
        }
        Some(())
    }

    fn variable(&mut self, entries: &Entries<'_, 'data>, entry: &Entry<'data>, inlined: Option<&str>) {
        let Some(location) = self.location(entries, entry) else { return };
        if self.found.variables.len() >= MOST {
            return;
        }
        let (name, type_id) = self.reader.variable(self.number, entry);
        let (Some(type_id), false) = (type_id, name.is_empty()) else { return };
        let name = match inlined {
            Some(function) => format!("{function}::{name}").into(),
            None => name,
        };
        self.found.variables.push(Found { name, type_id, location });
    }

    /// The expression for the address.
    fn location(&self, entries: &Entries<'_, 'data>, entry: &Entry<'data>) -> Option<Expression<'data>> {
        let location = entry.location?;
        // Static variables are roots of their own.
        if variables::place(entry, entries.unit()).is_some() {
            return None;
        }
        if let gimli::AttributeValue::Exprloc(expression) = location {
            return Some(expression).filter(|expression| !expression.0.is_empty());
        }
        let mut list = entries.unit().attr_locations(location).ok()??;
        while let Some(part) = list.next().ok()? {
            if (part.range.begin..part.range.end).contains(&self.address) {
                return Some(part.data);
            }
        }
        None
    }
}
