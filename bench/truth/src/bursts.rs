//! Compares recordings of programs that work in short bursts with the programs' own account.
//!
//! The workloads `burst-…` print the CPU time of each function. A correct recording has that time within the statistical
//! error, and one stack for each delay of it. With fewer stacks, bursts are missed; with more, other time is counted as
//! bursts. The error is that of independent stacks: the square root of their expected number. Stacks at even steps of the CPU
//! time scatter less.

use crate::NamedStacks;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;

/// Largest deviation in sigma.
pub const SIGMAS: f64 = 3.0;
/// Allowed ratio of stacks to expected stacks.
pub const RATIO: std::ops::RangeInclusive<f64> = 0.9..=1.1;
/// Fewest expected stacks for [`RATIO`]: with fewer, chance alone can exceed it within [`SIGMAS`].
pub const ENOUGH: f64 = 900.0;

/// The figures of a function: recorded and true.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name; [`TOTAL`] for the sum of all.
    pub name: String,
    /// CPU time in the recording, ns.
    pub shown_ns: f64,
    /// CPU time by the program's account, ns.
    pub true_ns: f64,
    /// Stacks of running threads with it.
    pub hits: f64,
    /// Stacks expected from its true time.
    pub expected: f64,
}

/// The name of the sum of all functions.
pub const TOTAL: &str = "all functions";

impl Function {
    /// Stacks for each expected stack: hits for each true millisecond at a delay of 1 ms.
    pub fn ratio(&self) -> f64 {
        self.hits / self.expected
    }

    /// Deviation of the number of stacks, in sigma.
    pub fn sigma_of_hits(&self) -> f64 {
        (self.hits - self.expected) / self.expected.sqrt()
    }

    /// Deviation of the time, in sigma.
    pub fn sigma_of_time(&self) -> f64 {
        (self.shown_ns / self.true_ns - 1.0) * self.expected.sqrt()
    }

    /// Adds the figures of another run.
    pub fn add(&mut self, other: &Function) {
        self.shown_ns += other.shown_ns;
        self.true_ns += other.true_ns;
        self.hits += other.hits;
        self.expected += other.expected;
    }

    fn faults(&self, faults: &mut Vec<String>) {
        let Function { name, hits, expected, .. } = self;
        let (shown, known) = (self.shown_ns * 1e-6, self.true_ns * 1e-6);
        let far = |sigma: f64| sigma.is_nan() || sigma.abs() > SIGMAS;
        if far(self.sigma_of_time()) {
            let sigma = self.sigma_of_time();
            faults.push(format!("{name}: {shown:.1} ms shown, {known:.1} ms true ({sigma:+.1} sigma)"));
        }
        // Each thread has a period within 3 % of the delay, so the bound for many stacks is the ratio, not sigma.
        if !RATIO.contains(&self.ratio()) && (*expected >= ENOUGH || far(self.sigma_of_hits())) {
            let (ratio, sigma) = (self.ratio(), self.sigma_of_hits());
            faults.push(format!(
                "{name}: {hits} stacks, {expected:.0} expected ({ratio:.2}, {sigma:+.1} sigma)"
            ));
        }
    }
}

/// The comparison of a recording.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// Each function of the account, and their sum.
    pub functions: Vec<Function>,
    /// Functions with CPU time but no stack of a running thread, with that time in ns.
    pub without_stacks: Vec<(String, u64)>,
    /// CPU time of the program without stacks, ns.
    pub unseen_ns: u64,
}

