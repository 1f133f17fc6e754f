//! Tasks of the tokio runtime.

use super::instrument;
use tokio::task::JoinHandle;

/// Spawns a future on the current tokio runtime as a separate task in profiles: `tokio::spawn` with a name.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let answer = stackglass::task::spawn("answer", async { 42 }).await;
/// assert_eq!(answer.unwrap(), 42);
/// # });
/// ```
///
/// # Panics
/// If called outside of a runtime, as `tokio::spawn` does.
#[track_caller]
pub fn spawn<F>(name: impl AsRef<str>, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(instrument(future, name))
}

#[cfg(tokio_unstable)]
pub use hooks::hook;

#[cfg(tokio_unstable)]
mod hooks {
    //! The runtime's own hooks: every task that it polls is a task in profiles, without a change where tasks are spawned.

    use foldhash::HashMap;
    use foldhash::fast::RandomState;
    use stackglass_sampler::task::{Begun, Task};
    use std::cell::RefCell;
    use std::hash::BuildHasher;
    use std::sync::{Arc, Mutex, PoisonError};
    use tokio::runtime::{Builder, TaskMeta};
    use tokio::task::Id;

    /// Parts of the task table, each with a lock.
    const PARTS: usize = 64;

    /// Tasks by the runtime's ids.
    struct Table {
        parts: [Mutex<HashMap<Id, Arc<Task>>>; PARTS],
        hash: RandomState,
    }

    impl Table {
        fn part<R>(&self, id: Id, f: impl FnOnce(&mut HashMap<Id, Arc<Task>>) -> R) -> R {
            let part = &self.parts[self.hash.hash_one(id) as usize % PARTS];
            // After a panic with the lock held, the map is still consistent.
            f(&mut part.lock().unwrap_or_else(PoisonError::into_inner))
        }
    }

    thread_local! {
        /// Polls in progress on this thread, innermost last.
        static POLLS: RefCell<Vec<(Arc<Task>, Begun)>> = const { RefCell::new(Vec::new()) };
    }

    /// Makes every task of a runtime a task in profiles, named `tokio task` with the place where it was spawned. It uses the
    /// builder's four task hooks, so set no others. Only for programs compiled with `--cfg tokio_unstable`.
    pub fn hook(builder: &mut Builder) -> &mut Builder {
        let table = Arc::new(Table {
            parts: std::array::from_fn(|_| Mutex::default()),
            hash: RandomState::default(),
        });
        let [at_spawn, at_poll, at_end] = [table.clone(), table.clone(), table];
        builder
            .on_task_spawn(move |meta: &TaskMeta<'_>| {
                let place = meta.spawned_at();
                let task = Arc::new(Task::new("tokio task", place.file(), place.line()));
                at_spawn.part(meta.id(), |part| part.insert(meta.id(), task));
            })
            .on_before_task_poll(move |meta| {
                let known = at_poll.part(meta.id(), |part| part.get(&meta.id()).cloned());
                // Starts and ends of polls must match.
                let task = known.unwrap_or_else(|| Arc::new(Task::new("tokio task", "", 0)));
                let begun = task.begin();
                if POLLS.try_with(|polls| polls.borrow_mut().push((task.clone(), begun))).is_err() {
                    // The thread's destructors have run.
                    task.end(begun);
                }
            })
            .on_after_task_poll(|_| {
                let last = POLLS.try_with(|polls| polls.borrow_mut().pop());
                if let Ok(Some((task, begun))) = last {
                    task.end(begun);
                }
            })
            .on_task_terminate(move |meta| drop(at_end.part(meta.id(), |part| part.remove(&meta.id()))))
    }
}
