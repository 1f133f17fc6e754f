//! The futures of `block_on` that debug information does not place: in optimized programs they are no variables.
//!
//! The thread waits in `CachedParkThread::park`, so nobody polls its future. The names of the functions `block_on` have the future's
//! type. A suspended future does not move, so its bytes are in a frame of the thread that is further out. Each place on the
//! stack is tried: the state must be valid, and so must be all pointers in what is awaited. Only if one place alone fits, it is
//! the future.

use crate::found::Found;
use crate::futures::{Form, form};
use crate::names::first_argument;
use crate::process::Process;
use crate::values::Value;
use crate::walker::Walker;
use stackglass_layouts::{Shape, TypeId, is_coroutine};
use stackglass_process_view::{stacks, threads};
use stackglass_profile::task_dump::{AwaitPoint, DumpedTask, TaskState};
use std::ops::Range;

/// Most bytes of a stack that are searched.
const MOST_BYTES: u64 = 1 << 20;
/// Most values that are checked on a stack and in one future, and their deepest nesting.
const MOST_ON_STACK: u32 = 2_000_000;
const MOST_VALUES: u32 = 2000;
const DEEPEST: u32 = 64;
/// Most elements of an array that are checked.
const MOST_ELEMENTS: u64 = 16;
/// Pointers below are those of empty lists.
const LOWEST: u64 = 4096;

/// Adds the future of each thread that waits in `block_on` and has none yet, and counts those that are not found.
pub(super) fn add(process: &Process<'_>, walker: &Walker<'_>, found: &mut Found) {
    let types = future_types(walker);
    let parks = parks(process);
    if types.is_empty() || parks.is_empty() {
        return;
    }
    for thread in threads::stacks(process.image, process.modules) {
        let tid = process.image.threads[thread.index].tid;
        let is_known = found.dump.tasks.iter().any(|task| task.state == TaskState::BlockOn(tid));
        let is_of_process = process.tids.is_empty() || process.tids.contains(&tid);
        if is_known || !is_of_process {
            continue;
        }
        let frames = stacks::frames(process.image, process.modules, &[(thread.registers, thread.end)]);
        let parked = frames.first().and_then(|frames| {
            frames.iter().find(|frame| parks.iter().any(|park| park.contains(&frame.lookup)))
        });
        let Some(parked) = parked else { continue };
        let end = thread.end.min(parked.range.end.saturating_add(MOST_BYTES));
        let Some(future) = find(walker, &types, parked.range.end..end) else {
            found.missing_roots += 1;
            continue;
        };
        let walked = walker.walk(future);
        if !walked.stack.iter().any(|frame| matches!(frame.point, AwaitPoint::Await(_))) {
            continue;
        }
        found.hold(walker, future, None, walked.needs);
        found.dump.tasks.push(DumpedTask {
            state: TaskState::BlockOn(tid),
            name: walked.stack.first().map_or_else(|| "".into(), |frame| frame.function.clone()),
            stack: walked.stack,
            waits: walked.waits,
            fires_at: walked.fires_at,
            ..DumpedTask::default()
        });
    }
}

/// The addresses of the function in which `block_on` waits.
fn parks(process: &Process<'_>) -> Vec<Range<u64>> {
    let modules = process.modules.iter().enumerate();
    let of_module = modules.filter_map(|(number, module)| {
        let known = process.layouts.known_functions(number)?;
        let place =
            |park: &Range<u64>| park.start.wrapping_add(module.bias())..park.end.wrapping_add(module.bias());
        Some(known.parks.iter().map(place).collect::<Vec<_>>())
    });
    of_module.flatten().collect()
}

/// The types of the futures that `block_on` is called with.
fn future_types(walker: &Walker<'_>) -> Vec<TypeId> {
    let layouts = walker.values.layouts;
    let mut types = Vec::new();
    for name in layouts.coroutines().block_ons() {
        let future = first_argument(name);
        let found = is_coroutine(future).then(|| layouts.by_name(future)).flatten();
        types.extend(found.filter(|found| !types.contains(found)));
    }
    types
}

