//! The rows of the tree of CPU time: which nodes are shown, below which other ones, and what is left out.
//!
//! Small branches are left out, and library functions that only call one other function. Where the screen has fewer
//! rows than that, the rows that say the most stay: those where the time splits or is spent, the heaviest first.

use super::Summary;
use super::shares::LEAST_SHOWN;
use crate::kinds::Class;
use crate::queries::cpu_tree::{CpuTree, NodeKind};
use crate::text::short::last_name;
use std::cmp::Reverse;

/// A function is a mere link of a chain if one callee has at least this share of its time,
const SAME: f64 = 0.9;
/// and if less than this share of all time is its own.
const OWN: f64 = 0.02;
/// What a link is worth, as a part of the time that passes through it: trivial, of a library, the reader's own, and the
/// caller of a function without a name, which it says the purpose of.
const LINK: [f64; 4] = [0.03, 0.08, 0.2, 0.5];

/// A row of the tree.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub node: u32,
    /// Index of the row that it is drawn below.
    pub parent: Option<usize>,
    /// Number of functions left out between it and its parent.
    pub skipped: u32,
    /// It is drawn below its caller without indentation.
    pub only: bool,
}

/// The rows of all noticeable branches, in the order in which they are written.
pub(super) fn all(summary: &Summary, tree: &CpuTree<'_>) -> Vec<Row> {
    let least = if summary.everything { 0.0 } else { tree.cpu().time as f64 * LEAST_SHOWN };
    let noticeable = |node: &u32| tree.nodes[*node as usize].total.time as f64 >= least;
    let mut rows: Vec<Row> = Vec::new();
    let mut open: Vec<(u32, Option<usize>)> = vec![(0, None)];
    while let Some((node, parent)) = open.pop() {
        let (node, skipped) = match summary.everything || node == 0 {
            true => (node, 0),
            false => skip_plumbing(tree, node, least),
        };
        let mut row = None;
        if node != 0 {
            row = Some(rows.len());
            rows.push(Row { node, parent, skipped, only: false });
        }
        open.extend(
            tree.nodes[node as usize].children.iter().copied().filter(noticeable).map(|c| (c, row)).rev(),
        );
    }
    let callees = callees(&rows);
    for row in &mut rows {
        row.only = callees[row.parent.map_or(0, |parent| parent + 1)] == 1;
    }
    rows
}

/// For the root and each row, the number of rows directly below it.
fn callees(rows: &[Row]) -> Vec<u32> {
    let mut callees = vec![0_u32; rows.len() + 1];
    for row in rows {
        callees[row.parent.map_or(0, |parent| parent + 1)] += 1;
    }
    callees
}

/// Skips functions of the standard library and of executors that only call one other function. Returns the node reached and the number skipped.
fn skip_plumbing(tree: &CpuTree<'_>, from: u32, least: f64) -> (u32, u32) {
    let (mut node, mut skipped) = (from, 0);
    loop {
        let call = &tree.nodes[node as usize];
        let library = match call.what {
            NodeKind::Function(function) => {
                let function = &tree.names.functions[function as usize];
                function.class == Class::Std || function.is_executor
            }
            _ => false,
        };
        let large = |child: &&u32| tree.nodes[**child as usize].total.time as f64 >= least;
        let mut large = call.children.iter().filter(large);
        match (large.next(), large.next()) {
            (Some(only), None) if library && (call.own.time as f64) < least => {
                node = *only;
                skipped += 1;
            }
            _ => return (node, skipped),
        }
    }
}

