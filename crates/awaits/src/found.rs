//! The tasks of a process that are found so far, with all that refers to them by their index.
//!
//! Each way to find tasks adds to it: the lists of runtimes, `block_on`, wrapped futures. What belongs to a task is added before the
//! task itself: [`claim`](Found::claim), [`hold`](Found::hold). At last, [`with_locks`](Found::with_locks) compares all of them.

use crate::holdings::TaskHoldings;
use crate::known_wrapped::Known;
use crate::needs::Needs;
use crate::values::{Value, Values};
use crate::walker::Walker;
use crate::{deadlocks, lock_guards, locks};
use stackglass_drop_code::Drops;
use stackglass_profile::task_dump::{Lock, SharedKind, TaskDump};

/// What is found.
#[derive(Default)]
pub(crate) struct Found {
    /// The tasks, and their runtimes.
    pub dump: TaskDump,
    /// What tasks hold and need, if it is asked for.
    pub held: Vec<TaskHoldings>,
    /// It is asked for.
    pub with_holdings: bool,
    /// Wrapped futures that are part of tasks.
    pub wrapped: Known,
    /// Indices of tasks that are polled, with their headers.
    pub polled: Vec<(usize, u64)>,
    /// Number of threads in `block_on` whose future is not found.
    pub missing_roots: usize,
}

impl Found {
    /// Nothing is found yet in a process. What tasks hold is asked for.
    pub fn new(pid: u32) -> Found {
        Found { dump: TaskDump { pid, ..TaskDump::default() }, with_holdings: true, ..Found::default() }
    }

    /// Says that the next task consists of this future, in which these wrapped futures were found.
    pub fn claim(&mut self, values: &Values<'_>, future: Value, found: &[u64]) {
        self.wrapped.claim(values, self.dump.tasks.len(), future, found);
    }

    /// Finds what the future of the next task holds. `drop` is the function that frees the task, and the task's address.
    pub fn hold(&mut self, walker: &Walker<'_>, future: Value, drop: Option<(u64, u64)>, needs: Needs) {
        let holdings = lock_guards::holdings(walker, future);
        self.held.push(TaskHoldings { task: self.dump.tasks.len(), holdings, drop, needs });
    }

    /// All tasks are found: adds who holds what, and who waits for each other.
    pub fn with_locks(self, values: &Values<'_>, drops: &Drops<'_>) -> TaskDump {
        let Found { mut dump, held, missing_roots, .. } = self;
        let branches;
        (dump.locks, branches) = locks::find(values, drops, &dump.tasks, &held);
        dump.remarks.extend(remark(&dump, missing_roots));
        let needs = held.into_iter().map(|held| (held.task, held.needs)).collect();
        dump.deadlocks = deadlocks::find(&dump.tasks, &needs, &dump.locks, &branches);
        dump
    }
}

/// Says that futures of `block_on` are missing, where one of them may have what tasks wait for, or is all that there is. Others are
/// of no interest: most programs only start their tasks there.
fn remark(dump: &TaskDump, missing: usize) -> Option<String> {
    let is_open =
        |lock: &Lock| lock.kind != SharedKind::Notify && !lock.holders.iter().any(|holder| holder.is_certain);
    if missing == 0 || !dump.tasks.is_empty() && !dump.locks.iter().any(is_open) {
        return None;
    }
    let what = match missing {
        1 => "one future of `block_on` is".to_owned(),
        count => format!("{count} futures of `block_on` are"),
    };
    Some(format!("{what} not shown: optimized code does not tell where"))
}
