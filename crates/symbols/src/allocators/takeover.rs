//! Which functions of an allocator can be redirected: a jump takes the place of their first instructions, which move elsewhere.
//!
//! A function can be redirected if nothing jumps into the replaced bytes, and if the moved instructions do the same at another
//! place. That is proven from its whole code. Otherwise the allocator is left alone.

use super::code::Code;
use iced_x86::{Code as Kind, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use object::LittleEndian;
use object::elf;
use object::read::elf::Sym;
use stackglass_debug_info::elf::{Elf, Table};
use stackglass_debug_info::mapped::Mapped;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

const LITTLE: LittleEndian = LittleEndian;

/// Bytes of the jump that takes the place of instructions.
const JUMP: usize = 5;
/// Most moved instructions are this long, with the jump back.
const MOST_MOVED: usize = 48;

/// A distance in moved instructions: from the end of an instruction to an address in the executable, in 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedDistance {
    /// Offset of the 4 bytes in the moved instructions.
    pub at: u32,
    /// Offset of the end of their instruction.
    pub end: u32,
    /// The address in the executable.
    pub target: u64,
}

/// The first instructions of a function, for another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovableStart {
    /// Their address in the executable.
    pub address: u64,
    /// Their bytes.
    pub original: Vec<u8>,
    /// The same for another place, then a jump to the instruction after them.
    pub moved: Vec<u8>,
    /// What depends on the place.
    pub distances: Vec<MovedDistance>,
}

/// A function whose start can be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovableFunction {
    /// Its symbol.
    pub name: String,
    /// Its first instructions.
    pub start: MovableStart,
}

/// The functions of an executable with a wanted name, each once.
///
/// # Errors
/// The name of the first one that cannot be redirected.
pub fn movable_functions(path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<MovableFunction>, String> {
    let Ok(file) = Mapped::open(path) else { return Ok(Vec::new()) };
    let Ok(elf) = Elf::parse(&file) else { return Ok(Vec::new()) };
    let mut functions = BTreeMap::new();
    let mut parts: Vec<(String, Range<u64>)> = Vec::new();
    for symbols in [Table::Full, Table::Dynamic].into_iter().filter_map(|table| elf.symbols(table)) {
        for symbol in symbols.iter().filter(|symbol| symbol.st_type() == elf::STT_FUNC) {
            let Ok(name) = symbols.symbol_name(LITTLE, symbol) else { continue };
            let Ok(name) = std::str::from_utf8(name) else { continue };
            let start = symbol.st_value(LITTLE);
            if symbol.st_shndx.get(LITTLE) == elf::SHN_UNDEF {
                continue;
            }
            // Compilers move unlikely parts of `f` to `f.cold`.
            let whole = name.split('.').next().unwrap_or(name);
            if whole != name && wanted(whole) {
                let end = start.saturating_add(symbol.st_size(LITTLE));
                parts.push((whole.to_owned(), start..end));
            } else if wanted(name) {
                functions.entry(start).or_insert_with(|| name.to_owned());
            }
        }
    }
    let code = Code::from_elf(&elf);
    let mut found = Vec::new();
    for (start, name) in functions {
        let own = parts.iter().filter(|(whole, _)| *whole == name).map(|(_, part)| part.clone());
        match movable_start(&code, start, &own.collect::<Vec<_>>()) {
            Some(start) => found.push(MovableFunction { name, start }),
            None => return Err(name),
        }
    }
    Ok(found)
}

/// The first instructions of the function that begins at `start`, if they can be moved. `parts` are other parts of the same
/// function.
pub(super) fn movable_start(code: &Code<'_, '_>, start: u64, parts: &[Range<u64>]) -> Option<MovableStart> {
    let function = code.function(start)?;
    let bytes = code.bytes(&function)?;
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut address = start;
    let mut first = decoder.decode();
    if first.code() == Kind::Endbr64 {
        // It stays in place for callers through pointers.
        address = first.next_ip();
        first = decoder.decode();
    }
    let mut moved = Moved::default();
    let mut next = first;
    loop {
        let from = (next.ip() - start) as usize;
        let instruction = bytes.get(from..from + next.len())?;
        moved.push(&decoder, &next, instruction)?;
        if (next.next_ip() - address) as usize >= JUMP {
            break;
        }
        // Nothing follows a jump or return: what is there may be another function.
        if !falls_through(&next) || !decoder.can_decode() {
            return None;
        }
        next = decoder.decode();
    }
    let end = next.next_ip();
    if falls_through(&next) {
        moved.jump(end);
    }
    let replaced = address..end;
    let is_whole = std::iter::once(&function).chain(parts).all(|part| never_enters(code, part, &replaced));
    if !is_whole || moved.bytes.len() > MOST_MOVED {
        return None;
    }
    let original = bytes.get((address - start) as usize..(end - start) as usize)?.to_vec();
    Some(MovableStart { address, original, moved: moved.bytes, distances: moved.distances })
}

/// Whether control can reach the next instruction.
fn falls_through(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch)
}