/// Keeps the `most` rows that say the most. What was left out between a row and its parent is counted there.
pub(super) fn fit(rows: Vec<Row>, tree: &CpuTree<'_>, most: usize) -> Vec<Row> {
    if rows.len() <= most {
        return rows;
    }
    let worth = worth(&rows, tree);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| worth[*b].total_cmp(&worth[*a]).then(a.cmp(b)));
    let mut is_kept = vec![false; rows.len()];
    order.into_iter().take(most).for_each(|row| is_kept[row] = true);
    // For each row, the kept row that it is or is below, and the number left out between them.
    let mut places: Vec<(Option<usize>, u32)> = Vec::with_capacity(rows.len());
    let mut kept: Vec<Row> = Vec::with_capacity(most);
    for (row, is_kept) in rows.into_iter().zip(is_kept) {
        let (parent, between) = row.parent.map_or((None, 0), |parent| places[parent]);
        let skipped = between + row.skipped;
        if is_kept {
            places.push((Some(kept.len()), 0));
            kept.push(Row { parent, skipped, ..row });
        } else {
            places.push((parent, skipped + 1));
        }
    }
    let callees = callees(&kept);
    for index in 0..kept.len() {
        let row = &kept[index];
        let (below, all) = match row.parent {
            Some(parent) => {
                let caller = &tree.nodes[kept[parent].node as usize];
                (callees[parent + 1], caller.total.time - caller.own.time)
            }
            None => (callees[0], tree.cpu().time),
        };
        // The siblings of a sole callee must not be those that did not fit.
        let is_most = tree.nodes[row.node as usize].total.time as f64 >= all as f64 * SAME;
        kept[index].only = below == 1 && (is_most || row.parent.is_none());
    }
    kept
}

/// What each row is worth: its time, or less for a function that only passes it on.
fn worth(rows: &[Row], tree: &CpuTree<'_>) -> Vec<f64> {
    let cpu = tree.cpu().time as f64;
    let mut worth: Vec<f64> =
        rows.iter().map(|row| tree.nodes[row.node as usize].total.time as f64).collect();
    let mut heaviest = vec![0.0_f64; rows.len()];
    for (index, row) in rows.iter().enumerate() {
        if let Some(parent) = row.parent {
            heaviest[parent] = heaviest[parent].max(worth[index]);
        }
    }
    let is_link: Vec<bool> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let own = tree.nodes[row.node as usize].own.time as f64;
            heaviest[index] >= worth[index] * SAME && own < cpu * OWN
        })
        .collect();
    let says_purpose = callers_of_nameless(rows, tree, &is_link, &worth);
    // The chain of each link is named by its first row.
    let mut chains: Vec<Option<usize>> = vec![None; rows.len()];
    let mut links: Vec<(usize, Reverse<usize>, usize)> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let call = &tree.nodes[row.node as usize];
        if let NodeKind::Function(function) = call.what
            && is_link[index]
        {
            let caller = row.parent.filter(|caller| worth[index] >= worth[*caller] * SAME);
            let chain = caller.and_then(|caller| chains[caller]).unwrap_or(index);
            chains[index] = Some(chain);
            let function = &tree.names.functions[function as usize];
            let is_trivial =
                function.by_start || function.class != Class::Own || last_name(&function.name) == "main";
            let rank = match () {
                () if is_trivial => 0,
                () if says_purpose[index] => 3,
                () => 1 + usize::from(function.is_readers_own),
            };
            links.push((chain, Reverse(rank), index));
        }
    }
    links.sort_unstable();
    let (mut before, mut place) = (None, 0.0);
    for (chain, Reverse(rank), index) in links {
        // Each further link of a chain says less.
        place = if before == Some(chain) { place + 1.0 } else { 1.0 };
        before = Some(chain);
        worth[index] *= LINK[rank] / place;
    }
    worth
}

/// By row: whether it is the nearest link above a function without a name that has a name, in the same module.
fn callers_of_nameless(rows: &[Row], tree: &CpuTree<'_>, is_link: &[bool], worth: &[f64]) -> Vec<bool> {
    let function = |row: usize| match tree.nodes[rows[row].node as usize].what {
        NodeKind::Function(function) => Some(&tree.names.functions[function as usize]),
        _ => None,
    };
    let mut says_purpose = vec![false; rows.len()];
    for row in 0..rows.len() {
        let Some(nameless) = function(row).filter(|function| function.by_start && !is_link[row]) else {
            continue;
        };
        let mut at = rows[row].parent;
        while let Some(caller) = at
            && is_link[caller]
            && worth[row] >= worth[caller] * SAME
        {
            if function(caller).is_some_and(|named| !named.by_start && named.module == nameless.module) {
                says_purpose[caller] = true;
                break;
            }
            at = rows[caller].parent;
        }
    }
    says_purpose
}
