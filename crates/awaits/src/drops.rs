//! What a task holds, by the code that would drop it.
//!
//! A guard that was given to `drop()` is still described as a variable, and its bytes are still there. Only the code knows: what
//! the compiler made to drop a suspended future drops what is live in its state, and no more. So this code is interpreted,
//! instruction by instruction, over a copy of the memory: from the function in the task's vtable that frees the task, until
//! that returns. Nothing runs in the process. If the code would give a permit of a lock back, then the task holds it.
//!
//! A call that cannot be followed, as its way depends on what the kernel says, is left out. What is given back after it is held
//! now as well: the code finds it where it is live. What is not given back may be in what was left out.

mod dropped;
mod instructions;
mod machine;
mod operands;
#[cfg(test)]
#[allow(unsafe_code)]
mod oracle;
#[cfg(test)]
mod whole;

use crate::memory::Pages;
pub(crate) use dropped::{Dropped, Release};
use foldhash::{HashMap, HashMapExt, HashSet};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use instructions::{Flow, execute};
use machine::{Machine, Register, STACK_TOP, Step, Stop};
use stackglass_process_view::modules::LoadedModule;
use stackglass_symbols::layouts::{KnownFunction, Layouts};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;

/// Most instructions for one task, for one call within it, and for all tasks.
const MOST_OF_TASK: u32 = 400_000;
const MOST_OF_CALL: u32 = 100_000;
const MOST: u32 = 4_000_000;
/// Most calls within each other.
const DEEPEST: usize = 200;
/// Most instructions that are kept.
const MOST_DECODED: usize = 1 << 18;
/// Most places where code cannot be followed that are kept.
const MOST_STOPS: usize = 1000;
/// Most bytes that are copied at once.
const MOST_COPIED: u64 = 1 << 16;
/// Numbers of registers in which functions get their arguments (System V ABI).
const RAX: usize = 0;
const RDX: usize = 2;
const RSP: usize = 4;
const RSI: usize = 6;
const RDI: usize = 7;
/// Registers that functions keep: rbx, rbp, r12 to r15.
const KEPT: [usize; 6] = [3, 5, 12, 13, 14, 15];
/// Number of the system call `futex`, and its operation that wakes threads, without flags.
const FUTEX: u64 = 202;
const FUTEX_WAKE: u64 = 1;
const FUTEX_FLAGS: u64 = 128 | 256;
/// More permits than a semaphore has (`batch_semaphore.rs`).
const TOO_MANY_PERMITS: u64 = 1 << 61;
/// Bytes of a semaphore.
const SEMAPHORE_SIZE: u64 = 40;

/// Interprets the code that drops tasks.
pub(crate) struct Drops<'a> {
    pages: &'a Pages<'a>,
    functions: HashMap<u64, KnownFunction>,
    slots: HashMap<u64, KnownFunction>,
    /// Modules whose code is interpreted.
    modules: Vec<Range<u64>>,
    /// Both functions that give permits back exist, so neither is inlined everywhere.
    has_both: bool,
    decoded: RefCell<HashMap<u64, Instruction>>,
    left: Cell<u32>,
    thread_local: Option<u64>,
    stops: RefCell<Vec<DropStop>>,
}

/// Code that drops a task, and that could not be followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DropStop {
    /// Address of the task.
    pub task: u64,
    /// Addresses in the process: of the instruction, and of those to which the calls around it return, innermost first.
    pub addresses: Vec<u64>,
    /// Why: the instruction, or the limit that was reached.
    pub why: String,
}

/// A change of memory before the code is interpreted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Patch {
    pub address: u64,
    pub size: usize,
    pub value: u128,
}

/// Changes of memory.
pub(crate) type Patches = Vec<Patch>;

/// What is asked for.
#[derive(Default)]
pub(crate) struct Watched {
    /// Addresses of semaphores.
    pub semaphores: BTreeSet<u64>,
    /// Addresses of words.
    pub words: HashSet<u64>,
}

/// A call whose end is not reached.
struct Frame {
    /// Where the caller continues.
    back: u64,
    registers: [Register; 16],
    changes: usize,
    /// Instructions left at its begin.
    left: u32,
}

