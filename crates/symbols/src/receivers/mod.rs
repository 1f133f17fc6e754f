//! Types of blocks in C and C++ programs, by what receives their address: variables, fields, and the results of functions.
//!
//! `malloc` knows no type, but its caller has a `struct node *`. The code behind the call is followed to the registers and words
//! that hold the address, and debug information says which variables and fields these are. If the function returns the address
//! without such a variable, its caller receives it. Wrappers of allocators are left out: what they point to is a header.
//!
//! A type counts only if the block is large enough for it, and if all pointers of the innermost function that has any agree. For a
//! class with virtual functions, the vtable that the code stores in the block decides, or the constructor that it calls.

mod decision;
mod uses;
mod variables;

use crate::block_flow::{Allocator, Function, Index, Root};
use crate::module_code::ModuleCode;
use crate::types::{cpp_node, short};
use decision::{Decision, decide};
use foldhash::HashMap;
use gimli::{Dwarf, LittleEndian, SectionId};
use stackglass_debug_info::dwarf::index;
use stackglass_debug_info::loaded::{Loaded, debug_info, load};
use stackglass_debug_info::naming::name_of_symbol;
use stackglass_debug_info::sections::load_section;
use stackglass_profile::{AllocationKind, Location, LocationId, ModuleIndex, Recording, StackId};
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use uses::{New, SizeKind, Uses};
use variables::{Candidate, Results, UnitVariables};

/// Most functions through which the address of a block is returned.
const MOST: usize = 12;

/// Bytes of the number of elements before an array of values with destructors (Itanium C++ ABI, 2.7).
const COUNT: i64 = 8;
/// Where objects point to in a vtable without virtual bases: behind the offset to the top, and the type (Itanium C++ ABI, 2.5).
const VTABLE_START: u64 = 16;

/// What the code behind a call does with the block that it gives.
#[derive(Clone, Default)]
struct Received {
    candidates: Vec<Candidate>,
    returned: bool,
    size: SizeKind,
    made_by_new: Option<New>,
    /// The class of the only constructor that is called for the block, if nothing else makes it.
    constructed: Option<String>,
    /// The class whose vtable is stored in the block, and its size if it is known. `Some(None)`: there are several.
    by_vtable: Option<Option<(String, Option<u64>)>>,
    /// What pointers behind the number of elements have as their types, which an array of values with destructors begins with.
    behind_count: Vec<Candidate>,
}

/// The blocks of one stack.
struct Blocks {
    stack: StackId,
    /// Number and bytes of the blocks of each size class.
    sizes: Vec<(u64, u64)>,
    /// Bytes without a better type.
    bytes: Option<String>,
    /// Whether `new` made one object.
    is_new: bool,
    /// The wrapper that the next function calls.
    wrapper: Option<Allocator>,
}

/// Sets the types of allocations that have none.
pub(crate) fn set(
    recording: &mut Recording,
    code: &HashMap<ModuleIndex, ModuleCode<'_>>,
    wrappers: &HashMap<LocationId, Allocator>,
) {
    let mut open = untyped(recording);
    let modules: HashMap<ModuleIndex, Module<'_, '_>> = code
        .iter()
        .map(|(index, code)| (*index, Module { code, debug: OnceCell::new(), last: RefCell::default() }))
        .collect();
    let mut known: HashMap<(ModuleIndex, Call), Received> = HashMap::default();
    let mut names: HashMap<String, Arc<str>> = HashMap::default();
    for level in 0..MOST {
        let calls: Vec<Option<(ModuleIndex, Call, LocationId)>> = open
            .iter()
            .map(|blocks| {
                let (module, address, location) = call(recording, blocks.stack, level)?;
                Some((module, Call { address, wrapper: blocks.wrapper }, location))
            })
            .collect();
        let mut wanted: HashMap<ModuleIndex, Vec<Call>> = HashMap::default();
        for (module, call, _) in calls.iter().flatten() {
            if !known.contains_key(&(*module, *call)) {
                wanted.entry(*module).or_default().push(*call);
            }
        }
        for (module, calls) in wanted {
            let found = modules.get(&module).and_then(|module| module.received(&calls)).unwrap_or_default();
            for call in calls {
                known.insert((module, call), found.get(&call).cloned().unwrap_or_default());
            }
        }
        let mut next = Vec::new();
        for (mut blocks, call) in open.into_iter().zip(calls) {
            let Some((module, call, location)) = call else {
                set_type(recording, &mut names, blocks.stack, blocks.bytes);
                continue;
            };
            let received = &known[&(module, call)];
            blocks.is_new |= received.made_by_new == Some(New::Object);
            blocks.wrapper = wrappers.get(&location).copied();
            match decide(received, &blocks).filter(|_| blocks.wrapper.is_none()) {
                Some(Decision::Type(name)) => set_type(recording, &mut names, blocks.stack, Some(name)),
                Some(Decision::Ambiguous) => {}
                decision => {
                    if let Some(Decision::Bytes(name)) = decision {
                        blocks.bytes.get_or_insert(name);
                    }
                    match received.returned || blocks.wrapper.is_some() {
                        true => next.push(blocks),
                        false => set_type(recording, &mut names, blocks.stack, blocks.bytes),
                    }
                }
            }
        }
        open = next;
    }
}

