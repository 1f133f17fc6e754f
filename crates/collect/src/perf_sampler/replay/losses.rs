//! Lost records: what is not known is not counted, and the recording says so.

use super::facts::{Facts, number};
use super::play::{Op, Replayed, play, replay};
use super::programs::{trace, traces};
use super::trace::{Taken, Trace};
use super::traced::Answers;
use stackglass_sampling::Random;
use std::borrow::Cow;
use std::rc::Rc;

/// `PERF_RECORD_LOST`.
const LOST: u32 = 2;

/// The record that the kernel writes where `n` others did not fit, just before this one.
fn lost(n: u64, next: &Taken) -> Taken {
    let words = [0, n, u64::from(u32::MAX), next.at];
    let body = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Taken { kind: LOST, misc: 0, body, is_sample: false, ..next.clone() }
}

/// The operations with runs of a CPU's thread records replaced by reports of their loss: a `part` of all records.
pub(super) fn with_losses<'a>(ops: &[Op<'a>], part: f64, random: &mut Random) -> (Vec<Op<'a>>, u64) {
    let (mut changed, mut all_lost) = (Vec::new(), 0);
    // By CPU: how many are still to be lost, and how many were.
    let mut runs = [(0u64, 0u64); 64];
    for op in ops {
        let Op::Record(taken) = op else {
            changed.push(op.clone());
            continue;
        };
        if taken.is_sample {
            changed.push(op.clone());
            continue;
        }
        let (left, gone) = &mut runs[taken.cpu % 64];
        if *left == 0 && random.between((0.0, 1.0)) < part / 20.0 {
            *left = 1 + random.below(39);
        }
        if *left > 0 {
            (*left, *gone) = (*left - 1, *gone + 1);
            continue;
        }
        if *gone > 0 {
            // What is lost last is never reported.
            all_lost += *gone;
            changed.push(Op::Record(Cow::Owned(lost(std::mem::take(gone), taken))));
        }
        changed.push(op.clone());
    }
    (changed, all_lost)
}

/// No thread has more time than there was, and all together no more CPU time than the CPUs had.
pub(super) fn assert_bounded(trace: &Trace, replayed: &Replayed, what: &str) {
    let facts = Facts::from_recorder(&replayed.recorder);
    let wall = number(trace, "ended") - number(trace, "began");
    for (_, thread) in facts.threads() {
        assert!(thread.time() <= wall + wall / 50, "{what}: {thread:?} in {wall} ns");
        assert!(thread.end.is_none_or(|end| thread.start <= end), "{what}: {thread:?}");
    }
}

#[test]
fn what_the_kernel_lost_is_reported_and_no_time_is_made_up() {
    let trace = trace("lost");
    let recorder = replay(&trace);
    let facts = Facts::from_recorder(&recorder);
    assert!(facts.remarks.iter().any(|remark| remark.contains("records of what threads did were lost")));
    assert!(facts.remarks.iter().all(|remark| !remark.contains("stacks were lost")), "{:?}", facts.remarks);
    let (recorded, counted) = (facts.awake(), number(&trace, "cpu"));
    assert!(recorded <= counted + counted / 100, "{recorded} ns, the kernel counts {counted}");
    let names: Vec<&str> = facts.threads().map(|(_, thread)| &*thread.name).collect();
    assert_eq!(names, ["replayed", "answerer"]);
}

#[test]
fn losses_never_add_cpu_time() {
    let mut random = Random::new(11);
    for (name, trace) in traces() {
        let ops = Op::all(&trace);
        let whole = Facts::from_recorder(&play(&trace, &ops, Answers::OfTheMoment).recorder);
        let counted = number(&trace, "cpu").max(whole.awake());
        for part in [0.02, 0.1, 0.2, 0.4, 0.7] {
            let (changed, all_lost) = with_losses(&ops, part, &mut random);
            let replayed = play(&trace, &changed, Answers::OfTheMoment);
            let what = format!("{name}, {all_lost} records lost");
            assert_bounded(&trace, &replayed, &what);
            let facts = Facts::from_recorder(&replayed.recorder);
            // What switches cost is less certain then.
            let more = if name == "lost" { counted / 5 } else { counted / 10 };
            assert!(facts.awake() <= counted + more, "{what}: {} of {counted}", facts.awake());
            let says_so = facts.remarks.iter().any(|remark| remark.contains("were lost"));
            assert!(says_so || all_lost == 0 || name == "lost", "{what}");
        }
    }
}

#[test]
fn a_program_whose_first_records_are_lost_is_still_bounded() {
    for (name, trace) in traces() {
        let ops = Op::all(&trace);
        let records = ops.iter().filter(|op| matches!(op, Op::Record(_))).count();
        for part in 1..6 {
            let (mut left, mut changed) = (records * part / 6, Vec::new());
            for op in &ops {
                match op {
                    Op::Record(_) if left > 0 => left -= 1,
                    op => changed.push(op.clone()),
                }
            }
            let replayed = play(&trace, &changed, Answers::OfTheMoment);
            assert_bounded(&trace, &replayed, &format!("{name} without {part} sixths"));
        }
    }
}

#[test]
fn any_single_record_may_be_missing() {
    let mut random = Random::new(12);
    for (name, trace) in traces() {
        let ops = Op::all(&trace);
        let records: Vec<usize> = (0..ops.len())
            .filter(|index| matches!(&ops[*index], Op::Record(taken) if !taken.is_sample))
            .collect();
        for _ in 0..cases(8) {
            let missing = records[random.below(records.len() as u64) as usize];
            let changed: Vec<Op<'_>> = ops
                .iter()
                .enumerate()
                .filter(|(index, _)| *index != missing)
                .map(|(_, op)| op.clone())
                .collect();
            let replayed = play(&trace, &changed, Answers::OfTheMoment);
            assert_bounded(&trace, &replayed, &format!("{name} without operation {missing}"));
        }
    }
}

/// How many cases are tried: `PROPTEST_CASES` for 64 of them, if it is set.
pub(super) fn cases(usual: u64) -> u64 {
    let all = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<u64>().ok());
    all.map_or(usual, |all| (usual * all / 64).clamp(1, 200))
}

/// Traces that are changed often are small ones.
pub(super) fn small_traces() -> impl Iterator<Item = (&'static str, Rc<Trace>)> {
    traces().filter(|(name, _)| !["deep", "lost", "storm", "storm-inherited"].contains(name))
}
