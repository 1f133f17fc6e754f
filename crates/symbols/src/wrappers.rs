//! Functions that allocate for their caller, recognised by their code: `xmalloc` in every program's own words.
//!
//! Such a function passes a size on that it was given, perhaps with room for a header, rounded, or as a product of a number and a size.
//! It returns what the allocator returned, or the address behind the header. A function that makes an object looks
//! similar, but it is what an allocation is for: it asks for a constant size, or it writes into the block.
//! A function that stores the block where its caller says is part of a wrapper, if its caller is one. One that stores it elsewhere is
//! none: what it returns may be the block by chance, in a register that nobody reads.

use crate::block_flow::{
    AllocatingCall, Allocator, AllocatorResult, Event, Place, Rest, Size, State, Target, Value,
};
use crate::module_code::ModuleCode;
use foldhash::HashMap;
use stackglass_profile::{AllocationKind, Location, LocationId, ModuleIndex, Recording, StackId};

/// Largest function in bytes that is read. Wrappers are small.
const LARGEST: u64 = 4096;

/// Largest function in bytes that may only return its argument.
const LARGEST_IDENTITY: u64 = 48;

/// Most frames of wrappers in a stack.
const MOST: usize = 16;

/// Marks the frames of such functions in stacks of allocations, and returns how they are called.
pub(crate) fn mark(
    recording: &mut Recording,
    code: &HashMap<ModuleIndex, ModuleCode<'_>>,
) -> HashMap<LocationId, Allocator> {
    let blocks = recording.allocations.groups.iter().filter(|group| group.kind == AllocationKind::Block);
    let mut stacks: Vec<StackId> = blocks.map(|group| group.stack).collect();
    stacks.sort_unstable();
    stacks.dedup();
    let mut modules: HashMap<ModuleIndex, Module<'_, '_>> =
        code.iter().map(|(index, code)| (*index, Module { code, known: HashMap::default() })).collect();
    let mut wrappers: HashMap<LocationId, Allocator> = HashMap::default();
    for stack in stacks {
        let mut allocator = None;
        let mut pending = Vec::new();
        for location in recording.stacks.walk(stack).take(MOST) {
            let mut frames = recording.symbols.frames_of(location);
            let Some(outermost) = frames.next_back().filter(|frame| frame.foreign) else { break };
            if let Some(known) = by_name(&outermost.func) {
                allocator = Some(known);
                continue;
            }
            let Location { module: Some(module), offset } = recording.stacks.location(location) else {
                break;
            };
            let Some(module) = modules.get_mut(&module) else { break };
            let Some(wrapper) = module.wrapper(offset + 1, allocator) else { break };
            pending.push((location, wrapper));
            // What is stored where the caller says may as well be a field.
            if wrapper.result == AllocatorResult::Returned {
                wrappers.extend(pending.drain(..));
            }
            allocator = Some(wrapper);
        }
    }
    let mut locations: Vec<LocationId> = wrappers.keys().copied().collect();
    locations.sort_unstable();
    for location in locations {
        recording.symbols.set_allocates_for_caller(location);
    }
    wrappers
}

/// The wrappers of a module.
struct Module<'a, 'data> {
    code: &'a ModuleCode<'data>,
    /// By the address behind the call, and the allocator that was called.
    known: HashMap<(u64, Option<Allocator>), Option<Allocator>>,
}

impl Module<'_, '_> {
    /// The function with the call that ends at an address, as an allocator, if it is a wrapper. `inner` is what it called,
    /// if the stack shows that.
    fn wrapper(&mut self, end: u64, inner: Option<Allocator>) -> Option<Allocator> {
        if let Some(known) = self.known.get(&(end, inner)) {
            return *known;
        }
        let found = self.find(end, inner);
        self.known.insert((end, inner), found);
        found
    }

