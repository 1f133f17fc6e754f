//! The walker: from registers to return addresses, frame by frame.
//!
//! It has three speeds. **Fast**: the rule table has the rule; only pc, sp and rbp are tracked. **By row**: the
//! address is new, or its rule does not fit a table word; the row is evaluated. **With all registers**: a rule depends
//! on a register other than rsp and rbp (lazy binding in `ld.so`, realigned stacks); the walk starts again and
//! evaluates the complete row of every frame.

mod ends;
mod frames;
mod sleeping;
mod without_rule;

pub use ends::{Cut, End, Walk};
pub use frames::WalkedFrame;

use crate::cursor::Source;
use crate::expression::{self, EvaluationError};
use crate::memory::{ModuleMemory, StackMemory};
use crate::modules::ModuleList;
use crate::registers::{COLUMNS, DWARF_RETURN_ADDRESS, RBP, RSP, Registers};
use crate::rules::{Cfa, Row, Rule, Saved};
use crate::scratch::Scratch;
use crate::table::RuleTable;
use std::ops::Range;

/// The inputs of a walk, except the stack.
pub struct Walker<'a, M: ?Sized> {
    /// Modules of the walked process.
    pub modules: &'a ModuleList,
    /// Rules found earlier in the same process, if there is such a table. Without one, [`ModuleMemory::file_rules`] are used.
    pub table: Option<&'a RuleTable>,
    /// Reads code and rules.
    pub memory: &'a M,
    /// Working memory.
    pub scratch: &'a mut Scratch,
}

/// The frame that the walk has reached; its caller is next.
struct Position {
    pc: u64,
    sp: u64,
    rbp: Option<u64>,
    /// pc is the next instruction to execute, not a return address.
    exact: bool,
    /// A step was taken without a rule, so that the stack is not complete.
    guessed: Option<Cut>,
    /// All registers are tracked, in the scratch.
    all: bool,
}

/// The rules of the file of one module.
struct FileRules<'a> {
    range: Range<u64>,
    table: &'a RuleTable,
    bias: u64,
}

/// A file does not change while it is open.
const FILE_EPOCH: u8 = 0;

/// The registers that a walk follows, in one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OneStep {
    pub pc: u64,
    pub sp: u64,
    pub rbp: u64,
    /// The pc is that of an instruction to come, not a return address.
    pub exact: bool,
}

/// Result of one step.
enum Step {
    Caller,
    Outermost,
    Cut(Cut),
    /// The next step needs all registers.
    NeedsAll,
}

impl<'a, M: ModuleMemory + ?Sized> Walker<'a, M> {
    /// Writes the lookup addresses of the frames to `out`, innermost first, and returns their number and the end.
    ///
    /// The innermost frame is `start`'s pc; when `out` is full the end is [`Cut::Depth`] unless the last frame
    /// is the outermost. The loop is bounded by `out.len()`.
    pub fn walk<S: StackMemory>(&mut self, start: &Registers, stack: &mut S, out: &mut [u64]) -> Walk {
        match self.run(start, stack, out, false) {
            Some(walk) => walk,
            // A walk with all registers never ends in `NeedsAll`.
            None => self
                .run(start, stack, out, true)
                .unwrap_or(Walk { len: 0, end: End::Cut(Cut::RuleNotSupported) }),
        }
    }

    /// The caller of one frame; `None` for an outermost one.
    #[inline(never)]
    pub(crate) fn one_step<S: StackMemory>(
        &mut self,
        frame: OneStep,
        stack: &mut S,
    ) -> Result<Option<OneStep>, Cut> {
        let OneStep { pc, sp, rbp, exact } = frame;
        let mut position = Position { pc, sp, rbp: Some(rbp), exact, guessed: None, all: false };
        let lookup = if exact { pc } else { pc.wrapping_sub(1) };
        let known = self.table.and_then(|table| table.get(lookup, self.modules.epoch()));
        match self.step(known, lookup, &mut position, stack, &mut 0) {
            Step::Caller => {
                let Position { pc, sp, rbp, exact, .. } = position;
                let rbp = rbp.unwrap_or(0);
                Ok(Some(OneStep { pc, sp, rbp, exact }))
            }
            Step::Outermost => Ok(None),
            Step::Cut(cut) => Err(cut),
            Step::NeedsAll => Err(Cut::RuleNotSupported),
        }
    }

