//! The blocks of tasks: `Cell<T, S>`, by the vtable in their headers.

use crate::task_headers::Headers;
use crate::values::{Value, Values};
use foldhash::{HashMap, HashMapExt};
use stackglass_layouts::{Layouts, Shape, TypeId};
use stackglass_process_view::modules::LoadedModule;
use stackglass_profile::runtimes::tokio;
use std::sync::Arc;

/// Bits of the state of a task, of tokio 0.3 and later (`runtime/task/state.rs`).
const RUNNING: u64 = 0b1;
const COMPLETE: u64 = 0b10;
const NOTIFIED: u64 = 0b100;
const JOIN_INTEREST: u64 = 0b1000;
const REFERENCE_SHIFT: u32 = 6;
/// More references than a program can have.
const MOST_REFERENCES: u64 = 1 << 32;
/// Bytes of read-only data that are read at once.
const CHUNK: usize = 1 << 20;

/// The type of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub cell: TypeId,
    pub is_blocking: bool,
}

/// The types of tasks by their vtables, and the names of functions that poll tasks of unknown types.
pub(super) type Vtables = (HashMap<u64, Kind>, HashMap<u64, Arc<str>>);

/// A function that polls tasks.
#[derive(Clone, Copy)]
struct Poll<'a> {
    kind: Option<Kind>,
    name: &'a Arc<str>,
}

impl Poll<'_> {
    fn is_of_type(&self, other: &Poll<'_>) -> bool {
        match (self.kind, other.kind) {
            (Some(one), Some(other)) => one.cell == other.cell,
            (None, None) => self.name == other.name,
            _ => false,
        }
    }
}

/// The types of the program's tasks, by the address of their vtables.
pub(super) struct Cells<'a> {
    by_vtable: HashMap<u64, Kind>,
    /// The names of functions that poll tasks of unknown types.
    names: HashMap<u64, Arc<str>>,
    pub headers: Headers,
    values: &'a Values<'a>,
}

/// A task.
pub(super) struct TaskCell {
    cell: Value,
    pub is_blocking: bool,
    /// The type of its future.
    pub future_type: TypeId,
    stage: Value,
}

/// What the block of a task holds.
pub(super) enum Stage {
    /// Its future.
    Running(Value),
    /// Its result, which is not collected.
    Finished,
    /// Nothing.
    Consumed,
}

/// The state of a task.
pub(super) struct State {
    pub is_running: bool,
    pub is_complete: bool,
    pub is_notified: bool,
}

impl<'a> Cells<'a> {
    /// Finds the vtables of tasks in the read-only data of the modules.
    pub fn find(values: &'a Values<'a>, modules: &[LoadedModule]) -> Cells<'a> {
        let layouts = values.layouts;
        let headers = Headers::new(layouts);
        let mut by_vtable = HashMap::new();
        let mut names = HashMap::new();
        for (number, module) in modules.iter().enumerate() {
            let mut polls: HashMap<u64, Option<Poll>> = HashMap::new();
            for poll in layouts.coroutines().polls().iter().filter(|poll| poll.module == number) {
                let kind = kind(layouts, &poll.name);
                if kind.is_none() && !poll.name.contains(tokio::SCHEDULED) {
                    continue;
                }
                // The linker may have kept one of several functions with the same code. Then the type is not known.
                let address = poll.address.wrapping_add(module.bias());
                let new = Poll { kind, name: &poll.name };
                let known = polls.entry(address).or_insert(Some(new));
                if known.as_ref().is_some_and(|known| !known.is_of_type(&new)) {
                    *known = None;
                }
            }
            let Some(offset) =
                headers.poll.filter(|_| polls.values().flatten().any(|poll| poll.kind.is_some()))
            else {
                continue;
            };
            constant_words(values, module, &mut |address, word| {
                let Some(Some(poll)) = polls.get(&word) else { return };
                let vtable = address.wrapping_sub(offset);
                match poll.kind {
                    Some(kind) => drop(by_vtable.insert(vtable, kind)),
                    None => drop(names.insert(vtable, Arc::clone(poll.name))),
                }
            });
        }
        Cells { by_vtable, names, headers, values }
    }

    /// With vtables that are known already.
    pub fn known(values: &'a Values<'a>, headers: Headers, (by_vtable, names): Vtables) -> Cells<'a> {
        Cells { by_vtable, names, headers, values }
    }

    /// What is known of vtables.
    pub fn into_vtables(self) -> Vtables {
        (self.by_vtable, self.names)
    }

    /// The name of the function that polls tasks of an unknown type, by their vtable.
    pub fn poll_name(&self, vtable: u64) -> Option<&str> {
        self.names.get(&vtable).map(|name| &**name)
    }

    /// Whether there are no tasks that could be read.
    pub fn is_empty(&self) -> bool {
        self.by_vtable.is_empty()
    }

    /// Whether this is the address of a vtable of a task.
    pub fn is_vtable(&self, word: u64) -> bool {
        self.by_vtable.contains_key(&word)
    }

    /// Whether an address is in a module, where vtables are. Tasks of a library without debug information have one, too.
    pub fn is_readable(&self, vtable: u64) -> bool {
        let mapping = self.values.pages.image().mapping(vtable);
        mapping.is_some_and(|mapping| mapping.inode != 0 && !mapping.executable)
    }

    /// The task with a header at an address.
    pub fn at(&self, values: &Values<'_>, header: u64) -> Option<TaskCell> {
        let kind = self.by_vtable.get(&self.headers.vtable(values, header)?)?;
        TaskCell::from_header(values, *kind, header)
    }

    /// Whether an address lies in the future of a task that has one of these headers.
    pub fn hold(&self, values: &Values<'_>, headers: &[u64], address: u64) -> bool {
        let before = headers.iter().copied().filter(|header| *header <= address).max();
        let stage = before.and_then(|header| self.at(values, header)?.stage(values));
        let Some(Stage::Running(future)) = stage else { return false };
        (future.address..future.address + values.layout(future.type_id).size).contains(&address)
    }

    /// The runtime's part of a task.
    pub fn scheduler(&self, values: &Values<'_>, header: u64) -> Option<Value> {
        let kind = self.by_vtable.get(&self.headers.vtable(values, header)?)?;
        values.path(Value { type_id: kind.cell, address: header }, &["core", "scheduler"])
    }
}