/// Whether no jump of a function leads into the replaced bytes, except to their beginning.
fn never_enters(code: &Code<'_, '_>, function: &Range<u64>, replaced: &Range<u64>) -> bool {
    let Some(bytes) = code.bytes(function) else { return false };
    let decoder = Decoder::with_ip(64, bytes, function.start, DecoderOptions::NONE);
    for instruction in decoder {
        match instruction.flow_control() {
            _ if instruction.is_invalid() => return false,
            _ if leads_into(&instruction, replaced) => return false,
            // A jump through a slot leaves the function. Through a table of cases it may lead anywhere.
            FlowControl::IndirectBranch if !is_through_slot(&instruction) => return false,
            FlowControl::XbeginXabortXend => return false,
            _ => {}
        }
    }
    true
}

/// Whether an instruction is a jump or call into a range of addresses, but not to its beginning.
pub(super) fn leads_into(instruction: &Instruction, range: &Range<u64>) -> bool {
    let target = instruction.near_branch_target();
    target > range.start && target < range.end
}

fn is_through_slot(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Memory && instruction.memory_base() == Register::RIP
}

/// Instructions for another place.
#[derive(Default)]
struct Moved {
    bytes: Vec<u8>,
    distances: Vec<MovedDistance>,
}

impl Moved {
    /// Adds an instruction; `None` if it cannot be moved.
    fn push(&mut self, decoder: &Decoder<'_>, instruction: &Instruction, bytes: &[u8]) -> Option<()> {
        let begin = self.bytes.len();
        match instruction.flow_control() {
            _ if instruction.is_invalid() => None,
            FlowControl::Next => {
                self.bytes.extend(bytes);
                self.relative_memory(decoder, instruction, begin)
            }
            // Only a jump through a slot: another memory operand or register is not known to leave the function.
            FlowControl::IndirectBranch if is_through_slot(instruction) => {
                self.bytes.extend(bytes);
                self.relative_memory(decoder, instruction, begin)
            }
            FlowControl::UnconditionalBranch if instruction.is_jmp_short_or_near() => {
                self.jump(instruction.near_branch_target());
                Some(())
            }
            FlowControl::ConditionalBranch if instruction.is_jcc_short_or_near() => {
                let condition = match *bytes {
                    [short @ 0x70..=0x7f, _] => short & 0xf,
                    [0x0f, near @ 0x80..=0x8f, ..] => near & 0xf,
                    _ => return None,
                };
                self.bytes.extend([0x0f, 0x80 | condition]);
                self.distance(instruction.near_branch_target());
                Some(())
            }
            FlowControl::Return => {
                self.bytes.extend(bytes);
                Some(())
            }
            // The return address of a call would lie in the moved instructions, where no unwind rule is.
            _ => None,
        }
    }

    /// Records the operand of a copied instruction that is relative to its address, if it has one.
    fn relative_memory(
        &mut self,
        decoder: &Decoder<'_>,
        instruction: &Instruction,
        begin: usize,
    ) -> Option<()> {
        if !instruction.is_ip_rel_memory_operand() {
            return Some(());
        }
        let offsets = decoder.get_constant_offsets(instruction);
        let is_known = offsets.has_displacement()
            && offsets.displacement_size() == 4
            && instruction.memory_base() == Register::RIP;
        if !is_known {
            return None;
        }
        let at = (begin + offsets.displacement_offset()) as u32;
        let end = self.bytes.len() as u32;
        self.distances.push(MovedDistance { at, end, target: instruction.ip_rel_memory_address() });
        Some(())
    }

    /// Adds a jump to an address in the executable.
    fn jump(&mut self, target: u64) {
        self.bytes.push(0xe9);
        self.distance(target);
    }

    fn distance(&mut self, target: u64) {
        let at = self.bytes.len() as u32;
        self.bytes.extend([0; 4]);
        self.distances.push(MovedDistance { at, end: at + 4, target });
    }
}
