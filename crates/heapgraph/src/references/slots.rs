//! What a layout comes to: the places of a value that hold pointers, found once for a type.

use super::reference::{Extent, Hold};
use super::tables::GROUP;
use stackglass_layouts::{BlockType, TypeId};
use std::ops::RangeInclusive;

/// The places of one type.
#[derive(Clone, Debug, Default)]
pub(super) struct Compiled {
    /// Where pointers lie. Offsets count from the begin of the value.
    pub ops: Vec<Op>,
    /// Whether the value may hold pointers that [`Compiled::ops`] does not list.
    pub incomplete: bool,
    /// Size of a value.
    pub size: u64,
    /// Whether some places tell how many elements their target has.
    pub has_lengths: bool,
    /// A type that begins like this one and is larger: nodes of a `BTreeMap` with children, behind pointers to leaves.
    pub larger: Option<(u64, TypeId)>,
    /// Where a C++ object holds the pointer to its vtable.
    pub vptr: Option<u64>,
}

impl Compiled {
    /// How many elements to look at in so many bytes; `None` if they have no pointers.
    pub fn count(&self, extent: Extent, bytes: u64) -> Option<u64> {
        if self.ops.is_empty() {
            return None;
        }
        let fitting = bytes.checked_div(self.size)?;
        let capacity = extent.capacity.map_or(fitting, |capacity| capacity.min(fitting));
        Some(extent.elements.unwrap_or(fitting).min(capacity))
    }

    /// Number of buckets of a hash table in so many bytes, and where its control bytes begin. `buckets` is what its owner says. `None`
    /// if its slots have no pointers.
    pub fn table(&self, buckets: Option<u64>, bytes: u64) -> Option<(u64, u64)> {
        if self.ops.is_empty() || self.size == 0 {
            return None;
        }
        let needed = |buckets: u64| {
            let slots = buckets.checked_mul(self.size)?.checked_next_multiple_of(GROUP)?;
            slots.checked_add(buckets)?.checked_add(GROUP)
        };
        let fits = |buckets: &u64| *buckets > 0 && needed(*buckets).is_some_and(|needed| needed <= bytes);
        let buckets = buckets.unwrap_or_else(|| {
            // The number of buckets is a power of two.
            let largest = (bytes / (self.size + 1)).max(1).ilog2();
            1 << largest
        });
        let buckets = [buckets, buckets / 2].into_iter().find(fits)?;
        Some((buckets, (buckets * self.size).next_multiple_of(GROUP)))
    }
}

/// A place, or several of them under a condition.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// One pointer.
    Slot(Slot),
    /// The variants of an enum.
    Switch(Switch),
    /// Places that are valid under a condition.
    If(If),
    /// The elements of an array.
    Repeat(Repeat),
}

/// One pointer, or one container.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Slot {
    /// Path of fields.
    pub name: Box<str>,
    /// Where the container begins. Other offsets count from there.
    pub base: u64,
    /// Where the pointer lies.
    pub pointer: u64,
    pub hold: Hold,
    pub contains: Option<BlockType>,
    /// Whether the target is text.
    pub text: bool,
    pub kind: Kind,
}

/// What lies beside a pointer. All numbers but sizes are offsets from [`Slot::base`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Nothing. A C++ object behind it holds the pointer to its vtable at `vptr`.
    Thin { vptr: Option<u64> },
    /// The number of elements.
    Slice { length: u64 },
    /// A Rust vtable.
    Dyn { vtable: u64, counted: Counted },
    /// `Vec`; without a length `RawVec`.
    Vec { capacity: u64, length: Option<u64>, size: u64 },
    /// `VecDeque`.
    Ring { capacity: u64, head: u64, length: u64, size: u64 },
    /// `vec::IntoIter`: `capacity` in elements, pointers to the next element and behind the last.
    IntoIter { capacity: u64, start: u64, end: u64, size: u64 },
    /// `hashbrown::raw::RawTable`.
    Table { mask: u64, items: u64, growth_left: u64, size: u64 },
    /// The root of a `BTreeMap`.
    Tree { height: u64, internal: Option<TypeId> },
    /// A pointer whose low bits, masked, must be `tag`.
    Tagged { mask: u64, tag: u64 },
    /// A pointer to memory at a multiple of 8, with any tag in its low bits.
    AnyTag,
    /// `crossbeam_deque::deque::Inner`: numbers of the first element and behind the last, which only grow. The pointer leads to
    /// a block with the address of the elements and with their capacity, a power of two: `elements` and `capacity` are offsets
    /// there.
    StealDeque { front: u64, back: u64, elements: u64, capacity: u64, size: u64 },
    /// `std::string`: its length, and where short text, or else the capacity, lies.
    CppString { length: u64, local: u64 },
    /// `std::vector`: pointers behind the last element and behind the buffer.
    CppVector { finish: u64, end: u64, size: u64 },
    /// `std::deque`: the number of places in its map, and the iterators of its begin and its end. `start` and `finish` are
    /// pointers to an element and to the begin of its chunk; `last` points behind the chunk; nodes point into the map.
    CppDeque {
        map_size: u64,
        start: [u64; 2],
        last: u64,
        first_node: u64,
        finish: [u64; 2],
        last_node: u64,
        size: u64,
    },
    /// A pointer to something else than the part of the value at `own`.
    Other { own: u64 },
}

/// What lies before the value that a Rust vtable belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counted {
    /// Nothing.
    No,
    /// The counters of `Rc`.
    Rc,
    /// The counters of `Arc`.
    Arc,
}

/// The variants of an enum.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    pub tag: u64,
    pub size: u64,
    pub cases: Vec<Case>,
    /// Of the variant with all other discriminants.
    pub default: Vec<Op>,
}

