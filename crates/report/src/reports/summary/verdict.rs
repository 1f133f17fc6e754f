//! The verdict, the last line of the summary: the function where the time splits or is spent.
//!
//! It follows the heaviest calls from the outside to the inside, as long as most of the time goes one way. What only
//! passes all time on, such as `main`, is no answer.

use super::{answers, interpreters, shares};
use crate::kinds::Class;
use crate::order;
use crate::queries::cpu_tree::{CpuNode, CpuTree, NodeKind};
use crate::queries::unaccounted_cpu::UNACCOUNTED;
use crate::text::numbers::percent_text;
use crate::text::short::{last_name, tail};
use crate::text::style::{Line, Paint};
use stackglass_profile::{Recording, sanitize};

/// A call dominates with at least this share of all time,
const DOMINANT: f64 = 0.5;
/// and the time does not split at its caller with at least this share of the caller's time.
const ONE_WAY: f64 = 0.65;
/// With at least this share of its time of its own, a function does not split it.
const ITSELF: f64 = 0.95;
/// Parts with less of all time are not named.
const PART: f64 = 0.05;
/// The name of code in no file that has none.
const UNKNOWN_CODE: &str = "[unknown code]";
/// Number of parts named.
const PARTS: usize = 3;

/// A verdict needs as many samples.
const FEWEST: u64 = 5;