impl<'a> Drops<'a> {
    pub fn new(pages: &'a Pages<'a>, layouts: &Layouts, modules: &[LoadedModule]) -> Drops<'a> {
        let (mut functions, mut slots) = (HashMap::new(), HashMap::new());
        let mut ranges = Vec::new();
        for (number, module) in modules.iter().enumerate() {
            let Some(known) = layouts.known_functions(number) else { continue };
            let place = |(address, function): (&u64, &KnownFunction)| {
                (address.wrapping_add(module.bias()), *function)
            };
            functions.extend(known.functions.iter().map(place));
            for (slot, function) in known.slots.iter().map(place) {
                slots.insert(slot, function);
                // Code may load the address from the slot before.
                functions.extend(pages.word(slot).filter(|target| *target != 0).map(|to| (to, function)));
            }
            if known.functions.values().any(|function| *function == KnownFunction::Release) {
                ranges.push(module.module.range());
            }
        }
        let registers = pages.image().threads.iter().find_map(|thread| thread.registers);
        let is_release = |function: &&KnownFunction| **function == KnownFunction::Release;
        Drops {
            pages,
            has_both: functions.values().filter(is_release).count() >= 2,
            functions,
            slots,
            modules: ranges,
            decoded: RefCell::default(),
            left: Cell::new(MOST),
            stops: RefCell::default(),
            thread_local: registers.map(|registers| registers.fs_base()),
        }
    }

    /// What a function does that drops the value at an address.
    pub fn of(&self, function: u64, value: u64, watched: &Watched) -> Dropped {
        self.of_changed(function, value, watched, &[])
    }

    /// The same, if memory were changed before.
    pub fn of_changed(&self, function: u64, value: u64, watched: &Watched, patches: &[Patch]) -> Dropped {
        let mut run = Run {
            drops: self,
            machine: Machine::new(self.pages, self.thread_local),
            frames: Vec::new(),
            found: Dropped { is_whole: true, ..Dropped::default() },
            words: &watched.words,
            left: MOST_OF_TASK.min(self.left.get()),
            value,
        };
        let begin = run.left;
        // Functions keep the registers of their caller, whatever these are.
        KEPT.into_iter().for_each(|number| run.machine.registers[number] = Register::of(0));
        run.machine.registers[RDI] = Register::of(value);
        run.machine.registers[RSP] = Register::of(STACK_TOP - 4096);
        let stored = patches
            .iter()
            .try_for_each(|patch| run.machine.store(patch.address, patch.size, Some(patch.value)));
        match stored {
            Ok(()) => run.all(function),
            Err(_) => run.found.is_whole = false,
        }
        self.left.set(self.left.get() - (begin - run.left));
        if !self.has_both {
            let semaphore = |(address, _): (u64, Option<u64>)| {
                let before = watched.semaphores.range(..=address).next_back()?;
                (address - before < SEMAPHORE_SIZE).then_some(*before)
            };
            run.found.touched = run.machine.written().filter_map(semaphore).collect();
        }
        run.read_words();
        run.found
    }

    /// Where the code could not be followed so far.
    pub fn stops(&self) -> Vec<DropStop> {
        self.stops.take()
    }

    fn decoded(&self, address: u64) -> Step<Instruction> {
        if let Some(known) = self.decoded.borrow().get(&address) {
            return Ok(*known);
        }
        if !self.modules.iter().any(|module| module.contains(&address)) {
            return Err(Stop);
        }
        let mut bytes = [0; 15];
        // The last instruction of a mapping may be shorter.
        let count = (1..=15).rev().find(|count| self.pages.read(address, &mut bytes[..*count]).is_some());
        let mut decoder = Decoder::with_ip(64, &bytes[..count.ok_or(Stop)?], address, DecoderOptions::NONE);
        let code = decoder.decode();
        let mut decoded = self.decoded.borrow_mut();
        if decoded.len() < MOST_DECODED {
            decoded.insert(address, code);
        }
        if code.is_invalid() { Err(Stop) } else { Ok(code) }
    }
}

/// One task.
struct Run<'d, 'a> {
    drops: &'d Drops<'a>,
    machine: Machine<'a>,
    frames: Vec<Frame>,
    found: Dropped,
    words: &'d HashSet<u64>,
    left: u32,
    /// Address of the task.
    value: u64,
}

impl Run<'_, '_> {
    fn all(&mut self, function: u64) {
        // The return address of the first function is nowhere.
        let mut next = self.call(function, 0).ok();
        while let Some(at) = next {
            next = match self.step(at) {
                Ok(next) => next,
                Err(Stop) => {
                    self.note_stop(at);
                    self.leave_out()
                }
            };
        }
    }

    fn note_stop(&self, at: u64) {
        let mut stops = self.drops.stops.borrow_mut();
        if stops.len() >= MOST_STOPS {
            return;
        }
        let begin = self.frames.last().map_or(0, |frame| frame.left);
        let why = match self.drops.decoded(at) {
            _ if self.left == 0 || begin - self.left > MOST_OF_CALL => "too many instructions".to_owned(),
            _ if self.frames.len() >= DEEPEST => "too many calls within each other".to_owned(),
            Ok(code) => format!("{:?}", code.code()),
            Err(Stop) => "not in the code of the program".to_owned(),
        };
        let backs = self.frames.iter().rev().map(|frame| frame.back);
        stops.push(DropStop { task: self.value, addresses: std::iter::once(at).chain(backs).collect(), why });
    }

