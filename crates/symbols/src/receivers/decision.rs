//! Which type blocks have, by the types of the pointers that receive them, and by their sizes.

use super::uses::{New, SizeKind};
use super::variables::Candidate;
use super::{Blocks, Received};
use crate::types::{cpp_node, short};

/// What the pointers of a function say of blocks.
pub(super) enum Decision {
    Type(String),
    /// Text or bytes: a caller may know better.
    Bytes(String),
    /// Several types.
    Ambiguous,
}

/// The type of blocks, by what receives them.
pub(super) fn decide(received: &Received, blocks: &Blocks) -> Option<Decision> {
    let sizes = &blocks.sizes;
    let is_exact = |candidate: &Candidate| {
        sizes.iter().all(|(count, bytes)| candidate.size.checked_mul(*count) == Some(*bytes))
    };
    let is_larger = |candidate: &Candidate| {
        sizes.iter().all(|(count, bytes)| candidate.size.saturating_mul(*count) <= *bytes)
    };
    // A block may end in the first element of the tail, or before it: it has as many elements as fit.
    let reaches_tail = |candidate: &Candidate| {
        let reaches = |tail: u64| sizes.iter().all(|(count, bytes)| tail.saturating_mul(*count) <= *bytes);
        candidate.tail.is_some_and(reaches)
    };
    let is_of_elements = |candidate: &Candidate| match received.size {
        _ if received.made_by_new == Some(New::Array) => true,
        SizeKind::Multiple(of, rest)
            if rest == 0 || candidate.is_scalar && u64::from(rest).is_multiple_of(candidate.size) =>
        {
            // Products lose their odd factors: three times a number is the number and twice the number.
            let divides = |one: u64, other: u64| other.is_multiple_of(one);
            let (even, odd) = (1 << of.trailing_zeros(), u64::from(of >> of.trailing_zeros()));
            let needed = 1 << candidate.size.trailing_zeros();
            divides(needed, even) && divides(odd, candidate.size)
        }
        _ => false,
    };
    let is_array = |candidate: &Candidate| {
        let divides = sizes.iter().all(|(_, bytes)| bytes.is_multiple_of(candidate.size));
        let counts = is_of_elements(candidate) || candidate.is_scalar;
        divides && counts && is_larger(candidate) && !candidate.is_polymorphic
    };
    // A pointer to a class may be to a value of a derived one.
    let is_certain = |candidate: &Candidate| {
        !candidate.is_polymorphic || received.constructed.as_ref() == Some(&candidate.name)
    };
    match &received.by_vtable {
        // A value in a larger block is none that the block was made for.
        Some(Some((class, size)))
            if size.map_or(blocks.is_new, |size| {
                sizes.iter().all(|(count, bytes)| size.checked_mul(*count) == Some(*bytes))
            }) =>
        {
            return Some(Decision::Type(class.clone()));
        }
        Some(None) => return Some(Decision::Ambiguous),
        _ => {}
    }
    if let [element] = &received.behind_count[..]
        && received.candidates.is_empty()
        && sizes.iter().all(|(count, bytes)| {
            bytes.checked_sub(count.saturating_mul(8)).is_some_and(|bytes| bytes.is_multiple_of(element.size))
        })
    {
        return Some(Decision::Type(format!("{}[]", named(element))));
    }
    let (bytes, types): (Vec<&Candidate>, Vec<&Candidate>) =
        received.candidates.iter().partition(|candidate| candidate.size == 1);
    let exact: Vec<&Candidate> = types.iter().copied().filter(|candidate| is_exact(candidate)).collect();
    if let Some(first) = exact.iter().copied().find(|candidate| is_certain(candidate)) {
        let agree = exact.iter().filter(|other| !other.is_polymorphic).all(|other| other.name == first.name);
        let is_several =
            is_of_elements(first) && types.iter().any(|other| other.name != first.name && is_array(other));
        return Some(match agree && !is_several {
            true if is_of_elements(first) && first.tail.is_none() => {
                Decision::Type(format!("{}[]", named(first)))
            }
            true => Decision::Type(named(first)),
            false => Decision::Ambiguous,
        });
    }
    if !exact.is_empty() || blocks.is_new {
        return exact.first().map(|_| Decision::Ambiguous);
    }
    let own: Vec<&Candidate> = types.iter().copied().filter(|candidate| !candidate.inlined).collect();
    let best = if own.is_empty() { types } else { own };
    if let Some(first) = best.first() {
        if best.iter().all(|other| other.name == first.name) {
            return match () {
                () if reaches_tail(first) => Some(Decision::Type(named(first))),
                () if is_array(first) => Some(Decision::Type(format!("{}[]", named(first)))),
                () => None,
            };
        }
        // The result of a function that makes objects is a pointer to what all kinds begin with. Its callers convert it at once.
        let is_whole = |whole: &&&Candidate| {
            let is_part =
                |part: &&Candidate| part.entry == whole.entry || whole.extends.contains(&part.entry);
            whole.at_once && reaches_tail(whole) && best.iter().all(is_part)
        };
        let whole = best.iter().find(is_whole).map(|whole| Decision::Type(named(whole)));
        return Some(whole.unwrap_or(Decision::Ambiguous));
    }
    bytes.first().map(|first| Decision::Bytes(format!("{}[]", named(first))))
}

