//! Which future a function of tokio polls, where only symbols are known.
//!
//! The older mangling of Rust has no type arguments: all functions that poll tasks are `tokio::runtime::task::raw::poll`. But such a
//! function, with those of the runtime that it calls for the same type, ends in the body of the future, and that has a name of its
//! own: `app::serve::{{closure}}`. The compiler merges functions with the same code and keeps one name of many, so the functions that
//! drop a task tell only what kind of future it may have. Bodies of coroutines are not merged: a panic in each of them names its
//! line. If the compiler has put the body into the function that polls, there is no symbol, but that panic tells the line.

use crate::block_flow::Target;
use foldhash::{HashMap, HashMapExt, HashSet};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{LittleEndian, elf};
use stackglass_debug_info::elf::Elf;
use stackglass_debug_info::functions;
use stackglass_debug_info::locate::Files;
use stackglass_debug_info::naming::name_of_symbol;
use stackglass_debug_info::rust_path;
use std::ops::Range;
use std::sync::Arc;

/// Most functions that are followed from one that polls.
const MOST_FUNCTIONS: usize = 64;
/// Most bytes of a function that are read.
const MOST_BYTES: u64 = 1 << 16;
/// Functions of the runtime that have the future's type, and those that catch its panics.
const INNER: [&str; 9] = [
    "tokio::runtime::task::harness::",
    "tokio::runtime::task::core::",
    "tokio::runtime::task::raw::poll",
    "tokio::runtime::blocking::task::",
    "tokio::loom::",
    "std::panic::catch_unwind",
    "std::panicking::try",
    "std::panicking::catch_unwind",
    "core::panic::unwind_safe::",
];
/// Parts of a task that have a future, as the functions that drop them name them.
const PARTS: [&str; 3] = [
    "tokio::runtime::task::core::CoreStage<",
    "tokio::runtime::task::core::Stage<",
    "tokio::runtime::task::core::Cell<",
];
const DROPS: [&str; 2] = ["core::ptr::drop_in_place::<", "core::ptr::drop_in_place<"];
/// Panics of coroutines that have ended.
const RESUMED: &str = "core::panicking::panic_const::panic_const_async_fn_resumed";
/// What a worker of the runtime runs.
const WORKER: [&str; 5] = [
    "tokio::runtime::scheduler::multi_thread::worker::Launch::launch",
    "tokio::runtime::scheduler::multi_thread::worker::maybe_move_runtime",
    "tokio::runtime::scheduler::multi_thread::worker::run",
    "tokio::runtime::scheduler::multi_thread::worker::Context::run",
    "tokio::runtime::scheduler::multi_thread::worker::Context::park",
];
const BLOCKING: &str = "tokio::runtime::blocking::task::BlockingTask<";
const BOXED: &str = "core::pin::Pin<alloc::boxed::Box<dyn core::future::future::Future";

/// What a function that polls tasks tells of their future.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PolledFuture {
    /// What is known of it.
    pub name: FutureName,
    /// The functions that poll this future, by their addresses in the file: the one that was asked for is the first.
    pub functions: Vec<Range<u64>>,
    /// It is no task, but a worker of a runtime.
    pub is_worker: bool,
}

/// What is known of a future.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum FutureName {
    /// Nothing.
    #[default]
    Unknown,
    /// Its function.
    Function(Arc<str>),
    /// It is a coroutine that is written at a place: addresses in the file of descriptions of this place (`core::panic::Location`).
    Places(Vec<u64>),
    /// It is a `dyn Future` in a box, or looks like one.
    Boxed,
}

/// The futures that functions of a module poll. The addresses are those in the file.
pub fn polled_futures(files: &Files, polls: &[u64]) -> Vec<PolledFuture> {
    let Some(elf) = files.program.as_ref().and_then(|file| Elf::parse(file).ok()) else {
        return vec![PolledFuture::default(); polls.len()];
    };
    let mut symbols: HashMap<u64, Symbols> = HashMap::new();
    for (addresses, name) in functions::defined(files) {
        let known = symbols.entry(addresses.start).or_default();
        known.end = known.end.max(addresses.end);
        known.names.push(name);
    }
    let relocations = elf
        .relocations()
        .filter(|relocation| relocation.r_type(LittleEndian, false) == elf::R_X86_64_RELATIVE);
    let slots = relocations
        .map(|slot| (slot.r_offset.get(LittleEndian), slot.r_addend.get(LittleEndian) as u64))
        .filter(|(_, function)| symbols.contains_key(function))
        .collect();
    let mut code = ModuleFunctions { elf, symbols, slots, known: HashMap::new() };
    polls.iter().map(|poll| code.polled(*poll)).collect()
}

