//! Checks that each stack of the workload `chain` is exactly right.
//!
//! A right stack has `main`, `chain_root`, and the links of the ring in order without a gap; `chain_leaf` only below
//! exactly `depth` links; the spinning only below the leaf. Inlined functions of `core` (`rotate_left`) may occur anywhere
//! below the root.

use crate::NamedStacks;
use serde_json::{Value, json};

/// Result of the check.
#[derive(Clone, Debug, Default)]
pub struct ChainTruth {
    /// Hits inside the chain or with a broken stack.
    pub hits: u64,
    /// Hits with an exactly right stack.
    pub right: u64,
    /// Complete stacks outside of the chain: start and end of the program.
    pub outside: u64,
    /// Up to five wrong stacks, root first, shortened.
    pub wrong: Vec<String>,
}

#[derive(PartialEq)]
enum Part {
    Root,
    Link(u32),
    Leaf,
    Spin,
    Core,
    Other,
}

fn part(name: &str) -> Part {
    if let Some(at) = name.find("link_") {
        let digits = name.get(at + 5..at + 7).and_then(|digits| digits.parse().ok());
        return digits.map_or(Part::Other, Part::Link);
    }
    match name.split('<').next().unwrap_or(name) {
        _ if name.contains("chain_root") => Part::Root,
        _ if name.contains("chain_leaf") => Part::Leaf,
        _ if name.contains("spin_rounds") || name.contains("inlined_round") => Part::Spin,
        _ if name.starts_with("core::") || name.starts_with("<core::") || name.starts_with("<u64>::") => {
            Part::Core
        }
        _ => Part::Other,
    }
}

enum Verdict {
    Right,
    Outside,
    Wrong,
}

fn judge(root_first: &[impl AsRef<str>], depth: u32) -> Verdict {
    let parts: Vec<Part> = root_first.iter().map(|name| part(name.as_ref())).collect();
    let Some(root) = parts.iter().position(|p| *p == Part::Root) else {
        let inside = parts.iter().any(|p| !matches!(p, Part::Other | Part::Core));
        return if inside { Verdict::Wrong } else { Verdict::Outside };
    };
    let above_is_whole = parts[..root].iter().all(|p| matches!(p, Part::Other | Part::Core))
        && root_first[..root]
            .iter()
            .any(|name| name.as_ref().ends_with("main") || name.as_ref().contains("::main::h"));
    let below: Vec<&Part> = parts[root + 1..].iter().filter(|p| **p != Part::Core).collect();
    let links = below.iter().take_while(|p| matches!(p, Part::Link(_))).count();
    let in_order = below[..links].iter().enumerate().all(|(i, p)| **p == Part::Link(i as u32 % 20));
    let rest = &below[links..];
    let rest_is_right = match rest.first() {
        None => true,
        // The root reads the clock between two batches.
        Some(Part::Other) => links == 0,
        Some(Part::Leaf) => links as u32 == depth && rest[1..].iter().all(|p| **p == Part::Spin),
        Some(_) => false,
    };
    if above_is_whole && in_order && links as u32 <= depth && rest_is_right {
        Verdict::Right
    } else {
        Verdict::Wrong
    }
}

/// Checks all stacks with hits.
pub fn check(named: &NamedStacks, depth: u32) -> ChainTruth {
    let mut truth = ChainTruth::default();
    let verdicts: Vec<Verdict> = named.stacks.iter().map(|stack| judge(stack, depth)).collect();
    for seen in named.seen.iter().filter(|seen| seen.hits > 0) {
        match (&verdicts[seen.stack], seen.cut) {
            (Verdict::Outside, false) => truth.outside += seen.hits,
            (Verdict::Right, false) => {
                truth.hits += seen.hits;
                truth.right += seen.hits;
            }
            _ => {
                truth.hits += seen.hits;
                if truth.wrong.len() < 5 {
                    truth.wrong.push(shorten(&named.stacks[seen.stack], seen.cut));
                }
            }
        }
    }
    truth
}

fn shorten(root_first: &[impl AsRef<str>], cut: bool) -> String {
    let short = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
    let names: Vec<String> = root_first.iter().map(|name| short(name.as_ref())).collect();
    let text = match names.len() {
        0..=12 => names.join(" > "),
        n => format!("{} > … {} … > {}", names[..4].join(" > "), n - 10, names[n - 6..].join(" > ")),
    };
    if cut { format!("{text} (cut)") } else { text }
}

impl ChainTruth {
    /// As JSON.
    pub fn json(&self) -> Value {
        json!({"hits": self.hits, "right": self.right, "outside": self.outside, "wrong": self.wrong})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(stack: &str, depth: u32) -> &'static str {
        let names: Vec<&str> = stack.split(' ').collect();
        match judge(&names, depth) {
            Verdict::Right => "right",
            Verdict::Outside => "outside",
            Verdict::Wrong => "wrong",
        }
    }

    #[test]
    fn a_gap_a_double_and_a_missing_leaf_caller_show() {
        let top = "_start main w::main w::chain::chain_root";
        for (stack, expected) in [
            ("", "right"),
            (" link_00", "right"),
            (" link_00 link_01", "right"),
            (" link_00 link_01 chain_leaf", "right"),
            (" link_00 link_01 chain_leaf spin_rounds inlined_round", "right"),
            (" now", "right"),
            (" link_00 core::num::rotate_left", "right"),
            (" link_01", "wrong"),
            (" link_00 link_00", "wrong"),
            (" link_00 chain_leaf", "wrong"),
            (" link_00 link_01 spin_rounds", "wrong"),
            (" link_00 link_01 link_02", "wrong"),
            (" link_00 now", "wrong"),
        ] {
            assert_eq!(verdict(&format!("{top}{stack}"), 2), expected, "{stack}");
        }
        assert_eq!(verdict("_start main lang_start", 2), "outside");
        assert_eq!(verdict("chain_root link_00", 2), "wrong");
        assert_eq!(verdict("link_00 link_01", 2), "wrong");
    }
}
