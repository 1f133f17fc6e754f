//! Damaged records, which no kernel writes: whatever the bytes are, the table goes on.

use super::losses::{cases, small_traces};
use super::play::{Op, play};
use super::trace::Taken;
use super::traced::Answers;
use stackglass_perf::records::time_of;
use stackglass_sampling::Random;
use std::borrow::Cow;

/// Records damaged in one trace.
const DAMAGED: u64 = 40;

/// The record with some bits flipped, or without its end, or as another kind of record.
fn damaged(taken: &Taken, random: &mut Random) -> Taken {
    let mut taken = taken.clone();
    match random.below(4) {
        0 => taken.body.truncate(random.below(taken.body.len() as u64 + 1) as usize),
        1 => taken.kind = random.below(18) as u32,
        2 => taken.misc ^= 1 << random.below(16),
        _ => {
            for _ in 0..1 + random.below(4) {
                if !taken.body.is_empty() {
                    // Most of a sample is its stack: half of the flips are in what comes before.
                    let len = taken.body.len() as u64;
                    let range = if random.below(2) == 0 { len.min(256) } else { len };
                    let at = random.below(range);
                    taken.body[at as usize] ^= 1 << random.below(8);
                }
            }
        }
    }
    taken.at = time_of(taken.raw()).unwrap_or(0);
    taken
}

/// The operations with other records where `change` gives some.
fn changed<'a>(ops: &[Op<'a>], mut change: impl FnMut(&Taken) -> Option<Taken>) -> Vec<Op<'a>> {
    let mut all = ops.to_vec();
    for op in &mut all {
        if let Op::Record(taken) = op
            && let Some(other) = change(taken)
        {
            *taken = Cow::Owned(other);
        }
    }
    all
}

#[test]
fn damaged_records_never_panic() {
    for (name, trace) in small_traces() {
        let ops = Op::all(&trace);
        for case in 0..cases(6) {
            let mut random = Random::new(31 + case);
            let records = ops.iter().filter(|op| matches!(op, Op::Record(_))).count() as u64;
            let changed =
                changed(&ops, |taken| (random.below(records) < DAMAGED).then(|| damaged(taken, &mut random)));
            let replayed = play(&trace, &changed, Answers::OfTheMoment);
            assert!(!replayed.recorder.is_full(), "{name}, case {case}");
        }
    }
}

#[test]
fn records_of_any_length_never_panic() {
    for (name, trace) in small_traces().filter(|(name, _)| ["spin", "execs"].contains(name)) {
        let ops = Op::all(&trace);
        for keep in 0..48 {
            let changed = changed(&ops, |taken| {
                let mut taken = taken.clone();
                let from = taken.body.len().min(keep);
                // The ends of records tell of whom they are.
                taken.body.drain(from..taken.body.len().saturating_sub(16).max(from));
                taken.at = time_of(taken.raw()).unwrap_or(0);
                Some(taken)
            });
            let replayed = play(&trace, &changed, Answers::OfTheMoment);
            assert!(!replayed.recorder.is_full(), "{name}, {keep} bytes");
        }
    }
}
