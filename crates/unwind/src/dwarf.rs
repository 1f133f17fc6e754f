//! Numbers of DWARF that unwind rules consist of, by the names of the standards.
//!
//! Sources: DWARF 5 §7.7.1 (`DW_OP_*`) and §7.24 (`DW_CFA_*`); Linux Standard Base 5 core §10.5 (`DW_EH_PE_*`, GNU's
//! instructions).

// Instructions of call frame information. The upper two bits of the first three are the opcode, the rest an operand.
pub(crate) const DW_CFA_ADVANCE_LOC: u8 = 0x40;
pub(crate) const DW_CFA_OFFSET: u8 = 0x80;
pub(crate) const DW_CFA_RESTORE: u8 = 0xc0;
pub(crate) const DW_CFA_NOP: u8 = 0x00;
pub(crate) const DW_CFA_SET_LOC: u8 = 0x01;
pub(crate) const DW_CFA_ADVANCE_LOC1: u8 = 0x02;
pub(crate) const DW_CFA_ADVANCE_LOC2: u8 = 0x03;
pub(crate) const DW_CFA_ADVANCE_LOC4: u8 = 0x04;
pub(crate) const DW_CFA_OFFSET_EXTENDED: u8 = 0x05;
pub(crate) const DW_CFA_RESTORE_EXTENDED: u8 = 0x06;
pub(crate) const DW_CFA_UNDEFINED: u8 = 0x07;
pub(crate) const DW_CFA_SAME_VALUE: u8 = 0x08;
pub(crate) const DW_CFA_REGISTER: u8 = 0x09;
pub(crate) const DW_CFA_REMEMBER_STATE: u8 = 0x0a;
pub(crate) const DW_CFA_RESTORE_STATE: u8 = 0x0b;
pub(crate) const DW_CFA_DEF_CFA: u8 = 0x0c;
pub(crate) const DW_CFA_DEF_CFA_REGISTER: u8 = 0x0d;
pub(crate) const DW_CFA_DEF_CFA_OFFSET: u8 = 0x0e;
pub(crate) const DW_CFA_DEF_CFA_EXPRESSION: u8 = 0x0f;
pub(crate) const DW_CFA_EXPRESSION: u8 = 0x10;
pub(crate) const DW_CFA_OFFSET_EXTENDED_SF: u8 = 0x11;
pub(crate) const DW_CFA_DEF_CFA_SF: u8 = 0x12;
pub(crate) const DW_CFA_DEF_CFA_OFFSET_SF: u8 = 0x13;
pub(crate) const DW_CFA_VAL_OFFSET: u8 = 0x14;
pub(crate) const DW_CFA_VAL_OFFSET_SF: u8 = 0x15;
pub(crate) const DW_CFA_VAL_EXPRESSION: u8 = 0x16;
pub(crate) const DW_CFA_GNU_ARGS_SIZE: u8 = 0x2e;
pub(crate) const DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED: u8 = 0x2f;

/// The bits of the first three instructions that hold the operand.
pub(crate) const DW_CFA_OPERAND: u8 = 0x3f;

// Operations of expressions.
pub(crate) const DW_OP_ADDR: u8 = 0x03;
pub(crate) const DW_OP_DEREF: u8 = 0x06;
pub(crate) const DW_OP_CONST1U: u8 = 0x08;
pub(crate) const DW_OP_CONST1S: u8 = 0x09;
pub(crate) const DW_OP_CONST2U: u8 = 0x0a;
pub(crate) const DW_OP_CONST2S: u8 = 0x0b;
pub(crate) const DW_OP_CONST4U: u8 = 0x0c;
pub(crate) const DW_OP_CONST4S: u8 = 0x0d;
pub(crate) const DW_OP_CONST8U: u8 = 0x0e;
pub(crate) const DW_OP_CONST8S: u8 = 0x0f;
pub(crate) const DW_OP_CONSTU: u8 = 0x10;
pub(crate) const DW_OP_CONSTS: u8 = 0x11;
pub(crate) const DW_OP_DUP: u8 = 0x12;
pub(crate) const DW_OP_DROP: u8 = 0x13;
pub(crate) const DW_OP_OVER: u8 = 0x14;
pub(crate) const DW_OP_PICK: u8 = 0x15;
pub(crate) const DW_OP_SWAP: u8 = 0x16;
pub(crate) const DW_OP_AND: u8 = 0x1a;
pub(crate) const DW_OP_MINUS: u8 = 0x1c;
pub(crate) const DW_OP_MUL: u8 = 0x1e;
pub(crate) const DW_OP_NEG: u8 = 0x1f;
pub(crate) const DW_OP_NOT: u8 = 0x20;
pub(crate) const DW_OP_OR: u8 = 0x21;
pub(crate) const DW_OP_PLUS: u8 = 0x22;
pub(crate) const DW_OP_PLUS_UCONST: u8 = 0x23;
pub(crate) const DW_OP_SHL: u8 = 0x24;
pub(crate) const DW_OP_SHR: u8 = 0x25;
pub(crate) const DW_OP_SHRA: u8 = 0x26;
pub(crate) const DW_OP_XOR: u8 = 0x27;
pub(crate) const DW_OP_BRA: u8 = 0x28;
pub(crate) const DW_OP_EQ: u8 = 0x29;
pub(crate) const DW_OP_GE: u8 = 0x2a;
pub(crate) const DW_OP_GT: u8 = 0x2b;
pub(crate) const DW_OP_LE: u8 = 0x2c;
pub(crate) const DW_OP_LT: u8 = 0x2d;
pub(crate) const DW_OP_NE: u8 = 0x2e;
pub(crate) const DW_OP_SKIP: u8 = 0x2f;
pub(crate) const DW_OP_LIT0: u8 = 0x30;
pub(crate) const DW_OP_LIT31: u8 = 0x4f;
pub(crate) const DW_OP_BREG0: u8 = 0x70;
pub(crate) const DW_OP_BREG31: u8 = 0x8f;
pub(crate) const DW_OP_BREGX: u8 = 0x92;
pub(crate) const DW_OP_NOP: u8 = 0x96;

// Encodings of pointers: the lower four bits are the format, the next three the base.
pub(crate) const DW_EH_PE_ABSPTR: u8 = 0x00;
pub(crate) const DW_EH_PE_ULEB128: u8 = 0x01;
pub(crate) const DW_EH_PE_UDATA2: u8 = 0x02;
pub(crate) const DW_EH_PE_UDATA4: u8 = 0x03;
pub(crate) const DW_EH_PE_UDATA8: u8 = 0x04;
pub(crate) const DW_EH_PE_SLEB128: u8 = 0x09;
pub(crate) const DW_EH_PE_SDATA2: u8 = 0x0a;
pub(crate) const DW_EH_PE_SDATA4: u8 = 0x0b;
pub(crate) const DW_EH_PE_SDATA8: u8 = 0x0c;
pub(crate) const DW_EH_PE_PCREL: u8 = 0x10;
pub(crate) const DW_EH_PE_DATAREL: u8 = 0x30;
pub(crate) const DW_EH_PE_INDIRECT: u8 = 0x80;
pub(crate) const DW_EH_PE_OMIT: u8 = 0xff;

/// The bits of an encoding that give the format.
pub(crate) const DW_EH_PE_FORMAT: u8 = 0x0f;
/// The bits of an encoding that give the base.
pub(crate) const DW_EH_PE_BASE: u8 = 0x70;