/// The verdict in at most `cols` columns.
pub(super) fn line(recording: &Recording, tree: &CpuTree<'_>, cols: usize) -> Option<Line> {
    // A few samples say little; a note says so.
    if shares::has_times(recording) && tree.cpu().hits < FEWEST {
        return None;
    }
    if let Some(line) = super::waits::verdict(recording, tree, cols) {
        return Some(line);
    }
    let cpu = tree.cpu().time;
    let split = callers_of_system(tree, where_it_splits(tree));
    let mut node = named(tree, split);
    let mut parts = parts(tree, split, node);
    if answers::has_nameless_part(tree, split, (cpu as f64 * PART) as u64)
        && let Some(named) = answers::named_parts(
            tree,
            split,
            tree.nodes[split as usize].total.time,
            (cpu as f64 * PART) as u64,
        )
        && named.iter().all(|(_, name)| name != answers::UNNAMED)
    {
        parts = largest(named, cpu);
    }
    let is_itself = |call: &CpuNode| call.own.time as f64 >= call.total.time as f64 * ITSELF;
    if !is_answer(tree, node)
        && !is_itself(&tree.nodes[node as usize])
        && let Some((caller, named)) = answers::around_nameless(tree, node, (cpu as f64 * PART) as u64)
    {
        (node, parts) = (caller, largest(named, cpu));
    }
    let call = &tree.nodes[node as usize];
    let (whole, is) = match () {
        () if !shares::has_times(recording) => ("all samples", "are"),
        () if recording.is_walltime() => ("the time", "is"),
        () => ("CPU time", "is"),
    };
    let share = percent_text(call.total.time, cpu);
    // From the most to the least that may fit.
    let mut texts: Vec<Vec<(Paint, String)>> = Vec::new();
    let with_parts = |start: Vec<(Paint, String)>, parts: &[String]| -> Vec<(Paint, String)> {
        let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        start.into_iter().chain([(Paint::Normal, parts)]).collect()
    };
    let shared = answers::shared(tree, (cpu as f64 * DOMINANT) as u64).filter(|_| !is_answer(tree, node));
    let generator = interpreters::runtime_of_hint(recording);
    if let Some(name) = generator {
        for part in &mut parts {
            *part = part.replace(UNKNOWN_CODE, &format!("code that {name} compiled"));
        }
    }
    match (shared, name(tree, node)) {
        (Some((function, is_own)), _) => {
            let time = if is_own { function.own.time } else { function.total.time };
            let (place, itself) = if is_own { ("in", " itself") } else { ("under", "") };
            for name in [&*function.name, tail(&function.name)] {
                texts.push(vec![
                    (Paint::Bold, percent_text(time, cpu)),
                    (Paint::Normal, format!(" of {whole} {is} {place} ")),
                    (Paint::Bold, name.to_owned()),
                    (Paint::Normal, format!("{itself}, called from several places")),
                ]);
            }
        }
        (None, Some(name)) if name == UNKNOWN_CODE && generator.is_some() => {
            let name = generator.unwrap_or_default();
            texts.push(vec![
                (Paint::Bold, share.clone()),
                (
                    Paint::Normal,
                    format!(" of {whole} {is} in or under code that {name} compiled: see the first line"),
                ),
            ]);
        }
        (None, Some(name)) if node == split && is_itself(call) => {
            // Which of several processes it was says more than a caller without a name, too.
            let is_nameless = answers::function(tree, node).is_some_and(|function| function.by_start);
            let process = if is_nameless { answers::busy_process(recording) } else { None };
            let caller = process.map_or_else(|| caller(tree, node), |process| format!(", in {process}"));
            for (name, caller) in
                [(&*name, &*caller), (tail(&name), &*caller), (&*name, ""), (tail(&name), "")]
            {
                texts.push(vec![
                    (Paint::Bold, share.clone()),
                    (Paint::Normal, format!(" of {whole} {is} in ")),
                    (Paint::Bold, name.to_owned()),
                    (Paint::Normal, format!(" itself{caller}")),
                ]);
            }
        }
        (None, Some(name)) => {
            let is_nameless = answers::function(tree, node).is_some_and(|function| function.by_start);
            let process = if is_nameless { answers::busy_process(recording) } else { None };
            let caller =
                process.map_or_else(|| caller_of_library(tree, node), |process| format!(", in {process}"));
            loop {
                for (name, caller) in [(&*name, &*caller), (tail(&name), &*caller), (tail(&name), "")] {
                    let start = vec![
                        (Paint::Bold, share.clone()),
                        (Paint::Normal, format!(" of {whole} {is} under ")),
                        (Paint::Bold, name.to_owned()),
                        (Paint::Normal, caller.to_owned()),
                    ];
                    texts.push(with_parts(start, &parts));
                }
                if !parts.is_empty() {
                    let start = [(Paint::Bold, share.clone()), (Paint::Normal, " under ".to_owned())];
                    let name = [(Paint::Bold, tail(&name).to_owned())];
                    texts.push(with_parts(start.into_iter().chain(name).collect(), &parts));
                }
                if parts.pop().is_none() {
                    break;
                }
            }
        }
        (None, None) => {
            let split = if is == "is" { "splits" } else { "split" };
            let start = match place(tree, node) {
                Some(place) => format!("{whole} {split} under {place}"),
                None if is_unaccounted(tree) => return None,
                None if is_split(tree) => format!("{whole} {split}"),
                None => format!("no function has half of {whole}"),
            };
            while !parts.is_empty() {
                texts.push(with_parts(vec![(Paint::Normal, start.clone())], &parts));
                parts.pop();
            }
        }
    }
    let lines = texts.into_iter().map(|pieces| {
        let mut line = Line::new();
        for (paint, text) in pieces {
            line.push(paint, text);
        }
        line
    });
    let mut last = None;
    for line in lines {
        if line.width() <= cols {
            return Some(line);
        }
        last = Some(line);
    }
    last
}

/// Whether a node is a function with a name that is worth naming.
fn is_answer(tree: &CpuTree<'_>, node: u32) -> bool {
    answers::function(tree, node).is_some_and(|function| {
        function.class == Class::Own
            && !function.by_start
            && !function.is_executor
            && !function.name.starts_with('[')
            && name(tree, node).is_some()
    })
}