/// The type as a programmer writes it. Debug information has no paths in names, and only the standard library's nodes have such.
fn named(candidate: &Candidate) -> String {
    let node =
        candidate.name.starts_with('_').then(|| cpp_node(&format!("std::{}", candidate.name))).flatten();
    node.unwrap_or_else(|| short(&candidate.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::UnitOffset;
    use stackglass_profile::StackId;

    fn candidate(name: &str, size: u64) -> Candidate {
        Candidate {
            name: name.to_owned(),
            size,
            tail: None,
            is_scalar: false,
            is_polymorphic: false,
            inlined: false,
            at_once: false,
            extends: Vec::new(),
            entry: UnitOffset(0),
        }
    }

    /// The type of blocks with these numbers and bytes.
    fn name(received: &Received, sizes: &[(u64, u64)]) -> Option<String> {
        let blocks =
            Blocks { stack: StackId(1), sizes: sizes.to_vec(), bytes: None, is_new: false, wrapper: None };
        match decide(received, &blocks) {
            Some(Decision::Type(name) | Decision::Bytes(name)) => Some(name),
            Some(Decision::Ambiguous) => Some("several".to_owned()),
            None => None,
        }
    }

    #[test]
    fn the_size_decides_between_one_value_and_many() {
        let of = |size, candidates: Vec<Candidate>| Received { candidates, size, ..Received::default() };
        let node = of(SizeKind::Constant, vec![candidate("node", 24)]);
        assert_eq!(name(&node, &[(10, 240)]).as_deref(), Some("node"));
        assert_eq!(name(&node, &[(10, 250)]), None, "it is of another type");
        let nodes = of(SizeKind::Multiple(24, 0), vec![candidate("node", 24)]);
        assert_eq!(name(&nodes, &[(1, 240)]).as_deref(), Some("node[]"));
        let two = of(SizeKind::Constant, vec![candidate("node", 24), candidate("edge", 24)]);
        assert_eq!(name(&two, &[(1, 24)]).as_deref(), Some("several"));
    }

    #[test]
    fn a_block_may_end_in_the_first_element_of_a_tail() {
        let text = Candidate { tail: Some(17), ..candidate("text", 24) };
        let received = Received { candidates: vec![text], ..Received::default() };
        assert_eq!(name(&received, &[(2, 40)]).as_deref(), Some("text"));
        assert_eq!(name(&received, &[(1, 17)]).as_deref(), Some("text"));
        assert_eq!(name(&received, &[(1, 16)]), None);
    }

    #[test]
    fn what_a_pointer_is_converted_to_at_once_is_the_type() {
        let part = Candidate { entry: UnitOffset(1), at_once: true, ..candidate("object", 16) };
        let whole = |at_once| Candidate {
            entry: UnitOffset(2),
            tail: Some(24),
            at_once,
            extends: vec![UnitOffset(1)],
            ..candidate("closure", 32)
        };
        let of = |candidates| Received { candidates, ..Received::default() };
        let sizes = [(2, 2 * 32), (2, 2 * 40)];
        assert_eq!(name(&of(vec![part.clone(), whole(true)]), &sizes).as_deref(), Some("closure"));
        assert_eq!(name(&of(vec![part.clone(), whole(true)]), &[(1, 23)]).as_deref(), Some("several"));
        assert_eq!(name(&of(vec![part.clone(), whole(false)]), &sizes).as_deref(), Some("several"));
        let other = Candidate { entry: UnitOffset(3), ..candidate("other", 8) };
        assert_eq!(name(&of(vec![part, whole(true), other]), &sizes).as_deref(), Some("several"));
    }

    #[test]
    fn a_block_that_is_too_small_for_a_count_has_none() {
        let received = Received { behind_count: vec![candidate("node", 24)], ..Received::default() };
        assert_eq!(name(&received, &[(1, 8 + 6 * 24)]).as_deref(), Some("node[]"));
        assert_eq!(name(&received, &[(1, 8 + 25)]), None);
        assert_eq!(name(&received, &[(3, 9)]), None);
    }
}
