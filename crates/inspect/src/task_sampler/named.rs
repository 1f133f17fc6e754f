//! The named tasks of a program, which may be of any executor.
//!
//! The program has a table of them, once it has named one. Only programs that link the crate `stackglass` do, so that others are not
//! searched for it.

use super::types::Retry;
use crate::linked_crate::links_the_crate;
use crate::tasks::pool::Pool;
use stackglass_awaits::WrappedTask;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// Tasks by their ids.
pub(super) type NamedTasks = BTreeMap<u64, WrappedTask>;

/// The table of a program.
pub(super) struct Table {
    /// Whether the program may have one; `None` if that is not known yet.
    is_possible: Option<bool>,
    pool: Option<Pool>,
    search: Retry,
}

impl Table {
    /// Nothing is known yet.
    pub(super) fn new() -> Table {
        Table { is_possible: None, pool: None, search: Retry::at_once() }
    }

    /// Adds the tasks as of now. The table is searched, ever less often, as long as there is none.
    pub(super) fn read_into(&mut self, pid: u32, tasks: &mut NamedTasks) {
        let links = || links_the_crate(&PathBuf::from(format!("/proc/{pid}/exe")));
        if !*self.is_possible.get_or_insert_with(links) {
            return;
        }
        if self.pool.is_none() && self.search.is_due() {
            let start = Instant::now();
            self.pool = Pool::find(pid);
            self.search.searched(start.elapsed());
        }
        if self.pool.as_ref().is_some_and(|pool| !pool.read_into(tasks)) {
            self.pool = None;
        }
    }
}