impl TaskCell {
    /// The task of a known type with a header at an address. Of the memory there, nothing is read.
    pub fn from_header(values: &Values<'_>, kind: Kind, header: u64) -> Option<TaskCell> {
        let cell = Value { type_id: kind.cell, address: header };
        let stage = values.unwrapped(values.path(cell, &["core", "stage"])?);
        let Shape::Enum { variants, .. } = &values.layout(stage.type_id).shape else { return None };
        let running = variants.iter().find(|variant| &*variant.name == "Running")?;
        let future_type = running.fields.first()?.type_id;
        Some(TaskCell { cell, is_blocking: kind.is_blocking, future_type, stage })
    }

    /// Its id.
    pub fn id(&self, values: &Values<'_>) -> Option<u64> {
        values.word(values.path(self.cell, &["core", "task_id"])?)
    }

    fn state_word(&self, values: &Values<'_>) -> Option<u64> {
        values.word(values.path(self.cell, &["header", "state"])?)
    }

    /// Whether its count of references is possible. Freed blocks often have others.
    pub fn has_references(&self, values: &Values<'_>) -> bool {
        let count = self.state_word(values).map(|state| state >> REFERENCE_SHIFT);
        count.is_some_and(|count| (1..MOST_REFERENCES).contains(&count))
    }

    /// Its state.
    pub fn state(&self, values: &Values<'_>) -> State {
        let word = self.state_word(values).unwrap_or(COMPLETE);
        State {
            is_running: word & RUNNING != 0,
            is_complete: word & COMPLETE != 0,
            is_notified: word & NOTIFIED != 0,
        }
    }

    /// Whether it has no waker: each waker of a task counts as a reference, as do the runtime's list and a `JoinHandle`. What may
    /// abort the task counts as well.
    pub fn has_no_waker(&self, values: &Values<'_>) -> bool {
        self.state_word(values).is_some_and(|word| {
            let others = 1 + u64::from(word & JOIN_INTEREST != 0);
            word & (RUNNING | COMPLETE | NOTIFIED) == 0 && word >> REFERENCE_SHIFT == others
        })
    }

    /// What it holds.
    pub fn stage(&self, values: &Values<'_>) -> Option<Stage> {
        let (_, variant) = values.active(self.stage)?;
        match &*variant.name {
            "Running" => Some(Stage::Running(self.stage.part(variant.fields.first()?)?)),
            "Finished" => Some(Stage::Finished),
            _ => Some(Stage::Consumed),
        }
    }
}

/// The type of the tasks that a function polls, by its name.
pub(super) fn kind(layouts: &Layouts, poll: &str) -> Option<Kind> {
    let arguments = poll.strip_prefix("poll")?;
    let cell = layouts.by_name(&format!("{}{arguments}", tokio::CELL))?;
    let is_blocking = arguments.contains(tokio::BLOCKING_SCHEDULE);
    Some(Kind { cell, is_blocking })
}

/// Visits the words of a module's data that is not code: address and word.
pub(super) fn constant_words(values: &Values<'_>, module: &LoadedModule, visit: &mut dyn FnMut(u64, u64)) {
    let image = values.pages.image();
    let range = module.module.range();
    let is_constant = |mapping: &&stackglass_process_view::core_image::Mapping| {
        mapping.readable
            && !mapping.executable
            && mapping.path == module.path
            && range.contains(&mapping.range.start)
    };
    let mut bytes = vec![0; CHUNK];
    for mapping in image.mappings.iter().filter(is_constant) {
        let mut at = mapping.range.start;
        while at < mapping.range.end {
            let size = (mapping.range.end - at).min(CHUNK as u64) as usize;
            let read = image.memory.read(at, &mut bytes[..size]);
            for (number, word) in bytes[..read].chunks_exact(8).enumerate() {
                let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
                visit(at + number as u64 * 8, word);
            }
            at += size as u64;
        }
    }
}

/// The state of a task by its word. `None` if its count of references is not possible.
pub(super) fn state_of(word: u64) -> Option<State> {
    (1..MOST_REFERENCES).contains(&(word >> REFERENCE_SHIFT)).then_some(State {
        is_running: word & RUNNING != 0,
        is_complete: word & COMPLETE != 0,
        is_notified: word & NOTIFIED != 0,
    })
}
