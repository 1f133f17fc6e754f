//! Which branch of a task holds a lock.
//!
//! What a branch of `join!` holds, it may give back while another branch waits. What the function around `join!` holds, no branch
//! gives back. The code that drops the task does not say which of them it is, but can be asked: if the futures of some branches
//! had returned, would it still give the lock back? So the state of these futures is changed in the copy of the memory, and the code
//! is interpreted again.

use crate::drops::{Patch, Patches};
use crate::needs::{Content, Kind, Needs, NodeId};
use crate::values::{Value, Values};
use foldhash::HashMap;
use stackglass_symbols::layouts::Shape;

/// Most branches that are tried one by one.
const MOST_TRIED: usize = 64;
/// Index of the state of a coroutine that has returned (rustc).
const RETURNED: usize = 1;

/// By the address of a lock and the index of a task: the innermost future that surely holds it. It gives the lock back when it goes on,
/// or when a future around it goes on, and not before. Without an entry, any future of the task may.
pub(crate) type Places = HashMap<(u64, usize), NodeId>;

/// Finds the future that holds something. `holds` is asked whether the task still holds it with changes of its memory.
pub(crate) fn find(
    values: &Values<'_>,
    needs: &Needs,
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
            return Some(at);
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
