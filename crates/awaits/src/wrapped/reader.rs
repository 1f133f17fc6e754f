//! Reads one wrapped task at a time, for profiles by wall time that a program takes of itself.
//!
//! The process is not frozen: the caller checks that the task has waited all the time, and discards the result if not.

use crate::futures::Futures;
use crate::process::Process;
use crate::task_headers::Headers;
use crate::task_names::name_of;
use crate::values::{Value, Values};
use crate::walk::Walked;
use crate::walker::Walker;
use foldhash::HashMap;
use stackglass_layouts::{Layouts, TypeId};
use stackglass_process_view::pages::Pages;
use stackglass_profile::task_dump::DumpedTask;

/// What is known while the modules of the process and their layouts stay the same.
pub struct WrappedReader {
    vtables: Vec<(u64, TypeId)>,
    futures: HashMap<TypeId, u8>,
    headers: Headers,
}

impl WrappedReader {
    /// Finds what stays the same.
    pub fn new(process: &Process<'_>) -> WrappedReader {
        WrappedReader {
            vtables: process.vtables(),
            futures: HashMap::default(),
            headers: Headers::new(process.layouts),
        }
    }

    /// Whether there are types of async functions.
    pub fn has_types(layouts: &Layouts) -> bool {
        layouts.coroutines().files().next().is_some()
    }

    /// The task whose future, with this vtable, is at an address. `None` if its type is not known.
    pub fn read(&mut self, process: &Process<'_>, future: u64, vtable: u64) -> Option<DumpedTask> {
        let at = self.vtables.binary_search_by_key(&vtable, |(address, _)| *address).ok()?;
        let future = Value { type_id: self.vtables[at].1, address: future };
        let values = Values { layouts: process.layouts, pages: Pages::new(process.image) };
        let types = Futures::known(process.layouts, std::mem::take(&mut self.futures));
        let walker = Walker::new(&values, &types, &self.vtables, self.headers);
        let Walked { stack, waits, .. } = walker.walk(future);
        let name = name_of(&walker, future, &stack);
        self.futures = types.into_known();
        Some(DumpedTask { name, stack, waits, ..DumpedTask::default() })
    }
}
