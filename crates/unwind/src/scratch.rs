//! The working memory of a walk, so that a signal handler's own stack stays small.

use crate::cursor::Source;
use crate::interpreter::Interpreter;
use crate::memory::ModuleMemory;
use crate::modules::Module;
use crate::registers::Registers;
use crate::rules::{Row, Rule};

/// Memory of a walk beyond a few hundred bytes of stack. Each walk in progress needs one. It carries nothing from one
/// walk to the next. It lives in a `static`, a mapping or a mailbox.
pub struct Scratch {
    pub(crate) interpreter: Interpreter,
    pub(crate) registers: Registers,
    pub(crate) caller: Registers,
}

impl Scratch {
    /// Empty working memory.
    pub const fn new() -> Scratch {
        Scratch {
            interpreter: Interpreter::new(),
            registers: Registers::new(0, 0, None),
            caller: Registers::new(0, 0, None),
        }
    }

    /// The complete row for `address`, or `None` if the module has no entry for it that can be read.
    pub fn row_at<M: ModuleMemory + ?Sized>(
        &mut self,
        module: &Module,
        memory: &M,
        address: u64,
    ) -> Option<&Row> {
        self.interpreter.evaluate(Source { memory, module }, address).then_some(&self.interpreter.row)
    }

    /// The short rule for `address`, as a [`crate::RuleTable`] stores it.
    pub fn rule_at<M: ModuleMemory + ?Sized>(&mut self, module: &Module, memory: &M, address: u64) -> Rule {
        let source = Source { memory, module };
        if self.interpreter.evaluate(source, address) {
            self.interpreter.rule(source, address)
        } else {
            Rule::Missing
        }
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Scratch::new()
    }
}

// The room that a mailbox has for it.
const _: () = assert!(size_of::<Scratch>() <= 4096);
