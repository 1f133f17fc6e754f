//! Tasks of programs whose debug information has no types: only the function of each is known.
//!
//! The name of the function that polls a task has the future's type: in debug information from `debug = 1` on, and in symbols of
//! the newer mangling. In the older mangling, the functions that it calls tell ([`SymbolNames`]). What else is needed is fixed in
//! tokio 1.43 to 1.54: headers (`#[repr(C)]`) begin with the state, and have their
//! vtable in the third word; a vtable begins with seven functions, then has the offsets of trailer, scheduler and id. Both
//! are checked: a task counts only if its vtable looks like this, and if its neighbours in the runtime's list lead back to it, or
//! the list says that it has none. Functions of `spawn_blocking` are in no list; one counts if a thread's stack says that it runs.

use super::alone::{Alone, OWNER};
use super::cells::{constant_words, state_of};
use super::polling::{self, Poll, PollFunctions};
use super::sweep;
use super::symbol_names::SymbolNames;
use super::untyped::UNKNOWN;
use crate::found::Found;
use crate::names::{self, first_argument};
use crate::process::Process;
use crate::task_headers::Headers;
use crate::values::Values;
use crate::wrapped_task::WrappedTask;
use crate::wrapper::WRAPPER;
use foldhash::{HashMap, HashMapExt, HashSet};
use stackglass_layouts::{Layouts, is_coroutine};
use stackglass_process_view::stacks::StackFrame;
use stackglass_profile::runtimes::tokio;
use stackglass_profile::task_dump::{AwaitSource, DumpedTask, TaskState};
use std::ops::Range;
use std::sync::Arc;

/// Offset of the vtable in a header.
const VTABLE: u64 = 16;
/// Functions of a vtable.
const FUNCTIONS: u64 = 7;
/// More bytes than a task has.
const LARGEST: u64 = 1 << 26;
/// More tasks than a program can have started.
const TOO_LARGE_ID: u64 = 1 << 48;

/// Bytes before the future in a task: the id, and which state the future is in.
const STAGE: u64 = 8;
/// The value of the latter while there is a future (`#[repr(C)] enum Stage`).
const HAS_FUTURE: u32 = 0;
/// Types of futures in boxes begin with one of these.
const BOXES: [&str; 2] = [
    "core::pin::Pin<alloc::boxed::Box<dyn core::future::future::Future<",
    "core::pin::Pin<alloc::boxed::Box<(dyn core::future::future::Future<",
];

/// What a vtable tells of its tasks.
pub(super) struct Kind {
    /// The function, if one name has it.
    pub name: Option<Arc<str>>,
    /// Index of the module with the function that polls, and its address in the process.
    pub module: usize,
    pub poll: u64,
    /// Debug information has this function.
    pub is_described: bool,
    /// The future is in a box.
    pub is_boxed: bool,
    trailer: u64,
    scheduler: u64,
    id: u64,
    /// By its name. Where none is known, blocks that belong to no list may be such functions.
    is_blocking: bool,
}

impl Kind {
    /// The address of the future of a task with a header at an address.
    pub fn future(&self, values: &Values<'_>, header: u64) -> Option<u64> {
        let stage = header.checked_add(self.id)?.checked_add(STAGE)?;
        (values.pages.word(stage)? as u32 == HAS_FUTURE).then(|| stage + 8)
    }

    /// The memory of the future of a task with a header at an address.
    fn memory(&self, values: &Values<'_>, header: u64) -> Option<Range<u64>> {
        Some(self.future(values, header)?..header.checked_add(self.trailer)?)
    }

    /// Whether the task with a header at an address is a function of `spawn_blocking`, which has no owner.
    fn is_blocking(&self, values: &Values<'_>, header: u64) -> bool {
        let owner = || header.checked_add(OWNER).and_then(|at| values.pages.word(at));
        self.is_blocking || self.name.is_none() && owner() == Some(0)
    }
}

/// How to get more.
const OF_SYMBOLS: &str = "only the function of each task is known, by symbols: `debug = 2` under [profile.release] in Cargo.toml adds the chain of its `.await`s, with lines";
const REMARK: &str = "only the function of each task is known: for await stacks, build the program's own crate with `debug = 2` (or `true`) in its Cargo profile";

