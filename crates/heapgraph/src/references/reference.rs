//! A pointer in a value: where it leads, how it holds its target, and what it tells of that.

use stackglass_layouts::BlockType;

/// How a pointer holds its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// Owns the block: `Box`, `Vec`, `String`, `Rc`, `Arc`, `unique_ptr`. It points to the block's first byte.
    Owns,
    /// A reference or raw pointer: keeps the block reachable, may point into it.
    Refers,
    /// Does not keep the block alive: `Weak`, or a stale or doubtful word.
    Weak,
}

/// The name of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeName<'text> {
    /// A path of fields, such as `map.left`.
    Field(&'text str),
    /// The index of an element.
    Index(u64),
}

/// A pointer in a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference<'text> {
    /// Its name in the block or root that contains it.
    pub name: EdgeName<'text>,
    /// For an element of an array: the path of fields within the element, often empty.
    pub within: &'text str,
    /// The address that it holds.
    pub target: u64,
    /// How it holds the target.
    pub hold: Hold,
    /// What the target contains, if the pointer tells.
    pub contains: Option<BlockType>,
    /// How many elements are initialized there, for blocks of elements; for
    /// [`BlockType::Table`], the number of buckets.
    pub elements: Option<u64>,
    /// For [`BlockType::Elements`]: the index of the first element. Those of a `VecDeque` continue at the begin of the block.
    pub first: u64,
    /// How much of the container is in use, if it allocates ahead.
    pub usage: Option<Usage>,
    /// Whether the target is text of `elements` bytes.
    pub text: bool,
}

/// How much of a container is in use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Usage {
    /// Elements in it. For a hash table, the buckets that a table for its entries would have.
    pub used: u64,
    /// Elements that it can hold without a new allocation. For a hash table, its buckets.
    pub capacity: u64,
}

/// Which elements of a block are initialized, as its owner says. By default all that fit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Extent {
    /// As [`Reference::elements`].
    pub elements: Option<u64>,
    /// As [`Reference::first`].
    pub first: u64,
    /// Elements that the container can hold, if that is known.
    pub capacity: Option<u64>,
}

impl From<Option<u64>> for Extent {
    fn from(elements: Option<u64>) -> Extent {
        Extent { elements, ..Extent::default() }
    }
}

impl Reference<'_> {
    /// Which elements of the target are initialized.
    pub fn extent(&self) -> Extent {
        Extent {
            elements: self.elements,
            first: self.first,
            capacity: self.usage.map(|usage| usage.capacity),
        }
    }
}
