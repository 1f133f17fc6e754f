//! Which thread polls which task.
//!
//! tokio polls the tasks of a type by functions of that type. The vtable of a task has the address of the first. Those that it
//! calls have the same name and arguments, where they are not inlined. Each gets the address of the task's header. So a thread
//! polls a task if one of its frames is of such a function and has that address, in a register or in its part of the stack.
//!
//! Words on stacks may be left over from earlier calls. Nothing is known if a frame has the addresses of two tasks that are
//! polled, or if two threads seem to poll one task.

use crate::task_headers::Headers;
use crate::values::Values;
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use stackglass_process_view::core_image::CoreImage;
use stackglass_process_view::modules::LoadedModule;
use stackglass_process_view::stacks::StackFrame;
use std::ops::Range;
use std::sync::Arc;

/// Most bytes of a frame that are searched.
const MOST_BYTES: u64 = 1 << 16;

/// A task that is polled, and by whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Poll {
    /// Index of the task in the dump.
    pub task: usize,
    /// Index of the thread that polls it.
    pub thread: usize,
    /// Index of the outermost frame of the thread that belongs to this poll.
    pub frame: usize,
    /// Addresses of the function of that frame, in the process. It is called once for each poll, also where a compiler has
    /// inlined its callers.
    pub function: Range<u64>,
    /// Address of the task.
    header: u64,
}

impl Poll {
    /// The frame of this poll among frames of its thread at another moment, if the thread polls the task then.
    pub fn frame_in(&self, image: &CoreImage, frames: &[StackFrame]) -> Option<usize> {
        let is_of_poll = |frame: &StackFrame| {
            self.function.contains(&frame.lookup) && words(image, frame).contains(&self.header)
        };
        frames.iter().rposition(is_of_poll)
    }
}

/// A task that is polled.
struct Polled {
    task: usize,
    header: u64,
    /// All functions that poll tasks of this type.
    functions: Arc<[Range<u64>]>,
}

/// The functions that poll tasks of a type, by the address of the first: that in the vtable.
pub(super) type PollFunctions = HashMap<u64, Arc<[Range<u64>]>>;

/// Finds the threads that poll tasks: `polled` has the indices and headers of tasks in this state.
pub(super) fn find(
    values: &Values<'_>,
    headers: &Headers,
    modules: &[LoadedModule],
    frames: &[Vec<StackFrame>],
    polled: &[(usize, u64)],
) -> Vec<Poll> {
    find_with(values, headers, modules, frames, (polled, PollFunctions::new()))
}

/// The same, where the functions of some types are known.
pub(super) fn find_with(
    values: &Values<'_>,
    headers: &Headers,
    modules: &[LoadedModule],
    frames: &[Vec<StackFrame>],
    (polled, known): (&[(usize, u64)], PollFunctions),
) -> Vec<Poll> {
    if polled.is_empty() || frames.is_empty() {
        return Vec::new();
    }
    let polled = with_functions(values, headers, modules, (polled, known));
    let mut all: Vec<&Range<u64>> = polled.iter().flat_map(|polled| polled.functions.iter()).collect();
    all.sort_unstable_by_key(|function| (function.start, function.end));
    all.dedup();
    let is_in_any = |address: u64| {
        let before = all.partition_point(|function| function.start <= address);
        before > 0 && all[before - 1].contains(&address)
    };
    let mut found: Vec<Poll> = Vec::new();
    for (thread, frames) in frames.iter().enumerate() {
        let mut doubtful = HashSet::new();
        let start = found.len();
        // The outermost frame first.
        for (number, frame) in frames.iter().enumerate().rev().filter(|(_, frame)| is_in_any(frame.lookup)) {
            let words: HashSet<u64> = words(values.pages.image(), frame).into_iter().collect();
            let is_of_frame = |polled: &&Polled| {
                words.contains(&polled.header)
                    && polled.functions.iter().any(|function| function.contains(&frame.lookup))
            };
            let tasks: Vec<&Polled> = polled.iter().filter(is_of_frame).collect();
            match tasks[..] {
                [task] if !found[start..].iter().any(|known| known.task == task.task) => {
                    let of_frame = task.functions.iter().find(|function| function.contains(&frame.lookup));
                    let Some(function) = of_frame.cloned() else { continue };
                    let Polled { task, header, .. } = *task;
                    found.push(Poll { task, thread, frame: number, function, header });
                }
                [] | [_] => {}
                _ => doubtful.extend(tasks.iter().map(|polled| polled.task)),
            }
        }
        found.retain(|poll| poll.thread != thread || !doubtful.contains(&poll.task));
    }
    let mut times: HashMap<usize, usize> = HashMap::new();
    found.iter().for_each(|poll| *times.entry(poll.task).or_insert(0) += 1);
    found.retain(|poll| times.get(&poll.task) == Some(&1));
    found
}

/// The functions that poll each task.
fn with_functions(
    values: &Values<'_>,
    headers: &Headers,
    modules: &[LoadedModule],
    (polled, mut by_entry): (&[(usize, u64)], PollFunctions),
) -> Vec<Polled> {
    let mut functions_of = |entry: u64| -> Arc<[Range<u64>]> {
        let known = by_entry.entry(entry).or_insert_with(|| functions(values, modules, entry).into());
        known.clone()
    };
    let entry_of = |header: u64| {
        let vtable = headers.vtable(values, header)?;
        values.pages.word(vtable.checked_add(headers.poll?)?)
    };
    let polled = polled.iter().filter_map(|(task, header)| {
        let entry = entry_of(*header)?;
        Some(Polled { task: *task, header: *header, functions: functions_of(entry) })
    });
    polled.collect()
}

/// The functions with the name of the one at this address, by their addresses in the process.
fn functions(values: &Values<'_>, modules: &[LoadedModule], entry: u64) -> Vec<Range<u64>> {
    let polls = values.layouts.coroutines().polls();
    let range = |poll: &stackglass_layouts::PollFunction| {
        let bias = modules.get(poll.module)?.bias();
        Some(poll.address.wrapping_add(bias)..poll.address.wrapping_add(poll.size).wrapping_add(bias))
    };
    // The linker may have kept one of several functions with the same code: then it has several names.
    let is_entry =
        |poll: &&stackglass_layouts::PollFunction| range(poll).is_some_and(|range| range.start == entry);
    let names: HashSet<&str> = polls.iter().filter(is_entry).map(|poll| &*poll.name).collect();
    polls.iter().filter(|poll| names.contains(&*poll.name)).filter_map(range).collect()
}

/// The registers of a frame, and the words in its part of the stack.
fn words(image: &CoreImage, frame: &StackFrame) -> Vec<u64> {
    let mut words: Vec<u64> = frame.registers.iter().flatten().copied().collect();
    let start = frame.range.start.next_multiple_of(8);
    let size = frame.range.end.saturating_sub(start).min(MOST_BYTES);
    let mut bytes = vec![0; size as usize];
    let read = image.memory.read(start, &mut bytes);
    let stored = bytes[..read].chunks_exact(8);
    words.extend(stored.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())));
    words
}
