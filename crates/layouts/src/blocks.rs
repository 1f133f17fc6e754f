//! What blocks contain, by the stacks that allocated them.

use super::{BlockType, Layouts, TypeId};
use stackglass_debug_info::Options;
use stackglass_profile::{Recording, StackId};
use stackglass_symbols::types::{Contents, Family, initialized};
use stackglass_symbols::{Outcome, with_contents};
use std::collections::HashMap;

/// Symbolizes a recording as [`symbolize`](stackglass_symbols::symbolize()) does, and returns what the blocks of each stack of allocations
/// contain, as far as it is known. Stacks that have a type before are left out.
pub fn allocated_blocks(
    recording: &mut Recording,
    layouts: &Layouts,
    options: &Options,
) -> (Outcome, HashMap<StackId, BlockType>) {
    let (outcome, contents) = with_contents(recording, options, &mut |_| ());
    let blocks = contents.iter().filter_map(|(stack, contents)| Some((*stack, block(layouts, contents)?)));
    (outcome, blocks.collect())
}

/// Types of bytes.
const BYTES: &[&str] = &["u8", "i8", "bool", "char", "unsigned char", "signed char", "char8_t", "std::byte"];

fn block(layouts: &Layouts, contents: &Contents) -> Option<BlockType> {
    let a_type = initialized(&contents.a_type);
    // The size of a trait object is not that of its type.
    if a_type.starts_with("dyn ") || a_type.starts_with("(dyn ") {
        return None;
    }
    let named = |name: &str| layouts.by_cpp_name(name);
    let inside = |paths: &[&str], list: &str| paths.iter().find_map(|path| named(&format!("{path}<{list}>")));
    let one = |id: TypeId| BlockType::One(id);
    match contents.family {
        Family::Array if BYTES.contains(&a_type) => Some(BlockType::Bytes),
        Family::Array => named(a_type).map(BlockType::Elements),
        Family::Box => named(a_type).map(one),
        Family::Rc | Family::Arc => {
            let element = match a_type {
                "str" => Some("u8"),
                slice => slice.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')),
            };
            match element {
                Some(element) if !has_length(element) => {
                    let of_family = match contents.family {
                        Family::Rc => BlockType::CountedElements,
                        _ => BlockType::SharedElements,
                    };
                    named(initialized(element)).map(of_family)
                }
                _ if contents.family == Family::Rc => {
                    inside(&["alloc::rc::RcInner", "alloc::rc::RcBox"], a_type).map(one)
                }
                _ => inside(&["alloc::sync::ArcInner"], a_type).map(one),
            }
        }
        Family::Table => named(a_type).map(BlockType::Table),
        Family::List => inside(&["alloc::collections::linked_list::Node"], a_type).map(one),
        // The argument is a list of key and value in brackets.
        Family::Leaf => named(&format!("alloc::collections::btree::node::LeafNode{a_type}")).map(one),
        Family::Internal => named(&format!("alloc::collections::btree::node::InternalNode{a_type}")).map(one),
        // A leaf or an internal node.
        Family::Node => None,
    }
}

/// Whether this is the inside of an array's brackets (`u8; 4`), not of a slice's (`u8`, `Box<[u8; 4]>`).
fn has_length(inside: &str) -> bool {
    inside.rsplit_once("; ").is_some_and(|(_, length)| length.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::has_length;

    #[test]
    fn arrays_have_lengths() {
        assert!(has_length("u8; 4") && has_length("[u8; 4]; 3"));
        assert!(!has_length("u8") && !has_length("[u8; 4]") && !has_length("Box<[u8; 4]>"));
    }
}
