//! Which thread polls which task.
//!
//! tokio polls the tasks of a type by a function of that type, whose address is in their vtable, and passes the address of the
//! task's header. So a thread polls a task if one of its frames is of that function and has that address, in a register or in
//! its part of the stack. Words on stacks may be left over from earlier calls: if a frame has the addresses of two tasks that
//! are polled, or two threads seem to poll one task, nothing is known.

use super::Headers;
use crate::values::Values;
use stackglass_heapgraph::image::Image;
use stackglass_heapgraph::modules::LoadedModule;
use stackglass_heapgraph::stacks::StackFrame;
use std::collections::HashMap;
use std::ops::Range;

/// Most bytes of a frame that are searched.
const MOST_BYTES: u64 = 1 << 16;

/// A task that is polled, and by whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Poll {
    /// Index of the task in the dump.
    pub task: usize,
    /// Index of the thread that polls it.
    pub thread: usize,
    /// Index of the frame of the thread that belongs to the function that polls.
    pub frame: usize,
    /// Addresses of that function in the process. It is called once for each poll.
    pub function: Range<u64>,
    /// Address of the task.
    header: u64,
}

impl Poll {
    /// The frame of this poll among frames of its thread at another moment, if the thread polls the task then.
    pub fn frame_in(&self, image: &Image, frames: &[StackFrame]) -> Option<usize> {
        let mut own = frames.iter().enumerate().filter(|(_, frame)| self.function.contains(&frame.lookup));
        own.find(|(_, frame)| words(image, frame).contains(&self.header)).map(|(number, _)| number)
    }
}

/// Finds the threads that poll tasks: `polled` has the indices and headers of tasks in this state.
pub(super) fn find(
    values: &Values<'_>,
    headers: &Headers,
    modules: &[LoadedModule],
    frames: &[Vec<StackFrame>],
    polled: &[(usize, u64)],
) -> Vec<Poll> {
    if polled.is_empty() {
        return Vec::new();
    }
    let functions = functions(values, modules);
    let mut found: Vec<Poll> = Vec::new();
    for (thread, frames) in frames.iter().enumerate() {
        for (number, frame) in frames.iter().enumerate() {
            let of_frame =
                functions.partition_point(|function| function.start <= frame.lookup).checked_sub(1);
            let function = of_frame.map(|at| &functions[at]).filter(|range| range.contains(&frame.lookup));
            let Some(function) = function else { continue };
            let words = words(values.pages.image(), frame);
            let is_of_type = |header: u64| {
                let vtable = headers.vtable(values, header)?;
                values.pages.word(vtable.checked_add(headers.poll?)?)
            };
            let mut tasks = polled
                .iter()
                .filter(|(_, header)| words.contains(header) && is_of_type(*header) == Some(function.start));
            if let (Some((task, header)), None) = (tasks.next(), tasks.next()) {
                let (task, header, function) = (*task, *header, function.clone());
                found.push(Poll { task, thread, frame: number, function, header });
            }
        }
    }
    let mut times: HashMap<u64, usize> = HashMap::new();
    found.iter().for_each(|poll| *times.entry(poll.header).or_default() += 1);
    found.retain(|poll| times[&poll.header] == 1);
    found
}

/// The functions that poll, by address in the process.
fn functions(values: &Values<'_>, modules: &[LoadedModule]) -> Vec<Range<u64>> {
    let polls = values.layouts.coroutines().polls().iter();
    let mut functions: Vec<Range<u64>> = polls
        .filter_map(|poll| {
            let bias = modules.get(poll.module)?.bias();
            Some(poll.address.wrapping_add(bias)..poll.address.wrapping_add(poll.size).wrapping_add(bias))
        })
        .collect();
    functions.sort_unstable_by_key(|function| (function.start, function.end));
    functions.dedup();
    functions
}

/// The registers of a frame, and the words in its part of the stack.
fn words(image: &Image, frame: &StackFrame) -> Vec<u64> {
    let mut words: Vec<u64> = frame.registers.iter().flatten().copied().collect();
    let start = frame.range.start.next_multiple_of(8);
    let size = frame.range.end.saturating_sub(start).min(MOST_BYTES);
    let mut bytes = vec![0; size as usize];
    let read = image.memory.read(start, &mut bytes);
    let stored = bytes[..read].chunks_exact(8);
    words.extend(stored.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())));
    words
}
