//! Hits and time of functions by name, each stack counted once for each function in it.

use crate::NamedStacks;
use std::collections::BTreeMap;

/// Hits and time of a function.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    /// Hits of stacks with the function.
    pub hits: u64,
    /// Time they stand for, ns.
    pub time: u64,
}

/// Shares of all functions whose last path segment begins with `prefix`, awake threads only.
pub fn by_function(named: &NamedStacks, prefix: &str) -> BTreeMap<String, Share> {
    let last = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
    let wanted: Vec<Vec<String>> = named
        .stacks
        .iter()
        .map(|stack| {
            let mut names: Vec<String> = stack.iter().map(|name| last(name)).collect();
            names.retain(|name| name.starts_with(prefix));
            names.sort();
            names.dedup();
            names
        })
        .collect();
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    for seen in named.seen.iter().filter(|seen| !seen.asleep) {
        for name in &wanted[seen.stack] {
            let share = shares.entry(name.clone()).or_default();
            share.hits += seen.hits;
            share.time += seen.time;
        }
    }
    shares
}
