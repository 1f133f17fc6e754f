//! Gives the tasks that are polled the stacks of their threads.

use super::long_poll::PolledTask;
use stackglass_process_view::modules::LoadedModule;
use stackglass_profile::runtimes::tokio;
use stackglass_profile::task_dump::{PollingThread, TaskDump};
use stackglass_profile::{Frame, Location, LocationId, Module, ModuleIndex, Recording};
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
    let mut recording = Recording { modules: files.to_vec(), ..Recording::default() };
    let mut intern = |lookup: &u64| {
        let module = modules.iter().position(|module| module.module.range().contains(lookup));
        let bias = module.map_or(0, |module| modules[module].bias());
        let module = module.map(|module| ModuleIndex(module as u32));
        recording.stacks.intern_location(Location { module, offset: lookup.wrapping_sub(bias) })
    };
    let stacks: Vec<Vec<LocationId>> =
        polled.iter().map(|task| task.lookups.iter().map(&mut intern).collect()).collect();
    stackglass_symbols::symbolize(&mut recording, options, &mut |_| ());
    for (polled, locations) in polled.iter().zip(stacks) {
        let Some(task) = dump.tasks.get_mut(polled.task) else { continue };
        let frames = locations.iter().flat_map(|location| recording.symbols.frames_of(*location));
        let mut stack: Vec<Frame> = frames.cloned().collect();
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
