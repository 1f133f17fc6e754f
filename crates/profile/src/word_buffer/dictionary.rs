//! The names for a [`Data`](crate::Data) buffer: Julia's `lidict`, and names of files, threads and tasks.

use crate::{Frame, ShortPath};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Frames by address, and names of files, threads and tasks.
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

    /// Sets the frames of an address, innermost first. An address without frames is not shown.
    pub fn set(&mut self, address: u64, frames: impl IntoIterator<Item = Frame>) {
        self.frames.insert(address, frames.into_iter().collect());
    }

    /// Frames of an address, innermost first; `None` when the address is not listed.
    pub fn get(&self, address: u64) -> Option<&[Frame]> {
        self.frames.get(&address).map(|frames| &frames[..])
    }

    /// Marks the call at an address as one through a vtable or a function pointer. Julia's files do not contain this.
    pub fn set_dispatches(&mut self, address: u64) {
        self.dispatches.insert(address);
    }

    /// Whether the call at an address goes through a vtable or a function pointer.
    pub fn dispatches(&self, address: u64) -> bool {
        self.dispatches.contains(&address)
    }

    /// A copy without addresses.
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

    /// Whether no address is listed.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Sets the short form of a source path.
    pub fn set_short_path(&mut self, file: Arc<str>, short: ShortPath) {
        self.short_paths.insert(file, short);
    }

    /// The short form of a source path, if set.
    pub fn short_path(&self, file: &str) -> Option<&ShortPath> {
        self.short_paths.get(file)
    }

    /// Sets the label of a thread in group headings: its pool or name.
    pub fn set_thread_label(&mut self, thread: u64, label: Arc<str>) {
        self.pools.insert(thread, label);
    }

    /// Sets the name of a task in group headings.
    pub fn set_task_name(&mut self, task: u64, name: Arc<str>) {
        self.tasks.insert(task, name);
    }

    /// The name of a task, if set.
    pub fn task_name(&self, task: u64) -> Option<&str> {
        self.tasks.get(&task).map(|name| &**name)
    }

    /// The label of a thread in group headings; `default` unless set.
    pub fn thread_label(&self, thread: u64) -> &str {
        self.pools.get(&thread).map_or("default", |label| label)
    }
}