    /// Executes the instruction at an address, and returns where the code continues. `None` at the end.
    fn step(&mut self, at: u64) -> Step<Option<u64>> {
        let begin = self.frames.last().map_or(0, |frame| frame.left);
        if self.left == 0 || begin - self.left > MOST_OF_CALL {
            return Err(Stop);
        }
        self.left -= 1;
        if let Some(known) = self.drops.functions.get(&at) {
            self.known(*known)?;
            return Ok(self.back());
        }
        let code = self.drops.decoded(at)?;
        let slot_of = |slot: Option<u64>| slot.and_then(|slot| self.drops.slots.get(&slot)).copied();
        match execute(&mut self.machine, &code)? {
            Flow::Next => Ok(Some(code.next_ip())),
            Flow::Jump { target, slot } => match slot_of(slot) {
                Some(known) => {
                    self.known(known)?;
                    Ok(self.back())
                }
                None => Ok(Some(target)),
            },
            Flow::Call { target, slot } => match slot_of(slot) {
                Some(known) => {
                    self.known(known)?;
                    Ok(Some(code.next_ip()))
                }
                None => self.call(target, code.next_ip()).map(Some),
            },
            Flow::Return => Ok(self.back()),
        }
    }

    fn call(&mut self, target: u64, back: u64) -> Step<u64> {
        if self.frames.len() >= DEEPEST {
            return Err(Stop);
        }
        let (registers, changes) = (self.machine.registers, self.machine.changes());
        let top = self.machine.register(RSP).and_then(|top| top.checked_sub(8)).ok_or(Stop)?;
        self.machine.set_register(RSP, Some(top));
        self.machine.store(top, 8, Some(u128::from(back)))?;
        self.frames.push(Frame { back, registers, changes, left: self.left });
        Ok(target)
    }

    /// Ends the innermost call.
    fn back(&mut self) -> Option<u64> {
        let frame = self.frames.pop()?;
        self.machine.registers[RSP] = frame.registers[RSP];
        (!self.frames.is_empty()).then_some(frame.back)
    }

    /// Reads the words that are asked for, as long as they are certain.
    fn read_words(&mut self) {
        if !self.found.is_whole {
            return;
        }
        let written = self.machine.written().filter(|(address, _)| self.words.contains(address));
        self.found.words = written.filter_map(|(address, value)| Some((address, value?))).collect();
    }

    /// Ends the innermost call as if it had not been there.
    fn leave_out(&mut self) -> Option<u64> {
        self.read_words();
        self.found.is_whole = false;
        let frame = self.frames.pop()?;
        self.machine.take_back(frame.changes);
        self.machine.registers = frame.registers;
        self.machine.forget_changed();
        // Without instructions, the calls around it end as well.
        (!self.frames.is_empty()).then_some(frame.back)
    }

    /// What a known function does.
    fn known(&mut self, function: KnownFunction) -> Step<()> {
        let [first, second, third] = [RDI, RSI, RDX].map(|number| self.machine.register(number));
        match function {
            KnownFunction::Release => {
                let (semaphore, permits) = first.zip(second).ok_or(Stop)?;
                if permits >= TOO_MANY_PERMITS {
                    return Err(Stop);
                }
                if permits > 0 {
                    self.found.releases.push(Release { semaphore, permits });
                }
            }
            KnownFunction::Close => self.found.closed.push(first.ok_or(Stop)?),
            // Waking other threads changes no memory.
            KnownFunction::SystemCall => {
                let is_wake = third.is_some_and(|operation| operation & !FUTEX_FLAGS == FUTEX_WAKE);
                if first != Some(FUTEX) || !is_wake {
                    return Err(Stop);
                }
            }
            KnownFunction::Write => {}
            KnownFunction::Free | KnownFunction::Descriptor => {}
            KnownFunction::Copy => {
                let (to, from) = first.zip(second).ok_or(Stop)?;
                let count = third.filter(|count| *count <= MOST_COPIED).ok_or(Stop)?;
                self.left = self.left.saturating_sub(count as u32);
                self.machine.copy(to, from, count)?;
            }
            KnownFunction::Fill => {
                let (to, count) = first.zip(third).ok_or(Stop)?;
                let count = Some(count).filter(|count| *count <= MOST_COPIED).ok_or(Stop)?;
                self.left = self.left.saturating_sub(count as u32);
                let byte = second.map(|byte| u128::from(byte as u8));
                for at in 0..count {
                    self.machine.store(to.checked_add(at).ok_or(Stop)?, 1, byte)?;
                }
            }
        }
        self.machine.forget_changed();
        match function {
            KnownFunction::Copy | KnownFunction::Fill => self.machine.set_register(RAX, first),
            // A descriptor of a live task is open, so it can be closed.
            KnownFunction::Descriptor | KnownFunction::SystemCall => self.machine.set_register(RAX, Some(0)),
            // All is written.
            KnownFunction::Write => self.machine.set_register(RAX, third),
            _ => {}
        }
        Ok(())
    }
}