/// The outermost node with most of the time that no single callee takes over.
fn where_it_splits(tree: &CpuTree<'_>) -> u32 {
    let cpu = tree.cpu().time as f64;
    let mut node = 0;
    loop {
        let call = &tree.nodes[node as usize];
        // Callees are ordered by time.
        let next = call.children.first().copied().filter(|child| {
            let child = &tree.nodes[*child as usize];
            child.total.time as f64 >= (cpu * DOMINANT).max(call.total.time as f64 * ONE_WAY)
                && !matches!(child.what, NodeKind::Nothing(_) | NodeKind::Unaccounted)
        });
        match next {
            Some(child) => node = child,
            None => break,
        }
    }
    node
}

/// For a function of the C library, the function that called the library, unless that says less.
fn callers_of_system(tree: &CpuTree<'_>, node: u32) -> u32 {
    let mut at = node;
    while at != 0 {
        match class(tree, at) {
            Some(Class::C) => at = tree.nodes[at as usize].parent,
            Some(_) if name(tree, at).is_some() => return at,
            _ => return node,
        }
    }
    node
}

fn class(tree: &CpuTree<'_>, node: u32) -> Option<Class> {
    match tree.nodes[node as usize].what {
        NodeKind::Function(function) => Some(tree.names.functions[function as usize].class),
        _ => None,
    }
}

/// The nearest caller with practically the same time that has a name, or the node itself.
fn named(tree: &CpuTree<'_>, node: u32) -> u32 {
    let is_named = |node: u32| match tree.nodes[node as usize].what {
        NodeKind::Function(function) => {
            let function = &tree.names.functions[function as usize];
            let is_named = !function.by_start && !function.name.starts_with('[');
            is_named && function.class == Class::Own && name(tree, node).is_some()
        }
        _ => false,
    };
    let least = tree.nodes[node as usize].total.time as f64;
    let mut at = node;
    while at != 0 && least >= tree.nodes[at as usize].total.time as f64 * ITSELF {
        if is_named(at) {
            return at;
        }
        at = tree.nodes[at as usize].parent;
    }
    node
}

/// The name of a function that is worth naming: nothing that only starts a program, and `main` for its own time only.
fn name(tree: &CpuTree<'_>, node: u32) -> Option<String> {
    match tree.nodes[node as usize].what {
        NodeKind::Function(function) => {
            let function = &tree.names.functions[function as usize];
            let call = &tree.nodes[node as usize];
            let passes_on = is_main(&function.name) && call.own.time < call.total.time / 2;
            (!function.start && !passes_on).then(|| function.name.clone())
        }
        _ => None,
    }
}

/// Whether a function is the program's outermost one. Go's has the name of its package.
fn is_main(name: &str) -> bool {
    matches!(last_name(name), "main" | "main.main")
}

/// Whether one of the outermost functions has half of all time.
fn is_split(tree: &CpuTree<'_>) -> bool {
    let first = tree.nodes[0].children.first();
    first.is_some_and(|first| {
        tree.nodes[*first as usize].total.time as f64 >= tree.cpu().time as f64 * DOMINANT
    })
}

/// Whether most of the time has no function.
fn is_unaccounted(tree: &CpuTree<'_>) -> bool {
    let first = tree.nodes[0].children.first().map(|first| &tree.nodes[*first as usize]);
    first.is_some_and(|first| {
        first.total.time as f64 >= tree.cpu().time as f64 * DOMINANT
            && matches!(first.what, NodeKind::Nothing(_) | NodeKind::Unaccounted)
    })
}

/// A program or its `main`.
fn place(tree: &CpuTree<'_>, node: u32) -> Option<String> {
    match tree.nodes[node as usize].what {
        NodeKind::Function(function) => Some(tail(&tree.names.functions[function as usize].name).to_owned()),
        NodeKind::Program(program) => Some(sanitize(&tree.programs[program as usize].name).into_owned()),
        NodeKind::Executors(executors) => Some(executors.names()),
        _ => None,
    }
}

