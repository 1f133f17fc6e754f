//! What is known of a word while the code of a function is followed.

/// Registers of arguments, in their order (System V ABI x86-64, 3.2.3): rdi, rsi, rdx, rcx, r8, r9.
pub(crate) const ARGUMENTS: [usize; 6] = [7, 6, 2, 1, 8, 9];

/// A size that comes from arguments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Size {
    /// A bit for each argument.
    pub arguments: u8,
    /// Whether it is a product of arguments.
    pub is_product: bool,
}

/// What is known of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Unknown,
    Constant(i64),
    /// An argument as it was passed.
    Argument(u8),
    /// Arguments, perhaps with a constant added, rounded, or multiplied with each other.
    Size(Size),
    /// An address on the stack, from the return address on.
    Stack(i64),
    /// An address in the allocated block.
    Block(i64),
    /// An address in or behind the block, at an offset that is not known.
    Inside,
    /// What the word at an address of the file held.
    Static(u64),
    /// What a word on the stack held before anything was known of it.
    Loaded(i64),
    /// What an allocator returns that stores the block elsewhere: zero if it has succeeded.
    Status,
}

use Value::{Argument, Block, Constant, Inside, Stack, Status, Unknown};

impl Value {
    /// The size that the value is, if it comes from arguments.
    pub fn size(self) -> Option<Size> {
        match self {
            Argument(number) => Some(Size { arguments: 1 << number, is_product: false }),
            Value::Size(size) => Some(size),
            _ => None,
        }
    }

    /// What is known where two paths meet. A block may be null, a size may be replaced by a constant.
    pub fn join(self, other: Value) -> Value {
        match (self, other) {
            (one, other) if one == other => one,
            (Block(offset), Constant(0)) | (Constant(0), Block(offset)) => Block(offset),
            (Block(_) | Inside, Block(_) | Inside) => Inside,
            (Constant(_), size) | (size, Constant(_)) => size.size().map_or(Unknown, Value::Size),
            (one, other) => both(one.size(), other.size(), false),
        }
    }

    pub fn plus(self, other: Value) -> Value {
        match (self, other) {
            (Constant(one), Constant(other)) => Constant(one.wrapping_add(other)),
            (value, Constant(0)) | (Constant(0), value) => value,
            (Block(offset), Constant(more)) | (Constant(more), Block(offset)) => {
                Block(offset.wrapping_add(more))
            }
            (Block(_) | Inside, _) | (_, Block(_) | Inside) => Inside,
            (Stack(offset), Constant(more)) | (Constant(more), Stack(offset)) => {
                Stack(offset.wrapping_add(more))
            }
            (Constant(_), size) | (size, Constant(_)) => size.size().map_or(Unknown, Value::Size),
            (one, other) => both(one.size(), other.size(), false),
        }
    }

    pub fn minus(self, other: Value) -> Value {
        match other {
            Constant(less) => self.plus(Constant(less.wrapping_neg())),
            _ => Unknown,
        }
    }

    pub fn times(self, other: Value) -> Value {
        match (self, other) {
            (Constant(one), Constant(other)) => Constant(one.wrapping_mul(other)),
            (value, Constant(1)) | (Constant(1), value) => value,
            (one, other) => both(one.size(), other.size(), true),
        }
    }

    /// With some low bits cleared or set, as sizes are rounded.
    pub fn rounded(self, mask: Value, sets: bool) -> Value {
        match (self, mask) {
            (Constant(one), Constant(other)) => Constant(if sets { one | other } else { one & other }),
            (size, Constant(mask)) => {
                let keeps = match sets {
                    true => (0..4096).contains(&mask),
                    false => mask as u32 == u32::MAX || (-4096..0).contains(&(mask as i32)),
                };
                size.size().filter(|_| keeps).map_or(Unknown, Value::Size)
            }
            _ => Unknown,
        }
    }

    /// The lowest bytes.
    pub fn low(self, bytes: usize) -> Value {
        match (self, bytes) {
            (value, 8) => value,
            (Constant(value), 4) => Constant(i64::from(value as u32)),
            (Argument(_) | Value::Size(_) | Status, 4) => self,
            _ => Unknown,
        }
    }

    /// The lowest four bytes with their sign.
    pub fn extended(self) -> Value {
        match self {
            Constant(value) => Constant(i64::from(value as i32)),
            value => value.low(4),
        }
    }
}

fn both(one: Option<Size>, other: Option<Size>, is_product: bool) -> Value {
    match (one, other) {
        (Some(one), Some(other)) => Value::Size(Size {
            arguments: one.arguments | other.arguments,
            is_product: is_product || one.is_product || other.is_product,
        }),
        _ => Unknown,
    }
}