/// The symbols of a function.
#[derive(Default)]
struct Symbols<'data> {
    end: u64,
    names: Vec<&'data str>,
}

/// What a function is, by its symbols.
#[derive(Clone, Default)]
struct Known {
    is_inner: bool,
    is_resumed: bool,
    is_worker: bool,
    /// Futures of tasks that it drops.
    drops: Vec<Arc<str>>,
    /// The path of a closure, or of the body of a coroutine.
    closures: Vec<Arc<str>>,
    /// Paths of futures that are no coroutines, if it polls one.
    polls: Vec<Arc<str>>,
}

struct ModuleFunctions<'data> {
    elf: Elf<'data>,
    symbols: HashMap<u64, Symbols<'data>>,
    /// Functions by the words that the dynamic linker fills with their addresses.
    slots: HashMap<u64, u64>,
    known: HashMap<u64, Known>,
}

/// A function that another one reaches. `place` is the address that it gets as its first argument, if that is constant.
struct Reached {
    address: u64,
    place: Option<u64>,
}

impl ModuleFunctions<'_> {
    fn polled(&mut self, poll: u64) -> PolledFuture {
        let mut found = PolledFuture::default();
        let mut calls = Calls::default();
        let mut open = vec![poll];
        let mut seen: HashSet<u64> = open.iter().copied().collect();
        while let Some(start) = open.pop() {
            let Some(range) = self.range(start) else { continue };
            if found.functions.len() >= MOST_FUNCTIONS {
                return PolledFuture { name: FutureName::Unknown, ..found };
            }
            found.functions.push(range.clone());
            for reached in self.reached(&range) {
                let known = self.known(reached.address);
                if known.is_resumed {
                    calls.has_inlined = true;
                    calls.places.extend(reached.place);
                    calls.has_unclear_place |= reached.place.is_none();
                }
                if !seen.insert(reached.address) {
                    continue;
                }
                found.is_worker |= known.is_worker;
                calls.drops.extend(known.drops);
                calls.polls.extend(known.polls);
                match known.is_inner {
                    true => open.push(reached.address),
                    false if known.closures.is_empty() => {}
                    false if self.is_coroutine(reached.address) => calls.bodies.extend(known.closures),
                    false => calls.closures.extend(known.closures),
                }
            }
        }
        found.name = calls.future();
        found
    }

    fn range(&self, start: u64) -> Option<Range<u64>> {
        let end = self.symbols.get(&start)?.end;
        (end > start).then_some(start..end.min(start.saturating_add(MOST_BYTES)))
    }

    /// The functions that the code of one calls, jumps to, or gives to another one.
    fn reached(&self, range: &Range<u64>) -> Vec<Reached> {
        let bytes = self.elf.bytes_at(range.start).unwrap_or_default();
        let bytes = &bytes[..bytes.len().min((range.end - range.start) as usize)];
        let mut found = Vec::new();
        let mut place = None;
        for code in Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE).into_iter() {
            let address = match Target::of(&code) {
                Target::Function(address) if !range.contains(&address) => Some(address),
                Target::Slot(slot) => self.in_slot(slot),
                // Without optimization, the address is loaded before the call.
                _ if loads_constant(&code) => self.in_slot(code.ip_rel_memory_address()),
                _ => constant(&code).filter(|address| self.symbols.contains_key(address)),
            };
            found.extend(address.map(|address| Reached { address, place }));
            if let Some(constant) = constant(&code).filter(|_| code.op0_register() == Register::RDI) {
                place = Some(constant);
            } else if code.flow_control() != iced_x86::FlowControl::Next
                || code.op0_register() == Register::RDI
            {
                place = None;
            }
        }
        found
    }

    /// The function whose address is in a word that the code calls through.
    fn in_slot(&self, slot: u64) -> Option<u64> {
        let stored = || {
            let bytes = self.elf.bytes_at(slot)?.first_chunk::<8>()?;
            Some(u64::from_le_bytes(*bytes)).filter(|address| self.symbols.contains_key(address))
        };
        self.slots.get(&slot).copied().or_else(stored)
    }

    /// Whether the code of a function checks that a coroutine has not ended.
    fn is_coroutine(&mut self, start: u64) -> bool {
        let Some(range) = self.range(start) else { return false };
        self.reached(&range).into_iter().any(|reached| self.known(reached.address).is_resumed)
    }

    fn known(&mut self, address: u64) -> Known {
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let mut known = Known::default();
        for symbol in self.symbols.get(&address).map_or(&[][..], |symbols| &symbols.names) {
            known.add(symbol);
        }
        self.known.insert(address, known.clone());
        known
    }
}