    /// Whether a function of the file does nothing but return its first argument, as some do to tell compilers of a size.
    fn is_identity(&self, target: Target) -> bool {
        let returns_argument = || {
            let Target::Function(start) = target else { return None };
            let function = self.code.function_around(start, LARGEST_IDENTITY)?;
            if function.range().start != start {
                return None;
            }
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

    fn find(&self, end: u64, inner: Option<Allocator>) -> Option<Allocator> {
        let function = self.code.function_around(end - 1, LARGEST)?;
        let at = function.ending_at(end)?;
        let returns_first = |code: &_| {
            let target = Target::of(code);
            self.code.name(target).is_some_and(is_filling) || self.is_identity(target)
        };
        let leaves_alone = |target, arguments: &[Value; 6]| {
            self.code.name(target).is_some_and(|name| leaves_alone(name, arguments))
                || self.is_identity(target)
        };
        let allocator = match inner {
            Some(inner) => inner,
            None => by_name(self.code.name(Target::of(function.instruction(at)))?)?,
        };
        let state = function.before(at, &returns_first)?;
        let size = passed_on(allocator.size, &|number| state.argument(number))?;
        let mut seen = Seen::default();
        let call = AllocatingCall { at, allocator };
        let is_whole = function.after(call, &state, &returns_first, &mut |_, _, event| {
            if let Some(event) = event {
                seen.add(event, &leaves_alone);
            }
        });
        let result = seen.result().filter(|_| is_whole)?;
        Some(Allocator { size, result })
    }
}

/// The size that a function passes on, by what it is called with.
fn passed_on(size: Size, argument: &dyn Fn(usize) -> Value) -> Option<Size> {
    let mut found: Option<Size> = None;
    for number in (0..6).filter(|number| size.arguments & 1 << number != 0) {
        match argument(number) {
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

/// What a function does with a block.
#[derive(Default)]
struct Seen {
    /// The offset in the block that is returned.
    returned: Option<i64>,
    /// Whether something else than the block is returned.
    returns_other: bool,
    /// The argument that says where the block is stored.
    stored: Option<u8>,
    /// Arguments that say where other things are stored.
    others_stored: u8,
    /// The highest offset that is written in the block.
    written: Option<i64>,
    /// Whether the block is given to code that may do anything with it.
    given_away: bool,
}

impl Seen {
    /// `leaves_alone`: whether a function puts nothing into the block that tells one object from another.
    fn add(&mut self, event: Event, leaves_alone: &dyn Fn(Target, &[Value; 6]) -> bool) {
        match event {
            Event::Written { place: Place::Block(at), .. } => {
                self.written = self.written.max(Some(at.unwrap_or(i64::MAX)));
            }
            Event::Written { place: Place::Argument(number, 0), value: Value::Block(0) } => {
                self.given_away |= self.stored.is_some_and(|known| known != number);
                self.stored = Some(number);
            }
            // The function has found a use for the block.
            Event::Written {
                place: Place::Argument(..) | Place::Unknown,
                value: Value::Block(_) | Value::Inside,
            } => {
                self.given_away = true;
            }
            Event::Written { place: Place::Argument(number, at), value } => {
                if at != 0 || value != Value::Constant(0) {
                    self.others_stored |= 1 << number;
                }
            }
            Event::Written { .. } => {}
            Event::Called { target, arguments, is_variadic } => {
                let is_block = |value: &Value| matches!(value, Value::Block(_) | Value::Inside);
                // A list of arguments of any number is printed.
                let is_printed = is_variadic && !is_block(&arguments[0]);
                if arguments.iter().any(is_block) && !is_printed && !leaves_alone(target, &arguments) {
                    self.given_away = true;
                }
            }
            Event::Returned(Value::Block(offset)) => {
                self.returns_other |= self.returned.is_some_and(|known| known != offset);
                self.returned = Some(offset);
            }
            Event::Returned(Value::Constant(0)) => {}
            Event::Returned(_) => self.returns_other = true,
            Event::Left { .. } => self.given_away = true,
        }
    }

    fn result(&self) -> Option<AllocatorResult> {
        if self.given_away {
            return None;
        }
        match (self.returned, self.stored) {
            // What lies before the returned address is a header.
            (Some(offset), None) if !self.returns_other => {
                self.written.is_none_or(|written| written < offset).then_some(AllocatorResult::Returned)
            }
            (returned, Some(argument))
                if self.written.is_none()
                    && self.others_stored & 1 << argument == 0
                    && returned.is_none_or(|offset| offset == 0) =>
            {
                let is_block = returned == Some(0) && !self.returns_other;
                let returned = if is_block { Rest::Block } else { Rest::Unknown };
                Some(AllocatorResult::Stored { argument, returned })
            }
            _ => None,
        }
    }
}

/// The allocator with a name, as functions or symbols have it.
pub(crate) fn by_name(name: &str) -> Option<Allocator> {
    let name = name.split(['@', '(']).next().unwrap_or_default();
    let name = name.strip_prefix("__GI_").unwrap_or(name);
    let name = ["__libc_", "je_", "_rjem_", "mi_", "tc_"]
        .iter()
        .find_map(|start| name.strip_prefix(start))
        .unwrap_or(name);
    let (arguments, is_product) = match name {
        "malloc" | "valloc" | "pvalloc" | "operator new" | "operator new[]" | "_Znwm" | "_Znam" => (1, false),
        "_ZnwmRKSt9nothrow_t" | "_ZnamRKSt9nothrow_t" => (1, false),
        "realloc" | "aligned_alloc" | "memalign" => (2, false),
        "calloc" => (0b11, true),
        "reallocarray" => (0b110, true),
        "posix_memalign" => {
            let result = AllocatorResult::Stored { argument: 0, returned: Rest::Status };
            return Some(Allocator { size: Size { arguments: 0b100, is_product: false }, result });
        }
        _ => return None,
    };
    Some(Allocator { size: Size { arguments, is_product }, result: AllocatorResult::Returned })
}

/// Whether a function fills memory, and returns its address.
pub(crate) fn is_filling(name: &str) -> bool {
    matches!(name.split('@').next(), Some("memset" | "__memset_chk"))
}

/// Whether a function puts nothing into the block that tells one object from another.
fn leaves_alone(name: &str, arguments: &[Value; 6]) -> bool {
    let name = name.split('@').next().unwrap_or_default();
    match name {
        _ if is_filling(name) => matches!(arguments[1], Value::Constant(_)),
        "bzero" | "explicit_bzero" | "malloc_usable_size" | "je_malloc_usable_size" => true,
        _ => false,
    }
}
