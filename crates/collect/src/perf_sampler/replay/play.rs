//! Applies a trace to the process table, as it was taken or with changes.

use super::trace::{Step, Taken, Trace};
use super::traced::{Answers, TracedSystem};
use crate::perf_sampler::process_table::ProcessTable;
use crate::perf_sampler::system::System;
use stackglass_perf::records;
use stackglass_profile::{Recorder, RecordingInfo};
use std::borrow::Cow;
use std::rc::Rc;

/// What is done with the table.
#[derive(Clone)]
pub(super) enum Op<'a> {
    /// Answers are those of this entry from here on.
    Entry(usize),
    Begin {
        until: u64,
    },
    Record(Cow<'a, Taken>),
    /// The drain ends, and `/proc` is read.
    End,
    PeriodWorth(f64),
    Settle {
        all: bool,
    },
    Sampling {
        on: bool,
        now: u64,
    },
    Close,
}

/// What a replay has given.
pub(super) struct Replayed {
    pub recorder: Recorder,
    /// Questions that the trace could not answer.
    pub unknown: Vec<String>,
}

impl<'a> Op<'a> {
    /// All that was done when the trace was taken.
    pub(super) fn all(trace: &'a Trace) -> Vec<Op<'a>> {
        let mut all = Vec::new();
        for (index, entry) in trace.entries.iter().enumerate() {
            all.push(Op::Entry(index));
            match &entry.step {
                Step::Start => {}
                Step::Drain { until, records } => {
                    all.push(Op::Begin { until: *until });
                    all.extend(records.iter().map(|record| Op::Record(Cow::Borrowed(record))));
                    all.push(Op::End);
                }
                Step::PeriodWorth(worth) => all.push(Op::PeriodWorth(*worth)),
                Step::Settle { all: of_all } => all.push(Op::Settle { all: *of_all }),
                Step::Sampling { on, now } => all.push(Op::Sampling { on: *on, now: *now }),
                Step::Close => all.push(Op::Close),
            }
        }
        all
    }
}

/// Applies these operations.
pub(super) fn play(trace: &Rc<Trace>, ops: &[Op<'_>], answers: Answers) -> Replayed {
    let traced = TracedSystem::reading(Rc::clone(trace), answers);
    let setup = &trace.setup;
    let mut table = ProcessTable::new(
        System::with(Rc::clone(&traced)),
        setup.user_only,
        setup.at_once,
        setup.follow_children,
        setup.of_cpus,
    );
    let mut recorder = Recorder::new(RecordingInfo::default());
    for op in ops {
        match op {
            Op::Entry(index) => traced.read_from(*index),
            Op::Begin { until } => table.begin_drain(*until),
            Op::Record(taken) => {
                let (source, raw) = (taken.source(), taken.raw());
                if table.wants(source, raw)
                    && let Some(record) = records::parse(raw, setup.counted)
                {
                    taken.worth.iter().for_each(|worth| table.set_period(*worth));
                    table.apply(source, &record, &mut recorder);
                }
            }
            Op::End => {
                table.recover_lost(&mut recorder);
                table.read_sleepers(&mut recorder);
            }
            Op::PeriodWorth(worth) => table.set_period_worth(*worth),
            Op::Settle { all } => table.settle(*all, &mut recorder),
            Op::Sampling { on, now } => table.set_sampling(*on, *now, &mut recorder),
            Op::Close => table.close(&mut recorder),
        }
    }
    Replayed { recorder, unknown: traced.unknown() }
}

/// Applies a trace as it was taken.
pub(super) fn replay(trace: &Rc<Trace>) -> Recorder {
    let replayed = play(trace, &Op::all(trace), Answers::AsGiven);
    assert_eq!(replayed.unknown, Vec::<String>::new(), "the sampler asks something else by now");
    replayed.recorder
}