/// Adds the tasks, and says that their functions are all that is known. Returns the polls of those that run.
pub(super) fn add(
    process: &Process<'_>,
    values: &Values<'_>,
    frames: &[Vec<StackFrame>],
    found: &mut Found,
) -> Vec<Poll> {
    let kinds = kinds(process, values);
    if kinds.is_empty() {
        return Vec::new();
    }
    let kind_of = |header: u64| kinds.get(&values.pages.word(header.checked_add(VTABLE)?)?);
    // The addresses of the tasks before and after it.
    let links = |header: u64| {
        let trailer = header.checked_add(kind_of(header)?.trailer)?;
        Some((values.pages.word(trailer)?, values.pages.word(trailer.checked_add(8)?)?))
    };
    let mut only = Alone::new(&values.pages);
    let mut is_listed = |header: u64, kind: &Kind| match links(header) {
        Some((0, 0)) => header.checked_add(kind.scheduler).is_some_and(|at| only.is_only(header, at)),
        Some((before, after)) => {
            (before == 0 || links(before).is_some_and(|(_, after)| after == header))
                && (after == 0 || links(after).is_some_and(|(before, _)| before == header))
        }
        None => false,
    };
    let (mut listed, mut blocking, mut unclear) = (Vec::new(), Vec::new(), 0);
    let swept = sweep::blocks(process.image, VTABLE, &|word| kinds.contains_key(&word));
    let by_symbols = SymbolNames::of(process, values, swept.iter().filter_map(|header| kind_of(*header)));
    let functions = by_symbols.functions();
    for header in swept {
        let Some(kind) = kind_of(header).filter(|kind| !by_symbols.is_worker(kind)) else { continue };
        let Some(state) = values.pages.word(header).and_then(state_of).filter(|state| !state.is_complete)
        else {
            continue;
        };
        let id = header.checked_add(kind.id).and_then(|id| values.pages.word(id));
        let Some(id) = id.filter(|id| (1..TOO_LARGE_ID).contains(id)) else { continue };
        let is_blocking = kind.is_blocking(values, header);
        let state = match (is_blocking, state.is_running, state.is_notified) {
            (true, ..) => TaskState::Blocking,
            (_, true, _) => TaskState::Running,
            (_, _, true) => TaskState::Ready,
            _ => TaskState::Waiting,
        };
        let source = AwaitSource::RootName;
        let name = by_symbols.name(kind, header).unwrap_or_else(|| UNKNOWN.into());
        let task = DumpedTask { id, state, name, source, ..DumpedTask::default() };
        match is_blocking {
            true => blocking.push((task, header)),
            false if is_listed(header, kind) => listed.push((task, header)),
            false => unclear += 1,
        }
    }
    // A function that waits for a thread looks like a freed block.
    let of_threads = polls(values, process, frames, (&blocking, &functions));
    listed.extend(of_threads.iter().map(|poll| blocking[poll.task].clone()));
    let has_idle = of_threads.len() < blocking.len();
    if listed.is_empty() && unclear == 0 {
        return Vec::new();
    }
    listed.sort_by_key(|(task, _)| task.id);
    listed.dedup_by_key(|(task, _)| task.id);
    let is_described = kinds.values().any(|kind| kind.is_described);
    let known = if is_described { REMARK } else { OF_SYMBOLS };
    found.dump.remarks.push(remark(known, listed.len(), unclear, has_idle));
    let first = found.dump.tasks.len();
    let polls = polls(values, process, frames, (&listed, &functions));
    let mut wrapped: Vec<&WrappedTask> = process.wrapped.iter().filter(|task| task.future != 0).collect();
    wrapped.sort_by_key(|task| task.future);
    for (task, header) in listed {
        if let Some(memory) = kind_of(header).and_then(|kind| kind.memory(values, header)) {
            let is_wrapper = &*task.name == WRAPPER.trim_end_matches('<');
            found.wrapped.claim_untyped(values, &wrapped, (found.dump.tasks.len(), memory), is_wrapper);
        }
        found.dump.tasks.push(task);
    }
    let of_dump = polls.into_iter().map(|mut poll| {
        poll.task += first;
        poll
    });
    of_dump.collect()
}

/// Which threads poll which of these tasks, by index.
fn polls(
    values: &Values<'_>,
    process: &Process<'_>,
    frames: &[Vec<StackFrame>],
    (tasks, functions): (&[(DumpedTask, u64)], &PollFunctions),
) -> Vec<Poll> {
    let runs = |task: &DumpedTask| matches!(task.state, TaskState::Running | TaskState::Blocking);
    let running = tasks.iter().enumerate().filter(|(_, (task, _))| runs(task));
    let running: Vec<(usize, u64)> = running.map(|(number, (_, header))| (number, *header)).collect();
    polling::find_with(values, &Headers::fixed(), process.modules, frames, (&running, functions.clone()))
}

