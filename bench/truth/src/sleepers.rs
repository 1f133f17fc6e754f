//! Checks the sleeping stacks of the workload `sleepers`.
//!
//! A right stack is complete and has exactly one `wait_…` below `sleeper_thread`. Stale stacks show in the time of each
//! function.

use crate::NamedStacks;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Result of the check.
#[derive(Clone, Debug, Default)]
pub struct SleeperTruth {
    /// Time asleep of all threads named `sleeper`, ns.
    pub asleep: u64,
    /// Part of it with a right stack.
    pub right: u64,
    /// Time by function, ns.
    pub places: BTreeMap<String, u64>,
    /// Up to eight wrong stacks, root first.
    pub wrong: Vec<String>,
}

/// The waiting function of a stack, if it is right.
fn place(root_first: &[impl AsRef<str>]) -> Option<&str> {
    let last = |name: &str| name.rfind("::").map_or(0, |at| at + 2);
    let thread = root_first.iter().position(|name| name.as_ref().contains("sleeper_thread"))?;
    let mut waits = root_first[thread..].iter().map(|name| name.as_ref()).filter_map(|name| {
        let name = &name[last(name)..];
        name.starts_with("wait_std_").then_some(name).or(name.starts_with("wait_c_").then_some(name))
    });
    let first = waits.next()?;
    waits.next().is_none().then_some(first)
}

/// Checks the time asleep.
pub fn check(named: &NamedStacks) -> SleeperTruth {
    let mut truth = SleeperTruth::default();
    for seen in named.seen.iter().filter(|seen| seen.asleep && &*seen.thread == "sleeper") {
        truth.asleep += seen.time;
        let stack = &named.stacks[seen.stack];
        match place(stack) {
            Some(place) if !seen.cut => {
                truth.right += seen.time;
                *truth.places.entry(place.to_owned()).or_default() += seen.time;
            }
            _ if truth.wrong.len() < 8 => {
                let text =
                    stack.iter().map(|name| name.rsplit("::").next().unwrap_or(name)).collect::<Vec<_>>();
                truth.wrong.push(format!("{}{}", text.join(" > "), if seen.cut { " (cut)" } else { "" }));
            }
            _ => {}
        }
    }
    truth
}

impl SleeperTruth {
    /// As JSON.
    pub fn json(&self) -> Value {
        json!({"asleep_ns": self.asleep, "right_ns": self.right, "places": self.places, "wrong": self.wrong})
    }
}
