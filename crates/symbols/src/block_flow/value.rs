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

/// Where the first pointer of a path is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Root {
    /// The address of a static variable, by its address in the file.
    Address(u64),
    /// What a static variable holds.
    Static(u64),
    /// What a word on the stack held before anything was known of it, or holds as well.
    Word(i64),
    /// What a register holds before the instruction at an address.
    Register(u8, u64),
    /// What the call returned that ends at an address.
    Result(u64),
}

/// Most fields of a path.
pub(crate) const MOST_FIELDS: usize = 3;

/// A pointer by the way to it: `context->list.first` is what the root `context` leads to, by one field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Path {
    pub root: Root,
    /// The offsets of the fields that were read, each in what the pointer before leads to.
    fields: [i32; MOST_FIELDS],
    depth: u8,
    /// What is added to the pointer.
    pub offset: i32,
    /// What else is added to it.
    pub index: Index,
}

/// A distance that is not known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Index {
    None,
    /// It is computed, as that of an element is.
    Computed,
    /// Several distances are possible, as those of the elements that a loop comes to, or as those of some fields.
    Several,
}

impl Path {
    pub fn new(root: Root) -> Path {
        Path { root, fields: [0; MOST_FIELDS], depth: 0, offset: 0, index: Index::None }
    }

    pub fn fields(&self) -> &[i32] {
        &self.fields[..usize::from(self.depth)]
    }

    /// The pointer in a field of what this one leads to.
    pub fn field(self, offset: i64) -> Option<Path> {
        let offset = offset.checked_add(i64::from(self.offset)).filter(|_| self.index == Index::None)?;
        if let (Root::Address(address), 0) = (self.root, self.depth) {
            return Some(Path::new(Root::Static(address.checked_add_signed(offset)?)));
        }
        let mut longer = Path { depth: self.depth + 1, offset: 0, ..self };
        *longer.fields.get_mut(usize::from(self.depth))? = i32::try_from(offset).ok()?;
        Some(longer)
    }

    /// With a distance added that is not known.
    pub fn indexed(self) -> Path {
        Path { index: self.index.max(Index::Computed), ..self }
    }

    fn join(self, other: Path) -> Option<Path> {
        let several = Path { offset: self.offset, index: Index::Several, ..other };
        (Path { index: Index::Several, ..self } == several).then_some(several)
    }
}

/// What is known of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Unknown,
    Constant(i64),
    /// A multiple of the first number, with the second added.
    Multiple(u32, u32),
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
    /// A pointer by the way to it.
    Path(Path),
    /// What an allocator returns that stores the block elsewhere: zero if it has succeeded.
    Status,
}

use Value::{Argument, Block, Constant, Inside, Multiple, Stack, Status, Unknown};

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
            (Value::Path(one), Value::Path(other)) => one.join(other).map_or(Unknown, Value::Path),
            (Multiple(of, 0), Constant(size)) | (Constant(size), Multiple(of, 0))
                if size.checked_rem(i64::from(of)) == Some(0) =>
            {
                Multiple(of, 0)
            }
            (Multiple(one, 0), Multiple(other, 0)) => multiple(greatest_divisor(one, other), 0),
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
            (Value::Path(path), Constant(more)) | (Constant(more), Value::Path(path)) => {
                match i32::try_from(i64::from(path.offset).saturating_add(more)) {
                    Ok(offset) => Path { offset, ..path }.into(),
                    Err(_) => Unknown,
                }
            }
            (Value::Path(path), Multiple(..) | Unknown) | (Multiple(..) | Unknown, Value::Path(path)) => {
                path.indexed().into()
            }
            (Multiple(of, rest), Constant(more)) | (Constant(more), Multiple(of, rest)) => {
                match u32::try_from(i64::from(rest).saturating_add(more)) {
                    Ok(rest) => Multiple(of, rest),
                    Err(_) => Unknown,
                }
            }
            (Multiple(one, 0), Multiple(other, 0)) => multiple(greatest_divisor(one, other), 0),
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
            (Multiple(of, rest), Constant(by)) | (Constant(by), Multiple(of, rest)) => {
                let by = u32::try_from(by).ok();
                let product = |factor: u32| by?.checked_mul(factor);
                product(of).zip(product(rest)).map_or(Unknown, |(of, rest)| multiple(of, rest))
            }
            (Unknown | Argument(_) | Value::Size(_) | Value::Path(_), Constant(by))
            | (Constant(by), Unknown | Argument(_) | Value::Size(_) | Value::Path(_)) => {
                u32::try_from(by).map_or(Unknown, |by| multiple(by, 0))
            }
            (one, other) => both(one.size(), other.size(), true),
        }
    }

    /// Shifted to the left.
    pub fn shifted(self, by: Value) -> Value {
        match by {
            Constant(by @ 0..=30) => self.times(Constant(1 << by)),
            _ => Unknown,
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
            // Sizes that do not fit into four bytes are none.
            (Argument(_) | Value::Size(_) | Multiple(..) | Status, 4) => self,
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

impl From<Path> for Value {
    fn from(path: Path) -> Value {
        Value::Path(path)
    }
}

fn multiple(of: u32, rest: u32) -> Value {
    if of > 1 { Multiple(of, rest) } else { Unknown }
}

fn greatest_divisor(mut one: u32, mut other: u32) -> u32 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
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
