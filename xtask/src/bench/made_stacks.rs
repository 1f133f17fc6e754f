//! Generated folded stacks like those of a large Rust program: any number of distinct stacks, the same in every run.
//!
//! Consecutive stacks are like consecutive samples: the outermost callers stay, and the rest is another path through a random
//! call graph. Callees, counts and the length of changes follow Zipf's law.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Frames of the deepest stack, and of the shallowest.
const DEPTHS: std::ops::RangeInclusive<usize> = 10..=60;
/// Callees of a function.
const CALLEES: usize = 8;
/// Most frames that one stack has more than its forerunner has in common with it.
const NEW: usize = 32;
/// Highest count of a line.
const COUNT: usize = 1000;
const SEED: u64 = 0x5EED_F01D_ED57_AC45;

/// Distinct stacks through functions, in the requested numbers, in the order of their lines.
pub fn folded(distinct: usize, functions: usize) -> String {
    let mut dice = Dice(SEED);
    let names = names(functions, &mut dice);
    let calls: Vec<Vec<usize>> = (0..functions)
        .map(|_| (0..1 + dice.below(CALLEES)).map(|_| 1 + dice.zipf(functions - 1)).collect())
        .collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut stack = vec![0];
    let mut line = String::new();
    while counts.len() < distinct {
        stack.truncate((stack.len() - dice.zipf(stack.len())).max(1));
        let depth = (stack.len() + 1 + dice.zipf(NEW)).clamp(*DEPTHS.start(), *DEPTHS.end());
        while stack.len() < depth {
            let callees = &calls[stack[stack.len() - 1]];
            stack.push(callees[dice.zipf(callees.len())]);
        }
        line.clear();
        line += "server";
        stack.iter().for_each(|function| line.extend([";", &names[*function]]));
        *counts.entry(line.clone()).or_default() += 1 + dice.zipf(COUNT);
    }
    counts.iter().fold(String::new(), |mut text, (line, count)| {
        let _ = writeln!(text, "{line} {count}");
        text
    })
}

const CRATES: [&str; 16] = [
    "server",
    "alloc",
    "core",
    "std",
    "tokio",
    "hyper",
    "regex_automata",
    "serde_json",
    "hashbrown",
    "rustls",
    "tracing",
    "rayon_core",
    "http",
    "sqlparser",
    "arrow_array",
    "tower",
];
const MODULES: [&str; 20] = [
    "runtime::task",
    "sync::mpsc",
    "collections::hash::map",
    "vec",
    "raw_vec",
    "proto::h1::dispatch",
    "meta::strategy",
    "de",
    "ser",
    "net::tcp",
    "slice::sort::stable",
    "iter::adapters::map",
    "io::buffered",
    "string",
    "registry",
    "str::pattern",
    "conn::handshake",
    "service",
    "parser",
    "ops::function",
];
const TYPES: [&str; 20] = [
    "Harness",
    "Receiver",
    "HashMap",
    "Vec",
    "RawVecInner",
    "Dispatcher",
    "Core",
    "Deserializer",
    "Serializer",
    "TcpStream",
    "DriftSort",
    "Map",
    "BufReader",
    "String",
    "WorkerThread",
    "Searcher",
    "Session",
    "MakeService",
    "Parser",
    "FnOnce",
];
const FUNCTIONS: [&str; 32] = [
    "poll",
    "poll_inner",
    "run",
    "run_task",
    "next",
    "fold",
    "try_fold",
    "call_once",
    "call_mut",
    "insert",
    "insert_full",
    "get_or_init",
    "search_nofail",
    "find_in_chunk",
    "parse_value",
    "parse_object_colon",
    "serialize_field",
    "read_to_end",
    "write_all_buffered",
    "grow_amortized",
    "reserve_rehash",
    "from_iter",
    "extend_trusted",
    "join_context",
    "park_timeout",
    "complete_io",
    "process_new_packets",
    "drop_slow",
    "clone",
    "fmt",
    "eq",
    "hash_one",
];

/// Distinct names, in the form of demangled Rust names.
fn names(number: usize, dice: &mut Dice) -> Vec<String> {
    let mut names = vec!["server::main".to_owned()];
    let mut known: BTreeSet<String> = names.iter().cloned().collect();
    while names.len() < number {
        let one = |words: &[&'static str], dice: &mut Dice| words[dice.below(words.len())];
        let (krate, module) = (one(&CRATES, dice), one(&MODULES, dice));
        let (of, with, function) = (one(&TYPES, dice), one(&TYPES, dice), one(&FUNCTIONS, dice));
        let name = match dice.below(6) {
            0 => format!("{krate}::{module}::{function}"),
            1 => format!("{krate}::{module}::{of}::{function}"),
            2 => format!("{krate}::{module}::{of}<{with}>::{function}"),
            3 => format!("<{krate}::{module}::{of} as {with}>::{function}"),
            4 => format!("<{krate}::{module}::{of}<{with}> as core::iter::Iterator>::{function}"),
            _ => format!("{krate}::{module}::{of}::{function}::{{closure#{}}}", dice.below(4)),
        };
        if known.insert(name.clone()) {
            names.push(name);
        }
    }
    names
}

/// A random sequence, the same in every run.
struct Dice(u64);

impl Dice {
    /// In `0..1`.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1_u64 << 31) as f64
    }

    /// Below a bound, uniformly distributed.
    fn below(&mut self, bound: usize) -> usize {
        (self.share() * bound as f64) as usize
    }

    /// Below a bound, each number as likely as one part in it plus one.
    fn zipf(&mut self, bound: usize) -> usize {
        let rank = ((bound + 1) as f64).powf(self.share()) as usize;
        rank.clamp(1, bound) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_as_told() {
        let text = folded(300, 100);
        let stacks: BTreeSet<&str> = text.lines().filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
        assert_eq!((stacks.len(), text.lines().count()), (300, 300));
        let depths = stacks.iter().map(|stack| stack.split(';').count() - 1);
        assert!(depths.clone().all(|depth| DEPTHS.contains(&depth)));
        assert!(depths.max() > Some(40), "deep ones are among them");
        assert_eq!(text, folded(300, 100), "the same in every run");
    }
}
