//! Functions that allocate for their callers, recognised by their code: `xmalloc` in every program's own words.
//!
//! Such a function passes a size on that it was given, perhaps with room for a header, rounded, or as a product of a number and a size.
//! Or it copies what it was given, as `strdup` does. It returns what the allocator returned, or the address behind the header.
//! It may remember the block in a list, as a pool does. A function that makes an object looks similar, but it is what an allocation
//! is for: it asks for a size that it chooses, or it writes into the block.
//! A function with a path on which it does no more than that is one, whatever it does on others.
//! A function that stores the block where its caller says is part of a wrapper, if its caller is one.
//!
//! Where the code does not tell, nothing is said: what a call through a pointer does with its arguments is not known if the
//! function that it reached has left the stack.

mod bare_path;
mod effects;
mod names;
mod pointers;
mod seen;

use crate::block_flow::{
    AllocatingCall, Allocator, AllocatorResult, Event, Function, Place, ResultOf, Size, State, Target, Value,
};
use crate::module_code::ModuleCode;
use foldhash::HashMap;
pub(crate) use names::{by_name, result_of};
use pointers::{Asked, pointers_before};
use seen::Seen;
use stackglass_profile::{AllocationKind, Location, LocationId, ModuleIndex, Recording, StackId};
use std::cell::OnceCell;

/// Largest function in bytes that may be a wrapper. Wrappers are small.
const LARGEST: u64 = 4096;

/// Largest function in bytes that may only return its argument.
const LARGEST_IDENTITY: u64 = 48;

/// Most frames of wrappers in a stack.
const MOST: usize = 16;

/// Most functions that end with a call of the next, so that they are not on the stack.
const MOST_TAIL_CALLS: usize = 4;

/// Modules with allocators and their own callers, which are no sites: what called them matters.
const C_LIBRARIES: &[&str] = &["libc.so", "libc-", "libc.musl", "ld-musl"];

/// What the code of a function tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// It allocates for its caller.
    Wrapper(Allocator),
    /// It allocates for itself.
    Site,
    Unknown,
}

/// What a function has called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Called {
    /// What the instruction says: the stack begins here.
    Unseen,
    Allocator {
        allocator: Allocator,
        /// Where its code begins, unless it is known by its name.
        start: Option<(ModuleIndex, u64)>,
    },
    /// A function of which it is not known how it is called.
    Other,
}

/// What a call leads to.
enum Reached {
    Allocator(Allocator),
    /// An allocator, perhaps by a function that has left the stack.
    ThroughPointer,
}

/// Marks the frames of functions in stacks of allocations as their code tells, and returns how wrappers are called.
pub(crate) fn mark(
    recording: &mut Recording,
    code: &HashMap<ModuleIndex, ModuleCode<'_>>,
) -> HashMap<LocationId, Allocator> {
    let blocks = recording.allocations.groups.iter().filter(|group| group.kind == AllocationKind::Block);
    let mut stacks: Vec<StackId> = blocks.map(|group| group.stack).collect();
    stacks.sort_unstable();
    stacks.dedup();
    let mut modules: HashMap<ModuleIndex, Module<'_, '_>> = code
        .iter()
        .map(|(index, code)| {
            (*index, Module { index: *index, code, known: HashMap::default(), ending: OnceCell::new() })
        })
        .collect();
    let mut wrappers: HashMap<LocationId, Allocator> = HashMap::default();
    let mut sites: Vec<LocationId> = Vec::new();
    for stack in stacks {
        let mut called = Called::Unseen;
        let mut pending = Vec::new();
        for location in recording.stacks.walk(stack).take(MOST) {
            let mut frames = recording.symbols.frames_of(location);
            let Some(outermost) = frames.next_back().filter(|frame| frame.foreign) else { break };
            if let Some(allocator) = names::allocator(&outermost.func) {
                called = Called::Allocator { allocator, start: None };
                continue;
            }
            let is_of_c = C_LIBRARIES.iter().any(|name| outermost.module.starts_with(name));
            let Location { module: Some(index), offset } = recording.stacks.location(location) else { break };
            let Some(module) = modules.get_mut(&index) else { break };
            let verdict = module.verdict(offset + 1, called);
            called = Called::Other;
            match verdict {
                Verdict::Wrapper(wrapper) => {
                    called = Called::Allocator { allocator: wrapper, start: module.start(offset) };
                    pending.push((location, wrapper));
                    // What is stored where the caller says may as well be a field.
                    if wrapper.result == AllocatorResult::Returned {
                        wrappers.extend(pending.drain(..));
                    }
                }
                Verdict::Unknown => pending.clear(),
                Verdict::Site => {
                    sites.push(location);
                    pending.clear();
                    if !is_of_c {
                        break;
                    }
                }
            }
        }
    }
    let mut found: Vec<(LocationId, bool)> = wrappers.keys().map(|location| (*location, true)).collect();
    sites.retain(|location| !wrappers.contains_key(location));
    found.extend(sites.into_iter().map(|location| (location, false)));
    found.sort_unstable();
    found.dedup();
    for (location, allocates) in found {
        recording.symbols.set_allocates_for_caller(location, allocates);
    }
    wrappers
}