/// Compares the stacks with the line of JSON that the workload printed.
///
/// # Errors
/// If the line is not such an account.
pub fn judge(named: &NamedStacks, delay_ns: u64, said: &Value) -> Result<Judgement> {
    let mut by_function: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut unseen_ns = 0;
    for seen in named.seen.iter().filter(|seen| !seen.asleep) {
        let mut names: Vec<&str> = named.stacks[seen.stack].iter().map(|name| last(name)).collect();
        unseen_ns += if names.is_empty() { seen.time } else { 0 };
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (hits, time) = by_function.entry(name).or_default();
            *hits += seen.hits;
            *time += seen.time;
        }
    }
    let account = said["truth"].as_array().context("the workload tells its truth")?;
    let mut functions = Vec::new();
    let mut total = Function { name: TOTAL.into(), shown_ns: 0.0, true_ns: 0.0, hits: 0.0, expected: 0.0 };
    for entry in account {
        let name = entry["function"].as_str().context("the account names its functions")?;
        let true_ns = entry["cpu_ns"].as_f64().context("the account has times")?;
        let (hits, shown) = by_function.get(name).copied().unwrap_or_default();
        let expected = true_ns / delay_ns as f64;
        let function =
            Function { name: name.into(), shown_ns: shown as f64, true_ns, hits: hits as f64, expected };
        total.add(&function);
        functions.push(function);
    }
    functions.push(total);
    let without_stacks = by_function.iter().filter(|(_, (hits, time))| *hits == 0 && *time > 0);
    let without_stacks = without_stacks.map(|(name, (_, time))| (name.to_string(), *time)).collect();
    Ok(Judgement { functions, without_stacks, unseen_ns })
}

/// The last segment of a path.
fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

impl Judgement {
    /// Adds another run of the same program: chance evens out, and a real deviation has more sigma.
    ///
    /// # Panics
    /// If the functions are not the same.
    pub fn add(&mut self, other: Judgement) {
        assert_eq!(self.functions.len(), other.functions.len(), "the account is that of the same program");
        for (function, other) in self.functions.iter_mut().zip(&other.functions) {
            assert_eq!(function.name, other.name, "the account is that of the same program");
            function.add(other);
        }
        self.without_stacks.extend(other.without_stacks);
        self.unseen_ns += other.unseen_ns;
    }

    /// Failed conditions as text; empty if all hold.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        self.functions.iter().for_each(|function| function.faults(&mut faults));
        for (name, time) in &self.without_stacks {
            faults.push(format!("{name}: {:.3} ms and no stack", *time as f64 * 1e-6));
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seen;
    use serde_json::json;

    fn named(stacks: &[(&[&str], bool, u64, u64)]) -> NamedStacks {
        let mut named = NamedStacks::default();
        for (i, (stack, asleep, hits, time)) in stacks.iter().enumerate() {
            named.stacks.push(stack.iter().map(|name| (*name).into()).collect());
            let (hits, time) = (*hits, time * 1_000_000);
            named.seen.push(Seen {
                stack: i,
                tid: 1,
                thread: "workloads".into(),
                asleep: *asleep,
                hits,
                time,
                cut: false,
            });
        }
        named
    }

    fn judged(stacks: &[(&[&str], bool, u64, u64)]) -> Judgement {
        let said = json!({"truth": [{"function": "large", "cpu_ns": 1_000_000_000_u64}]});
        judge(&named(stacks), 1_000_000, &said).unwrap()
    }

    #[test]
    fn a_true_recording_has_no_faults() {
        let good = judged(&[(&["main", "a::large"], false, 1010, 990), (&["main", "sleep"], true, 5, 9000)]);
        assert_eq!(good.faults(), [""; 0]);
        assert_eq!(good.functions[0].hits, 1010.0);
    }

    #[test]
    fn missed_bursts_are_a_fault_even_where_the_time_is_right() {
        let missed = judged(&[(&["main", "large"], false, 400, 1000)]);
        assert_eq!(missed.faults().len(), 2, "the function and the total: {:?}", missed.faults());
    }

    #[test]
    fn time_of_a_sleep_is_not_time_of_the_function() {
        let given = judged(&[(&["main", "large"], false, 1000, 700), (&["main", "sleep"], false, 2, 300)]);
        assert!(given.faults()[0].starts_with("large: 700.0 ms shown"), "{:?}", given.faults());
    }

    #[test]
    fn time_without_a_stack_is_a_fault_and_time_of_no_function_is_told() {
        let rows = judged(&[
            (&["main", "large"], false, 1000, 1000),
            (&["main", "guessed"], false, 0, 3),
            (&[], false, 0, 7),
        ]);
        assert_eq!(rows.faults(), ["guessed: 3.000 ms and no stack"]);
        assert_eq!(rows.unseen_ns, 7_000_000);
    }

    #[test]
    fn a_function_that_is_not_in_the_recording_is_a_fault() {
        assert!(!judged(&[(&["main"], false, 1000, 1000)]).faults().is_empty());
    }
}