fn caller(tree: &CpuTree<'_>, node: u32) -> String {
    match tree.nodes[tree.nodes[node as usize].parent as usize].what {
        NodeKind::Function(caller) => {
            format!(", called from {}", tail(&tree.names.functions[caller as usize].name))
        }
        _ => String::new(),
    }
}

/// For a function of a library, the reader's own function that called it.
fn caller_of_library(tree: &CpuTree<'_>, node: u32) -> String {
    let own = |node: u32| match tree.nodes[node as usize].what {
        NodeKind::Function(function) => {
            Some(&tree.names.functions[function as usize]).filter(|function| function.is_readers_own)
        }
        _ => None,
    };
    if own(node).is_some() {
        return String::new();
    }
    let mut at = tree.nodes[node as usize].parent;
    while at != 0 {
        if let Some(function) = own(at) {
            return if is_main(&function.name) {
                String::new()
            } else {
                format!(", called from {}", tail(&function.name))
            };
        }
        at = tree.nodes[at as usize].parent;
    }
    String::new()
}

/// The first function from here on that is neither unnamed nor of a library that passes the time on.
fn telling(tree: &CpuTree<'_>, from: u32) -> u32 {
    let mut node = from;
    loop {
        let call = &tree.nodes[node as usize];
        let NodeKind::Function(function) = call.what else { break };
        let function = &tree.names.functions[function as usize];
        let is_own = function.class == Class::Own && !function.by_start && !function.is_executor;
        if is_own && !is_main(&function.name) {
            return node;
        }
        let heavy =
            |child: &u32| tree.nodes[*child as usize].total.time as f64 >= call.total.time as f64 * ITSELF;
        match call.children.first().copied().filter(heavy) {
            Some(child) => node = child,
            None => break,
        }
    }
    from
}

/// The largest parts of a node's time, which is said to be that of `named`: `31 % fill`, `12 % in itself`.
fn parts(tree: &CpuTree<'_>, node: u32, named: u32) -> Vec<String> {
    let cpu = tree.cpu().time;
    let call = &tree.nodes[node as usize];
    let mut parts: Vec<(u64, String)> = Vec::new();
    for child in &call.children {
        let time = tree.nodes[*child as usize].total.time;
        let name = match tree.nodes[telling(tree, *child) as usize].what {
            NodeKind::Function(function) => {
                last_name(&tree.names.functions[function as usize].name).to_owned()
            }
            NodeKind::Program(program) => sanitize(&tree.programs[program as usize].name).into_owned(),
            NodeKind::Executors(executors) => executors.names(),
            NodeKind::Unaccounted => UNACCOUNTED.to_owned(),
            NodeKind::Nothing(_) => "without a stack".to_owned(),
            NodeKind::Root => continue,
        };
        parts.push((time, name));
    }
    let itself = match answers::function(tree, node).filter(|_| node != named) {
        Some(function) => last_name(&function.name),
        None => "in itself",
    };
    if node != 0 {
        parts.push((call.own.time, itself.to_owned()));
    }
    // Several processes may have time without a stack.
    let mut merged: Vec<(u64, String)> = Vec::new();
    for (time, name) in parts {
        match merged.iter_mut().find(|(_, known)| *known == name) {
            Some((sum, _)) => *sum += time,
            None => merged.push((time, name)),
        }
    }
    let mut parts = merged;
    parts.retain(|(time, _)| *time as f64 >= cpu as f64 * PART);
    // Small parts of a large sum say nothing.
    if parts.iter().map(|(time, _)| *time).sum::<u64>() < call.total.time / 2 {
        return Vec::new();
    }
    largest(parts, cpu)
}

/// The texts of the largest parts.
fn largest(mut parts: Vec<answers::Part>, cpu: u64) -> Vec<String> {
    parts.sort_by(|(a, _), (b, _)| order::longest_first(*a, *b));
    let text = |(time, name): (u64, String)| format!("{} {name}", percent_text(time, cpu));
    parts.into_iter().take(PARTS).map(text).collect()
}
