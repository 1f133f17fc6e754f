//! The same records in other drains: when the sampler reads must not matter for what threads have run, waited and slept.

use super::facts::Facts;
use super::losses::{assert_bounded, cases};
use super::play::{Op, Replayed, play};
use super::programs::traces;
use super::trace::{Step, Taken, Trace};
use super::traced::Answers;
use stackglass_sampling::Random;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The moments up to which the drains of a trace read, with their entries.
fn drains(trace: &Trace) -> Vec<(u64, usize)> {
    let entries = trace.entries.iter().enumerate();
    let until = |(index, entry): (usize, &super::trace::Entry)| match entry.step {
        Step::Drain { until, .. } => Some((until, index)),
        _ => None,
    };
    entries.filter_map(until).collect()
}

/// All records in the order of time, as one drain would read them.
fn records(trace: &Trace) -> Vec<&Taken> {
    let mut all = Vec::new();
    for entry in &trace.entries {
        if let Step::Drain { records, .. } = &entry.step {
            all.extend(records);
        }
    }
    all.sort_by_key(|taken| taken.at);
    all
}

/// Drains up to other moments. After each, time may be settled.
fn drained_at<'a>(trace: &'a Trace, moments: &[u64], settles: impl Fn(usize) -> Option<bool>) -> Vec<Op<'a>> {
    let (drains, records) = (drains(trace), records(trace));
    let (mut ops, mut rest) = (vec![Op::Entry(0)], &records[..]);
    for (index, until) in moments.iter().copied().chain([u64::MAX]).enumerate() {
        let entry = drains.iter().rev().find(|(of_drain, _)| *of_drain <= until);
        ops.push(Op::Entry(entry.map_or(0, |(_, entry)| *entry)));
        ops.push(Op::Begin { until });
        let (now, later) = rest.split_at(rest.partition_point(|taken| taken.at <= until));
        ops.extend(now.iter().map(|taken| Op::Record(Cow::Borrowed(*taken))));
        ops.push(Op::End);
        if until != u64::MAX
            && let Some(all) = settles(index)
        {
            ops.push(Op::Settle { all });
        }
        rest = later;
    }
    ops.push(Op::Close);
    ops
}

/// What each thread ran, waited and slept, by process, thread and start.
fn times(replayed: &Replayed) -> BTreeMap<(u32, u32, u64), [u64; 3]> {
    let facts = Facts::from_recorder(&replayed.recorder);
    let time = |thread: &super::facts::ThreadFacts| [thread.awake, thread.waiting, thread.asleep];
    facts.threads().map(|(process, thread)| ((process.pid, thread.tid, thread.start), time(thread))).collect()
}

/// Traces of programs that have lost no records.
fn whole_traces() -> impl Iterator<Item = (&'static str, Rc<Trace>)> {
    traces().filter(|(name, _)| *name != "lost")
}

#[test]
fn times_do_not_depend_on_when_records_are_read() {
    let mut random = Random::new(21);
    for (name, trace) in whole_traces() {
        // The kernel's account is not read, so that only the records count.
        let expected = times(&play(&trace, &drained_at(&trace, &[], |_| None), Answers::NoThreads));
        let drains = drains(&trace);
        let (first, last) = (records(&trace)[0].at, drains[drains.len() - 2].0);
        for case in 0..cases(6) {
            let mut moments: Vec<u64> = (0..random.below(60))
                .map(|_| first + random.below(last.saturating_sub(first).max(1)))
                .collect();
            moments.sort_unstable();
            let settles = |index: usize| [None, Some(case < 3), Some(false)][index % 3];
            let replayed = play(&trace, &drained_at(&trace, &moments, settles), Answers::NoThreads);
            let actual = times(&replayed);
            for (thread, time) in &expected {
                assert_eq!(
                    actual.get(thread),
                    Some(time),
                    "{name}: {thread:?} with {} drains",
                    moments.len()
                );
            }
            assert_eq!(actual.len(), expected.len(), "{name}");
            assert_bounded(&trace, &replayed, name);
        }
    }
}

#[test]
fn fewer_drains_change_times_by_what_accounts_add() {
    for (name, trace) in whole_traces() {
        let drains = drains(&trace);
        let at_each = |step: usize| -> Vec<u64> {
            drains[..drains.len() - 1].iter().step_by(step).map(|(until, _)| *until).collect()
        };
        let ran = |step: usize| -> u64 {
            let ops = drained_at(&trace, &at_each(step), |index| (index % 4 == 0).then_some(false));
            Facts::from_recorder(&play(&trace, &ops, Answers::OfTheMoment).recorder).awake()
        };
        let usual = ran(1);
        for step in [2, 3, 7] {
            let ran = ran(step);
            assert!(
                ran.abs_diff(usual) < usual / 20 + 500_000,
                "{name}: {ran} ns, not {usual}, with step {step}"
            );
        }
    }
}

#[test]
fn a_recording_that_begins_late_has_no_time_from_before() {
    for (name, trace) in whole_traces() {
        let drains = drains(&trace);
        let (middle, _) = drains[(drains.len() - 1) / 2];
        let mut ops = drained_at(&trace, &[middle], |_| None);
        let at = ops.iter().position(|op| matches!(op, Op::End)).unwrap();
        let (off, on) = (Op::Sampling { on: false, now: middle }, Op::Sampling { on: true, now: middle });
        ops.insert(1, off);
        ops.insert(at + 2, on);
        let replayed = play(&trace, &ops, Answers::NoThreads);
        let facts = Facts::from_recorder(&replayed.recorder);
        let rest = super::facts::number(&trace, "ended") - middle;
        for (_, thread) in facts.threads() {
            assert!(thread.time() <= rest, "{name}: {thread:?}, sampled for {rest} ns");
        }
        assert_bounded(&trace, &replayed, name);
    }
}
