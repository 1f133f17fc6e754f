//! Tasks of programs whose debug information has no types: only the function of each is known.
//!
//! The name of the function that polls a task has the future's type: in debug information from `debug = 1` on, and in symbols of
//! the newer mangling. What else is needed is fixed in tokio 1.43 to 1.54: headers (`#[repr(C)]`) begin with the state, and have their
//! vtable in the third word; a vtable begins with seven functions, then has the offsets of trailer, scheduler and id. Both
//! are checked: a task counts only if its vtable looks like this, and if its neighbours in the runtime's list lead back to it.

use super::block_on::first_argument;
use super::cells::{constant_words, state_of};
use super::{Process, sweep};
use crate::names;
use crate::values::Values;
use foldhash::{HashMap, HashMapExt};
use stackglass_profile::task_dump::{AwaitSource, DumpedTask, TaskDump, TaskState};
use stackglass_symbols::layouts::{Layouts, is_coroutine};
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
    id: u64,
    is_blocking: bool,
}

/// Adds the tasks, and says that their functions are all that is known.
pub(super) fn add(process: &Process<'_>, values: &Values<'_>, dump: &mut TaskDump) {
    let kinds = kinds(process, values);
    if kinds.is_empty() {
        return;
    }
    let kind_of = |header: u64| kinds.get(&values.pages.word(header.checked_add(VTABLE)?)?);
    // The addresses of the tasks before and after it.
    let links = |header: u64| {
        let trailer = header.checked_add(kind_of(header)?.trailer)?;
        Some((values.pages.word(trailer)?, values.pages.word(trailer.checked_add(8)?)?))
    };
    let is_linked = |header: u64| {
        let Some((before, after)) = links(header) else { return false };
        let leads_back = (before == 0 || links(before).is_some_and(|(_, after)| after == header))
            && (after == 0 || links(after).is_some_and(|(before, _)| before == header));
        leads_back && (before != 0 || after != 0)
    };
    let (mut tasks, mut alone) = (Vec::new(), 0);
    for header in sweep::blocks(process.image, VTABLE, &|word| kinds.contains_key(&word)) {
        let Some(kind) = kind_of(header).filter(|kind| !kind.is_blocking) else { continue };
        let Some(state) = values.pages.word(header).and_then(state_of).filter(|state| !state.is_complete)
        else {
            continue;
        };
        let id = header.checked_add(kind.id).and_then(|id| values.pages.word(id));
        let Some(id) = id.filter(|id| (1..TOO_LARGE_ID).contains(id)) else { continue };
        if !is_linked(header) {
            alone += 1;
            continue;
        }
        let state = match (state.is_running, state.is_notified) {
            (true, _) => TaskState::Running,
            (_, true) => TaskState::Ready,
            _ => TaskState::Waiting,
        };
        let source = AwaitSource::RootName;
        tasks.push(DumpedTask { id, state, name: kind.name.clone(), source, ..DumpedTask::default() });
    }
    if tasks.is_empty() && alone == 0 {
        return;
    }
    tasks.sort_by_key(|task| task.id);
    tasks.dedup_by_key(|task| task.id);
    dump.tasks.extend(tasks);
    let mut remark = "only the function of each task is known: for await stacks, build the program's own crate with `debug = 2` (or `true`) in its Cargo profile".to_owned();
    if alone > 0 {
        remark += &format!("; {alone} blocks that look like tasks but are in no list are left out");
    }
    dump.remarks.push(remark);
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
            let Some(Some(name)) = polls.get(&word) else { return };
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
        id,
        is_blocking: poll.contains("tokio::runtime::blocking::schedule::BlockingSchedule"),
    })
}

/// The function of a task, by the name of the function that polls it: `poll<app::f::{async_fn_env#0}, …>`, or by its symbol:
/// `tokio::runtime::task::raw::poll::<app::f::{closure#0}, …>`.
pub(super) fn name(layouts: &Layouts, poll: &str) -> Option<Arc<str>> {
    let future = first_argument(poll);
    if is_coroutine(future) {
        return Some(names::function(future, layouts.coroutines()));
    }
    let path = names::without_arguments(future);
    (!path.is_empty()).then(|| path.strip_suffix("::{closure#0}").unwrap_or(path).into())
}
