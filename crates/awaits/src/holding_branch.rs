//! Which branch of a task holds a lock.
//!
//! What a branch of `join!` holds, it may give back while another branch waits. What the function around `join!` holds, no branch
//! gives back. The code that drops the task does not say which of them it is, but can be asked: if the futures of some branches
//! had returned, would it still give the lock back? So the state of these futures is changed in the copy of the memory, and the code
//! is interpreted again.
//!
//! A branch may also borrow the guard from the function around it, and drop it. So no word of the branches may lead to the variable
//! that has the guard. Further pointers are not followed, and a guard that was moved is still described where it was: so a branch
//! only makes a deadlock *possible*. What is certain does not use it.

use crate::needs::{Content, Kind, Needs, NodeId};
use crate::values::{Value, Values};
use foldhash::HashMap;
use stackglass_drop_code::{Patch, Patches};
use stackglass_layouts::Shape;
use std::ops::Range;

/// Most branches that are tried one by one.
const MOST_TRIED: usize = 64;
/// Index of the state of a coroutine that has returned (rustc).
const RETURNED: usize = 1;
/// Most words that are searched for references, and how many behind each pointer.
const MOST_WORDS: u64 = 1 << 20;
const BEHIND: u64 = 16;
/// Lowest address that a pointer may hold.
const LOWEST: u64 = 4096;
/// What the macros await.
const POLL_FN: &str = "core::future::poll_fn::PollFn<";

/// By the address of a lock and the index of a task: the innermost future that holds it, as far as can be seen. It gives the lock back
/// when it goes on, or when a future around it goes on. Without an entry, any future of the task may.
pub(crate) type HoldingBranches = HashMap<(u64, usize), NodeId>;

/// Finds the future that holds something. `guards` are the addresses of its guards, as far as they are described. `holds` is asked
/// whether the task still holds it with changes of its memory.
pub(crate) fn find(
    values: &Values<'_>,
    needs: &Needs,
    guards: &[u64],
    holds: &mut dyn FnMut(&Patches) -> bool,
) -> Option<NodeId> {
    let parts = needs.parts();
    let mut at = Needs::ROOT;
    'deeper: loop {
        match parts.get(at)?[..] {
            [] => return Some(at),
            [only] => {
                at = only;
                continue;
            }
            _ => {}
        }
        let branches = parts[at].iter().map(|branch| returned(values, needs, &parts, *branch));
        let branches = branches.collect::<Option<Vec<Patches>>>()?;
        if holds(&branches.concat()) {
            return is_out_of_reach(values, needs, at, guards).then_some(at);
        }
        for (number, branch) in parts[at].iter().enumerate().take(MOST_TRIED) {
            let others = branches.iter().enumerate().filter(|(other, _)| *other != number);
            let others: Patches = others.flat_map(|(_, patches)| patches.clone()).collect();
            if holds(&others) {
                at = *branch;
                continue 'deeper;
            }
        }
        return None;
    }
}

/// What is changed so that all coroutines in a branch have returned. `None` if it may have something else.
fn returned(values: &Values<'_>, needs: &Needs, parts: &[Vec<NodeId>], branch: NodeId) -> Option<Patches> {
    let mut patches = Vec::new();
    let mut open = vec![branch];
    while let Some(at) = open.pop() {
        let node = &needs.nodes[at];
        match node.content {
            Content::Coroutine(coroutine) => patches.push(patch(values, coroutine)?),
            Content::Nothing => {
                let combines = matches!(node.kind, Kind::All | Kind::Try | Kind::Any);
                if combines && parts[at].is_empty() {
                    return None;
                }
            }
            Content::Unknown => return None,
        }
        open.extend(&parts[at]);
    }
    Some(patches)
}

/// Whether none of the branches of a future has a reference to the guard, which a future around them has.
fn is_out_of_reach(values: &Values<'_>, needs: &Needs, at: NodeId, guards: &[u64]) -> bool {
    let [guard] = *guards else { return false };
    let Some(variable) = variable_with(values, needs, at, guard) else { return false };
    let coroutines = needs.nodes.iter().filter_map(|node| match node.content {
        Content::Coroutine(coroutine) => Some(coroutine),
        _ => None,
    });
    let mut left = MOST_WORDS;
    for coroutine in coroutines {
        let size = values.layout(coroutine.type_id).size;
        let words = (0..size.saturating_sub(7)).step_by(8);
        for word in words.filter_map(|offset| coroutine.address.checked_add(offset)) {
            if variable.awaited.contains(&word) {
                continue;
            }
            let Some(to) = values.pages.word(word) else { return false };
            let Some(now) = left.checked_sub(1 + BEHIND) else { return false };
            left = now;
            let behind = (0..BEHIND).filter_map(|number| {
                values.pages.word(to.checked_add(number * 8).filter(|at| *at >= LOWEST)?)
            });
            if variable.range.contains(&to) || behind.into_iter().any(|word| variable.range.contains(&word)) {
                return false;
            }
        }
    }
    true
}

/// A variable of a coroutine.
struct VariableRange {
    range: Range<u64>,
    /// The future that the coroutine awaits, if it is that of a macro: it has references to its own branches.
    awaited: Range<u64>,
}

/// The variable of a future around some branches that has a guard in it.
fn variable_with(values: &Values<'_>, needs: &Needs, at: NodeId, guard: u64) -> Option<VariableRange> {
    let mut around = at;
    while around != Needs::ROOT {
        let node = &needs.nodes[around];
        if let Content::Coroutine(coroutine) = node.content {
            let (_, state) = values.active(coroutine)?;
            let has_guard = |range: &Range<u64>| range.contains(&guard);
            let mut fields = state.fields.iter().filter_map(|field| coroutine.part(field));
            let range =
                |value: Value| value.address..value.address.saturating_add(values.layout(value.type_id).size);
            if let Some(mut variable) = fields.clone().find(|field| has_guard(&range(*field))) {
                // The results of branches that have ended.
                if let Shape::Struct(elements) = &values.layout(variable.type_id).shape
                    && values.name(variable).starts_with('(')
                {
                    let elements = elements.iter().filter_map(|element| variable.part(element));
                    variable = elements.into_iter().find(|element| has_guard(&range(*element)))?;
                }
                let awaits = fields.find(|field| values.name(*field).starts_with(POLL_FN));
                let is_direct = needs.nodes[at].parent == around;
                let awaited = awaits.filter(|_| is_direct).map_or(0..0, range);
                return Some(VariableRange { range: range(variable), awaited });
            }
        }
        around = node.parent;
    }
    None
}

fn patch(values: &Values<'_>, coroutine: Value) -> Option<Patch> {
    let Shape::Enum { tag: Some((offset, size)), variants } = &values.layout(coroutine.type_id).shape else {
        return None;
    };
    let state = variants.get(RETURNED)?;
    Some(Patch {
        address: coroutine.address.checked_add(*offset)?,
        size: usize::try_from(*size).ok()?,
        value: *state.values.as_ref()?.first()?.start(),
    })
}
