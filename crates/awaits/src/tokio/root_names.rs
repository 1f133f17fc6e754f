//! Tasks of programs whose debug information has no types: only the function of each is known.
//!
//! The name of the function that polls a task has the future's type: in debug information from `debug = 1` on, and in symbols of
//! the newer mangling. What else is needed is fixed in tokio 1.43 to 1.54: headers (`#[repr(C)]`) begin with the state, and have their
//! vtable in the third word; a vtable begins with seven functions, then has the offsets of trailer, scheduler and id. Both
//! are checked: a task counts only if its vtable looks like this, and if its neighbours in the runtime's list lead back to it, or
//! the list says that it has none. Functions of `spawn_blocking` are in no list; one counts if a thread's stack says that it runs.

use super::alone::Alone;
use super::cells::{constant_words, state_of};
use super::polling::{self, Poll};
use super::sweep;
use crate::names::{self, first_argument};
use crate::process::Process;
use crate::task_headers::Headers;
use crate::values::Values;
use foldhash::{HashMap, HashMapExt};
use stackglass_layouts::{Layouts, is_coroutine};
use stackglass_process_view::stacks::StackFrame;
use stackglass_profile::runtimes::tokio;
use stackglass_profile::task_dump::{AwaitSource, DumpedTask, TaskDump, TaskState};
use std::sync::Arc;

/// Offset of the vtable in a header.
const VTABLE: u64 = 16;
/// Functions of a vtable.
const FUNCTIONS: u64 = 7;
/// More bytes than a task has.
const LARGEST: u64 = 1 << 26;
/// More tasks than a program can have started.
const TOO_LARGE_ID: u64 = 1 << 48;

/// What a vtable tells of its tasks.
struct Kind {
    name: Arc<str>,
    trailer: u64,
    scheduler: u64,
    id: u64,
    is_blocking: bool,
}

/// How to get more.
const REMARK: &str = "only the function of each task is known: for await stacks, build the program's own crate with `debug = 2` (or `true`) in its Cargo profile";

/// Adds the tasks, and says that their functions are all that is known. Returns the polls of those that run.
pub(super) fn add(
    process: &Process<'_>,
    values: &Values<'_>,
    frames: &[Vec<StackFrame>],
    dump: &mut TaskDump,
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
    let (mut found, mut blocking, mut unclear) = (Vec::new(), Vec::new(), 0);
    for header in sweep::blocks(process.image, VTABLE, &|word| kinds.contains_key(&word)) {
        let Some(kind) = kind_of(header) else { continue };
        let Some(state) = values.pages.word(header).and_then(state_of).filter(|state| !state.is_complete)
        else {
            continue;
        };
        let id = header.checked_add(kind.id).and_then(|id| values.pages.word(id));
        let Some(id) = id.filter(|id| (1..TOO_LARGE_ID).contains(id)) else { continue };
        let state = match (kind.is_blocking, state.is_running, state.is_notified) {
            (true, ..) => TaskState::Blocking,
            (_, true, _) => TaskState::Running,
            (_, _, true) => TaskState::Ready,
            _ => TaskState::Waiting,
        };
        let source = AwaitSource::RootName;
        let task = DumpedTask { id, state, name: kind.name.clone(), source, ..DumpedTask::default() };
        match kind.is_blocking {
            true => blocking.push((task, header)),
            false if is_listed(header, kind) => found.push((task, header)),
            false => unclear += 1,
        }
    }
    // A function that waits for a thread looks like a freed block.
    let of_threads = polls(values, process, frames, &blocking);
    found.extend(of_threads.iter().map(|poll| blocking[poll.task].clone()));
    let has_idle = of_threads.len() < blocking.len();
    if found.is_empty() && unclear == 0 {
        return Vec::new();
    }
    found.sort_by_key(|(task, _)| task.id);
    found.dedup_by_key(|(task, _)| task.id);
    dump.remarks.push(remark(found.len(), unclear, has_idle));
    let first = dump.tasks.len();
    let polls = polls(values, process, frames, &found);
    dump.tasks.extend(found.into_iter().map(|(task, _)| task));
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
    tasks: &[(DumpedTask, u64)],
) -> Vec<Poll> {
    let runs = |task: &DumpedTask| matches!(task.state, TaskState::Running | TaskState::Blocking);
    let running = tasks.iter().enumerate().filter(|(_, (task, _))| runs(task));
    let running: Vec<(usize, u64)> = running.map(|(number, (_, header))| (number, *header)).collect();
    polling::find(values, &Headers::fixed(), process.modules, frames, &running)
}

/// What is known, and what is missing. Blocks that look like tasks may be tasks.
fn remark(found: usize, unclear: usize, has_idle: bool) -> String {
    let mut remark = REMARK.to_owned();
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
        // One function with several names may be that of several types.
        let mut polls: HashMap<u64, Option<Arc<str>>> = HashMap::new();
        let described = process.layouts.coroutines().polls().iter().filter(|poll| poll.module == number);
        let described = described.map(|poll| (poll.address, poll.name.clone()));
        let named = process.layouts.known_functions(number).into_iter().flat_map(|known| known.polls.clone());
        let mut described: Vec<_> = described.filter(|(_, name)| name.starts_with("poll<")).collect();
        if described.is_empty() {
            described.extend(named);
        }
        for (address, name) in described {
            let known =
                polls.entry(address.wrapping_add(module.bias())).or_insert_with(|| Some(name.clone()));
            if known.as_ref().is_some_and(|known| *known != name) {
                *known = None;
            }
        }
        constant_words(values, module, &mut |address, word| {
            let Some(Some(name)) = polls.get(&word).filter(|name| !name.as_deref().is_some_and(is_worker))
            else {
                return;
            };
            if let Some(kind) = kind(process, values, address, name) {
                found.insert(address, kind);
            }
        });
    }
    found
}

/// What the vtable at an address tells, if it looks like one.
fn kind(process: &Process<'_>, values: &Values<'_>, vtable: u64, poll: &str) -> Option<Kind> {
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
        name: name(process.layouts, poll)?,
        trailer,
        scheduler,
        id,
        is_blocking: poll.contains(tokio::BLOCKING_SCHEDULE),
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
