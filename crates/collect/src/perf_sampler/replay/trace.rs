//! A trace: what the sampler was told while a program ran, step by step.

use super::stored::Stored;
use crate::perf_sampler::events::Source;
use stackglass_perf::records::PERF_RECORD_SAMPLE;
use stackglass_perf::registers;
use stackglass_perf::ring::Raw;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

/// Bytes of a file are kept in blocks of this size.
pub(super) const BLOCK: u64 = 512;

/// A whole trace.
#[derive(Clone, Default)]
pub(in crate::perf_sampler) struct Trace {
    /// How the sampler was set up.
    pub setup: Setup,
    /// What is true of the program: names, and values as text.
    pub truth: Vec<(String, String)>,
    pub entries: Vec<Entry>,
    /// Files by what the kernel says of a mapping: the path that finds it, and its number.
    pub found: BTreeMap<String, (Vec<u8>, Option<usize>)>,
    pub files: Vec<FileBytes>,
}

/// How the sampler was set up.
#[derive(Clone, Default)]
pub(in crate::perf_sampler) struct Setup {
    pub of_cpus: bool,
    /// Samples hold the event's count.
    pub counted: bool,
    pub user_only: bool,
    pub at_once: bool,
    pub follow_children: bool,
}

/// A step of the sampler, and what it was told during it.
#[derive(Clone)]
pub(in crate::perf_sampler) struct Entry {
    pub step: Step,
    /// Questions and the bytes of their answers, in order.
    pub answers: Vec<(String, Vec<u8>)>,
    /// What the kernel said of all threads just after it.
    pub after: Snapshot,
}

/// A step of the sampler.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::perf_sampler) enum Step {
    Start,
    Drain { until: u64, records: Vec<Taken> },
    PeriodWorth(f64),
    Settle { all: bool },
    Sampling { on: bool, now: u64 },
    Close,
}

/// A record as it lay in its ring.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::perf_sampler) struct Taken {
    pub cpu: usize,
    pub is_sample: bool,
    pub at: u64,
    /// What a stack on its CPU was worth, ns, with events of CPUs.
    pub worth: Option<u64>,
    pub kind: u32,
    pub misc: u16,
    pub body: Vec<u8>,
}

/// What the kernel said of the threads of a program at one moment.
#[derive(Clone, Default)]
pub(in crate::perf_sampler) struct Snapshot {
    pub at: u64,
    pub threads: Vec<SeenThread>,
}

/// What the kernel said of one thread.
#[derive(Clone)]
pub(in crate::perf_sampler) struct SeenThread {
    pub pid: u32,
    pub tid: u32,
    pub parent: u32,
    pub executable: PathBuf,
    /// Answers to the questions `account`, `state` and `name`.
    pub answers: [Vec<u8>; 3],
}

/// The bytes of a file that were read, in blocks.
#[derive(Clone, Default)]
pub(in crate::perf_sampler) struct FileBytes {
    pub blocks: BTreeMap<u64, Vec<u8>>,
    pub eh_frame: Option<(u64, u64)>,
}

impl Trace {
    /// What is true of the program, by name.
    pub(super) fn truth(&self, name: &str) -> &str {
        let found = self.truth.iter().find(|(known, _)| known == name);
        &found.unwrap_or_else(|| panic!("the trace does not say {name}")).1
    }

    /// The trace as the bytes of a file.
    pub(super) fn packed(&self) -> Vec<u8> {
        zstd::bulk::compress(&self.bytes(), 19).expect("bytes can be compressed")
    }

    /// The trace in the bytes of a file.
    pub(super) fn unpack(packed: &[u8]) -> Option<Trace> {
        const MOST: usize = 256 << 20;
        Trace::get(&mut &zstd::bulk::decompress(packed, MOST).ok()?[..])
    }
}

impl Taken {
    /// A record that a ring holds now. What the kernel has not written is zero here: there lie the bytes of older records.
    pub(super) fn from_record(source: Source, raw: Raw<'_>, worth: Option<u64>, counted: bool) -> Taken {
        let mut body = raw.body.to_vec();
        if raw.kind == PERF_RECORD_SAMPLE
            && let Some(unused) = unused_room(&body, counted)
        {
            body[unused].fill(0);
        }
        let Source { cpu, is_sample, at } = source;
        Taken { cpu, is_sample, at, worth, kind: raw.kind, misc: raw.misc, body }
    }

    pub(super) fn source(&self) -> Source {
        Source { cpu: self.cpu, is_sample: self.is_sample, at: self.at }
    }

    pub(super) fn raw(&self) -> Raw<'_> {
        Raw { kind: self.kind, misc: self.misc, body: &self.body }
    }
}

