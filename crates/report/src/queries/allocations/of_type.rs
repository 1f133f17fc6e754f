//! The allocations of one type, or of all types that a name stands for.

use super::site::Sites;
use super::table::{AllocationKey, AllocationRow, AllocationTable};
use crate::queries::callers::{Answer, Called, Caller};
use crate::{Metric, order};
use stackglass_profile::{AllocationGroup, AllocationKind, Recording, UNKNOWN_TYPE};
use std::collections::{BTreeMap, BTreeSet};

/// The types of a recording that a name stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NamedTypes {
    /// These, in the order of their names.
    Found(Vec<String>),
    /// None. Types that contain the text, and their bytes, the largest first.
    Similar(Vec<(String, u64)>),
}

/// The allocated types that a name stands for: the type of exactly this name; else all types with this name and any arguments
/// (`Vec` stands for `Vec<u8>`), or any text in the place of `…`, as reports cut names.
///
/// ```
/// use stackglass_profile::Recording;
/// use stackglass_report::allocation_queries::{NamedTypes, types_named};
///
/// assert_eq!(types_named(&Recording::default(), "Vec"), NamedTypes::Similar(Vec::new()));
/// ```
pub fn types_named(recording: &Recording, name: &str) -> NamedTypes {
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    for group in recording.allocations.groups.iter().filter(|group| group.kind == AllocationKind::Block) {
        let sum = bytes.entry(type_of(recording, group)).or_default();
        *sum = sum.saturating_add(group.counts.bytes);
    }
    if bytes.contains_key(name) {
        return NamedTypes::Found(vec![name.to_owned()]);
    }
    let found: Vec<String> =
        bytes.keys().filter(|one| stands_for(name, one)).map(|one| (*one).to_owned()).collect();
    if !found.is_empty() {
        return NamedTypes::Found(found);
    }
    let lower = name.to_lowercase();
    let similar =
        bytes.into_iter().filter(|(one, _)| !lower.is_empty() && one.to_lowercase().contains(&lower));
    let mut similar: Vec<(String, u64)> = similar.map(|(one, bytes)| (one.to_owned(), bytes)).collect();
    similar.sort_by(|a, b| order::largest_first((a.1, &a.0), (b.1, &b.0)));
    NamedTypes::Similar(similar)
}

/// Keeps only the blocks of these types. Mappings, which have no type, are left out as well.
pub fn keep_types(recording: &mut Recording, types: &[String]) {
    let kept: BTreeSet<&str> = types.iter().map(String::as_str).collect();
    let groups = std::mem::take(&mut recording.allocations.groups);
    let is_kept = |group: &AllocationGroup| {
        group.kind == AllocationKind::Block && kept.contains(type_of(recording, group))
    };
    recording.allocations.groups = groups.into_iter().filter(is_kept).collect();
}

/// The sites that allocate each of these types, as if they were the callers of a function.
pub fn callers_of_types(recording: &Recording, types: &[String], metric: Metric) -> Answer {
    let all = metric.of(&recording.allocations.total(AllocationKind::Block));
    let mut sites = Sites::new(recording);
    let called = |name: &String| {
        let is_wanted = |group: &AllocationGroup| type_of(recording, group) == name;
        let table = AllocationTable::of_groups(recording, &mut sites, AllocationKey::Site, metric, is_wanted);
        let caller = |row: &AllocationRow| Caller {
            count: metric.of(&row.counts),
            asleep: 0,
            frame: row.site.frame(),
        };
        Called {
            is_type: true,
            func: name.as_str().into(),
            module: "".into(),
            snapshots: metric.of(&table.total),
            asleep: 0,
            uncalled: 0,
            callers: table.rows.iter().map(caller).filter(|caller| caller.count > 0).collect(),
        }
    };
    let mut functions: Vec<Called> = types.iter().map(called).collect();
    functions.sort_by(|a, b| order::largest_first((a.snapshots, &a.func), (b.snapshots, &b.func)));
    Answer { all, functions, other_lines: Vec::new() }
}

fn type_of<'a>(recording: &'a Recording, group: &AllocationGroup) -> &'a str {
    recording.symbols.allocated_type(group.stack).map_or(UNKNOWN_TYPE, |name| name)
}

/// Whether a name with cut or without arguments stands for a type.
fn stands_for(name: &str, of: &str) -> bool {
    let name = name.replace("...", "…");
    if name.is_empty() {
        return false;
    }
    if !name.contains('…') {
        return of.strip_prefix(&name).is_some_and(|rest| rest.starts_with('<'));
    }
    let mut parts = name.split('…');
    let Some(mut rest) = parts.next().and_then(|first| of.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_types_with_any_arguments() {
        for (name, of) in [
            ("Vec", "Vec<u8>"),
            ("FlatMap<…>", "FlatMap<Filter<A>, B>"),
            ("[(Part<Either<Once<…>, Delay<...>>>, Opt)]", "[(Part<Either<Once<A>, Delay<B>>>, Opt)]"),
            ("Box<dyn Iter…", "Box<dyn Iterator<Item=u8>>"),
        ] {
            assert!(stands_for(name, of), "{name} {of}");
        }
        for (name, of) in [("Vec", "VecDeque<u8>"), ("ec", "Vec<u8>"), ("", "Vec<u8>"), ("A<…>", "A<B>[]")]
        {
            assert!(!stands_for(name, of), "{name} {of}");
        }
    }
}