/// The wrappers of a module.
struct Module<'a, 'data> {
    index: ModuleIndex,
    code: &'a ModuleCode<'data>,
    /// By the address behind the call, and what was called.
    known: HashMap<(u64, Called), Verdict>,
    /// The sizes of functions that end with the call of an allocator.
    ending: OnceCell<Vec<Size>>,
}

impl Module<'_, '_> {
    /// What the code of the function tells with the call that ends at an address.
    fn verdict(&mut self, end: u64, called: Called) -> Verdict {
        if let Some(known) = self.known.get(&(end, called)) {
            return *known;
        }
        let found = self.find(end, called);
        self.known.insert((end, called), found);
        found
    }

    /// Where the function around an address begins.
    fn start(&self, address: u64) -> Option<(ModuleIndex, u64)> {
        Some((self.index, self.code.range_around(address)?.start))
    }

    /// Whether a function of the file does nothing but return its first argument, as some do to tell compilers of a size.
    fn is_identity(&self, target: Target) -> bool {
        let returns_argument = || {
            let Target::Function(start) = target else { return None };
            let function = self.function_at(start, LARGEST_IDENTITY)?;
            let (mut returns, mut others) = (false, false);
            let known = function.follow(&State::at_start(), &mut |_, _, event| match event {
                Some(Event::Returned(Value::Argument(0))) => returns = true,
                Some(Event::Written { place: Place::Stack(_), .. }) | None => {}
                Some(_) => others = true,
            });
            Some(known && returns && !others)
        };
        returns_argument().unwrap_or(false)
    }

    /// The function that starts at an address.
    fn function_at(&self, start: u64, largest: u64) -> Option<Function> {
        self.code.function_around(start, largest).filter(|function| function.range().start == start)
    }

    /// How a function is called that ends with the call of an allocator, and so is not on the stack.
    fn ending_with_allocator(&self, start: u64, left: usize) -> Option<Allocator> {
        let function = self.function_at(start, LARGEST)?;
        let mut found: Option<Allocator> = None;
        let mut is_clear = true;
        let known = function.follow(&State::at_start(), &mut |_, _, event| {
            let Some(Event::Left { target, arguments }) = event else { return };
            let (asked, result) = match self.allocator(target, left.saturating_sub(1)) {
                Some(known) => (passed_on(known.size, &arguments).map(Asked::Passed), known.result),
                None if left > 1 && self.is_through_pointer(target) => {
                    let Some(asked) = self.asked_through_pointer(&arguments, 0) else { return };
                    (Some(asked), AllocatorResult::Returned)
                }
                None => return,
            };
            let size = match asked {
                Some(Asked::Passed(size)) => size,
                Some(Asked::Chosen) | None => Size { arguments: 0, is_product: false },
            };
            let one = Allocator { size, result };
            is_clear &= result == AllocatorResult::Returned && found.is_none_or(|known| known == one);
            found = Some(one);
        });
        found.filter(|_| known && is_clear)
    }

    /// The allocator that a call or jump leads to, by its symbol, or by its code if it ends with the call of one.
    fn allocator(&self, target: Target, left: usize) -> Option<Allocator> {
        match (self.code.name(target).and_then(names::allocator), target) {
            (Some(known), _) => Some(known),
            (None, Target::Function(start)) if left > 0 => self.ending_with_allocator(start, left),
            _ => None,
        }
    }

    /// Whether a call goes through a pointer that the program has set, not the dynamic linker.
    fn is_through_pointer(&self, target: Target) -> bool {
        match target {
            Target::Function(_) => false,
            Target::Slot(_) => self.code.name(target).is_none(),
            Target::Unknown => true,
        }
    }

    /// What a call leads to.
    fn reached(&self, target: Target, called: Called) -> Option<Reached> {
        let is_pointer = self.is_through_pointer(target);
        match (called, target) {
            (Called::Unseen | Called::Allocator { start: None, .. }, _) if is_pointer => {
                Some(Reached::ThroughPointer)
            }
            (Called::Allocator { allocator, .. }, _) if is_pointer => Some(Reached::Allocator(allocator)),
            (Called::Allocator { allocator, start: Some(known) }, Target::Function(start))
                if known == (self.index, start) =>
            {
                Some(Reached::Allocator(allocator))
            }
            (Called::Allocator { allocator, start: Some((module, _)) }, _) if module != self.index => {
                Some(Reached::Allocator(allocator))
            }
            (Called::Other, _) => None,
            _ => self.allocator(target, MOST_TAIL_CALLS).map(Reached::Allocator),
        }
    }