    fn run<S: StackMemory>(
        &mut self,
        start: &Registers,
        stack: &mut S,
        out: &mut [u64],
        all: bool,
    ) -> Option<Walk> {
        let mut position =
            Position { pc: start.pc(), sp: start.sp(), rbp: start.rbp(), exact: true, guessed: None, all };
        if all {
            self.scratch.registers = *start;
        }
        let epoch = self.modules.epoch();
        let mut near = None;
        let mut len = 0;
        let end = loop {
            let Some(frame) = out.get_mut(len) else { break End::Cut(Cut::Depth) };
            let lookup = if position.exact { position.pc } else { position.pc.wrapping_sub(1) };
            *frame = lookup;
            len += 1;

            let remembered = match self.table {
                _ if all => Some(Rule::Complex),
                Some(table) => table.get(lookup, epoch),
                None => self.file_rule(lookup, &mut near),
            };
            if let Some(Rule::Frame { from_rbp, cfa, rbp }) = remembered
                && (!from_rbp || position.rbp.is_some())
            {
                let base = if from_rbp { position.rbp.unwrap_or(0) } else { position.sp };
                match step_by_rule(&mut position, base, cfa, rbp, stack) {
                    Ok(()) if position.pc == 0 => break End::Complete,
                    Ok(()) => continue,
                    Err(cut) => break End::Cut(cut),
                }
            }
            match self.step(remembered, lookup, &mut position, stack, frame) {
                Step::Caller if position.pc == 0 => break End::Complete,
                Step::Caller => {}
                Step::Outermost => break End::Complete,
                Step::Cut(cut) => break End::Cut(cut),
                Step::NeedsAll => return None,
            }
        };
        let end = position.guessed.map_or(end, End::Cut);
        Some(Walk { len, end })
    }

    /// The rule that the file of a module has for an address. Most callers are in the module of their callee: `near`.
    #[inline]
    fn file_rule(&self, lookup: u64, near: &mut Option<FileRules<'a>>) -> Option<Rule> {
        if !near.as_ref().is_some_and(|near| near.range.contains(&lookup)) {
            let module = self.modules.find(lookup)?;
            let (table, bias) = self.memory.file_rules(module)?;
            *near = Some(FileRules { range: module.range(), table, bias });
        }
        let FileRules { table, bias, .. } = near.as_ref()?;
        table.get(lookup.wrapping_sub(*bias), FILE_EPOCH)
    }

    /// A step whose rule is not in the table.
    #[cold]
    #[inline(never)]
    fn step<S: StackMemory>(
        &mut self,
        remembered: Option<Rule>,
        lookup: u64,
        position: &mut Position,
        stack: &mut S,
        frame: &mut u64,
    ) -> Step {
        let modules = self.modules;
        let Some(module) = modules.find(lookup) else {
            return self.step_without_rule(None, position, stack, Cut::NoModule);
        };
        let source = Source { memory: self.memory, module };
        let interpreter = &mut self.scratch.interpreter;
        let (rule, have_row) = match remembered {
            Some(rule) if !position.all => (rule, false),
            _ => {
                let found = interpreter.evaluate(source, lookup);
                let rule = if found { interpreter.rule(source, lookup) } else { Rule::Missing };
                match self.table {
                    Some(table) => table.put(lookup, self.modules.epoch(), rule),
                    None => {
                        if let Some((table, bias)) = self.memory.file_rules(module) {
                            table.put(lookup.wrapping_sub(bias), FILE_EPOCH, rule);
                        }
                    }
                }
                (rule, found)
            }
        };
        match rule {
            Rule::Outermost => return Step::Outermost,
            Rule::Missing => {
                // A module without a name is code generated at run time.
                let unnamed = modules.path(module).is_empty();
                let reason = if unnamed { Cut::NoModule } else { Cut::NoRule };
                return self.step_without_rule(Some(module), position, stack, reason);
            }
            Rule::Frame { from_rbp, cfa, rbp } if !position.all => {
                let base =
                    if from_rbp { self.rbp(source, lookup, position, stack) } else { Some(position.sp) };
                let Some(base) = base else { return Step::Cut(Cut::RbpUnknown) };
                return match step_by_rule(position, base, cfa, rbp, stack) {
                    Ok(()) => Step::Caller,
                    Err(cut) => Step::Cut(cut),
                };
            }
            _ => {}
        }
        if !have_row && !interpreter.evaluate(source, lookup) {
            return Step::Cut(Cut::NoRule); // the module was unloaded meanwhile
        }
        if self.scratch.interpreter.row.is_signal_frame {
            *frame = position.pc; // the trampoline's first byte, not the byte before it
        }
        self.step_by_row(source, lookup, position, stack)
    }

