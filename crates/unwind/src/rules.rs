//! Unwind rules: how the caller's registers are found from a given address.
//!
//! [`Row`] is the complete result of the call frame instructions. [`Rule`] is the short form of nearly all rows: the CFA
//! counts from `rsp` or `rbp`, `rbp` is kept or saved, and the return address lies right below the CFA. It fits into
//! one word of a [`crate::RuleTable`].

use crate::modules::Module;
use crate::registers::{COLUMNS, DWARF_RETURN_ADDRESS, RBP};
use std::ops::Range;

/// A DWARF expression: where its bytes lie, counted from the start of the module's unwind data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expression {
    pub(crate) offset: u32,
    pub(crate) len: u16,
}

impl Expression {
    /// Addresses of its bytes in the module's memory.
    pub fn range(self, module: &Module) -> Range<u64> {
        let start = module.unwind_data().start.saturating_add(u64::from(self.offset));
        start..start.saturating_add(u64::from(self.len))
    }
}

/// How one register of the caller is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Saved {
    /// The callee has not touched it.
    #[default]
    Same,
    /// It is lost. For the return address: this is the outermost frame.
    Undefined,
    /// In memory at CFA + offset.
    At(i32),
    /// It is the CFA + offset itself.
    Value(i32),
    /// In another register.
    Register(u8),
    /// In memory at the address that an expression gives (the CFA is on its stack at the start).
    AtExpression(Expression),
    /// The value that an expression gives.
    ValueExpression(Expression),
}

/// How the canonical frame address (`rsp` before the call) is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cfa {
    /// Not given by any instruction so far.
    Unset,
    /// A register (DWARF number) plus an offset.
    Offset(u8, i32),
    /// The value that an expression gives.
    Expression(Expression),
}

/// The rules in force at one address.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The canonical frame address.
    pub cfa: Cfa,
    pub(crate) saved: [Saved; COLUMNS],
    /// The frame is a signal trampoline: its caller was interrupted and has made no call.
    pub is_signal_frame: bool,
    /// Start of the function's entry.
    pub function: u64,
    /// Where the CFA first became `rbp + 16`: the address behind `mov rbp, rsp`. Zero if it did not up to here.
    pub(crate) frame_pointer_set_at: u64,
}

impl Row {
    pub(crate) const fn new() -> Row {
        Row {
            cfa: Cfa::Unset,
            saved: [Saved::Same; COLUMNS],
            is_signal_frame: false,
            function: 0,
            frame_pointer_set_at: 0,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.cfa = Cfa::Unset;
        self.saved.fill(Saved::Same);
        self.frame_pointer_set_at = 0;
    }

    /// How the caller's `rbp` is found.
    pub fn rbp(&self) -> Saved {
        self.saved[RBP as usize]
    }

    /// How the return address is found.
    pub fn return_address(&self) -> Saved {
        self.saved[DWARF_RETURN_ADDRESS as usize]
    }
}

/// The short form of a row. It depends on the address alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The usual frame. Offsets count words of 8 bytes.
    Frame {
        /// The CFA counts from `rbp` instead of `rsp`.
        from_rbp: bool,
        /// CFA = base + 8 * this.
        cfa: u16,
        /// The caller's `rbp` lies at CFA - 8 * this; zero: it is unchanged. At least 2, or zero.
        rbp: u8,
    },
    /// No caller: the rules call the return address undefined.
    Outermost,
    /// The module has no entry for the address, or an entry that cannot be read.
    Missing,
    /// The complete row is needed.
    Complex,
}

/// Largest [`Rule::Frame`] fields that fit a table word.
pub(crate) const CFA_LIMIT: i32 = 1 << 16;
pub(crate) const RBP_LIMIT: i32 = 1 << 7;
