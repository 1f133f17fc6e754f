//! Which wrapped futures belong to tasks that are known already. These are no tasks of their own.

use crate::values::{Value, Values};
use crate::wrapped_task::WrappedTask;
use crate::wrapper;
use foldhash::HashSet;
use std::ops::Range;

/// Wrapped futures that are part of tasks in the dump.
#[derive(Default)]
pub(crate) struct Known {
    /// Futures that were found within tasks.
    within: HashSet<u64>,
    /// Memory of tasks that were not walked, because they are polled.
    ranges: Vec<Range<u64>>,
    /// Futures that are all of a task, with its index.
    pub whole: Vec<(u64, usize)>,
}

impl Known {
    /// Says that a task consists of this future, in which these wrapped futures were found.
    pub fn claim(&mut self, values: &Values<'_>, task: usize, future: Value, found: &[u64]) {
        self.within.extend(found);
        let size = values.layout(future.type_id).size;
        self.ranges.push(future.address..future.address.saturating_add(size.max(1)));
        self.whole.extend(wrapper::whole(values, future).map(|address| (address, task)));
    }

    /// Says that a task consists of a future in this memory whose type is not known, or that is our own wrapper. `sorted` are all
    /// wrapped futures by address.
    ///
    /// One that begins there is all of the task: in a coroutine, its state comes first. So is one that ends there, unless it is the
    /// child of a coroutine with nothing else in it.
    pub fn claim_untyped(
        &mut self,
        values: &Values<'_>,
        sorted: &[&WrappedTask],
        (task, memory): (usize, Range<u64>),
        is_wrapper: bool,
    ) {
        let first = sorted.partition_point(|wrapped| wrapped.future < memory.start);
        let mut inside = sorted[first..].iter().take_while(|wrapped| wrapped.future < memory.end);
        if let Some(outer) = inside.next() {
            // The second word of a vtable is the size of the value.
            let size = outer.vtable.checked_add(8).and_then(|size| values.pages.word(size));
            let end = size.and_then(|size| outer.future.checked_add(size)?.checked_next_multiple_of(8));
            if is_wrapper
                || outer.future == memory.start
                || end == Some(memory.end) && inside.next().is_none()
            {
                self.whole.push((outer.future, task));
            }
        }
        self.ranges.push(memory);
    }

    /// Says that the tasks have new indices, by their old ones.
    pub fn renumber(&mut self, indices: &[usize]) {
        self.whole.iter_mut().for_each(|(_, task)| *task = indices.get(*task).copied().unwrap_or(*task));
    }

    /// Says that a task that is not in the dump consists of this future.
    pub fn claim_unseen(&mut self, values: &Values<'_>, future: Value) {
        self.claim(values, usize::MAX, future, &[]);
    }

    /// The tasks that are no part of others, as far as their addresses tell.
    pub fn separate<'t>(&self, tasks: &'t [WrappedTask]) -> Vec<&'t WrappedTask> {
        let mut ranges: Vec<&Range<u64>> = self.ranges.iter().collect();
        ranges.sort_by_key(|range| range.start);
        let whole: HashSet<u64> = self.whole.iter().map(|(future, _)| *future).collect();
        let is_part = |future: u64| {
            let behind = ranges.partition_point(|range| range.start <= future);
            self.within.contains(&future)
                || whole.contains(&future)
                || behind.checked_sub(1).is_some_and(|at| ranges[at].contains(&future))
        };
        tasks.iter().filter(|task| task.future == 0 || !is_part(task.future)).collect()
    }
}
