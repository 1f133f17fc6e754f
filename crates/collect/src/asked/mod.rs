//! Answers of tasks that were asked: from native stacks to await stacks.
//!
//! The program takes the stacks (`stackglass_host::task::asked`). They become await stacks in the program itself, or in the
//! command, to which the program sends them as [text](AskedTasks::to_text).

mod frames;
mod stack;
mod text;

pub use stack::AskedStack;

use foldhash::HashMap;
use stackglass_profile::recording::Module;
use stackglass_profile::task_dump::{
    AsyncRuntime, AwaitFrame, AwaitPoint, AwaitSource, DumpedTask, PollingThread, TaskDump, TaskState,
};
use stackglass_profile::{Location, LocationId, Recording};
use stackglass_symbols::Options;
use std::ops::Range;
use std::sync::Arc;

/// What the tasks of a process said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AskedTasks {
    /// The modules of the process.
    pub modules: Vec<AskedModule>,
    /// The tasks.
    pub tasks: Vec<AskedTask>,
}

/// A program or library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskedModule {
    /// Its addresses.
    pub range: Range<u64>,
    /// Address in memory minus address in the file.
    pub bias: u64,
    /// The linker's build id.
    pub build_id: Vec<u8>,
    /// Its path.
    pub path: String,
}

/// A task that was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskedTask {
    /// Its id: unique in the process, but not that of a runtime.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Where it was created.
    pub created: Option<(String, u32)>,
    /// What it said.
    pub said: AskedSaid,
}

/// What a task said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AskedSaid {
    /// It waits. The waker was cloned, or woken, in these stacks.
    Waits(Vec<AskedStack>),
    /// It was not polled since the process keeps wakers.
    NoWaker,
    /// It was not polled in time.
    NotPolled,
    /// It was polled all the time, by the thread with this kernel id.
    Polled(u32),
}

impl AskedTasks {
    /// The tasks with their await stacks, in the same order.
    pub fn answers<'a>(&'a self, options: &Options) -> Vec<DumpedTask> {
        let mut modules: Vec<&AskedModule> = self.modules.iter().collect();
        modules.sort_by_key(|module| module.range.start);
        let mut recording = Recording::default();
        let mut locations: HashMap<u64, LocationId> = HashMap::default();
        let stacks = self.tasks.iter().filter_map(|task| match &task.said {
            AskedSaid::Waits(stacks) => Some(stacks),
            _ => None,
        });
        for address in stacks.flatten().flat_map(|stack| &stack.frames) {
            locations.entry(*address).or_insert_with(|| {
                let behind = modules.partition_point(|module| module.range.start <= *address);
                let module = behind.checked_sub(1).map(|at| modules[at]);
                let module = module.filter(|module| module.range.contains(address));
                let location = match module {
                    Some(module) => Location {
                        module: Some(recording.intern_module(Module {
                            path: module.path.as_str().into(),
                            build_id: module.build_id.as_slice().into(),
                        })),
                        offset: address.wrapping_sub(module.bias),
                    },
                    None => Location { module: None, offset: *address },
                };
                recording.stacks.intern_location(location)
            });
        }
        stackglass_symbols::symbolize(&mut recording, options, &mut |_| ());
        let names = frames::Names::new(&recording, &locations);
        // Most tasks wait in few places.
        let mut known: HashMap<&[AskedStack], Vec<AwaitFrame>> = HashMap::default();
        let answer = |task: &'a AskedTask| match &task.said {
            AskedSaid::Waits(stacks) => {
                let stack = known.entry(stacks).or_insert_with(|| names.await_stack(stacks)).clone();
                match stack.is_empty() {
                    true => dumped(task, TaskState::Waiting, lost("no future in it has asked to be woken")),
                    false => DumpedTask {
                        source: AwaitSource::AskedPoll,
                        name: name_of(&stack).unwrap_or_else(|| task.name.as_str().into()),
                        ..dumped(task, TaskState::Waiting, stack)
                    },
                }
            }
            AskedSaid::NoWaker => {
                dumped(task, TaskState::Waiting, lost("not polled since tasks can be asked"))
            }
            AskedSaid::NotPolled => dumped(task, TaskState::Ready, lost("not polled: its worker is busy")),
            AskedSaid::Polled(tid) => DumpedTask {
                thread: Some(PollingThread { tid: *tid, ..PollingThread::default() }),
                ..dumped(task, TaskState::Running, Vec::new())
            },
        };
        self.tasks.iter().map(answer).collect()
    }

    /// The tasks as a dump of their own.
    pub fn dump(&self, options: &Options) -> TaskDump {
        let runtime = AsyncRuntime { name: WRAPPED_TASKS.to_owned() };
        let tasks = self.answers(options).into_iter();
        let tasks = tasks.map(|task| DumpedTask { runtime: Some(0), ..task }).collect();
        TaskDump { runtimes: vec![runtime], tasks, ..TaskDump::default() }
    }
}

/// What the runtime of named tasks is called.
const WRAPPED_TASKS: &str = "wrapped tasks (`.task(\"name\")`)";

/// A task of which nothing but its stack is known.
fn dumped(task: &AskedTask, state: TaskState, stack: Vec<AwaitFrame>) -> DumpedTask {
    let given: Arc<str> = task.name.as_str().into();
    DumpedTask {
        state,
        name: given.clone(),
        given_name: Some(given),
        created: task.created.as_ref().map(|(file, line)| (file.as_str().into(), *line)),
        source: AwaitSource::RootName,
        stack,
        ..DumpedTask::default()
    }
}

/// The function of a task: that of the outermost future.
fn name_of(stack: &[AwaitFrame]) -> Option<Arc<str>> {
    stack
        .first()
        .filter(|frame| !matches!(frame.point, AwaitPoint::Lost(_)))
        .map(|frame| frame.function.clone())
}

fn lost(why: &'static str) -> Vec<AwaitFrame> {
    vec![AwaitFrame {
        function: "".into(),
        point: AwaitPoint::Lost(why),
        children: Vec::new(),
        is_race: false,
    }]
}
