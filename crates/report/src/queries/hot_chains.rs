//! The functions for the line "in total", with functions of the same time joined.
//!
//! If a function only calls another, both have the same total time, and one entry shows both: "59 % run → parse". A
//! callee represents its caller only if it has practically the same time. No function is omitted for one with less time.

use super::cpu_tree::{CpuTree, NodeKind};
use super::function_table::FunctionNumber;
use crate::kinds::Class;
use foldhash::HashMap;

/// Two functions have practically the same time if they share at least this part of it.
const SAME: f64 = 0.98;

/// Functions with the same time, outermost first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chain(pub Vec<FunctionNumber>);

impl Chain {
    /// The innermost function, which represents the chain.
    pub(crate) fn callee(&self) -> FunctionNumber {
        self.0[self.0.len() - 1]
    }
}

/// All listed functions in chains, unordered. Most chains are one function.
pub(crate) fn chains(tree: &CpuTree<'_>) -> Vec<Chain> {
    let functions = &tree.names.functions;
    let mut listed: Vec<bool> =
        functions.iter().map(|f| f.class == Class::Own && !f.start && !f.is_executor).collect();
    for function in mains(tree) {
        listed[function as usize] = false;
    }
    let callee_of = only_callees(tree, &listed);
    let mut chains: HashMap<FunctionNumber, Vec<FunctionNumber>> = HashMap::default();
    for function in (0..functions.len() as u32).filter(|function| listed[*function as usize]) {
        let mut innermost = function;
        // Mutually recursive functions have no innermost one: limit the number of steps.
        let mut steps = 0;
        while let Some(callee) = callee_of.get(&innermost).filter(|_| steps <= callee_of.len()) {
            // Small differences must not add up along a chain.
            if !is_same(tree, function, *callee) {
                break;
            }
            innermost = *callee;
            steps += 1;
        }
        let stands_for_it = if steps > callee_of.len() { function } else { innermost };
        chains.entry(stands_for_it).or_default().push(function);
    }
    let outermost_first = |(callee, mut chain): (FunctionNumber, Vec<FunctionNumber>)| {
        let steps = |function: FunctionNumber| {
            let next = |f: &FunctionNumber| callee_of.get(f).copied().filter(|_| *f != callee);
            std::iter::successors(Some(function), next).take(chain.len() + 1).count()
        };
        let mut keyed: Vec<_> = chain.iter().map(|f| (std::cmp::Reverse(steps(*f)), *f)).collect();
        keyed.sort_unstable();
        chain = keyed.into_iter().map(|(_, function)| function).collect();
        // A function whose callee has another time ends its own chain.
        chain.retain(|function| *function != callee);
        chain.push(callee);
        Chain(chain)
    };
    chains.into_iter().map(outermost_first).collect()
}

fn is_same(tree: &CpuTree<'_>, caller: FunctionNumber, callee: FunctionNumber) -> bool {
    let total = |function: FunctionNumber| tree.names.functions[function as usize].total.time as f64;
    total(callee) >= total(caller) * SAME && total(callee) * SAME <= total(caller)
}

/// Time of a `main` function.
#[derive(Default)]
struct MainTimes {
    /// Where only start-up code calls it.
    outermost: u64,
    total: u64,
}

/// `main` functions called by start-up code only. That everything is under them is no information. Incomplete stacks may
/// have them elsewhere, so most of their time decides.
fn mains(tree: &CpuTree<'_>) -> Vec<FunctionNumber> {
    let is_main = |function: FunctionNumber| {
        crate::text::short::last_name(&tree.names.functions[function as usize].name) == "main"
    };
    let mut mains: HashMap<FunctionNumber, MainTimes> = HashMap::default();
    for call in &tree.nodes {
        if let NodeKind::Function(function) = call.what
            && is_main(function)
        {
            let mut caller = call.parent;
            while let NodeKind::Function(outer) = tree.nodes[caller as usize].what
                && (tree.names.functions[outer as usize].start
                    || tree.names.functions[outer as usize].class != Class::Own)
            {
                caller = tree.nodes[caller as usize].parent;
            }
            let outermost = !matches!(tree.nodes[caller as usize].what, NodeKind::Function(_));
            let times = mains.entry(function).or_default();
            times.total += call.total.time;
            times.outermost += if outermost { call.total.time } else { 0 };
        }
    }
    let outermost = mains.into_iter().filter(|(_, times)| times.outermost > times.total / 2);
    outermost.map(|(function, _)| function).collect()
}

/// The callee of each function that spends nearly all its time in one other listed function.
fn only_callees(tree: &CpuTree<'_>, listed: &[bool]) -> HashMap<FunctionNumber, FunctionNumber> {
    let mut passed: HashMap<(FunctionNumber, FunctionNumber), u64> = HashMap::default();
    for call in &tree.nodes {
        let NodeKind::Function(caller) = call.what else { continue };
        if !listed[caller as usize] {
            continue;
        }
        // Library code in between is not listed: its callees count.
        let mut next = call.children.first();
        while let Some(child) = next {
            let child = &tree.nodes[*child as usize];
            match child.what {
                NodeKind::Function(callee) if listed[callee as usize] => {
                    if callee != caller {
                        *passed.entry((caller, callee)).or_default() += child.total.time;
                    }
                    break;
                }
                NodeKind::Function(_) => next = child.children.first(),
                _ => break,
            }
        }
    }
    let is_only = |(caller, callee, time): &(FunctionNumber, FunctionNumber, u64)| {
        let most = *time as f64 >= tree.names.functions[*caller as usize].total.time as f64 * SAME;
        most && is_same(tree, *caller, *callee)
    };
    let passed = passed.into_iter().map(|((caller, callee), time)| (caller, callee, time));
    let mut only: Vec<_> = passed.filter(is_only).collect();
    // With recursion there can be several: the longest is the one, and of equal ones the first that was met.
    only.sort_unstable_by_key(|(_, callee, time)| (*time, std::cmp::Reverse(*callee)));
    only.into_iter().map(|(caller, callee, _)| (caller, callee)).collect()
}
