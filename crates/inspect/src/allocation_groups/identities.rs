//! What the numbers in the tables of a process are in a recording. They can be asked for while the tables grow.

use super::modules::Modules;
use foldhash::HashMap;
use stackglass_profile::{Nanos, Process, ProcessIndex, Recorder, StackId, Thread, ThreadNumber};
use stackglass_wire::heap::{CounterEntry, HeapTables, MAX_NODES, MAX_THREADS, NODE_NOWHERE};
use std::sync::atomic::Ordering::*;

/// What the numbers in the tables of a process are in a recording.
#[derive(Default)]
pub struct Identities {
    process: Option<ProcessIndex>,
    /// The modules, and the words of their table when they were read.
    modules: Option<(u32, Modules)>,
    /// Stacks by node, as far as they are known.
    stacks: Vec<Option<StackId>>,
    /// Threads by their number.
    threads: Vec<ThreadNumber>,
}

impl Identities {
    /// The stack and the thread of a counter.
    pub fn of(&self, counter: &CounterEntry) -> (StackId, ThreadNumber) {
        let stack = self.stacks.get(counter.node.load(Relaxed) as usize).copied().flatten();
        let thread = self.threads.get(counter.thread.load(Relaxed) as usize);
        (stack.unwrap_or_default(), thread.copied().unwrap_or_default())
    }

    /// Finds the process, and its new modules; `None` if the recording is full.
    pub(super) fn update(&mut self, tables: &HeapTables, recorder: &mut Recorder) -> Option<ProcessIndex> {
        let page = tables.page();
        let words = page.module_words.load(Acquire);
        if self.modules.as_ref().is_none_or(|(read, _)| *read != words) {
            self.modules = Some((words, Modules::read(tables, recorder)));
        }
        let modules = &self.modules.as_ref()?.1;
        if self.process.is_none() {
            let begin = Nanos(page.begin_ns.load(Relaxed));
            self.process = process_of(page.pid.load(Relaxed), begin, modules, recorder);
        }
        self.process
    }

    /// Finds all there is to find.
    pub(super) fn read_all(&mut self, tables: &HeapTables, recorder: &mut Recorder) -> Option<ProcessIndex> {
        let process = self.update(tables, recorder)?;
        self.find_threads(tables, tables.page().threads.load(Acquire), recorder);
        for number in 0..tables.page().nodes().load(Acquire).min(MAX_NODES as u32) {
            self.find_stack(tables, number, recorder);
        }
        Some(process)
    }

    /// Finds the stack of a counter, after an [update](Identities::update) that is later than its first count.
    pub(super) fn find(
        &mut self,
        tables: &HeapTables,
        counter: &CounterEntry,
        recorder: &mut Recorder,
    ) -> (StackId, ThreadNumber) {
        self.find_threads(tables, counter.thread.load(Relaxed), recorder);
        self.find_stack(tables, counter.node.load(Relaxed), recorder);
        self.of(counter)
    }

    /// Finds the threads up to this number. Later ones may be half written, or not be known yet in the recording.
    fn find_threads(&mut self, tables: &HeapTables, last: u32, recorder: &mut Recorder) {
        let last = last.min(tables.page().threads.load(Acquire)).min(MAX_THREADS as u32 - 1);
        let (Some(process), Some((_, modules))) = (self.process, &self.modules) else { return };
        if self.threads.len() <= last as usize {
            let program = modules.program.rsplit('/').next().unwrap_or_default();
            add_threads(tables, last, process, program, recorder, &mut self.threads);
        }
    }

    /// Finds the stack of a node. The callers of a node in use are in use; other nodes may be half written.
    fn find_stack(&mut self, tables: &HeapTables, number: u32, recorder: &mut Recorder) {
        let Some((_, modules)) = &self.modules else { return };
        if number as usize >= MAX_NODES {
            return;
        }
        if self.stacks.len() <= number as usize {
            self.stacks.resize(number as usize + 1, None);
        }
        self.stacks[0] = Some(StackId(0));
        let mut path = Vec::new();
        let mut next = number;
        let mut stack = loop {
            if let Some(known) = self.stacks[next as usize] {
                break known;
            }
            path.push(next);
            let parent = tables.node(next).parent.load(Relaxed);
            // Callers come first in tables that are sound.
            if parent >= next {
                break StackId(0);
            }
            next = parent;
        };
        let stacks = &mut recorder.recording_mut().stacks;
        for number in path.into_iter().rev() {
            let node = tables.node(number);
            let lookup = node.lookup.load(Acquire);
            let location = modules.at(node.generation.load(Relaxed) & !NODE_NOWHERE).locate(lookup);
            let location = stacks.intern_location(location);
            stack = stacks.extend(stack, location);
            self.stacks[number as usize] = Some(stack);
        }
    }
}

/// The recording's process for these tables: the latest image with this id that began before them.
fn process_of(pid: u32, begin: Nanos, modules: &Modules, recorder: &mut Recorder) -> Option<ProcessIndex> {
    let processes = &recorder.recording().processes;
    let images = processes.iter().enumerate().filter(|(_, image)| image.pid == pid);
    let known = images.filter(|(_, image)| image.start <= begin).max_by_key(|(_, image)| image.start);
    if let Some((index, _)) = known {
        return Some(ProcessIndex(index as u32));
    }
    recorder.add_process(Process { pid, exe: modules.program.clone(), start: begin, ..Process::default() })
}

/// Adds the recording's threads up to number `count` in the tables to `numbers`; 0 is unknown. Threads that it does not know yet are named
/// like the program.
fn add_threads(
    tables: &HeapTables,
    count: u32,
    process: ProcessIndex,
    program: &str,
    recorder: &mut Recorder,
    numbers: &mut Vec<ThreadNumber>,
) {
    if numbers.is_empty() {
        numbers.push(ThreadNumber(0));
    }
    let mut by_tid: HashMap<u32, Vec<(Nanos, ThreadNumber)>> = HashMap::default();
    for (thread, number) in recorder.recording().threads.iter().zip(1..) {
        if thread.process == process {
            by_tid.entry(thread.tid).or_default().push((thread.start, ThreadNumber(number)));
        }
    }
    for number in numbers.len() as u32..=count {
        let entry = tables.thread(number);
        let (tid, first) = (entry.tid.load(Relaxed), Nanos(entry.first_ns.load(Relaxed)));
        // Ids are used again: the latest thread that began before its first allocation.
        let known = by_tid.get(&tid).map(Vec::as_slice).unwrap_or(&[]);
        let found = known
            .iter()
            .filter(|(start, _)| *start <= first)
            .max()
            .or(known.iter().min())
            .map(|(_, number)| *number);
        let found = found.or_else(|| {
            let new = Thread {
                process,
                tid,
                name: program.into(),
                start: first,
                end: None,
                cpu: Nanos(0),
                blocked_signal: false,
            };
            let number = recorder.add_thread(new)?;
            by_tid.entry(tid).or_default().push((first, number));
            Some(number)
        });
        numbers.push(found.unwrap_or_default());
    }
}
