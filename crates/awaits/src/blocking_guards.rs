//! Guards of locks that block a thread: those of `std::sync` and `parking_lot`. Such a lock does not know its owner, so a guard of
//! it is looked for.

use crate::futures::Futures;
use crate::lock_guards;
use crate::process::Process;
use crate::task_headers::Headers;
use crate::values::{Value, Values};
use crate::walker::Walker;
use foldhash::{HashSet, HashSetExt};
use stackglass_layouts::LocalPlace;
use stackglass_process_view::pages::Pages;
use stackglass_profile::runtimes::BLOCKING_GUARDS;
use stackglass_profile::task_dump::SharedKind;

/// A guard in a variable of a thread. It may be moved away already, as by `drop(guard)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct VariableGuard {
    /// Index of the thread in [`Process::locals`].
    pub thread: usize,
    /// Index of its frame.
    pub frame: usize,
    /// What it is a guard of.
    pub kind: SharedKind,
    /// Address of the word of the lock's state.
    pub address: u64,
}

/// The lock of a guard: its kind, and the address of the word of its state.
pub(crate) fn lock(values: &Values<'_>, guard: Value) -> Option<(SharedKind, u64)> {
    let name = values.name(guard);
    let (_, is_mutex, field, path) = BLOCKING_GUARDS.iter().find(|(begin, ..)| name.starts_with(begin))?;
    let lock = values.target(values.field(guard, field)?)?;
    let kind = if *is_mutex { SharedKind::BlockingMutex } else { SharedKind::BlockingRwLock };
    Some((kind, values.path(lock, path)?.address))
}

/// The guards in the variables of threads, outermost frames first.
pub fn of_variables(process: &Process<'_>) -> Vec<VariableGuard> {
    let values = Values { layouts: process.layouts, pages: Pages::new(process.image) };
    let types = Futures::new(process.layouts);
    let vtables = process.vtables();
    let walker = Walker::new(&values, &types, &vtables, Headers::new(process.layouts));
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for (thread, frames) in process.locals.iter().enumerate() {
        for (frame, locals) in frames.iter().enumerate().rev() {
            for local in locals {
                let LocalPlace::Memory(address) = local.place else { continue };
                let value = Value { type_id: local.type_id, address };
                let guards = lock_guards::holdings(&walker, value).guards.into_iter();
                let is_blocking =
                    |kind| matches!(kind, SharedKind::BlockingMutex | SharedKind::BlockingRwLock);
                for held in guards.filter(|held| is_blocking(held.kind)) {
                    let guard = VariableGuard { thread, frame, kind: held.kind, address: held.address };
                    if seen.insert(guard) {
                        found.push(guard);
                    }
                }
            }
        }
    }
    found
}
