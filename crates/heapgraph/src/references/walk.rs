//! Lists the pointers of one value in memory by the places of its type.

use super::reference::{EdgeName, Extent, Hold, Reference, Usage};
use super::slots::{Compiled, Condition, Count, Counted, Kind, Op, Repeat, Slot, Switch, push_name};
use super::tables::{GROUP, buckets_for};
use super::vtables::Vtables;
use stackglass_layouts::BlockType;
use stackglass_process_view::core_image::CoreImage;
use std::fmt::Write;
use std::ops::Range;

/// Nothing is ever allocated below this address.
const LOWEST: u64 = 4096;

/// Chunks of a `std::deque`, at most. Each has some 512 bytes.
const MOST_CHUNKS: u64 = 1 << 24;

/// Size of the counters before the elements of an `Rc` or `Arc`.
pub(super) const COUNTERS: u64 = 16;

/// An address at a multiple of 8.
fn without_tag(pointer: u64) -> u64 {
    pointer & !7
}

/// A value, or a block, and where its pointers go.
pub(super) struct Walk<'w> {
    pub bytes: &'w [u8],
    /// Address of the first byte.
    pub address: u64,
    pub image: &'w CoreImage,
    pub vtables: &'w Vtables,
    /// Path of fields so far.
    pub path: &'w mut String,
    pub each: &'w mut dyn FnMut(Reference<'_>),
}

/// Where in an array a value lies.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Offset of the value in the bytes.
    pub at: u64,
    /// Its index, if edges are named by it.
    pub index: Option<u64>,
    /// Index and length of the innermost array.
    pub element: (u64, u64),
}

impl Place {
    /// A value that is no element.
    pub const WHOLE: Place = Place { at: 0, index: None, element: (0, 0) };
}

/// What a pointer leads to.
struct Target {
    address: u64,
    contains: Option<BlockType>,
    elements: Option<u64>,
    first: u64,
    usage: Option<Usage>,
}

impl Target {
    fn new(address: u64, contains: Option<BlockType>) -> Target {
        Target { address, contains, elements: None, first: 0, usage: None }
    }
}

