//! Executes the instructions of a line table (DWARF 5 §6.2.5) for three columns: address, file and line.
//!
//! It replaces gimli's executor, since lookups in large debug information spend most of their time in this loop. No row is
//! built, and the effects of special opcodes are in a table.

use crate::dwarf::leb::{read_leb, read_signed_leb};
use crate::sections::Reader;
use gimli::LineProgramHeader;

/// A row of the table, or the end of a sequence of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// First address.
    pub address: u64,
    /// Index into the unit's table of files.
    pub file: u64,
    /// 0: none.
    pub line: u64,
    /// Whether it is the end of a sequence.
    pub end_sequence: bool,
}

/// What a special opcode adds to the address and the line.
#[derive(Clone, Copy, Default)]
struct Advance {
    address: u64,
    line: i64,
}

/// The program of one unit.
pub struct LineProgram<'data> {
    bytes: &'data [u8],
    opcode_base: u8,
    /// Numbers of operands of the standard opcodes, from opcode 1.
    operands: &'data [u8],
    instruction: u64,
    special: [Advance; 256],
}

impl<'data> LineProgram<'data> {
    /// `maximum_operations_per_instruction` is ignored: it is 1 on all supported CPUs.
    pub fn new(header: &LineProgramHeader<Reader<'data>>) -> LineProgram<'data> {
        let (base, range) = (header.opcode_base(), header.line_range().max(1));
        let instruction = u64::from(header.minimum_instruction_length());
        let mut special = [Advance::default(); 256];
        for (opcode, advance) in special.iter_mut().enumerate().skip(usize::from(base)) {
            let adjusted = opcode as u8 - base;
            advance.address = u64::from(adjusted / range) * instruction;
            advance.line = i64::from(header.line_base()) + i64::from(adjusted % range);
        }
        LineProgram {
            bytes: header.raw_program_buf().slice(),
            opcode_base: base,
            operands: header.standard_opcode_lengths().slice(),
            instruction,
            special,
        }
    }

    /// Executes the program and passes its rows to `row` until that returns false. `None` if the program ends within an
    /// instruction.
    ///
    /// Rows before the last address of their sequence, or at the end of the address space, belong to code that the
    /// linker dropped; they are left out.
    pub fn run(&self, mut row: impl FnMut(Row) -> bool) -> Option<()> {
        const START: Row = Row { address: 0, file: 1, line: 1, end_sequence: false };
        const DROPPED: u64 = u64::MAX - 1;
        let bytes = self.bytes;
        let (mut now, mut dropped, mut at) = (START, false, 0);
        while let Some(opcode) = bytes.get(at) {
            at += 1;
            if *opcode >= self.opcode_base {
                let advance = self.special[usize::from(*opcode)];
                now.line = now.line.saturating_add_signed(advance.line);
                if !dropped {
                    now.address = now.address.wrapping_add(advance.address);
                    if !row(now) {
                        return Some(());
                    }
                }
                continue;
            }
            match gimli::DwLns(*opcode) {
                gimli::DwLns(0) => {
                    let (size, start) = read_leb(bytes, at)?;
                    let end = start.checked_add(usize::try_from(size).ok()?)?;
                    let extended = bytes.get(start..end)?;
                    at = end;
                    match extended.split_first().map(|(opcode, operand)| (gimli::DwLne(*opcode), operand)) {
                        Some((gimli::DW_LNE_end_sequence, _)) => {
                            now.end_sequence = true;
                            if !dropped && !row(now) {
                                return Some(());
                            }
                            (now, dropped) = (START, false);
                        }
                        Some((gimli::DW_LNE_set_address, operand)) => {
                            let address = match operand.len() {
                                8 => u64::from_le_bytes(*operand.first_chunk()?),
                                4 => u64::from(u32::from_le_bytes(*operand.first_chunk()?)),
                                _ => return None,
                            };
                            dropped = address < now.address || address >= DROPPED;
                            if !dropped {
                                now.address = address;
                            }
                        }
                        _ => {}
                    }
                }
                gimli::DW_LNS_copy => {
                    if !dropped && !row(now) {
                        return Some(());
                    }
                }
                gimli::DW_LNS_advance_pc => {
                    let (advance, after) = read_leb(bytes, at)?;
                    at = after;
                    if !dropped {
                        now.address = now.address.wrapping_add(advance.wrapping_mul(self.instruction));
                    }
                }
                gimli::DW_LNS_advance_line => {
                    let (advance, after) = read_signed_leb(bytes, at)?;
                    at = after;
                    now.line = now.line.saturating_add_signed(advance);
                }
                gimli::DW_LNS_set_file => (now.file, at) = read_leb(bytes, at)?,
                gimli::DW_LNS_const_add_pc => {
                    if !dropped {
                        now.address = now.address.wrapping_add(self.special[255].address);
                    }
                }
                gimli::DW_LNS_fixed_advance_pc => {
                    let advance = u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
                    at += 2;
                    if !dropped {
                        now.address = now.address.wrapping_add(u64::from(advance));
                    }
                }
                _ => {
                    // Columns, blocks, and opcodes of later versions: skip the operands.
                    for _ in 0..*self.operands.get(usize::from(*opcode) - 1)? {
                        (_, at) = read_leb(bytes, at)?;
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimli::{DebugLine, LittleEndian};

    /// A version 4 table with this program.
    fn table(program: &[u8]) -> Vec<u8> {
        let mut header = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
        header.extend([0, b'a', 0, 0, 0, 0, 0]);
        let mut bytes = Vec::new();
        bytes.extend((2 + 4 + header.len() as u32 + program.len() as u32).to_le_bytes());
        bytes.extend(4u16.to_le_bytes());
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        bytes.extend(program);
        bytes
    }

    fn rows(program: &[u8]) -> (Vec<Row>, Vec<Row>) {
        let bytes = table(program);
        let lines = DebugLine::new(&bytes, LittleEndian);
        let parsed = lines.program(gimli::DebugLineOffset(0), 8, None, None).unwrap();
        let mut ours = Vec::new();
        let _ = LineProgram::new(parsed.header()).run(|row| {
            ours.push(row);
            true
        });
        let mut theirs = Vec::new();
        let mut all = parsed.rows();
        while let Ok(Some((_, row))) = all.next_row() {
            theirs.push(Row {
                address: row.address(),
                file: row.file_index(),
                line: row.line().map_or(0, |line| line.get()),
                end_sequence: row.end_sequence(),
            });
        }
        (ours, theirs)
    }

    #[test]
    fn rows_of_a_program() {
        let set_address = |address: u64| [&[0, 9, 2][..], &address.to_le_bytes()].concat();
        let program = [
            set_address(0x1000),
            vec![3, 10, 1],                           // line 11
            vec![75, 2, 5, 3, 0x7e, 1],               // special, advance_pc 5, line -2, copy
            vec![4, 2, 8, 9, 2, 1, 5, 7, 6, 10, 250], // file 2, const_add_pc, fixed 0x102, column, …
            vec![0, 1, 1],
            set_address(0),
            vec![1, 0, 2, 4, 3, 0, 1, 1],
            set_address(u64::MAX),
            vec![1, 0, 1, 1],
        ]
        .concat();
        let (ours, theirs) = rows(&program);
        assert_eq!(ours, theirs);
        assert!(ours.len() >= 6, "{ours:?}");
        assert_eq!(ours[0], Row { address: 0x1000, file: 1, line: 11, end_sequence: false });
    }

    proptest::proptest! {
        /// The same rows as gimli's for whatever both can read.
        #[test]
        fn any_program_gives_the_same_rows(
            program in proptest::collection::vec(proptest::prop_oneof![0u8..14, 14u8..=255, 0u8..3], 0..80),
        ) {
            let (ours, theirs) = rows(&program);
            let both = ours.len().min(theirs.len());
            // Line numbers that wrap around in one do not in the other.
            let sane = ours[..both].iter().zip(&theirs).take_while(|(row, _)| row.line < 1 << 60);
            for (our, their) in sane {
                proptest::prop_assert_eq!(our, their);
            }
        }
    }
}