fn set_type(
    recording: &mut Recording,
    names: &mut HashMap<String, Arc<str>>,
    stack: StackId,
    name: Option<String>,
) {
    if let Some(name) = name {
        let shared = names.entry(name).or_insert_with_key(|name| Arc::from(name.as_str())).clone();
        recording.symbols.set_allocated_type(stack, shared);
    }
}

/// The stacks whose type is not known.
fn untyped(recording: &Recording) -> Vec<Blocks> {
    let mut found: HashMap<StackId, Vec<(u64, u64)>> = HashMap::default();
    for group in recording.allocations.groups.iter().filter(|group| group.kind == AllocationKind::Block) {
        if recording.symbols.allocated_type(group.stack).is_none() && group.counts.count > 0 {
            found.entry(group.stack).or_default().push((group.counts.count, group.counts.bytes));
        }
    }
    found
        .into_iter()
        .map(|(stack, sizes)| Blocks { stack, sizes, bytes: None, is_new: false, wrapper: None })
        .collect()
}

/// The call at a level of a stack from the innermost function on that is no allocator: its lookup address, and its location.
fn call(recording: &Recording, stack: StackId, level: usize) -> Option<(ModuleIndex, u64, LocationId)> {
    let mut number = 0;
    for location in recording.stacks.walk(stack).take(4 * MOST) {
        let outermost = recording.symbols.frames_of(location).last()?;
        if !outermost.foreign {
            return None;
        }
        if crate::wrappers::by_name(&outermost.func).is_some() {
            continue;
        }
        if number == level {
            let Location { module: Some(module), offset } = recording.stacks.location(location) else {
                return None;
            };
            return Some((module, offset, location));
        }
        number += 1;
    }
    None
}

/// A call of an allocator.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Call {
    /// Its lookup address.
    address: u64,
    /// The wrapper that is called, if it is one.
    wrapper: Option<Allocator>,
}

/// The class of a constructor, by its symbol.
fn class_of_constructor(symbol: &str) -> Option<String> {
    let named = name_of_symbol(symbol);
    let (class, method) = named.func.rsplit_once("::")?;
    let class = class.rsplit_once("::").map_or(class, |(_, class)| class);
    (symbol.starts_with("_Z") && class == method).then(|| class.to_owned())
}

/// Sections of a module that are read once.
struct DebugSections<'data> {
    loaded: Loaded<'data>,
    /// Where variables are, in versions 4 and 5 of DWARF.
    locations: [Cow<'data, [u8]>; 2],
}

/// A module, and its debug information once a call needs it.
struct Module<'a, 'data> {
    code: &'a ModuleCode<'data>,
    debug: OnceCell<Option<DebugSections<'data>>>,
    /// The function that was asked for last: calls are asked for in the order of addresses.
    last: RefCell<Option<Rc<Function>>>,
}

