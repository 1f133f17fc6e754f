//! The walker: from registers to the return addresses, frame by frame.
//!
//! Three speeds. **Fast**: the table knows the rule; only pc, sp and rbp are followed. **By row**: the
//! address is new or its rule does not fit a table word; the row is evaluated. **With all registers**:
//! a rule counts from a register other than rsp and rbp (lazy binding in `ld.so`, realigned stacks); the walk
//! begins anew and evaluates the complete row of every frame.

mod ends;
mod sleeping;
mod without_rule;

pub use ends::{Cut, End, Walk};

use crate::cursor::Source;
use crate::expression::{self, Trouble};
use crate::memory::{ImageMemory, StackMemory};
use crate::modules::ModuleList;
use crate::registers::{COLUMNS, DWARF_RETURN_ADDRESS, RBP, RSP, Registers};
use crate::rules::{Cfa, Row, Rule, Saved};
use crate::scratch::Scratch;
use crate::table::RuleTable;

/// Everything a walk needs besides the stack itself.
pub struct Walker<'a, I: ?Sized> {
    /// Modules of the walked process.
    pub modules: &'a ModuleList,
    /// Remembered rules of the same process, if there is such a table.
    pub table: Option<&'a RuleTable>,
    /// Reads code and rules.
    pub images: &'a I,
    /// Working memory.
    pub scratch: &'a mut Scratch,
}

/// Where the walk stands: the frame whose caller is looked for next.
struct Place {
    pc: u64,
    sp: u64,
    rbp: Option<u64>,
    /// pc is the next instruction to run, not a return address.
    exact: bool,
    /// A step was taken without a rule; the stack cannot be called complete.
    guessed: Option<Cut>,
    /// The registers in the scratch are followed too.
    all: bool,
}

/// What one step found.
enum Step {
    Caller,
    Outermost,
    Cut(Cut),
    /// Only a walk with all registers can go on.
    NeedsAll,
}