    /// Steps by the complete row, which is in the scratch.
    #[inline(never)]
    fn step_by_row<S: StackMemory>(
        &mut self,
        source: Source<'_, M>,
        lookup: u64,
        position: &mut Position,
        stack: &mut S,
    ) -> Step {
        if !position.all {
            self.scratch.registers.begin(position.pc, position.sp, position.rbp);
        }
        let mut attempt = self.apply_row(source, position.all, stack);
        if attempt == Err(EvaluationError::Register(RBP)) {
            let Some(rbp) = self.rbp(source, lookup, position, stack) else {
                return Step::Cut(Cut::RbpUnknown);
            };
            self.scratch.registers.set(RBP, Some(rbp));
            attempt = self.apply_row(source, position.all, stack);
        }
        match attempt {
            Ok(()) => {}
            Err(EvaluationError::Memory) => return Step::Cut(Cut::UnreadableStack),
            Err(EvaluationError::Register(register)) if register != RBP && !position.all => {
                return Step::NeedsAll;
            }
            Err(_) => return Step::Cut(Cut::RuleNotSupported),
        }
        let Scratch { interpreter, registers, caller } = &mut *self.scratch;
        let is_signal_frame = interpreter.row.is_signal_frame;
        // A signal may have interrupted a stack other than the one that its handler runs on. The innermost function
        // may have popped its return address (vfork keeps it in a register).
        let grew = caller.sp() > position.sp || position.exact && caller.sp() == position.sp;
        if !is_signal_frame && !grew {
            return Step::Cut(Cut::StackDidNotGrow);
        }
        registers.clone_from(caller);
        position.pc = caller.pc();
        position.sp = caller.sp();
        position.rbp = caller.rbp();
        position.exact = is_signal_frame;
        Step::Caller
    }

    /// Computes `scratch.caller` from `scratch.registers` and the row: all registers if `all`, else pc, sp and rbp.
    fn apply_row<S: StackMemory>(
        &mut self,
        source: Source<'_, M>,
        all: bool,
        stack: &mut S,
    ) -> Result<(), EvaluationError> {
        let Scratch { interpreter, registers, caller } = &mut *self.scratch;
        let row: &Row = &interpreter.row;
        let (window, operands) = (&mut interpreter.window, &mut interpreter.operands);
        let registers: &Registers = registers;
        let value = |number: u8| registers.get(number);
        let known = |number: u8| registers.get(number).ok_or(EvaluationError::Register(number));
        let cfa = match row.cfa {
            Cfa::Unset => return Err(EvaluationError::Unsupported),
            Cfa::Offset(number, offset) => known(number)?.wrapping_add(i64::from(offset) as u64),
            Cfa::Expression(e) => expression::evaluate(source, window, operands, e, &value, stack, None)?,
        };
        *caller = *registers;
        caller.set(RSP, Some(cfa));
        for column in 0..COLUMNS as u8 {
            let essential = matches!(column, RBP | RSP | DWARF_RETURN_ADDRESS);
            let how = row.saved.get(usize::from(column)).copied().unwrap_or_default();
            if how == Saved::Same || !(essential || all) {
                continue;
            }
            let offset_by = |offset: i32| cfa.wrapping_add(i64::from(offset) as u64);
            let mut found = match how {
                Saved::Same | Saved::Undefined => Ok(None),
                Saved::At(offset) => {
                    let (saved_at, sp) = (offset_by(offset), registers.sp());
                    let popped = || value(column).filter(|_| was_popped(saved_at, sp));
                    Ok(stack.read_u64(saved_at).or_else(popped))
                }
                Saved::Value(offset) => Ok(Some(offset_by(offset))),
                Saved::Register(number) => known(number).map(Some),
                Saved::AtExpression(e) => {
                    expression::evaluate(source, window, operands, e, &value, stack, Some(cfa))
                        .map(|address| stack.read_u64(address))
                }
                Saved::ValueExpression(e) => {
                    expression::evaluate(source, window, operands, e, &value, stack, Some(cfa)).map(Some)
                }
            };
            if essential && column != RBP && matches!(found, Ok(None)) {
                found = Err(EvaluationError::Memory);
            }
            match found {
                Ok(value) => caller.set(column, value),
                Err(error) if essential => return Err(error),
                Err(_) => caller.set(column, None),
            }
        }
        match row.return_address() {
            // Without a rule for the return address, the caller's pc would be the callee's.
            Saved::Same => Err(EvaluationError::Unsupported),
            _ => Ok(()),
        }
    }
}

/// Whether the value saved there has been popped. Compilers give no rule for this in an epilogue; the register then still
/// holds the value. A copy of a stack ends at `sp`. Where the memory can be read, it has the same value.
fn was_popped(saved_at: u64, sp: u64) -> bool {
    saved_at < sp
}

/// The usual step: loads the return address and, if it was saved, `rbp`.
#[inline(always)]
fn step_by_rule<S: StackMemory>(
    position: &mut Position,
    base: u64,
    cfa: u16,
    rbp: u8,
    stack: &mut S,
) -> Result<(), Cut> {
    let cfa = base.wrapping_add(u64::from(cfa) * 8);
    if cfa <= position.sp {
        return Err(Cut::StackDidNotGrow);
    }
    position.pc = stack.read_u64(cfa.wrapping_sub(8)).ok_or(Cut::UnreadableStack)?;
    if rbp != 0 {
        let saved_at = cfa.wrapping_sub(u64::from(rbp) * 8);
        match stack.read_u64(saved_at) {
            Some(rbp) => position.rbp = Some(rbp),
            None if was_popped(saved_at, position.sp) => {}
            None => return Err(Cut::UnreadableStack),
        }
    }
    position.sp = cfa;
    position.exact = false;
    Ok(())
}