/// What is known, and what is missing. Blocks that look like tasks may be tasks.
fn remark(known: &str, found: usize, unclear: usize, has_idle: bool) -> String {
    let mut remark = known.to_owned();
    match (found, unclear) {
        (_, 0) => {}
        (0, _) => {
            remark = format!(
                "what looks like tasks ({unclear}) is in no list of a runtime that is found, so that it may have ended: build the program's own crate with `debug = 2` (or `true`) in its Cargo profile, which tells where the lists are"
            );
        }
        _ => {
            remark += &format!(
                "; {unclear} more may be tasks, but no list of a runtime is known to have them: they are not listed"
            );
        }
    }
    if has_idle {
        remark += "; functions of `spawn_blocking` are listed only if a thread is known to run them";
    }
    remark
}

/// The vtables of tasks by their addresses.
fn kinds(process: &Process<'_>, values: &Values<'_>) -> HashMap<u64, Kind> {
    let mut found = HashMap::new();
    for (number, module) in process.modules.iter().enumerate() {
        // One function with several names may be that of several types. Then it has none.
        let mut polls: HashMap<u64, Option<Arc<str>>> = HashMap::new();
        let mut add = |address: u64, name: Option<Arc<str>>| {
            let known = polls.entry(address.wrapping_add(module.bias())).or_insert_with(|| name.clone());
            if *known != name {
                *known = None;
            }
        };
        let described = process.layouts.coroutines().polls().iter().filter(|poll| poll.module == number);
        let described: Vec<_> = described.filter(|poll| poll.name.starts_with("poll<")).collect();
        described.iter().for_each(|poll| add(poll.address, Some(poll.name.clone())));
        let is_described: HashSet<u64> = described.iter().map(|poll| poll.address).collect();
        let of_symbols = process.layouts.known_functions(number).into_iter().flat_map(|known| &known.polls);
        for (address, name) in of_symbols.filter(|(address, _)| !is_described.contains(address)) {
            add(*address, name.clone());
        }
        constant_words(values, module, &mut |address, word| {
            let Some(name) = polls.get(&word) else { return };
            if name.as_deref().is_some_and(is_worker) {
                return;
            }
            if let Some(kind) = kind(process, values, address, name.as_deref()) {
                let is_described = is_described.contains(&word.wrapping_sub(module.bias()));
                found.insert(address, Kind { module: number, is_described, ..kind });
            }
        });
    }
    found
}

/// What the vtable at an address tells, if it looks like one. `name` is that of the function that polls.
fn kind(process: &Process<'_>, values: &Values<'_>, vtable: u64, name: Option<&str>) -> Option<Kind> {
    let word = |number: u64| values.pages.word(vtable.checked_add(number * 8)?);
    let is_code = |address: u64| process.image.mapping(address).is_some_and(|mapping| mapping.executable);
    if !(0..FUNCTIONS).all(|number| word(number).is_some_and(is_code)) {
        return None;
    }
    let (trailer, scheduler, id) = (word(FUNCTIONS)?, word(FUNCTIONS + 1)?, word(FUNCTIONS + 2)?);
    let is_ordered = VTABLE < scheduler && scheduler < id && id < trailer && trailer < LARGEST;
    if !is_ordered || [trailer, scheduler, id].iter().any(|offset| offset % 8 != 0) {
        return None;
    }
    Some(Kind {
        name: name.and_then(|name| self::name(process.layouts, name)),
        module: 0,
        poll: word(0)?,
        is_described: false,
        is_boxed: name.is_some_and(|name| BOXES.iter().any(|begin| first_argument(name).starts_with(begin))),
        trailer,
        scheduler,
        id,
        is_blocking: name.is_some_and(|name| name.contains(tokio::BLOCKING_SCHEDULE)),
    })
}

/// Whether this function runs a worker of a runtime, which is a function of `spawn_blocking`, too.
fn is_worker(poll: &str) -> bool {
    let function =
        first_argument(poll).strip_prefix(tokio::BLOCKING_TASK).and_then(|rest| rest.strip_prefix('<'));
    function.is_some_and(|function| function.starts_with(tokio::SCHEDULER))
}

/// The function of a task, by the name of the function that polls it: `poll<app::f::{async_fn_env#0}, …>`, or by its symbol:
/// `tokio::runtime::task::raw::poll::<app::f::{closure#0}, …>`.
pub(super) fn name(layouts: &Layouts, poll: &str) -> Option<Arc<str>> {
    let future = first_argument(poll);
    if is_coroutine(future) {
        return Some(names::function(future, layouts.coroutines()));
    }
    // The function of `spawn_blocking` is in a struct of its own.
    let function = future
        .strip_prefix(tokio::BLOCKING_TASK)
        .and_then(|rest| rest.strip_prefix('<'))
        .and_then(|inner| inner.strip_suffix('>'));
    if let Some(function) = function {
        return Some(names::closure(function));
    }
    let path = names::without_arguments(future);
    (!path.is_empty()).then(|| path.strip_suffix("::{closure#0}").unwrap_or(path).into())
}