impl Walk<'_> {
    /// Lists the pointers of the value at a place.
    pub fn run(&mut self, ops: &[Op], place: Place) {
        for op in ops {
            match op {
                Op::Slot(slot) => self.slot(slot, place),
                Op::Switch(switch) => {
                    if let Some(ops) = self.variant(switch, place.at) {
                        self.run(ops, place);
                    }
                }
                Op::If(condition) => {
                    if let Some(holds) = self.holds(&condition.condition, place) {
                        self.run(if holds { &condition.then } else { &condition.otherwise }, place);
                    }
                }
                Op::Repeat(repeat) => self.repeat(repeat, place),
            }
        }
    }

    /// Lists the pointers of the elements of a block, the first of which lies `from` bytes behind its begin.
    pub fn elements(&mut self, compiled: &Compiled, extent: Extent, from: u64) {
        let size = (self.bytes.len() as u64).saturating_sub(from);
        let Some(count) = compiled.count(extent, size) else { return };
        let fitting = size / compiled.size;
        let capacity = extent.capacity.map_or(fitting, |capacity| capacity.min(fitting));
        for index in 0..count {
            let behind = index.saturating_add(extent.first);
            // The buffer of a `VecDeque` is a ring.
            let at = if behind < capacity { behind } else { behind % capacity };
            let place = Place { at: from + at * compiled.size, index: Some(index), element: (index, count) };
            self.run(&compiled.ops, place);
        }
    }

    /// Lists the pointers of some of `count` elements: the bytes are these alone.
    pub fn part(&mut self, compiled: &Compiled, indices: Range<u64>, count: u64) {
        for index in indices.clone() {
            let at = (index - indices.start) * compiled.size;
            self.run(&compiled.ops, Place { at, index: Some(index), element: (index, count) });
        }
    }

    /// Lists the pointers of a reference-counted slice. Its elements are dropped with the last owner.
    pub fn counted_elements(&mut self, compiled: &Compiled, extent: Extent) {
        if self.word(0).is_some_and(|strong| strong != 0) {
            self.elements(compiled, extent, COUNTERS);
        }
    }

    /// Lists the pointers of the entries in a hash table: its slots lie before its control bytes, in reverse.
    pub fn table(&mut self, compiled: &Compiled, buckets: Option<u64>) {
        let Some((buckets, control)) = compiled.table(buckets, self.bytes.len() as u64) else { return };
        let (slots, control) = self.bytes.split_at(control as usize);
        self.bytes = slots;
        self.buckets(compiled, &control[..buckets as usize], 0, buckets);
    }

    /// Lists the pointers of some of `count` buckets, the first of which is `first`, by their control bytes. The other bytes are the
    /// slots of these alone.
    pub fn buckets(&mut self, compiled: &Compiled, control: &[u8], first: u64, count: u64) {
        for (number, mark) in control.iter().enumerate() {
            // The high bit is set in empty and in deleted slots.
            if mark & 0x80 != 0 {
                continue;
            }
            let Some(at) = (self.bytes.len() as u64).checked_sub((number as u64 + 1) * compiled.size) else {
                return;
            };
            let index = first + number as u64;
            self.run(&compiled.ops, Place { at, index: Some(index), element: (index, count) });
        }
    }

    fn number(&self, at: u64, size: u64) -> Option<u128> {
        let start = usize::try_from(at).ok()?;
        let size = size as usize;
        let bytes = self.bytes.get(start..start.checked_add(size)?)?;
        let mut number = [0; 16];
        number.get_mut(..size)?.copy_from_slice(bytes);
        Some(u128::from_le_bytes(number))
    }

    fn word(&self, at: u64) -> Option<u64> {
        let start = usize::try_from(at).ok()?;
        let bytes = self.bytes.get(start..start.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    fn variant<'o>(&self, switch: &'o Switch, at: u64) -> Option<&'o [Op]> {
        let tag = self.number(at.checked_add(switch.tag)?, switch.size)?;
        let matching = switch.cases.iter().find(|case| case.values.iter().any(|range| range.contains(&tag)));
        Some(matching.map_or(&switch.default, |case| &case.ops))
    }

    fn holds(&self, condition: &Condition, place: Place) -> Option<bool> {
        Some(match condition {
            Condition::Bits { offset, size, mask, values } => {
                let bits = self.number(place.at.checked_add(*offset)?, *size)? as u64 & mask;
                values.contains(&bits)
            }
            Condition::NotZero { offset, size } => self.number(place.at.checked_add(*offset)?, *size)? != 0,
            Condition::Above { offset, limit } => self.word(place.at.checked_add(*offset)?)? > *limit,
            Condition::Stamp { offset } => {
                let (index, length) = place.element;
                let lap = length.checked_add(1)?.checked_next_power_of_two()?;
                self.word(place.at.checked_add(*offset)?)? & (lap - 1) == index + 1
            }
        })
    }

    fn repeat(&mut self, repeat: &Repeat, place: Place) {
        let Some(start) = place.at.checked_add(repeat.offset) else { return };
        let fitting = (self.bytes.len() as u64).saturating_sub(start) / repeat.stride.max(1);
        let count = match repeat.count {
            Count::Fixed(count) => count,
            Count::Field { offset, size, more, limit } => {
                let at = place.at.saturating_add(offset);
                let Some(count) = self.number(at, size) else { return };
                // A number above the limit is damaged memory: then nothing is known.
                if count > u128::from(limit) { 0 } else { (count as u64 + more).min(limit) }
            }
        };
        let count = count.min(fitting);
        let by_index = place.index.is_none() && self.path.is_empty() && repeat.name.is_empty();
        for index in 0..count {
            let at = start + index * repeat.stride;
            let element = (index, count);
            if by_index {
                self.run(&repeat.ops, Place { at, index: Some(index), element });
                continue;
            }
            let length = self.path.len();
            push_name(self.path, &repeat.name);
            let _ = write!(self.path, "[{index}]");
            self.run(&repeat.ops, Place { at, index: place.index, element });
            self.path.truncate(length);
        }
    }

    fn slot(&mut self, slot: &Slot, place: Place) {
        let Some(base) = place.at.checked_add(slot.base) else { return };
        let Some(pointer) = base.checked_add(slot.pointer).and_then(|at| self.word(at)) else { return };
        if pointer < LOWEST {
            return;
        }
        if let Kind::CppDeque { .. } = slot.kind {
            self.cpp_deque(slot, base, pointer, place);
        } else if let Some(target) = self.target(slot, base, pointer) {
            self.emit(slot, place, target);
        }
    }

    fn emit(&mut self, slot: &Slot, place: Place, target: Target) {
        let length = self.path.len();
        let text = if length == 0 {
            &slot.name
        } else {
            push_name(self.path, &slot.name);
            self.path.as_str()
        };
        let (name, within) = match place.index {
            Some(index) => (EdgeName::Index(index), text),
            None => (EdgeName::Field(text), ""),
        };
        (self.each)(Reference {
            name,
            within,
            target: target.address,
            hold: slot.hold,
            contains: target.contains,
            elements: target.elements,
            first: target.first,
            usage: target.usage,
            text: slot.text,
        });
        self.path.truncate(length);
    }

    /// What a pointer leads to; `None` if it leads to no block.
    fn target(&self, slot: &Slot, base: u64, pointer: u64) -> Option<Target> {
        let field = |offset: u64| self.word(base.checked_add(offset)?);
        let plain = Target::new(pointer, slot.contains);
        match slot.kind {
            Kind::Thin { vptr: None } => Some(plain),
            Kind::Thin { vptr: Some(vptr) } => Some(self.dynamic(pointer, vptr, slot.hold).unwrap_or(plain)),
            Kind::Slice { length } => Some(Target { elements: Some(field(length)?), ..plain }),
            Kind::Dyn { vtable, counted } => {
                let known = self.vtables.get(field(vtable)?).and_then(|entry| entry.block(counted));
                Some(Target::new(pointer, known.map(BlockType::One)))
            }
            Kind::Vec { capacity, length, size } => {
                let capacity = self.capacity(field(capacity)?, size)?;
                let Some(length) = length else { return Some(plain) };
                let length = field(length)?;
                if length > capacity {
                    return Some(plain);
                }
                let usage = Some(Usage { used: length, capacity });
                Some(Target { elements: Some(length), usage, ..plain })
            }
            Kind::Ring { capacity, head, length, size } => {
                let capacity = self.capacity(field(capacity)?, size)?;
                let (first, length) = (field(head)?, field(length)?);
                if length > capacity || first > capacity {
                    return Some(plain);
                }
                let usage = Some(Usage { used: length, capacity });
                Some(Target { elements: Some(length), first, usage, ..plain })
            }
            Kind::IntoIter { capacity, start, end, size } => {
                let capacity = self.capacity(field(capacity)?, size)?;
                let (start, end) = (field(start)?.checked_sub(pointer)?, field(end)?.checked_sub(pointer)?);
                let (first, length) = (start / size, end.checked_sub(start)? / size);
                if first.checked_add(length)? > capacity {
                    return Some(plain);
                }
                let usage = Some(Usage { used: length, capacity });
                Some(Target { elements: Some(length), first, usage, ..plain })
            }
            Kind::Table { mask, items, growth_left, size } => {
                let mask = field(mask)?;
                let buckets = mask.checked_add(1)?;
                // An empty table has one bucket, which is a static.
                if mask == 0 || !buckets.is_power_of_two() {
                    return None;
                }
                let slots = buckets.checked_mul(size)?.checked_next_multiple_of(GROUP)?;
                let (entries, left) = (field(items)?, field(growth_left)?);
                let is_sound = entries.saturating_add(left) <= buckets;
                let usage =
                    is_sound.then(|| Usage { used: buckets_for(entries).min(buckets), capacity: buckets });
                let address = pointer.checked_sub(slots)?;
                Some(Target { address, elements: Some(buckets), usage, ..plain })
            }
            Kind::Tree { height, internal } => {
                let contains = match field(height)? {
                    0 => slot.contains,
                    _ => internal.map(BlockType::One),
                };
                Some(Target::new(pointer, contains))
            }
            Kind::Tagged { mask, tag } => {
                (pointer & mask == tag).then(|| Target::new(pointer - tag, slot.contains))
            }
            Kind::AnyTag => Some(Target::new(without_tag(pointer), slot.contains)),
            Kind::StealDeque { front, back, elements, capacity, size } => {
                let buffer = without_tag(pointer);
                let of_buffer = |offset: u64| self.image.word(buffer.checked_add(offset)?);
                let address = of_buffer(elements)?;
                let capacity =
                    self.capacity(of_buffer(capacity)?, size).filter(|size| size.is_power_of_two())?;
                let front = field(front)?;
                // While the last element is taken, the end is before the begin.
                let used = field(back)?.wrapping_sub(front).cast_signed().max(0).cast_unsigned();
                if used > capacity {
                    return None;
                }
                Some(Target {
                    elements: Some(used),
                    first: front & (capacity - 1),
                    // The queue chooses its capacity: the program cannot save what is not in use.
                    usage: Some(Usage { used: capacity, capacity }),
                    ..Target::new(address, slot.contains)
                })
            }
            Kind::CppVector { finish, end, size } => {
                let used = field(finish)?.checked_sub(pointer)? / size;
                let capacity = field(end)?.checked_sub(pointer)? / size;
                if used > capacity {
                    return Some(plain);
                }
                let usage = Some(Usage { used, capacity });
                Some(Target { elements: Some(used), usage, ..plain })
            }
            Kind::CppDeque { .. } => None,
            Kind::Other { own } => {
                let is_own = pointer == self.address.wrapping_add(base).wrapping_add(own);
                (!is_own).then_some(plain)
            }
            Kind::CppString { length, local } => {
                if pointer == self.address.wrapping_add(base).wrapping_add(local) {
                    return None;
                }
                let (used, capacity) = (field(length)?, field(local)?);
                let usage = (used <= capacity).then_some(Usage { used, capacity });
                Some(Target { elements: Some(used), usage, ..plain })
            }
        }
    }

    /// The map and the chunks of a `std::deque`. Only the first and the last chunk may hold less than they can.
    fn cpp_deque(&mut self, slot: &Slot, base: u64, map: u64, place: Place) -> Option<()> {
        let Kind::CppDeque { map_size, start, last, first_node, finish, last_node, size } = slot.kind else {
            return None;
        };
        let field = |offset: u64| self.word(base.checked_add(offset)?);
        let [start, first] = [field(start[0])?, field(start[1])?];
        let [finish, finish_first] = [field(finish[0])?, field(finish[1])?];
        let capacity = field(last)?.checked_sub(first)? / size;
        let (first_node, last_node) = (field(first_node)?, field(last_node)?);
        let nodes = last_node.checked_sub(first_node)? / 8;
        if first_node < map || (last_node - map) / 8 >= field(map_size)?.min(MOST_CHUNKS) {
            return None;
        }
        // The map owns its chunks, but does not know their elements.
        self.emit(slot, place, Target::new(map, Some(BlockType::Bytes)));
        let length = self.path.len();
        push_name(self.path, &slot.name);
        for node in 0..=nodes {
            let Some(chunk) = self.image.word(first_node + node * 8) else { break };
            let begin = if node == 0 { start.saturating_sub(first) / size } else { 0 };
            let end = if node == nodes { finish.saturating_sub(finish_first) / size } else { capacity };
            let chunk = Target {
                elements: Some(end.saturating_sub(begin)),
                first: begin,
                ..Target::new(chunk, slot.contains)
            };
            let named = self.path.len();
            push_name(self.path, "chunks");
            let _ = write!(self.path, "[{node}]");
            let unnamed = Slot { name: "".into(), ..slot.clone() };
            self.emit(&unnamed, place, chunk);
            self.path.truncate(named);
        }
        self.path.truncate(length);
        Some(())
    }

    /// A capacity, if elements were allocated.
    fn capacity(&self, capacity: u64, size: u64) -> Option<u64> {
        let bytes = capacity.checked_mul(size)?;
        (bytes != 0 && bytes <= i64::MAX as u64).then_some(capacity)
    }

    /// The object behind a pointer to a C++ class, by its vtable.
    fn dynamic(&self, pointer: u64, vptr: u64, hold: Hold) -> Option<Target> {
        let at = pointer.checked_add(vptr)?;
        let entry = self.vtables.get(self.image.word(at)?)?;
        let start = at.checked_sub(entry.offset)?;
        let contains = entry.block(Counted::No).map(BlockType::One);
        // A pointer to a base class may point into an object that is owned by it.
        Some(Target::new(if hold == Hold::Refers { pointer } else { start }, contains))
    }
}
