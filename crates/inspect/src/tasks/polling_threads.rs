//! Gives the tasks that are polled the stacks of their threads.

use super::long_poll::PolledTask;
use crate::named_frames;
use stackglass_process_view::modules::LoadedModule;
use stackglass_profile::runtimes::tokio;
use stackglass_profile::task_dump::{PollingThread, TaskDump};
use stackglass_profile::{Frame, Module};
use stackglass_symbols::Options;

/// Between a function that polls and the task's own code: parts of tokio and of the standard library.
const GLUE: [&str; 9] = [
    tokio::RUNTIME_TASK,
    tokio::BLOCKING,
    tokio::LOOM,
    tokio::UTIL,
    "std::panicking::",
    "std::panic::",
    "core::panic::",
    "core::ops::function::",
    "__rust_try",
];

/// Adds the threads to the tasks. Their frames get names.
pub(super) fn add(
    dump: &mut TaskDump,
    polled: &[PolledTask],
    modules: &[LoadedModule],
    files: &[Module],
    options: &Options,
) {
    let lookups: Vec<&[u64]> = polled.iter().map(|task| task.lookups.as_slice()).collect();
    let named = named_frames::of(&lookups, modules, files, options);
    for (polled, named) in polled.iter().zip(named) {
        let mut stack: Vec<Frame> = named.into_iter().flatten().collect();
        let Some(task) = dump.tasks.get_mut(polled.task) else { continue };
        while stack.last().is_some_and(is_glue) {
            stack.pop();
        }
        let PolledTask { tid, polled_for, seen_again, .. } = *polled;
        task.thread = Some(PollingThread { tid, stack, polled_for, seen_again });
    }
}

fn is_glue(frame: &Frame) -> bool {
    let name = frame.func.trim_start_matches('<');
    // With line tables only, some functions have no path.
    let is_file_of_runtime = frame.file.contains("/tokio-") && frame.file.contains("/src/runtime/");
    is_file_of_runtime || GLUE.iter().any(|part| name.starts_with(part))
}