/// The address that an instruction computes.
fn constant(code: &Instruction) -> Option<u64> {
    let is_relative = code.mnemonic() == Mnemonic::Lea
        && code.op1_kind() == OpKind::Memory
        && code.memory_base() == Register::RIP;
    match code.code() {
        _ if is_relative => Some(code.ip_rel_memory_address()),
        Code::Mov_r32_imm32 => Some(u64::from(code.immediate32())),
        _ => None,
    }
}

/// Whether an instruction loads a word from a fixed place.
fn loads_constant(code: &Instruction) -> bool {
    code.code() == Code::Mov_r64_rm64
        && code.op1_kind() == OpKind::Memory
        && code.memory_base() == Register::RIP
}

impl Known {
    fn add(&mut self, symbol: &str) {
        if !symbol.starts_with("_ZN") && !symbol.starts_with("_R") {
            return;
        }
        let named = name_of_symbol(symbol);
        let full: &str = named.spec.as_deref().unwrap_or(&named.func);
        let is_inner = INNER.iter().any(|begin| named.func.starts_with(begin));
        self.is_inner |= is_inner;
        self.is_resumed |= named.func.starts_with(RESUMED);
        self.is_worker |= WORKER.iter().any(|begin| named.func.starts_with(begin));
        if let Some(dropped) = DROPS.iter().find_map(|drop| full.strip_prefix(drop)) {
            self.drops.extend(future_of_part(dropped.strip_suffix('>').unwrap_or(dropped)).map(Arc::from));
        } else if named.func.ends_with(CLOSURE) {
            self.closures.push(named.func);
        } else if !is_inner
            && let Some(future) = full
                .strip_prefix('<')
                .and_then(|rest| rest.split_once(" as core::future::future::Future>::poll"))
        {
            self.polls.push(rust_path::path(future.0).into());
        }
    }
}

const CLOSURE: &str = "::{closure}";

/// The future of a part of a task: `T` of `Stage<T>`, `Cell<T, S>`, `Box<Cell<T, S>>`.
fn future_of_part(part: &str) -> Option<&str> {
    let part = part.strip_prefix("alloc::boxed::Box<").unwrap_or(part);
    let arguments = PARTS.iter().find_map(|begin| part.strip_prefix(begin))?;
    let (mut depth, mut before) = (0usize, 0u8);
    for (at, byte) in arguments.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' if before == b'-' => {}
            b'>' | b',' if depth == 0 => return Some(&arguments[..at]),
            b'>' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = byte;
    }
    None
}

/// What the functions that poll a future call.
#[derive(Default)]
struct Calls {
    drops: Vec<Arc<str>>,
    polls: Vec<Arc<str>>,
    /// Bodies of coroutines.
    bodies: Vec<Arc<str>>,
    /// Other closures.
    closures: Vec<Arc<str>>,
    has_inlined: bool,
    places: Vec<u64>,
    has_unclear_place: bool,
}

impl Calls {
    fn future(&self) -> FutureName {
        // Of futures with the same drop, one name may be left. What it names is at least a future that is dropped alike.
        let may_be = |kind: fn(&str) -> bool| self.drops.iter().any(|future| kind(future));
        let is_coroutine = |future: &str| future.ends_with("::{{closure}}") || is_numbered(future);
        let mut bodies: Vec<&Arc<str>> = self.bodies.iter().collect();
        bodies.sort();
        bodies.dedup();
        match bodies[..] {
            _ if self.has_inlined => match may_be(is_coroutine) && !self.has_unclear_place {
                true => FutureName::Places(self.places.clone()),
                false => FutureName::Unknown,
            },
            [body] if may_be(is_coroutine) => {
                FutureName::Function(body.strip_suffix(CLOSURE).unwrap_or(body).into())
            }
            [] if may_be(|future| future.starts_with(BOXED)) => FutureName::Boxed,
            [] => {
                self.blocking().or_else(|| self.by_hand()).map_or(FutureName::Unknown, FutureName::Function)
            }
            _ => FutureName::Unknown,
        }
    }

