//! The cost of each function in one profile.

use super::ComparisonKey;
use super::cost::Cost;
use crate::kinds::{Class, class};
use crate::queries::waits::{Wait, Waits};
use foldhash::{HashMap, HashSet};
use stackglass_profile::{LocationId, Recording, StackId, State, snapshots};
use std::sync::Arc;

/// The cost of a function.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FunctionCost {
    /// In it, and in library code that it called.
    pub own: Cost,
    /// In it, and in everything that it called.
    pub total: Cost,
}

/// The costs of all functions, and their total.
pub(super) struct Costs {
    pub functions: HashMap<Arc<str>, FunctionCost>,
    pub all: Cost,
    /// The share of the time not asleep in which threads were ready, without a CPU.
    pub waited: f64,
}

/// Whether samples have times.
pub(super) fn is_timed(recording: &Recording) -> bool {
    recording.samples.iter().any(|sample| sample.time.0 > 0)
}

/// Sums CPU time, or samples if not `timed`. Types are the innermost frames.
pub(super) fn costs(recording: &Recording, timed: bool, key: ComparisonKey) -> Costs {
    let mut stacks: HashMap<StackId, Cost> = HashMap::default();
    let mut all = Cost::default();
    for (sample, count) in recording.samples.iter().zip(snapshots(recording)) {
        if !sample.state.uses_cpu() {
            continue;
        }
        let amount = if timed { sample.time.0 } else { count } as f64;
        let hits = u64::from(sample.hits);
        // Equal samples may have been merged: each stood for its share.
        let squares = amount * amount / hits.max(1) as f64;
        let cost = Cost { amount, hits, squares };
        add(stacks.entry(sample.stack).or_default(), cost);
        add(&mut all, cost);
    }
    let mut functions: HashMap<Arc<str>, FunctionCost> = HashMap::default();
    let mut names = NameCache { recording, known: HashMap::default() };
    let waits = Waits::new(recording);
    for (stack, cost) in stacks {
        let mut met: HashSet<Arc<str>> = HashSet::default();
        // Time of polls and time of waits change for different reasons.
        let wait = waits.as_ref().and_then(|waits| waits.of(stack)).map(|wait| wait_name(&wait));
        if let Some(name) = &wait {
            met.insert(name.clone());
        }
        let mut owner: Option<Arc<str>> = wait;
        let mut leaf: Option<Arc<str>> = None;
        let depth = if key == ComparisonKey::Type { 1 } else { usize::MAX };
        for location in recording.stacks.walk(stack).take(depth) {
            for (name, own) in names.of(location) {
                leaf = leaf.or_else(|| Some(name.clone()));
                if *own && owner.is_none() {
                    owner = Some(name.clone());
                }
                met.insert(name.clone());
            }
        }
        for name in met {
            let total = &mut functions.entry(name).or_default().total;
            add(total, cost);
        }
        if let Some(name) = owner.or(leaf) {
            add(&mut functions.entry(name).or_default().own, cost);
        }
    }
    Costs { functions, all, waited: waited(recording) }
}

/// `app::fetch (waits in Sleep)`. Lines move when programs change.
fn wait_name(wait: &Wait) -> Arc<str> {
    match Wait::words(&wait.future) {
        text if text.is_empty() => format!("{} (waits)", wait.function).into(),
        text => format!("{} ({text})", wait.function).into(),
    }
}

fn waited(recording: &Recording) -> f64 {
    let time = |wanted: fn(State) -> bool| -> f64 {
        let samples = recording.samples.iter().filter(|sample| wanted(sample.state));
        samples.map(|sample| sample.time.0 as f64).sum()
    };
    let waited = time(|state| state == State::Waiting);
    if waited > 0.0 { waited / (waited + time(State::uses_cpu)) } else { 0.0 }
}

fn add(cost: &mut Cost, more: Cost) {
    cost.amount += more.amount;
    cost.hits += more.hits;
    cost.squares += more.squares;
}

/// Cache: the names of the frames of locations, innermost first, and whether they may own time.
struct NameCache<'a> {
    recording: &'a Recording,
    known: HashMap<LocationId, Vec<(Arc<str>, bool)>>,
}

impl NameCache<'_> {
    fn of(&mut self, location: LocationId) -> &[(Arc<str>, bool)] {
        let recording = self.recording;
        self.known.entry(location).or_insert_with(|| {
            let frames = recording.symbols.frames_of(location);
            let named = frames.map(|frame| match &*frame.func {
                "" => (crate::text::short::in_brackets(&frame.module).into(), class(frame) == Class::Own),
                _ => (frame.func.clone(), class(frame) == Class::Own),
            });
            named.collect()
        })
    }
}
