//! What the addresses of a [`Data`](crate::Data) buffer are called: Julia's `lidict`, and how its
//! files, threads and tasks are shown.

use crate::{Frame, ShortPath};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Frames by address, with names for files, threads and tasks.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    frames: HashMap<u64, Arc<[Frame]>>,
    dispatches: HashSet<u64>,
    short_paths: HashMap<Arc<str>, ShortPath>,
    pools: BTreeMap<u64, Arc<str>>,
    tasks: HashMap<u64, Arc<str>>,
}

impl Dictionary {
    /// An empty dictionary.
    pub fn new() -> Dictionary {
        Dictionary::default()
    }

    /// Sets the frames of an address, innermost inlined frame first; none: the address shows nothing.
    pub fn set(&mut self, address: u64, frames: impl IntoIterator<Item = Frame>) {
        self.frames.insert(address, frames.into_iter().collect());
    }

    /// Frames of an address, innermost first; `None` when the address is not listed.
    pub fn get(&self, address: u64) -> Option<&[Frame]> {
        self.frames.get(&address).map(|frames| &frames[..])
    }

    /// Says that an address ends in a call through a vtable or a function pointer. Julia's files do not tell.
    pub fn set_dispatches(&mut self, address: u64) {
        self.dispatches.insert(address);
    }

    /// Whether the call at an address goes through a vtable or a function pointer.
    pub fn dispatches(&self, address: u64) -> bool {
        self.dispatches.contains(&address)
    }

    /// The same names for files and threads, but no addresses.
    pub(crate) fn without_frames(&self) -> Dictionary {
        Dictionary {
            frames: HashMap::default(),
            dispatches: HashSet::default(),
            short_paths: self.short_paths.clone(),
            pools: self.pools.clone(),
            tasks: self.tasks.clone(),
        }
    }

    /// All addresses, ascending.
    pub fn addresses(&self) -> Vec<u64> {
        let mut addresses: Vec<u64> = self.frames.keys().copied().collect();
        addresses.sort_unstable();
        addresses
    }

    /// Number of addresses.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// True when no address is listed.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Sets how a source path is shown.
    pub fn set_short_path(&mut self, file: Arc<str>, short: ShortPath) {
        self.short_paths.insert(file, short);
    }

    /// How a source path is shown, where that was set.
    pub fn short_path(&self, file: &str) -> Option<&ShortPath> {
        self.short_paths.get(file)
    }

    /// Names a thread in group headings: its pool, or its own name.
    pub fn set_thread_label(&mut self, thread: u64, label: Arc<str>) {
        self.pools.insert(thread, label);
    }

    /// Names a task in group headings.
    pub fn set_task_name(&mut self, task: u64, name: Arc<str>) {
        self.tasks.insert(task, name);
    }

    /// The name of a task, where it has one.
    pub fn task_name(&self, task: u64) -> Option<&str> {
        self.tasks.get(&task).map(|name| &**name)
    }

    /// What stands behind a thread's number in group headings; `default` unless set.
    pub fn thread_label(&self, thread: u64) -> &str {
        self.pools.get(&thread).map_or("default", |label| label)
    }
}
