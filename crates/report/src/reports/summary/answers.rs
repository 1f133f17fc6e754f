//! Answers of the verdict where the tree of calls alone gives none: a function that many callers share, and the named
//! functions around those without a name.

use crate::kinds::Class;
use crate::queries::cpu_tree::{CpuTree, NodeKind};
use crate::queries::function_table::Function;
use crate::text::short::last_name;
use stackglass_profile::frame::file_name;
use stackglass_profile::{Recording, sanitize};
use std::collections::BTreeMap;

/// A process with this share of the CPU time has nearly all of it.
const NEARLY_ALL: f64 = 0.9;

/// The name of the part without names.
pub(super) const UNNAMED: &str = "unnamed functions";

/// A part of a node's time, with the name of what it is spent in.
pub(super) type Part = (u64, String);

/// The function of a node.
pub(super) fn function<'c>(tree: &'c CpuTree<'_>, node: u32) -> Option<&'c Function> {
    match tree.nodes[node as usize].what {
        NodeKind::Function(function) => Some(&tree.names.functions[function as usize]),
        _ => None,
    }
}

/// The function that has `least` of all time in several places of the tree, of which none has that much: the one with
/// that much own time, or the program's own function with the smallest time above `least`. The flag: it is own time.
pub(super) fn shared<'c>(tree: &'c CpuTree<'_>, least: u64) -> Option<(&'c Function, bool)> {
    let mut largest = vec![0_u64; tree.names.functions.len()];
    for call in &tree.nodes {
        if let NodeKind::Function(function) = call.what {
            largest[function as usize] = largest[function as usize].max(call.total.time);
        }
    }
    let is_shared = |(_, largest): &(&Function, u64)| *largest < least;
    let shared = tree.names.functions.iter().zip(largest).filter(is_shared).map(|(function, _)| function);
    let shared: Vec<&Function> = shared
        .filter(|function| function.class == Class::Own && !function.start && !function.is_executor)
        .filter(|function| !function.name.starts_with('['))
        .collect();
    if let Some(hottest) = shared.iter().find(|function| function.own.time >= least) {
        return Some((hottest, true));
    }
    let own = shared.into_iter().filter(|function| {
        function.is_readers_own
            && !function.by_start
            && function.total.time >= least
            && last_name(&function.name) != "{closure}"
    });
    own.min_by_key(|function| (function.total.time, &*function.name)).map(|function| (function, false))
}

/// The process with nearly all CPU time, of several: its name and its first argument if that is a word, as in
/// `git pack-objects`.
pub(super) fn busy_process(recording: &Recording) -> Option<String> {
    let mut times = vec![0_u64; recording.processes.len()];
    for sample in recording.samples.iter().filter(|sample| sample.state.uses_cpu()) {
        let process = recording.thread(sample.thread).map_or(0, |thread| thread.process.0 as usize);
        if let Some(time) = times.get_mut(process) {
            *time += sample.time.0;
        }
    }
    let all: u64 = times.iter().sum();
    let busy = times.iter().position(|time| *time > 0 && *time as f64 >= all as f64 * NEARLY_ALL)?;
    let process = recording.processes.get(busy).filter(|_| times.len() > 1)?;
    let name = file_name(&process.exe);
    let is_word = |word: &&String| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '-');
    Some(match process.arguments.get(1).filter(is_word).filter(|word| !word.starts_with('-')) {
        Some(word) => format!("{} {word}", sanitize(name)),
        None => sanitize(name).into_owned(),
    })
}

/// For a function without a name: the nearest caller with a name (or the root), and what its time is spent in, as far
/// as that has names. `None` if it has too few to say much.
pub(super) fn around_nameless(tree: &CpuTree<'_>, node: u32, least: u64) -> Option<(u32, Vec<Part>)> {
    if !function(tree, node)?.by_start {
        return None;
    }
    let mut caller = tree.nodes[node as usize].parent;
    while function(tree, caller).is_some_and(|caller| caller.by_start || caller.class != Class::Own) {
        caller = tree.nodes[caller as usize].parent;
    }
    Some((caller, named_parts(tree, caller, tree.nodes[node as usize].total.time, least)?))
}

/// Whether a node has such a part, called directly, without a name.
pub(super) fn has_nameless_part(tree: &CpuTree<'_>, node: u32, least: u64) -> bool {
    let is_nameless = |child: &u32| function(tree, *child).is_some_and(|function| function.by_start);
    let mut large = tree.nodes[node as usize].children.iter();
    large.any(|child| tree.nodes[*child as usize].total.time >= least && is_nameless(child))
}

/// What the time of a node is spent in, by the nearest functions with names: parts of at least `least`, if they are half
/// of `most` together.
pub(super) fn named_parts(tree: &CpuTree<'_>, caller: u32, most: u64, least: u64) -> Option<Vec<Part>> {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    let mut nameless = 0;
    let mut open: Vec<u32> = tree.nodes[caller as usize].children.clone();
    while let Some(next) = open.pop() {
        let call = &tree.nodes[next as usize];
        match (function(tree, next), call.what) {
            (Some(function), _) if function.by_start => {
                nameless += call.own.time;
                open.extend(&call.children);
            }
            (Some(function), _) => *times.entry(last_name(&function.name)).or_default() += call.total.time,
            (None, NodeKind::Nothing(_) | NodeKind::Unaccounted) => {}
            (None, _) => return None,
        }
    }
    let mut parts: Vec<Part> = times.into_iter().map(|(name, time)| (time, name.to_owned())).collect();
    parts.push((nameless, UNNAMED.to_owned()));
    parts.push((tree.nodes[caller as usize].own.time, "in itself".to_owned()));
    parts.retain(|(time, name)| *time >= least && (caller != 0 || name != "in itself"));
    let unnamed = if nameless >= least { nameless } else { 0 };
    let said = parts.iter().map(|(time, _)| *time).sum::<u64>() - unnamed;
    // The time without names is not an answer.
    (said >= most / 2).then_some(parts)
}
