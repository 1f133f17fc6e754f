//! Names of types, shortened to the available columns.

use crate::text::columns::{cut_left, cut_right, width};

/// A type's name, cut from the inside if it is too long: the outermost type says the most.
pub(crate) fn shorten_type(name: &str, room: usize) -> String {
    if width(name) <= room {
        return name.to_owned();
    }
    // A mark takes one column.
    let tail = room.saturating_sub(1) / 3;
    let head = cut_right(name, room.saturating_sub(tail));
    if tail < 2 { head.into_owned() } else { format!("{}{}", head, &cut_left(name, tail + 1)["…".len()..]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_cut_from_the_inside() {
        assert_eq!(shorten_type("Vec<u8>", 7), "Vec<u8>");
        assert_eq!(shorten_type("HashMap<String, Vec<Value>> table", 20), "HashMap<Strin… table");
        assert_eq!(shorten_type("HashMap<String>", 4), "Has…");
    }
}
