//! Brings the polls and the waits of each task into one tree: the function of the task is the root of both.
//!
//! The stack of a poll begins at the start of its thread. It is cut where the wrapper of the task polls the task's own future. The
//! function of a task is known from its await stacks. Without await stacks, nothing changes.

use foldhash::HashMap;
use stackglass_inspect::task_stacks::{Call, Calls, Code, TaskFrame, polled};
use stackglass_profile::{
    AwaitKind, AwaitLocation, Location, LocationId, ModuleIndex, Recording, StackId, TASKS_MODULE, Task,
};
use std::sync::Arc;

/// The functions of the wrapper that poll the wrapped future.
const WRAPPER: [&str; 2] =
    ["stackglass::task::Instrumented::poll", "stackglass_host::task::Task::poll_future"];

/// What a task's samples have in common.
type Kind = (Arc<str>, Arc<str>, u32);

/// Brings them into one tree. The recording must have names.
pub fn join_polls_and_waits(recording: &mut Recording) {
    if !recording.has_await_stacks() {
        return;
    }
    let mut functions = Functions::find(recording);
    let names = names(recording);
    let mut joined: HashMap<(StackId, Option<Arc<str>>), Option<StackId>> = HashMap::default();
    // Polls first: they may tell the functions of tasks whose waits were too short.
    for polls in [true, false] {
        for index in 0..recording.samples.len() {
            let (stack, task) = (recording.samples[index].stack, recording.samples[index].task);
            if task == 0 || has_no_code(recording, stack) == polls {
                continue;
            }
            let key = (stack, functions.of(task).cloned());
            let function = key.1.clone();
            let new = *joined
                .entry(key)
                .or_insert_with(|| joined_stack(recording, stack, function.as_deref(), &names));
            let Some(new) = new else { continue };
            recording.samples[index].stack = new;
            if function.is_none() {
                functions.learn(recording, task, new, &names);
            }
        }
    }
    recording.name_awaits();
}

/// The functions of tasks.
struct Functions {
    by_task: HashMap<u64, Arc<str>>,
    /// Of tasks with the same name that were created in the same place.
    by_kind: HashMap<Kind, Arc<str>>,
    kinds: HashMap<u64, Kind>,
}

impl Functions {
    fn find(recording: &Recording) -> Functions {
        let kind = |task: &Task| (task.id.0, (task.name.clone(), task.file.clone(), task.line));
        let kinds: HashMap<u64, Kind> = recording.tasks.iter().map(kind).collect();
        let (mut by_task, mut by_kind) = (HashMap::default(), HashMap::default());
        for sample in recording.samples.iter().filter(|sample| sample.task != 0) {
            if by_task.contains_key(&sample.task) {
                continue;
            }
            let root = recording.stacks.walk(sample.stack).last();
            if let Some(root) = root.and_then(|root| await_location(recording, root)) {
                if let Some(kind) = kinds.get(&sample.task) {
                    by_kind.entry(kind.clone()).or_insert_with(|| root.function.clone());
                }
                by_task.insert(sample.task, root.function);
            }
        }
        Functions { by_task, by_kind, kinds }
    }

    /// Learns the function of a task from the stack of a poll.
    fn learn(&mut self, recording: &Recording, task: u64, stack: StackId, names: &Calls) {
        let root = recording.stacks.walk(stack).last();
        let root = root.and_then(|root| {
            let of_code =
                || names.get(&code(recording.stacks.location(root)))?.last().map(|call| &call.function);
            await_location(recording, root).map(|root| root.function).or_else(|| of_code().cloned())
        });
        self.by_task.extend(root.map(|function| (task, function)));
    }

    fn of(&self, task: u64) -> Option<&Arc<str>> {
        self.by_task.get(&task).or_else(|| self.by_kind.get(self.kinds.get(&task)?))
    }
}

/// Whether a stack is that of a task that waits, of which nothing else is known.
fn has_no_code(recording: &Recording, stack: StackId) -> bool {
    let leaf = recording.stacks.walk(stack).next();
    leaf.is_some_and(|leaf| module_path(recording, recording.stacks.location(leaf)) == TASKS_MODULE)
}

fn module_path(recording: &Recording, location: Location) -> &str {
    location
        .module
        .and_then(|module| recording.modules.get(module.0 as usize))
        .map_or("", |module| &module.path)
}

fn await_location(recording: &Recording, location: LocationId) -> Option<AwaitLocation> {
    let location = recording.stacks.location(location);
    AwaitLocation::from_path(module_path(recording, location), location.offset)
}

fn code(location: Location) -> Code {
    Code { module: location.module.map(|module| module.0), offset: location.offset }
}

/// The names of all addresses.
fn names(recording: &Recording) -> Calls {
    let mut names = Calls::default();
    for (index, location) in recording.stacks.locations().iter().enumerate() {
        let frames = recording.symbols.frames_of(LocationId(index as u32));
        let calls = frames.map(Call::from_frame);
        names.insert(code(*location), calls.collect());
    }
    names
}

/// The stack of a task with this function. `None` if it stays as it is.
fn joined_stack(
    recording: &mut Recording,
    stack: StackId,
    function: Option<&str>,
    names: &Calls,
) -> Option<StackId> {
    let locations: Vec<LocationId> = recording.stacks.walk(stack).collect();
    if has_no_code(recording, stack) {
        let root =
            AwaitLocation { kind: AwaitKind::Waiting, function: function?.into(), file: "".into(), line: 0 };
        let root = intern(recording, &root);
        return Some(recording.stacks.intern(&[*locations.first()?, root]));
    }
    let codes: Vec<Code> =
        locations.iter().map(|location| code(recording.stacks.location(*location))).collect();
    let is_wrapper = |call: &Call| WRAPPER.iter().any(|name| *call.function == **name);
    let last =
        codes.iter().position(|code| names.get(code).is_some_and(|calls| calls.iter().any(is_wrapper)))?;
    // Without a known function, the outermost one inside of the wrapper is the root.
    let (name, has_no_root) = (function.unwrap_or_default(), function.is_none());
    let frames = polled::stack(&codes[..=last], name, has_no_root, names)?;
    let locations: Vec<LocationId> = frames
        .iter()
        .map(|frame| match frame {
            TaskFrame::Await(frame) => intern(recording, frame),
            TaskFrame::Code(Code { module, offset }) => recording
                .stacks
                .intern_location(Location { module: module.map(ModuleIndex), offset: *offset }),
        })
        .collect();
    Some(recording.stacks.intern(&locations))
}

fn intern(recording: &mut Recording, frame: &AwaitLocation) -> LocationId {
    let module = Some(recording.intern_module(frame.module()));
    recording.stacks.intern_location(Location { module, offset: frame.line.into() })
}