/// The only place in a range of a stack that fits. A future that another one awaits is part of it.
fn find(walker: &Walker<'_>, types: &[TypeId], range: Range<u64>) -> Option<Value> {
    let values = walker.values;
    let mut found: Vec<(Value, Vec<u64>)> = Vec::new();
    let mut left = MOST_ON_STACK;
    let mut address = range.start.checked_next_multiple_of(8)?;
    while address < range.end {
        for type_id in types {
            let value = Value { type_id: *type_id, address };
            let is_inside =
                address.checked_add(values.layout(*type_id).size).is_some_and(|end| end <= range.end);
            let is_suspended = is_inside && values.active(value).is_some_and(|(state, _)| state > 2);
            if !is_suspended {
                continue;
            }
            let mut check = Check { walker, left: MOST_VALUES, pointers: 0, reached: Vec::new() };
            let fits = check.is_valid(value, DEEPEST) && check.pointers > 0;
            left = left.checked_sub(MOST_VALUES - check.left + 1)?;
            if fits {
                found.push((value, check.reached));
            }
        }
        address = address.checked_add(8)?;
    }
    let is_part = |value: &Value| {
        found
            .iter()
            .any(|(other, reached)| other.address != value.address && reached.contains(&value.address))
    };
    let mut outer = found.iter().map(|(value, _)| *value).filter(|value| !is_part(value));
    let future = outer.next()?;
    outer.next().is_none().then_some(future)
}

/// Checks one place.
struct Check<'a, 'w> {
    walker: &'w Walker<'a>,
    left: u32,
    /// Pointers that lead to memory.
    pointers: u32,
    /// Addresses of coroutines.
    reached: Vec<u64>,
}

impl Check<'_, '_> {
    /// Whether a value can be one of its type.
    fn is_valid(&mut self, value: Value, depth: u32) -> bool {
        if depth == 0 || self.left == 0 {
            return false;
        }
        self.left -= 1;
        let values = self.walker.values;
        let layout = values.layout(value.type_id);
        match form(values.layouts, value.type_id) {
            Form::Coroutine => {
                self.reached.push(value.address);
                let Some((state, variant)) = values.active(value) else { return false };
                if state <= 2 {
                    return true;
                }
                // Other variables may be gone.
                let awaited = variant.fields.iter().find(|field| &*field.name == "__awaitee");
                let awaited = awaited.and_then(|field| value.part(field));
                return awaited.is_some_and(|awaited| self.is_valid(awaited, depth - 1));
            }
            Form::Dynamic => {
                let inner = self.walker.dynamic(value);
                return inner.is_some_and(|inner| {
                    self.pointers += 1;
                    values.layout(inner.type_id).size == 0 || values.pages.word(inner.address & !7).is_some()
                });
            }
            _ => {}
        }
        match &layout.shape {
            Shape::Pointer { target } => {
                let Some(word) = values.word(value) else { return false };
                let size = target.map_or(0, |target| values.layout(target).size);
                if word < LOWEST || size == 0 {
                    return word != 0 || layout.name.starts_with('*');
                }
                if values.pages.word(word & !7).is_none() {
                    return false;
                }
                self.pointers += 1;
                match target {
                    Some(target) if is_coroutine(&values.layout(*target).name) => {
                        self.is_valid(Value { type_id: *target, address: word }, depth - 1)
                    }
                    _ => true,
                }
            }
            Shape::Struct(fields) => fields
                .iter()
                .all(|field| value.part(field).is_some_and(|part| self.is_valid(part, depth - 1))),
            Shape::Enum { .. } => {
                let Some((_, variant)) = values.active(value) else { return false };
                let mut fields = variant.fields.iter();
                fields.all(|field| value.part(field).is_some_and(|part| self.is_valid(part, depth - 1)))
            }
            Shape::Array { element, count } => {
                let first = Value { type_id: *element, ..value };
                (0..(*count).min(MOST_ELEMENTS)).all(|number| {
                    values.element(first, number).is_some_and(|element| self.is_valid(element, depth - 1))
                })
            }
            _ => values.pages.word(value.address & !7).is_some(),
        }
    }
}
