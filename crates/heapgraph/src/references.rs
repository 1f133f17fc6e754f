//! Where values hold pointers to blocks, and what these blocks then contain.
//!
//! A value of a known type is followed by its layout ([`stackglass_symbols::layouts`]). Containers of the standard
//! libraries are followed by what they mean: elements behind the length of a `Vec` or in empty slots of a table hold nothing.

use crate::image::Image;
pub use stackglass_symbols::layouts::BlockType;
use stackglass_symbols::layouts::{Layouts, TypeId};

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
    /// How many elements are initialized there, for [`BlockType::Elements`] and [`BlockType::CountedElements`]; for
    /// [`BlockType::Table`], the number of buckets.
    pub elements: Option<u64>,
}

/// Finds the pointers in values of known types.
///
/// A first version that follows nothing: the signatures are those that [`graph`](crate::graph) calls.
#[derive(Debug)]
pub struct References<'a> {
    _layouts: &'a Layouts,
}

impl<'a> References<'a> {
    /// For types of these layouts.
    pub fn new(layouts: &'a Layouts) -> References<'a> {
        References { _layouts: layouts }
    }

    /// Whether a block of this content can hold pointers.
    pub fn has_pointers(&mut self, contains: BlockType) -> bool {
        contains != BlockType::Bytes
    }

    /// Whether a block of this content can hold owners of buffers, whose [`Reference::elements`] are known.
    pub fn has_lengths(&mut self, _: BlockType) -> bool {
        false
    }

    /// Calls `each` with the pointers in a value. `bytes` may be cut short.
    pub fn of_value(
        &mut self,
        _: TypeId,
        _address: u64,
        _bytes: &[u8],
        _: &Image,
        _each: &mut dyn FnMut(Reference<'_>),
    ) {
    }

    /// Calls `each` with the pointers in a block. `elements`: how many are initialized, if the owner tells.
    pub fn of_block(
        &mut self,
        _contains: BlockType,
        _elements: Option<u64>,
        _address: u64,
        _bytes: &[u8],
        _: &Image,
        _each: &mut dyn FnMut(Reference<'_>),
    ) {
    }
}