    fn find(&self, end: u64, called: Called) -> Verdict {
        match self.code.range_around(end - 1) {
            Some(range) if range.end - range.start > LARGEST => Verdict::Site,
            _ => self.follow(end, called).unwrap_or(Verdict::Unknown),
        }
    }

    /// `None` if the code cannot be followed, or does not tell.
    fn follow(&self, end: u64, called: Called) -> Option<Verdict> {
        let function = self.code.function_around(end - 1, LARGEST)?;
        let at = function.ending_at(end)?;
        let result_of = |code: &_, arguments: &[Value; 6]| {
            let target = Target::of(code);
            let by_name = self.code.name(target).and_then(|name| names::result_of(name, arguments));
            by_name.or_else(|| self.is_identity(target).then_some(arguments[0]))
        };
        let target = Target::of(function.instruction(at));
        let reached = self.reached(target, called);
        let state = function.before(at, &result_of)?;
        let allocator = match reached {
            Some(Reached::Allocator(known)) => known,
            Some(Reached::ThroughPointer) | None => UNKNOWN,
        };
        let call = AllocatingCall { at, allocator };
        let (seen, is_whole) = self.seen_after(&function, call, &state, &result_of);
        let Some(result) = seen.result().filter(|_| is_whole) else {
            return is_whole.then_some(Verdict::Site);
        };
        let arguments: [Value; 6] = std::array::from_fn(|number| state.argument(number));
        // The copy of a part belongs to what chose that.
        let is_copy = self.code.name(target).is_some_and(names::is_duplicating);
        let asked = match reached? {
            _ if is_copy && !matches!(arguments[0], Value::Argument(_)) => Some(Asked::Chosen),
            Reached::ThroughPointer => self.asked_through_pointer(&arguments, pointers_before(&function, at)),
            Reached::Allocator(allocator) => match passed_on(allocator.size, &arguments) {
                Some(size) => Some(Asked::Passed(size)),
                // Another function may be between.
                None if self.is_through_pointer(target) && !is_chosen(allocator.size, &arguments) => {
                    let size = self.size_of_bare_path(&function, at, &state, allocator.size, &result_of)?;
                    return Some(Verdict::Wrapper(Allocator { size, result }));
                }
                None => Some(Asked::Chosen),
            },
        };
        match asked? {
            // What other code does with the block is not known.
            Asked::Passed(_) if seen.is_given_away() => None,
            Asked::Passed(size) => Some(Verdict::Wrapper(Allocator { size, result })),
            Asked::Chosen => Some(Verdict::Site),
        }
    }

    /// What a function does with the block of a call, and whether all paths from there on are followed.
    fn seen_after(
        &self,
        function: &Function,
        call: AllocatingCall,
        state: &State,
        result_of: ResultOf<'_>,
    ) -> (Seen, bool) {
        let effect = |target, arguments: &[Value; 6]| self.effect(target, arguments);
        let mut seen = Seen::default();
        let is_whole = function.after(call, state, result_of, &mut |index, before, event| {
            if let Some(event) = event {
                let is_static = function.instruction(index).is_ip_rel_memory_operand();
                seen.add(event, before.is_result_meant, is_static, &effect);
            }
        });
        (seen, is_whole)
    }
}

/// A function that returns a block of a size that is not known.
const UNKNOWN: Allocator =
    Allocator { size: Size { arguments: 0, is_product: false }, result: AllocatorResult::Returned };

/// The size that a function passes on, by what it is called with.
fn passed_on(size: Size, arguments: &[Value; 6]) -> Option<Size> {
    let mut found: Option<Size> = None;
    for (number, value) in arguments.iter().enumerate() {
        match value {
            _ if size.arguments & 1 << number == 0 => {}
            Value::Constant(1) => {}
            // A number of elements of one size has a type.
            Value::Constant(_) if !size.is_product => {}
            value => {
                let one = value.size()?;
                found = Some(match found {
                    Some(known) => Size {
                        arguments: known.arguments | one.arguments,
                        is_product: known.is_product || one.is_product || size.is_product,
                    },
                    None => one,
                });
            }
        }
    }
    found
}

/// Whether a size is one that a function has chosen.
fn is_chosen(size: Size, arguments: &[Value; 6]) -> bool {
    let mut parts = (0..6).filter(|number| size.arguments & 1 << number != 0).map(|number| arguments[number]);
    parts.all(|value| matches!(value, Value::Constant(1..)))
}
