//! Stacks as lists of names.

use stackglass_profile::{Recording, StackId};
use std::collections::HashMap;
use std::sync::Arc;

/// A sample.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Index into [`NamedStacks::stacks`].
    pub stack: usize,
    /// Kernel id of the thread; 0: unknown.
    pub tid: u32,
    /// Name of the thread; empty if unknown.
    pub thread: Arc<str>,
    /// The thread did not run: it slept, or was ready to run.
    pub asleep: bool,
    /// Hits.
    pub hits: u64,
    /// Time it stands for, ns; 0: unknown.
    pub time: u64,
    /// The profiler marks it as incomplete.
    pub cut: bool,
}

/// Distinct stacks and their samples.
#[derive(Clone, Debug, Default)]
pub struct NamedStacks {
    /// Function names, root first, inlined functions as separate frames.
    pub stacks: Vec<Vec<Arc<str>>>,
    /// The samples.
    pub seen: Vec<Seen>,
}

impl NamedStacks {
    /// The stacks of all processes whose executable's file name is `program`.
    pub fn of_recording(recording: &Recording, program: &str) -> NamedStacks {
        let mut named = NamedStacks::default();
        let mut known: HashMap<StackId, usize> = HashMap::new();
        for sample in &recording.samples {
            let Some(thread) = recording.thread(sample.thread) else { continue };
            let Some(process) = recording.processes.get(thread.process.0 as usize) else { continue };
            if process.exe.rsplit('/').next() != Some(program) {
                continue;
            }
            let stack = *known.entry(sample.stack).or_insert_with(|| {
                named.stacks.push(names(recording, sample.stack));
                named.stacks.len() - 1
            });
            named.seen.push(Seen {
                stack,
                tid: thread.tid,
                thread: thread.name.clone(),
                asleep: !sample.state.uses_cpu(),
                hits: sample.hits.into(),
                time: sample.time.0,
                cut: sample.cut.is_some(),
            });
        }
        named
    }
}

/// Names of a stack, root first; a location without a name is shown by its address.
fn names(recording: &Recording, stack: StackId) -> Vec<Arc<str>> {
    let mut leaf_first = Vec::new();
    for location in recording.stacks.walk(stack) {
        let before = leaf_first.len();
        leaf_first.extend(recording.symbols.frames_of(location).map(|frame| frame.func.clone()));
        if leaf_first.len() == before {
            let offset = recording.stacks.location(location).offset;
            leaf_first.push(format!("0x{offset:x}").into());
        }
    }
    leaf_first.reverse();
    leaf_first
}
