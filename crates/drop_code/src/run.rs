//! The interpretation of one drop: calls, limits, known functions, and what is left out.
//!
//! A call that cannot be followed, as its way depends on what the kernel says, is left out. What is given back after it is held
//! now as well: the code finds it where it is live. What is not given back may be in what was left out.

use crate::code::Code;
use crate::drop_stop::DropStop;
use crate::dropped::{Dropped, Release};
use crate::drops::SEMAPHORE_SIZE;
use crate::instructions::{Flow, execute};
use crate::machine::{Machine, Register, STACK_TOP, Step, Stop};
use foldhash::HashSet;
use stackglass_layouts::KnownFunction;
use std::cell::RefCell;

/// Most instructions for one call.
const MOST_OF_CALL: u32 = 100_000;
/// Most calls within each other.
const DEEPEST: usize = 200;
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
/// Numbers of registers by DWARF's numbers (System V ABI x86-64, figure 3.36).
const OF_DWARF: [usize; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];
/// Registers that functions keep: rbx, rbp, r12 to r15.
const KEPT: [usize; 6] = [3, 5, 12, 13, 14, 15];
/// Number of the system call `futex`, and its operation that wakes threads, without flags.
const FUTEX: u64 = 202;
const FUTEX_WAKE: u64 = 1;
const FUTEX_FLAGS: u64 = 128 | 256;
/// More permits than a semaphore has (`batch_semaphore.rs`).
const TOO_MANY_PERMITS: u64 = 1 << 61;

/// State of a mutex that is locked, and for which nobody waits.
const LOCKED: u128 = 1;

/// A call whose end is not reached.
struct Frame {
    /// Where the caller continues.
    back: u64,
    registers: [Register; 16],
    changes: usize,
    /// Instructions left at its begin.
    left: u32,
}

/// One task.
pub(crate) struct Run<'d, 'a> {
    code: &'d Code<'a>,
    stops: &'d RefCell<Vec<DropStop>>,
    pub machine: Machine<'a>,
    frames: Vec<Frame>,
    pub found: Dropped,
    words: &'d HashSet<u64>,
    /// Instructions that may still be executed.
    pub left: u32,
    /// Address of the task.
    value: u64,
    /// The code is that of a landing pad, not of a function.
    is_landing_pad: bool,
}

impl<'d, 'a> Run<'d, 'a> {
    /// A function that drops the value at an address is about to be called. `words` are asked for, `left` is the number of
    /// instructions that may be executed.
    pub fn new(
        code: &'d Code<'a>,
        stops: &'d RefCell<Vec<DropStop>>,
        thread_local: Option<u64>,
        words: &'d HashSet<u64>,
        left: u32,
        value: u64,
    ) -> Run<'d, 'a> {
        let mut machine = Machine::new(code.pages, thread_local);
        // Functions keep the registers of their caller, whatever these are.
        KEPT.into_iter().for_each(|number| machine.registers[number] = Register::from_value(0));
        machine.registers[RDI] = Register::from_value(value);
        machine.registers[RSP] = Register::from_value(STACK_TOP - 4096);
        let found = Dropped { is_whole: true, ..Dropped::default() };
        Run { code, stops, machine, frames: Vec::new(), found, words, left, value, is_landing_pad: false }
    }

    /// Follows the function until it returns.
    pub fn all(&mut self, function: u64) {
        // The return address of the first function is nowhere.
        let next = self.call(function, 0).ok();
        self.follow(next);
    }

    /// Follows the landing pad of a frame until it lets the caller be unwound.
    pub fn landing_pad(&mut self, pad: u64, registers: &[Option<u64>; 17]) {
        self.is_landing_pad = true;
        for (value, number) in registers.iter().zip(OF_DWARF) {
            self.machine.set_register(number, *value);
        }
        // What is thrown, and the number of what may catch it: a landing pad that only drops does not look at them.
        self.machine.set_register(RAX, None);
        self.machine.set_register(RDX, None);
        let registers = self.machine.registers;
        self.frames.push(Frame { back: 0, registers, changes: 0, left: self.left });
        self.follow(Some(pad));
    }