    /// A function of `spawn_blocking`, if the functions that run and drop it agree.
    fn blocking(&self) -> Option<Arc<str>> {
        let functions =
            self.drops.iter().filter_map(|future| future.strip_prefix(BLOCKING)?.strip_suffix('>'));
        let paths: Vec<String> = functions.map(rust_path::path).collect();
        let mut closures =
            self.closures.iter().filter(|closure| paths.iter().any(|path| **path == ***closure));
        let first = closures.next()?;
        closures.all(|other| other == first).then(|| first.clone())
    }

    /// A future that is no coroutine, if all functions that poll or drop it agree.
    fn by_hand(&self) -> Option<Arc<str>> {
        let mut dropped = self.drops.iter().map(|future| rust_path::path(future));
        let first = self.polls.first()?;
        let agree = self.polls.iter().all(|poll| poll == first) && dropped.next()? == **first;
        (agree && dropped.all(|other| other == **first)).then(|| first.clone())
    }
}

/// Whether this is a closure as the newer mangling has it.
fn is_numbered(future: &str) -> bool {
    future.rsplit_once("::").is_some_and(|(_, last)| last.starts_with("{closure#"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(drops: &[&str], bodies: &[&str]) -> Calls {
        let texts = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<Arc<str>>>();
        Calls { drops: texts(drops), bodies: texts(bodies), ..Calls::default() }
    }

    fn function(name: &str) -> FutureName {
        FutureName::Function(name.into())
    }

    #[test]
    fn futures_of_parts() {
        let cell =
            "tokio::runtime::task::core::Cell<app::f<u8, fn() -> u8>::{{closure}}, alloc::sync::Arc<H>>";
        assert_eq!(future_of_part(cell), Some("app::f<u8, fn() -> u8>::{{closure}}"));
        let boxed = format!("alloc::boxed::Box<{cell}>");
        assert_eq!(future_of_part(&boxed), Some("app::f<u8, fn() -> u8>::{{closure}}"));
        assert_eq!(future_of_part("tokio::runtime::task::core::Stage<app::Own<u8>>"), Some("app::Own<u8>"));
        assert_eq!(future_of_part("tokio::runtime::task::core::Trailer"), None);
        assert_eq!(future_of_part("app::Own<u8>"), None);
        assert_eq!(future_of_part("tokio::runtime::task::core::Stage<"), None);
    }

    #[test]
    fn the_body_names_the_future_whatever_its_drop_is_called() {
        let of_other = calls(&["app::other::{{closure}}"], &["app::f::{closure}"]);
        assert_eq!(of_other.future(), function("app::f"));
        // A future that is no coroutine may poll the body of one among others.
        assert_eq!(calls(&["app::Select<u8>"], &["app::f::{closure}"]).future(), FutureName::Unknown);
        let two = calls(&["app::other::{{closure}}"], &["app::f::{closure}", "app::g::{closure}"]);
        assert_eq!(two.future(), FutureName::Unknown);
        // The body of one coroutine is within the function that polls: the other one is what it awaits.
        let inlined = Calls {
            has_inlined: true,
            places: vec![7],
            ..calls(&["app::a::{{closure}}"], &["app::f::{closure}"])
        };
        assert_eq!(inlined.future(), FutureName::Places(vec![7]));
        let unclear = Calls { has_unclear_place: true, ..inlined };
        assert_eq!(unclear.future(), FutureName::Unknown);
    }

    #[test]
    fn other_futures_need_both_functions() {
        let by_hand = |drops: &[&str], poll: &str| {
            let calls = calls(drops, &[]);
            Calls { polls: vec![poll.into()], ..calls }.future()
        };
        assert_eq!(by_hand(&["app::Own<u8>", "app::Own<u64>"], "app::Own"), function("app::Own"));
        assert_eq!(by_hand(&["app::Own<u8>", "app::Other"], "app::Own"), FutureName::Unknown);
        assert_eq!(by_hand(&[], "app::Own"), FutureName::Unknown);
        assert_eq!(calls(&["app::quick::{{closure}}"], &[]).future(), FutureName::Unknown);
    }
}