impl<'data> Module<'_, 'data> {
    fn debug(&self) -> Option<&DebugSections<'data>> {
        let read = || {
            let elf = self.code.files.debug_info()?;
            let section = |id: SectionId| load_section(&elf, id.name()).unwrap_or_default();
            let locations = [section(SectionId::DebugLoc), section(SectionId::DebugLocLists)];
            Some(DebugSections { loaded: load(self.code.files), locations })
        };
        self.debug.get_or_init(read).as_ref()
    }

    /// What the code behind calls does with the blocks.
    fn received(&self, calls: &[Call]) -> Option<HashMap<Call, Received>> {
        let mut addresses: Vec<u64> = calls.iter().map(|call| call.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let debug = self.debug()?;
        let info = debug_info(&debug.loaded);
        let shares = index::shares(&info, &addresses, &debug.loaded.code);
        let dwarf = Dwarf {
            locations: gimli::LocationLists::new(
                gimli::DebugLoc::new(&debug.locations[0], LittleEndian),
                gimli::DebugLocLists::new(&debug.locations[1], LittleEndian),
            ),
            ..debug.loaded.sections.dwarf()
        };
        let mut found = HashMap::default();
        for share in shares {
            let Ok(unit) = dwarf.unit(info.headers[share.unit]) else { continue };
            let variables = UnitVariables::new(&dwarf, &unit, self.code);
            for address in share.addresses.iter().map(|index| addresses[*index as usize]) {
                for call in calls.iter().filter(|call| call.address == address) {
                    found.extend(self.received_by(*call, &variables).map(|received| (*call, received)));
                }
            }
        }
        Some(found)
    }

    fn function_around(&self, address: u64) -> Option<Rc<Function>> {
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|known| !known.range().contains(&address)) {
            *last = self.code.function_around(address, uses::LARGEST).map(Rc::new);
        }
        last.clone()
    }

    /// What the code behind a call does with the block, by the variables of its unit.
    fn received_by(&self, call: Call, variables: &UnitVariables<'_, '_, '_>) -> Option<Received> {
        let function = self.function_around(call.address)?;
        let uses_at = |offset| uses::of_call(self.code, &function, call.address + 1, call.wrapper, offset);
        let uses = uses_at(0)?;
        let results = self.results(&function, &uses, variables);
        let mut candidates = variables.candidates(&uses, &results)?;
        let constructors = uses.passed.iter().filter(|(_, number)| *number == 0);
        let mut classes: Vec<Candidate> = constructors
            .filter_map(|(target, _)| {
                let class = class_of_constructor(self.code.name(*target)?)?;
                variables.parameter(*target, 0).or_else(|| variables.class(&class))
            })
            .collect();
        classes.dedup_by_key(|class| class.name.clone());
        let is_constructed = classes.len() == 1 && !uses.start_is_written;
        let constructed = classes.into_iter().next().filter(|_| is_constructed);
        let constructed = constructed.map(|class| {
            let name = class.name.clone();
            candidates.push(class);
            name
        });
        let has_count = uses.made_by_new == Some(New::Array) && uses.start_is_written;
        let behind_count = || {
            let mut found = variables.candidates(&uses_at(COUNT)?, &results)?;
            found.extend(variables.behind(&uses, COUNT)?);
            found.dedup();
            Some(found)
        };
        let behind_count = has_count.then(behind_count).flatten();
        Some(Received {
            candidates,
            returned: uses.returned,
            size: uses.size,
            made_by_new: uses.made_by_new,
            constructed,
            by_vtable: self.by_vtable(&uses, variables),
            behind_count: behind_count.unwrap_or_default(),
        })
    }

    /// What the results of other calls point to in which the block is stored.
    fn results(&self, function: &Function, uses: &Uses, variables: &UnitVariables<'_, '_, '_>) -> Results {
        let bases = uses.stores.iter().flat_map(|store| &store.bases);
        let ends = bases.filter_map(|base| match base.root {
            Root::Result(end) => Some(end),
            _ => None,
        });
        let mut ends: Vec<u64> = ends.collect();
        ends.sort_unstable();
        ends.dedup();
        let pointee = |end: u64| {
            let uses = uses::of_call(self.code, function, end, None, 0)?;
            match &variables.candidates(&uses, &Results::default())?[..] {
                [only] => Some((end, only.entry)),
                _ => None,
            }
        };
        ends.into_iter().filter_map(pointee).collect()
    }

    /// The class whose vtable is stored in a block. Constructors store those of base classes before.
    fn by_vtable(
        &self,
        uses: &Uses,
        variables: &UnitVariables<'_, '_, '_>,
    ) -> Option<Option<(String, Option<u64>)>> {
        let mut classes: Vec<String> = uses
            .start
            .iter()
            .filter_map(|path| {
                let (distance, symbol) = match path.root {
                    _ if path.index != Index::None || !path.fields().is_empty() => return None,
                    Root::Address(address) => {
                        let address = address.checked_add_signed(i64::from(path.offset))?;
                        let (start, symbol) = self.code.variable(address)?;
                        (address - start, symbol)
                    }
                    // The dynamic linker has stored its address.
                    Root::Static(slot) => (u64::try_from(path.offset).ok()?, self.code.slot(slot)?),
                    _ => return None,
                };
                let named = name_of_symbol(symbol);
                let full = named.spec.as_deref().unwrap_or(&named.func);
                let class = full.strip_prefix("{vtable(")?.strip_suffix(")}")?;
                (distance == VTABLE_START).then(|| class.to_owned())
            })
            .collect();
        classes.sort();
        classes.dedup();
        let class = match &classes[..] {
            [] => return None,
            [only] => only,
            several => match variables.most_derived(several) {
                Some(class) => &several[class],
                None => return Some(None),
            },
        };
        let name = cpp_node(class).unwrap_or_else(|| short(class));
        Some(Some((name, variables.size_of_class(class))))
    }
}