/// A variant.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub values: Vec<RangeInclusive<u128>>,
    pub ops: Vec<Op>,
}

/// Places that are valid under a condition.
#[derive(Clone, Debug)]
pub(super) struct If {
    pub condition: Condition,
    pub then: Vec<Op>,
    pub otherwise: Vec<Op>,
}

/// A condition on a number in the value.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// The bits in `mask` are one of `values`.
    Bits { offset: u64, size: u64, mask: u64, values: Vec<u64> },
    /// The number is not 0.
    NotZero { offset: u64, size: u64 },
    /// The word is above a limit.
    Above { offset: u64, limit: u64 },
    /// The slot of a bounded channel holds a message. Its number, without the bits for the lap, is its index and one.
    Stamp { offset: u64 },
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub(super) struct Repeat {
    /// Path of the array.
    pub name: Box<str>,
    pub offset: u64,
    pub stride: u64,
    pub count: Count,
    pub ops: Vec<Op>,
}

/// A number of elements.
#[derive(Clone, Debug)]
pub(super) enum Count {
    Fixed(u64),
    /// The number in the value, and `more`, but not above `limit`.
    Field {
        offset: u64,
        size: u64,
        more: u64,
        limit: u64,
    },
}

/// Appends a name to a path.
pub(super) fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() && !name.is_empty() && !name.starts_with('[') {
        path.push('.');
    }
    path.push_str(name);
}

fn joined(prefix: &str, name: &str) -> Box<str> {
    let mut path = String::with_capacity(prefix.len() + name.len() + 1);
    path.push_str(prefix);
    push_name(&mut path, name);
    path.into()
}

/// The places of a field at `offset` with the name `prefix`.
pub(super) fn within(prefix: &str, offset: u64, ops: &[Op]) -> Vec<Op> {
    ops.iter().map(|op| op.within(prefix, offset)).collect()
}

/// Visits every slot.
pub(super) fn each_slot(ops: &mut [Op], visit: &mut dyn FnMut(&mut Slot)) {
    for op in ops {
        match op {
            Op::Slot(slot) => visit(slot),
            Op::Switch(switch) => {
                switch.cases.iter_mut().for_each(|case| each_slot(&mut case.ops, visit));
                each_slot(&mut switch.default, visit);
            }
            Op::If(condition) => {
                each_slot(&mut condition.then, visit);
                each_slot(&mut condition.otherwise, visit);
            }
            Op::Repeat(repeat) => each_slot(&mut repeat.ops, visit),
        }
    }
}

/// Sets how all pointers hold their targets.
pub(super) fn holding(mut ops: Vec<Op>, hold: Hold) -> Vec<Op> {
    each_slot(&mut ops, &mut |slot| slot.hold = hold);
    ops
}

/// Whether some slots tell how many elements their target has.
pub(super) fn have_lengths(ops: &[Op]) -> bool {
    ops.iter().any(|op| match op {
        Op::Slot(slot) => !matches!(
            slot.kind,
            Kind::Thin { .. } | Kind::Dyn { .. } | Kind::Tree { .. } | Kind::Tagged { .. } | Kind::AnyTag
        ),
        Op::Switch(switch) => {
            have_lengths(&switch.default) || switch.cases.iter().any(|case| have_lengths(&case.ops))
        }
        Op::If(condition) => have_lengths(&condition.then) || have_lengths(&condition.otherwise),
        Op::Repeat(repeat) => have_lengths(&repeat.ops),
    })
}

/// Number of places.
pub(super) fn count(ops: &[Op]) -> usize {
    let each = |op: &Op| match op {
        Op::Slot(_) => 1,
        Op::Switch(switch) => {
            1 + count(&switch.default) + switch.cases.iter().map(|case| 1 + count(&case.ops)).sum::<usize>()
        }
        Op::If(condition) => 1 + count(&condition.then) + count(&condition.otherwise),
        Op::Repeat(repeat) => 1 + count(&repeat.ops),
    };
    ops.iter().map(each).sum()
}

impl Op {
    fn within(&self, prefix: &str, by: u64) -> Op {
        match self {
            Op::Slot(slot) => Op::Slot(Slot {
                name: joined(prefix, &slot.name),
                base: slot.base.saturating_add(by),
                ..slot.clone()
            }),
            Op::Switch(switch) => Op::Switch(Switch {
                tag: switch.tag.saturating_add(by),
                size: switch.size,
                cases: (switch.cases.iter())
                    .map(|case| Case { values: case.values.clone(), ops: within(prefix, by, &case.ops) })
                    .collect(),
                default: within(prefix, by, &switch.default),
            }),
            Op::If(condition) => Op::If(If {
                condition: condition.condition.moved(by),
                then: within(prefix, by, &condition.then),
                otherwise: within(prefix, by, &condition.otherwise),
            }),
            Op::Repeat(repeat) => Op::Repeat(Repeat {
                name: joined(prefix, &repeat.name),
                offset: repeat.offset.saturating_add(by),
                count: repeat.count.moved(by),
                ..repeat.clone()
            }),
        }
    }
}

impl Condition {
    fn moved(&self, by: u64) -> Condition {
        let mut moved = self.clone();
        match &mut moved {
            Condition::Bits { offset, .. }
            | Condition::NotZero { offset, .. }
            | Condition::Above { offset, .. }
            | Condition::Stamp { offset } => *offset = offset.saturating_add(by),
        }
        moved
    }
}

impl Count {
    fn moved(&self, by: u64) -> Count {
        let mut moved = self.clone();
        if let Count::Field { offset, .. } = &mut moved {
            *offset = offset.saturating_add(by);
        }
        moved
    }
}