impl<I: ImageMemory + ?Sized> Walker<'_, I> {
    /// Writes the lookup addresses of the frames to `out`, innermost first, and says how far it came.
    ///
    /// The innermost frame is `start`'s pc; when `out` is full the end is [`Cut::Depth`] unless the last frame
    /// is the outermost. The loop is bounded by `out.len()`.
    pub fn walk<S: StackMemory>(&mut self, start: &Registers, stack: &mut S, out: &mut [u64]) -> Walk {
        match self.run(start, stack, out, false) {
            Some(walk) => walk,
            // `NeedsAll` cannot come from a walk that has all registers.
            None => self
                .run(start, stack, out, true)
                .unwrap_or(Walk { len: 0, end: End::Cut(Cut::RuleNotSupported) }),
        }
    }

    fn run<S: StackMemory>(
        &mut self,
        start: &Registers,
        stack: &mut S,
        out: &mut [u64],
        all: bool,
    ) -> Option<Walk> {
        let mut place =
            Place { pc: start.pc(), sp: start.sp(), rbp: start.rbp(), exact: true, guessed: None, all };
        if all {
            self.scratch.registers = *start;
        }
        let epoch = self.modules.epoch();
        let mut len = 0;
        let end = loop {
            let Some(frame) = out.get_mut(len) else { break End::Cut(Cut::Depth) };
            let lookup = if place.exact { place.pc } else { place.pc.wrapping_sub(1) };
            *frame = lookup;
            len += 1;

            let remembered =
                if all { Some(Rule::Complex) } else { self.table.and_then(|t| t.get(lookup, epoch)) };
            if let Some(Rule::Frame { from_rbp, cfa, rbp }) = remembered
                && (!from_rbp || place.rbp.is_some())
            {
                let base = if from_rbp { place.rbp.unwrap_or(0) } else { place.sp };
                match step_by_rule(&mut place, base, cfa, rbp, stack) {
                    Ok(()) if place.pc == 0 => break End::Complete,
                    Ok(()) => continue,
                    Err(cut) => break End::Cut(cut),
                }
            }
            match self.step(remembered, lookup, &mut place, stack, frame) {
                Step::Caller if place.pc == 0 => break End::Complete,
                Step::Caller => {}
                Step::Outermost => break End::Complete,
                Step::Cut(cut) => break End::Cut(cut),
                Step::NeedsAll => return None,
            }
        };
        let end = place.guessed.map_or(end, End::Cut);
        Some(Walk { len, end })
    }

    /// The step where the table did not help.
    #[cold]
    #[inline(never)]
    fn step<S: StackMemory>(
        &mut self,
        remembered: Option<Rule>,
        lookup: u64,
        place: &mut Place,
        stack: &mut S,
        frame: &mut u64,
    ) -> Step {
        let modules = self.modules;
        let Some(module) = modules.find(lookup) else {
            return self.step_without_rule(None, place, stack, Cut::NoModule);
        };
        let source = Source { images: self.images, module };
        let interpreter = &mut self.scratch.interpreter;
        let (rule, have_row) = match remembered {
            Some(rule) if !place.all => (rule, false),
            _ => {
                let found = interpreter.evaluate(source, lookup);
                let rule = if found { interpreter.rule(source, lookup) } else { Rule::Missing };
                if let Some(table) = self.table {
                    table.put(lookup, self.modules.epoch(), rule);
                }
                (rule, found)
            }
        };
        match rule {
            Rule::Outermost => return Step::Outermost,
            Rule::Missing => {
                // A module without a name is code made at run time.
                let unnamed = modules.path(module).is_empty();
                let reason = if unnamed { Cut::NoModule } else { Cut::NoRule };
                return self.step_without_rule(Some(module), place, stack, reason);
            }
            Rule::Frame { from_rbp, cfa, rbp } if !place.all => {
                let base = if from_rbp { self.rbp(source, lookup, place, stack) } else { Some(place.sp) };
                let Some(base) = base else { return Step::Cut(Cut::RbpUnknown) };
                return match step_by_rule(place, base, cfa, rbp, stack) {
                    Ok(()) => Step::Caller,
                    Err(cut) => Step::Cut(cut),
                };
            }
            _ => {}
        }
        if !have_row && !interpreter.evaluate(source, lookup) {
            return Step::Cut(Cut::NoRule); // the module went away meanwhile
        }
        if self.scratch.interpreter.row.is_signal_frame {
            *frame = place.pc; // the trampoline's first byte, rather than the byte before it
        }
        self.step_by_row(source, lookup, place, stack)
    }

    /// Steps by the complete row in the scratch.
    #[inline(never)]
    fn step_by_row<S: StackMemory>(
        &mut self,
        source: Source<'_, I>,
        lookup: u64,
        place: &mut Place,
        stack: &mut S,
    ) -> Step {
        if !place.all {
            self.scratch.registers.begin(place.pc, place.sp, place.rbp);
        }
        let mut attempt = self.apply_row(source, place.all, stack);
        if attempt == Err(Trouble::Register(RBP)) {
            let Some(rbp) = self.rbp(source, lookup, place, stack) else { return Step::Cut(Cut::RbpUnknown) };
            self.scratch.registers.set(RBP, Some(rbp));
            attempt = self.apply_row(source, place.all, stack);
        }
        match attempt {
            Ok(()) => {}
            Err(Trouble::Memory) => return Step::Cut(Cut::UnreadableStack),
            Err(Trouble::Register(register)) if register != RBP && !place.all => return Step::NeedsAll,
            Err(_) => return Step::Cut(Cut::RuleNotSupported),
        }
        let Scratch { interpreter, registers, caller } = &mut *self.scratch;
        let is_signal_frame = interpreter.row.is_signal_frame;
        // A signal may have interrupted another stack than the one its handler runs on. The innermost function may
        // have taken its return address off the stack (vfork keeps it in a register).
        let grew = caller.sp() > place.sp || place.exact && caller.sp() == place.sp;
        if !is_signal_frame && !grew {
            return Step::Cut(Cut::StackDidNotGrow);
        }
        registers.clone_from(caller);
        place.pc = caller.pc();
        place.sp = caller.sp();
        place.rbp = caller.rbp();
        place.exact = is_signal_frame;
        Step::Caller
    }

    /// Computes `scratch.caller` from `scratch.registers` and the row. Only pc, sp and rbp unless `all`.
    fn apply_row<S: StackMemory>(
        &mut self,
        source: Source<'_, I>,
        all: bool,
        stack: &mut S,
    ) -> Result<(), Trouble> {
        let Scratch { interpreter, registers, caller } = &mut *self.scratch;
        let row: &Row = &interpreter.row;
        let (window, operands) = (&mut interpreter.window, &mut interpreter.operands);
        let registers: &Registers = registers;
        let value = |number: u8| registers.get(number);
        let known = |number: u8| registers.get(number).ok_or(Trouble::Register(number));
        let cfa = match row.cfa {
            Cfa::Unset => return Err(Trouble::Unsupported),
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
                found = Err(Trouble::Memory);
            }
            match found {
                Ok(value) => caller.set(column, value),
                Err(trouble) if essential => return Err(trouble),
                Err(_) => caller.set(column, None),
            }
        }
        match row.return_address() {
            // No rule about the return address: it would be the callee's own pc again.
            Saved::Same => Err(Trouble::Unsupported),
            _ => Ok(()),
        }
    }
}

/// Whether what was saved there has been taken off the stack again: compilers do not say so in an epilogue, and
/// the register holds it still. A copy of a stack ends at `sp`; where memory can be read it says the same.
fn was_popped(saved_at: u64, sp: u64) -> bool {
    saved_at < sp
}

/// The usual step. Loads the return address and, if it was saved, `rbp`.
#[inline(always)]
fn step_by_rule<S: StackMemory>(
    place: &mut Place,
    base: u64,
    cfa: u16,
    rbp: u8,
    stack: &mut S,
) -> Result<(), Cut> {
    let cfa = base.wrapping_add(u64::from(cfa) * 8);
    if cfa <= place.sp {
        return Err(Cut::StackDidNotGrow);
    }
    place.pc = stack.read_u64(cfa.wrapping_sub(8)).ok_or(Cut::UnreadableStack)?;
    if rbp != 0 {
        let saved_at = cfa.wrapping_sub(u64::from(rbp) * 8);
        match stack.read_u64(saved_at) {
            Some(rbp) => place.rbp = Some(rbp),
            None if was_popped(saved_at, place.sp) => {}
            None => return Err(Cut::UnreadableStack),
        }
    }
    place.sp = cfa;
    place.exact = false;
    Ok(())
}
