//! Functions of `spawn_blocking`: they are in no list of tasks, so each block that looks like one is judged.
//!
//! A function is queued if a pool's queue has it. It runs if its state says so; where several blocks have its id, one is the function,
//! and the others are copies of it, which were left when it was made. The one whose address a thread has runs.

use super::blocking_pool::{self, Pool};
use super::cells::Cells;
use super::{polling, task};
use crate::found::Found;
use crate::process::Process;
use crate::walker::Walker;
use foldhash::{HashMap, HashMapExt, HashSet};
use stackglass_process_view::stacks::StackFrame;
use stackglass_profile::task_dump::{BlockingPool, TaskState};

/// A block that looks like a function.
struct Candidate {
    header: u64,
    id: u64,
    is_running: bool,
    is_queued: bool,
}

/// Adds the functions of the blocks that are in no list, and their pools.
pub(super) fn add(
    process: &Process<'_>,
    walker: &Walker<'_>,
    cells: &Cells<'_>,
    (swept, listed): (&[u64], &HashSet<u64>),
    frames: &[Vec<StackFrame>],
    found: &mut Found,
) {
    let values = walker.values;
    let mut candidates: Vec<Candidate> = Vec::new();
    for header in swept.iter().copied().filter(|header| !listed.contains(header)) {
        let Some(cell) = cells.at(values, header).filter(|cell| cell.is_blocking) else { continue };
        let state = cell.state(values);
        if state.is_complete || !cell.has_references(values) {
            continue;
        }
        let id = cell.id(values).unwrap_or(0);
        candidates.push(Candidate { header, id, is_running: state.is_running, is_queued: false });
    }
    if candidates.is_empty() {
        return;
    }
    let pools = blocking_pool::find(process, values, cells, swept);
    let queued: HashSet<u64> = pools.iter().flat_map(|pool| pool.queued.iter().copied()).collect();
    candidates.iter_mut().for_each(|one| one.is_queued = queued.contains(&one.header));
    // What is neither queued nor runs is a copy, if the queues are known.
    candidates.retain(|one| pools.is_empty() || one.is_queued || one.is_running);
    let numbered: Vec<(usize, u64)> =
        candidates.iter().enumerate().map(|(number, one)| (number, one.header)).collect();
    let polls = polling::find(values, &cells.headers, process.modules, frames, &numbered);
    let is_polled: HashSet<usize> = polls.iter().map(|poll| poll.task).collect();
    let rank = |number: usize| {
        let one = &candidates[number];
        (is_polled.contains(&number), one.is_queued, one.is_running)
    };
    let mut best: HashMap<u64, usize> = HashMap::new();
    for (number, one) in candidates.iter().enumerate() {
        let known = best.entry(one.id).or_insert(number);
        if rank(number) > rank(*known) {
            *known = number;
        }
    }
    let mut chosen: Vec<usize> = best.into_values().collect();
    chosen.sort_unstable_by_key(|number| candidates[*number].header);
    let mut busy = 0;
    for number in chosen {
        let one = &candidates[number];
        let before = found.dump.tasks.len();
        task::add(walker, cells, one.header, None, found);
        let Some(task) = found.dump.tasks.get_mut(before) else { continue };
        if one.is_queued {
            task.state = TaskState::Queued;
            continue;
        }
        busy += 1;
        if one.is_running {
            found.polled.push((before, one.header));
        }
    }
    let is_alone = pools.len() == 1;
    found.dump.pools.extend(pools.iter().map(|pool| described(pool, is_alone.then_some(busy))));
}

/// A pool for the dump. `busy` is the number of functions that run, if they all belong to it.
fn described(pool: &Pool, busy: Option<u64>) -> BlockingPool {
    let of_threads = || Some((pool.threads - pool.idle).saturating_sub(pool.workers?));
    BlockingPool {
        busy: busy.or_else(of_threads),
        queued: pool.queued.len() as u64,
        is_exhausted: pool.idle == 0 && pool.threads >= pool.limit,
    }
}
