//! Writes a trace while a program runs, or answers from one instead of the running system.
//!
//! Answers are consumed in order for each question, within their step: a question that the trace does not know is answered by nothing,
//! and counted. Where steps or records were changed, the questions differ as well. Then the answers are those of one moment: what the
//! kernel said of all threads just after the drain.

use super::stored::Stored;
use super::trace::{BLOCK, Entry, FileBytes, SeenThread, Setup, Snapshot, Step, Taken, Trace};
use crate::perf_sampler::elf_file::ElfFile;
use crate::perf_sampler::events::{Events, Source};
use crate::perf_sampler::files::Found;
use crate::perf_sampler::system::OpenedFile;
use foldhash::HashMap;
use stackglass_perf::records::Mmap;
use stackglass_perf::ring::Raw;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::Range;
use std::rc::Rc;

/// The system of a test: each of its answers is written to a trace, or comes from one.
pub(in crate::perf_sampler) enum TracedSystem {
    /// Answers of the running system are written.
    Writing(RefCell<Trace>),
    /// Answers are those of a trace.
    Reading(Reading),
}

/// A system that answers from a trace.
pub(in crate::perf_sampler) struct Reading {
    trace: Rc<Trace>,
    answers: Answers,
    entry: Cell<usize>,
    /// Answers of the entry that are left, by question.
    left: RefCell<HashMap<String, VecDeque<usize>>>,
    unknown: RefCell<Vec<String>>,
}

/// Which answers are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answers {
    /// Those that were given, in order.
    AsGiven,
    /// Those of the moment after the drain.
    OfTheMoment,
    /// None that tell of a thread.
    NoThreads,
}

impl TracedSystem {
    /// A system whose answers are written.
    pub(super) fn writing() -> Rc<TracedSystem> {
        let system = TracedSystem::Writing(RefCell::default());
        system.step(Step::Start);
        Rc::new(system)
    }

    /// A system whose answers are those of a trace.
    pub(super) fn reading(trace: Rc<Trace>, answers: Answers) -> Rc<TracedSystem> {
        let (left, unknown, entry) = Default::default();
        let reading = Reading { trace, answers, entry, left, unknown };
        reading.read_from(0);
        Rc::new(TracedSystem::Reading(reading))
    }

    /// The trace that was written.
    pub(super) fn written(&self) -> &RefCell<Trace> {
        let TracedSystem::Writing(trace) = self else { panic!("nothing is written") };
        trace
    }

    /// Reads on at this entry.
    pub(super) fn read_from(&self, entry: usize) {
        if let TracedSystem::Reading(reading) = self {
            reading.read_from(entry);
        }
    }

    /// Questions that the trace could not answer.
    pub(super) fn unknown(&self) -> Vec<String> {
        let TracedSystem::Reading(reading) = self else { return Vec::new() };
        reading.unknown.borrow().clone()
    }

    /// The events were opened.
    pub(in crate::perf_sampler) fn opened(
        &self,
        events: &Events,
        (user_only, at_once, follow_children): (bool, bool, bool),
    ) {
        let (of_cpus, counted) = (events.are_of_cpus(), events.are_counted());
        self.written().borrow_mut().setup = Setup { of_cpus, counted, user_only, at_once, follow_children };
    }

    /// A step begins.
    pub(in crate::perf_sampler) fn step(&self, step: Step) {
        let entry = Entry { step, answers: Vec::new(), after: Snapshot::default() };
        self.written().borrow_mut().entries.push(entry);
    }

    /// A record is read. Samples of other programs are left out: nothing depends on them.
    pub(in crate::perf_sampler) fn record(
        &self,
        source: Source,
        raw: Raw<'_>,
        wanted: bool,
        worth: Option<u64>,
    ) {
        if source.is_sample && !wanted {
            return;
        }
        let mut trace = self.written().borrow_mut();
        let taken = Taken::from_record(source, raw, worth, trace.setup.counted);
        let Some(Entry { step: Step::Drain { records, .. }, .. }) = trace.entries.last_mut() else {
            panic!("records are read in drains");
        };
        records.push(taken);
    }

    /// Answers a question.
    pub(in crate::perf_sampler) fn ask<T: Stored>(
        &self,
        name: &'static str,
        about: &impl Debug,
        live: impl FnOnce() -> T,
    ) -> T {
        let question = format!("{name} {about:?}");
        match self {
            TracedSystem::Writing(trace) => {
                let answer = live();
                let mut trace = trace.borrow_mut();
                let entry = trace.entries.last_mut().expect("there is a first entry");
                entry.answers.push((question, answer.bytes()));
                answer
            }
            TracedSystem::Reading(reading) => {
                let bytes = match reading.answers {
                    Answers::AsGiven => reading.next_given(&question),
                    Answers::OfTheMoment | Answers::NoThreads => {
                        reading.of_the_moment(name, about, &question)
                    }
                };
                match bytes {
                    Some(bytes) => {
                        T::get(&mut &bytes[..]).expect("the trace has values as they were written")
                    }
                    None => T::nothing(),
                }
            }
        }
    }
}

impl Reading {
    fn read_from(&self, entry: usize) {
        self.entry.set(entry);
        let mut left = self.left.borrow_mut();
        left.clear();
        for (index, (question, _)) in self.trace.entries[entry].answers.iter().enumerate() {
            left.entry(question.clone()).or_default().push_back(index);
        }
    }

    fn next_given(&self, question: &str) -> Option<Vec<u8>> {
        let index = self.left.borrow_mut().get_mut(question).and_then(VecDeque::pop_front);
        if index.is_none() {
            self.unknown.borrow_mut().push(format!("{question} in entry {}", self.entry.get()));
        }
        let (_, answer) = &self.trace.entries[self.entry.get()].answers[index?];
        Some(answer.clone())
    }

