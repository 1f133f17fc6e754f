//! Which of the selected threads and tasks have samples.

use crate::Pick;
use crate::state_filter::StateFilter;
use crate::trees::call_tree::CallTrees;
use std::collections::BTreeSet;

/// Maximum number of ids listed.
const LISTED: usize = 12;

/// Why a selection has no samples, and what could be selected instead; `None` if it has some.
pub fn nothing_picked(trees: &CallTrees<'_>, threads: &Pick, tasks: &Pick) -> Option<String> {
    let samples: Vec<(u64, u64)> =
        trees.counts(StateFilter::All).iter().map(|count| (count.thread, count.task)).collect();
    if samples.is_empty() || samples.iter().any(|(thread, task)| threads.has(*thread) && tasks.has(*task)) {
        return None;
    }
    Some(not_picked(&samples, threads, tasks))
}

/// What there is instead of the selected threads and tasks. `samples`: pairs of a thread and a task.
pub(crate) fn not_picked(samples: &[(u64, u64)], picked_threads: &Pick, picked_tasks: &Pick) -> String {
    let threads: BTreeSet<u64> = samples.iter().map(|(thread, _)| *thread).collect();
    let tasks: BTreeSet<u64> = samples.iter().map(|(_, task)| *task).collect();
    let none = |pick: &Pick, ids: &BTreeSet<u64>| !ids.iter().any(|id| pick.has(*id));
    if none(picked_threads, &threads) {
        return format!("no samples of the selected threads: there are threads {}", decimal(&threads));
    }
    if none(picked_tasks, &tasks) {
        let ids = listed(tasks.iter().map(|id| format!("0x{id:x}")));
        return format!("no samples of the selected tasks: there are tasks {ids}");
    }
    // The selected threads and the selected tasks have samples, but not in common.
    let of_tasks = samples.iter().filter(|(_, task)| picked_tasks.has(*task));
    let on: BTreeSet<u64> = of_tasks.map(|(thread, _)| *thread).collect();
    format!(
        "no samples of the selected tasks on the selected threads: these tasks ran on threads {}",
        decimal(&on)
    )
}

/// `1, 3, 5-7`.
fn decimal(ids: &BTreeSet<u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*id) => *last = *id,
            _ => ranges.push((*id, *id)),
        }
    }
    listed(ranges.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    }))
}

fn listed(ids: impl ExactSizeIterator<Item = String>) -> String {
    let more = if ids.len() > LISTED { ", …" } else { "" };
    let shown: Vec<String> = ids.take(LISTED).collect();
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_listed_as_they_are_picked() {
        assert_eq!(decimal(&BTreeSet::from([1, 3, 5, 6, 7, u64::MAX])), format!("1, 3, 5-7, {}", u64::MAX));
        let many = decimal(&(0..40).map(|id| 2 * id).collect());
        assert!(many.ends_with("22, …"), "{many}");
        assert!("1, 3, 5-7".replace(' ', "").parse::<Pick>().is_ok_and(|pick| pick.has(6)));
    }
}
