//! Work on many items, distributed over all CPUs.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` for each item and returns the results in the order of the items.
///
/// The calling thread takes part; `done` is called on it with the number of finished items. `state` is called once for each
/// thread.
pub fn map<'items, Item: Sync, State, Output: Send>(
    threads: usize,
    items: &'items [Item],
    state: impl Fn() -> State + Sync,
    work: impl Fn(&mut State, &'items Item) -> Output + Sync,
    done: &mut dyn FnMut(usize),
) -> Vec<Output> {
    let next = AtomicUsize::new(0);
    let finished = AtomicUsize::new(0);
    let take = |report: &mut dyn FnMut(usize)| {
        let mut state = state();
        let mut outputs = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            outputs.push((index, work(&mut state, item)));
            report(finished.fetch_add(1, Ordering::Relaxed) + 1);
        }
        outputs
    };
    let helpers = threads.min(items.len()).saturating_sub(1);
    let mut outputs = std::thread::scope(|scope| {
        let running: Vec<_> = (0..helpers)
            .map(|_| {
                std::thread::Builder::new()
                    .name("symbols".to_owned())
                    .spawn_scoped(scope, || take(&mut |_| ()))
            })
            .collect();
        let mut outputs = take(done);
        // If a thread cannot be started, the others do its work.
        for thread in running.into_iter().flatten() {
            match thread.join() {
                Ok(more) => outputs.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outputs
    });
    outputs.sort_unstable_by_key(|(index, _)| *index);
    outputs.into_iter().map(|(_, output)| output).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_keep_the_order_of_the_items() {
        for threads in [0, 1, 2, 7] {
            let items: Vec<u32> = (0..1000).collect();
            let mut last = 0;
            let squares = super::map(
                threads,
                &items,
                || 0u32,
                |calls, item| {
                    *calls += 1;
                    item * item
                },
                &mut |done| last = last.max(done),
            );
            assert_eq!(squares, items.iter().map(|item| item * item).collect::<Vec<_>>());
            // Other threads may finish the last items.
            assert!(last <= 1000 && (last == 1000 || threads > 1));
        }
    }
}