    /// The last snapshot up to now.
    fn snapshot(&self) -> &Snapshot {
        let past = self.trace.entries[..=self.entry.get()].iter().rev();
        past.map(|entry| &entry.after).find(|after| after.at > 0).unwrap_or(&self.trace.entries[0].after)
    }

    fn of_the_moment(&self, name: &str, about: &impl Debug, question: &str) -> Option<Vec<u8>> {
        let snapshot = self.snapshot();
        let id: u32 = format!("{about:?}").parse().unwrap_or(0);
        let thread = || snapshot.threads.iter().find(|thread| thread.tid == id);
        let of_threads = |index: usize| {
            let thread = thread().filter(|_| self.answers == Answers::OfTheMoment)?;
            Some(thread.answers[index].clone())
        };
        let ids = |is_one: &dyn Fn(&&SeenThread) -> bool| -> Vec<u32> {
            snapshot.threads.iter().filter(is_one).map(|thread| thread.tid).collect()
        };
        match name {
            "now" => Some(snapshot.at.bytes()),
            "account" => of_threads(0),
            "state" => of_threads(1),
            "name" => of_threads(2),
            "threads" => Some(ids(&|thread| thread.pid == id).bytes()),
            "children" => Some(ids(&|thread| thread.parent == id && thread.pid == thread.tid).bytes()),
            "parent" => thread().map(|thread| thread.parent.bytes()),
            "executable" => thread().map(|thread| thread.executable.bytes()),
            // The others do not change, or are of this step.
            _ => self.trace.entries[self.entry.get()]
                .answers
                .iter()
                .chain(&self.trace.entries[0].answers)
                .find(|(known, _)| known == question)
                .map(|(_, answer)| answer.clone()),
        }
    }
}

/// A file in a trace.
#[derive(Clone)]
pub(in crate::perf_sampler) struct TracedFile {
    system: Rc<TracedSystem>,
    number: usize,
}

impl TracedFile {
    /// A file that is opened while a trace is written.
    pub(in crate::perf_sampler) fn new(system: &Rc<TracedSystem>) -> TracedFile {
        let mut trace = system.written().borrow_mut();
        trace.files.push(FileBytes::default());
        TracedFile { system: Rc::clone(system), number: trace.files.len() - 1 }
    }

    /// Copies bytes of the file, which the trace then has.
    pub(in crate::perf_sampler) fn read(
        &self,
        offset: u64,
        into: &mut [u8],
        live: impl Fn(u64, &mut [u8]) -> usize,
    ) -> usize {
        let blocks = offset / BLOCK..=offset.saturating_add(into.len() as u64) / BLOCK;
        match &*self.system {
            TracedSystem::Writing(trace) => {
                for block in blocks {
                    let known = &mut trace.borrow_mut().files[self.number].blocks;
                    known.entry(block).or_insert_with(|| {
                        let mut bytes = vec![0; BLOCK as usize];
                        let read = live(block * BLOCK, &mut bytes);
                        bytes.truncate(read);
                        bytes
                    });
                }
                live(offset, into)
            }
            TracedSystem::Reading(reading) => {
                let known = &reading.trace.files[self.number].blocks;
                let mut done = 0;
                while done < into.len() {
                    let at = offset + done as u64;
                    let Some(block) = known.get(&(at / BLOCK)) else {
                        let question = format!("block {} of file {}", at / BLOCK, self.number);
                        reading.unknown.borrow_mut().push(question);
                        break;
                    };
                    let rest = block.get((at % BLOCK) as usize..).unwrap_or_default();
                    let len = rest.len().min(into.len() - done);
                    into[done..done + len].copy_from_slice(&rest[..len]);
                    done += len;
                    if len == 0 {
                        break;
                    }
                }
                done
            }
        }
    }

    /// Where its section of unwind rules lies.
    pub(in crate::perf_sampler) fn eh_frame(
        &self,
        live: impl FnOnce() -> Option<Range<u64>>,
    ) -> Option<Range<u64>> {
        match &*self.system {
            TracedSystem::Writing(trace) => {
                let section = live();
                let known = section.as_ref().map(|section| (section.start, section.end));
                trace.borrow_mut().files[self.number].eh_frame = known;
                section
            }
            TracedSystem::Reading(reading) => {
                reading.trace.files[self.number].eh_frame.map(|(start, end)| start..end)
            }
        }
    }
}

/// The file of a mapping: found by `live` while a trace is written, else the trace's.
pub(in crate::perf_sampler) fn find_file(
    system: &Rc<TracedSystem>,
    map: &Mmap<'_>,
    live: impl FnOnce() -> Found,
) -> Found {
    let key = format!("{} {:?} {}", String::from_utf8_lossy(map.path), map.build_id, map.inode);
    match &**system {
        TracedSystem::Writing(trace) => {
            let found = live();
            let number = found.file.as_ref().and_then(|file| Some(file.opened().traced()?.number));
            trace.borrow_mut().found.insert(key, (found.path.to_vec(), number));
            found
        }
        TracedSystem::Reading(reading) => {
            let Some((path, number)) = reading.trace.found.get(&key) else {
                reading.unknown.borrow_mut().push(format!("file {key}"));
                return Found { file: None, path: map.path.into() };
            };
            let file = number.and_then(|number| {
                let mut file = ElfFile::from_trace(OpenedFile::from_traced(TracedFile {
                    system: Rc::clone(system),
                    number,
                }))?;
                file.find_eh_frame();
                Some(Rc::new(file))
            });
            Found { file, path: path.as_slice().into() }
        }
    }
}
