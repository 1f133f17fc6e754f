//! Functions of the C library whose symbols tell what they do with memory.

use crate::block_flow::{Allocator, AllocatorResult, Rest, Size, Value};

/// What a function does with a block that it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// It puts nothing into the block that tells one object from another.
    None,
    /// It copies what an argument of the caller points to, to this address.
    Copied(Value),
    /// It writes into the block.
    Written,
    Unknown,
}

/// The name without the prefixes and versions of libraries.
fn plain(name: &str) -> &str {
    let name = name.split(['@', '(']).next().unwrap_or_default();
    let name = name.strip_prefix("__GI_").unwrap_or(name);
    ["__libc_", "je_", "_rjem_", "mi_", "tc_"]
        .iter()
        .find_map(|start| name.strip_prefix(start))
        .unwrap_or(name)
}

/// The allocator with a name, as functions or symbols have it.
pub(crate) fn by_name(name: &str) -> Option<Allocator> {
    let (arguments, is_product) = match plain(name) {
        "malloc" | "valloc" | "pvalloc" | "operator new" | "operator new[]" => (1, false),
        name if name.starts_with("_Znwm") || name.starts_with("_Znam") => (1, false),
        "realloc" | "aligned_alloc" | "memalign" => (2, false),
        "calloc" => (0b11, true),
        "reallocarray" => (0b110, true),
        "posix_memalign" => {
            let result = AllocatorResult::Stored { argument: 0, returned: Rest::Status };
            return Some(Allocator { size: Size { arguments: 0b100, is_product: false }, result });
        }
        _ => return None,
    };
    Some(Allocator { size: Size { arguments, is_product }, result: AllocatorResult::Returned })
}

/// The allocator with a name, or the function that makes a copy. What is copied says how large it is.
pub(super) fn allocator(name: &str) -> Option<Allocator> {
    if !is_duplicating(name) {
        return by_name(name);
    }
    let arguments = if plain(name).ends_with("strndup") { 0b11 } else { 1 };
    let size = Size { arguments, is_product: false };
    Some(Allocator { size, result: AllocatorResult::Returned })
}

/// Whether a function makes a copy of a text.
pub(super) fn is_duplicating(name: &str) -> bool {
    matches!(plain(name), "strdup" | "__strdup" | "strndup" | "__strndup")
}

/// What a function returns, if its name tells: memory that it fills, or the length of what the caller has passed.
pub(crate) fn result_of(name: &str, arguments: &[Value; 6]) -> Option<Value> {
    match plain(name) {
        name if is_filling(name) || is_copying(name) => Some(arguments[0]),
        "strlen" | "strnlen" => match arguments[0] {
            Value::Argument(number) => Some(Value::Size(Size { arguments: 1 << number, is_product: false })),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a function fills memory with one byte, and returns its address.
fn is_filling(name: &str) -> bool {
    matches!(name, "memset" | "__memset_chk")
}

/// Whether a function copies from its second argument to its first, and returns that.
fn is_copying(name: &str) -> bool {
    matches!(
        name,
        "memcpy"
            | "__memcpy_chk"
            | "memmove"
            | "__memmove_chk"
            | "strcpy"
            | "__strcpy_chk"
            | "strncpy"
            | "__strncpy_chk"
    )
}

/// What a function does with the block in its arguments.
pub(super) fn effect(name: &str, arguments: &[Value; 6]) -> Effect {
    match plain(name) {
        name if is_filling(name) && matches!(arguments[1], Value::Constant(_)) => Effect::None,
        name if is_copying(name) && matches!(arguments[1], Value::Argument(_)) => {
            Effect::Copied(arguments[0])
        }
        // It is returned on another path.
        "free" => Effect::None,
        "bzero" | "explicit_bzero" | "malloc_usable_size" => Effect::None,
        _ => Effect::Unknown,
    }
}