    fn follow(&mut self, mut next: Option<u64>) {
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
        let mut stops = self.stops.borrow_mut();
        if stops.len() >= MOST_STOPS {
            return;
        }
        let begin = self.frames.last().map_or(0, |frame| frame.left);
        let why = match self.code.decoded(at) {
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
        if let Some(known) = self.code.functions.get(&at) {
            if let Some(next) = self.leaves_function(*known, true) {
                return Ok(next);
            }
            self.known(*known)?;
            return Ok(self.back());
        }
        let code = self.code.decoded(at)?;
        let slot_of = |slot: Option<u64>| slot.and_then(|slot| self.code.slots.get(&slot)).copied();
        match execute(&mut self.machine, &code)? {
            Flow::Next => Ok(Some(code.next_ip())),
            Flow::Jump { target, slot } => match slot_of(slot) {
                Some(known) => {
                    if let Some(next) = self.leaves_function(known, true) {
                        return Ok(next);
                    }
                    self.known(known)?;
                    Ok(self.back())
                }
                None => Ok(Some(target)),
            },
            Flow::Call { target, slot } => match slot_of(slot) {
                Some(known) => {
                    if let Some(next) = self.leaves_function(known, false) {
                        return Ok(next);
                    }
                    self.known(known)?;
                    Ok(Some(code.next_ip()))
                }
                None => self.call(target, code.next_ip()).map(Some),
            },
            Flow::Return => {
                if self.is_landing_pad && self.frames.len() == 1 {
                    // It has caught what was thrown: what was dropped since then may be in use until here.
                    self.machine.take_back(0);
                    self.found.words.clear();
                    self.found.is_whole = false;
                }
                Ok(self.back())
            }
        }
    }

    /// Where the code continues behind a function that does not return: in the caller of that which has called it, or nowhere.
    /// `None` if it does return. `is_called` says whether the call has been entered.
    fn leaves_function(&mut self, function: KnownFunction, is_called: bool) -> Option<Option<u64>> {
        match function {
            // Called by the landing pad itself, or through the linker's table.
            KnownFunction::Resume if self.is_landing_pad && self.frames.len() <= 2 => {
                self.frames.clear();
                self.found.resumes = true;
                Some(None)
            }
            KnownFunction::Resume | KnownFunction::NoReturn => {
                let next = self.leave_out();
                Some(if is_called { next.and_then(|_| self.leave_out()) } else { next })
            }
            _ => None,
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

    /// Reads the words that are asked for at the end.
    pub fn read_words(&mut self) {
        self.found.last = self.changed_words();
        if self.found.is_whole {
            self.found.words = self.found.last.clone();
        }
    }

    fn changed_words(&self) -> Vec<(u64, u64)> {
        let written = self.machine.written().filter(|(address, _)| self.words.contains(address));
        written.filter_map(|(address, value)| Some((address, value?))).collect()
    }

    /// Ends the innermost call as if it had not been there. What a landing pad has done before it cannot be followed is done.
    fn leave_out(&mut self) -> Option<u64> {
        if self.found.is_whole {
            self.found.words = self.changed_words();
        }
        self.found.is_whole = false;
        let frame = self.frames.pop()?;
        if self.is_landing_pad && self.frames.is_empty() {
            return None;
        }
        self.machine.take_back(frame.changes);
        self.machine.registers = frame.registers;
        self.machine.forget_changed();
        // Without instructions, the calls around it end as well.
        (!self.frames.is_empty()).then_some(frame.back)
    }

    /// `add_permits_locked` is called with the guard of the semaphore's list of waiters, and gives that back. The other function that
    /// gives permits back locks the list itself. So a lock that the code has taken before is free again.
    fn unlock_waiters(&mut self, semaphore: u64, guard: Option<u64>) -> Step<()> {
        let is_inside =
            |lock: &u64| lock.checked_sub(semaphore).is_some_and(|offset| offset < SEMAPHORE_SIZE);
        let Some(lock) = guard.filter(is_inside) else { return Ok(()) };
        // The first byte of a mutex of the standard library and of parking_lot.
        let was_free = self.code.pages.number(lock, 1) == Some(0);
        if was_free && self.machine.load(lock, 1)? == Some(LOCKED) {
            self.machine.store(lock, 1, Some(0))?;
        }
        Ok(())
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
                self.unlock_waiters(semaphore, third)?;
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
            KnownFunction::Free | KnownFunction::Descriptor | KnownFunction::UnlockRead => {}
            KnownFunction::Lock => {
                self.found.locks.extend(first);
                return Err(Stop);
            }
            KnownFunction::UnlockMutex => self.machine.store(first.ok_or(Stop)?, 1, Some(0))?,
            KnownFunction::UnlockWritten => self.machine.store(first.ok_or(Stop)?, 8, Some(0))?,
            KnownFunction::Resume | KnownFunction::NoReturn => return Err(Stop),
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