/// The part of a sample's room for its stack that was not used.
fn unused_room(body: &[u8], counted: bool) -> Option<Range<usize>> {
    let word = |at: usize| Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?));
    let abi_at = if counted { 32 } else { 24 };
    let size_at = abi_at + 8 + if word(abi_at)? == 0 { 0 } else { registers::COUNT * 8 };
    let size = word(size_at)? as usize;
    let room = size_at + 8..size_at + 8 + size;
    let used = word(room.end)? as usize;
    (used <= size).then_some(room.start + used..room.end)
}

impl Stored for Taken {
    fn put(&self, to: &mut Vec<u8>) {
        (self.cpu, self.is_sample).put(to);
        (self.at, self.worth).put(to);
        (self.kind, self.misc).put(to);
        self.body.put(to);
    }

    fn get(from: &mut &[u8]) -> Option<Taken> {
        let ((cpu, is_sample), (at, worth)) = Stored::get(from)?;
        let ((kind, misc), body) = Stored::get(from)?;
        Some(Taken { cpu, is_sample, at, worth, kind, misc, body })
    }
}

impl Stored for Step {
    fn put(&self, to: &mut Vec<u8>) {
        match self {
            Step::Start => 0u8.put(to),
            Step::Drain { until, records } => {
                (1u8, *until).put(to);
                records.put(to);
            }
            Step::PeriodWorth(worth) => (2u8, *worth).put(to),
            Step::Settle { all } => (3u8, *all).put(to),
            Step::Sampling { on, now } => (4u8, (*on, *now)).put(to),
            Step::Close => 5u8.put(to),
        }
    }

    fn get(from: &mut &[u8]) -> Option<Step> {
        Some(match u8::get(from)? {
            0 => Step::Start,
            1 => Step::Drain { until: Stored::get(from)?, records: Stored::get(from)? },
            2 => Step::PeriodWorth(Stored::get(from)?),
            3 => Step::Settle { all: Stored::get(from)? },
            4 => Step::Sampling { on: Stored::get(from)?, now: Stored::get(from)? },
            5 => Step::Close,
            _ => return None,
        })
    }
}

impl Stored for SeenThread {
    fn put(&self, to: &mut Vec<u8>) {
        ((self.pid, self.tid), (self.parent, self.executable.clone())).put(to);
        self.answers.iter().for_each(|answer| answer.put(to));
    }

    fn get(from: &mut &[u8]) -> Option<SeenThread> {
        let ((pid, tid), (parent, executable)) = Stored::get(from)?;
        let answers = [Stored::get(from)?, Stored::get(from)?, Stored::get(from)?];
        Some(SeenThread { pid, tid, parent, executable, answers })
    }
}

impl Stored for Entry {
    fn put(&self, to: &mut Vec<u8>) {
        self.step.put(to);
        self.answers.put(to);
        self.after.at.put(to);
        self.after.threads.put(to);
    }

    fn get(from: &mut &[u8]) -> Option<Entry> {
        let (step, answers) = Stored::get(from)?;
        Some(Entry { step, answers, after: Snapshot { at: Stored::get(from)?, threads: Stored::get(from)? } })
    }
}

impl Stored for FileBytes {
    fn put(&self, to: &mut Vec<u8>) {
        self.blocks.clone().into_iter().collect::<Vec<_>>().put(to);
        self.eh_frame.put(to);
    }

    fn get(from: &mut &[u8]) -> Option<FileBytes> {
        let blocks: Vec<(u64, Vec<u8>)> = Stored::get(from)?;
        Some(FileBytes { blocks: blocks.into_iter().collect(), eh_frame: Stored::get(from)? })
    }
}

impl Stored for Trace {
    fn put(&self, to: &mut Vec<u8>) {
        let Setup { of_cpus, counted, user_only, at_once, follow_children } = self.setup;
        [of_cpus, counted, user_only, at_once, follow_children].iter().for_each(|fact| fact.put(to));
        self.truth.put(to);
        self.entries.put(to);
        self.found.clone().into_iter().collect::<Vec<_>>().put(to);
        self.files.put(to);
    }

    fn get(from: &mut &[u8]) -> Option<Trace> {
        let mut fact = || bool::get(from);
        let setup = Setup {
            of_cpus: fact()?,
            counted: fact()?,
            user_only: fact()?,
            at_once: fact()?,
            follow_children: fact()?,
        };
        let (truth, entries) = Stored::get(from)?;
        let found = Vec::get(from)?.into_iter().collect();
        Some(Trace { setup, truth, entries, found, files: Stored::get(from)? })
    }
}
