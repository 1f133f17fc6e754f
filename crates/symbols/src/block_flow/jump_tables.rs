//! Where jumps through tables lead, as compilers make them of `switch` statements.
//!
//! Position-independent code adds a distance to the address of the table, which it reads there in four bytes. Other code reads the
//! target itself, in eight bytes. How many entries a table has is not read: what follows it adds paths that no run takes, and a path more
//! never makes anything known.

use super::value::{Index, Path, Root};
use super::{State, Value};
use foldhash::HashMap;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::ops::Range;

/// Most entries of a table that are read.
const MOST: usize = 1024;

/// The targets inside a function, by the addresses of tables.
#[derive(Default)]
pub(super) struct JumpTables(HashMap<u64, Vec<u64>>);

impl JumpTables {
    /// Reads all tables that the code of a function may use. `bytes_at` gives the module's bytes from an address on.
    pub fn read<'data>(
        code: &[Instruction],
        range: &Range<u64>,
        bytes_at: impl Fn(u64) -> Option<&'data [u8]>,
    ) -> JumpTables {
        let mut tables = JumpTables::default();
        if !code.iter().any(|code| code.flow_control() == FlowControl::IndirectBranch) {
            return tables;
        }
        let near =
            code.iter().filter(|code| code.mnemonic() == Mnemonic::Lea && code.is_ip_rel_memory_operand());
        let near = near.map(|code| (code.ip_rel_memory_address(), false));
        let far = code.iter().filter_map(|code| Some((table_of_addresses(code)?, true)));
        let mut starts: Vec<(u64, bool)> = near.chain(far).collect();
        starts.sort_unstable();
        starts.dedup();
        for (number, (start, has_addresses)) in starts.iter().enumerate() {
            // Another table, or something else, begins where it ends, if not before.
            let end = starts[number..].iter().map(|(other, _)| *other).find(|other| other > start);
            let length = end.map_or(u64::MAX, |end| end - start);
            let bytes = bytes_at(*start).unwrap_or_default();
            let bytes = &bytes[..bytes.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
            let targets: Vec<u64> = match has_addresses {
                true => {
                    bytes.as_chunks().0.iter().take(MOST).map(|entry| u64::from_le_bytes(*entry)).collect()
                }
                false => {
                    let distances =
                        bytes.as_chunks().0.iter().take(MOST).map(|entry| i32::from_le_bytes(*entry));
                    distances.map(|distance| start.wrapping_add_signed(distance.into())).collect()
                }
            };
            let inside = targets.into_iter().filter(|target| range.contains(target));
            tables.0.entry(*start).or_default().extend(inside);
        }
        tables
    }

    /// The targets of an indirect jump before which this is known. Empty if it is none through a table.
    pub fn targets(&self, code: &Instruction, state: &State) -> &[u64] {
        let table = match code.op0_kind() {
            OpKind::Memory => table_of_addresses(code),
            _ => match state.read(code, 0) {
                Value::Path(path @ Path { root: Root::Address(address), index: Index::Computed, .. })
                    if path.fields().is_empty() =>
                {
                    address.checked_add_signed(path.offset.into())
                }
                _ => None,
            },
        };
        table.and_then(|table| self.0.get(&table)).map_or(&[], Vec::as_slice)
    }
}

/// The address of the table from which a jump reads its target.
fn table_of_addresses(code: &Instruction) -> Option<u64> {
    let is_it = code.flow_control() == FlowControl::IndirectBranch
        && code.op0_kind() == OpKind::Memory
        && code.memory_base() == Register::None
        && code.memory_index() != Register::None
        && code.memory_index_scale() == 8;
    is_it.then(|| code.memory_displacement64())
}

#[cfg(test)]
mod tests {
    use crate::block_flow::Function;

    const START: u64 = 0x1000;
    const TABLE: u64 = 0x2000;

    /// Whether the code behind a jump through a table is reached.
    fn is_reached(jump: &[u8], table: &[u8]) -> bool {
        let code = [jump, &[0xc3]].concat();
        let function = Function::decode(&code, START, |address| {
            table.get(usize::try_from(address.checked_sub(TABLE)?).ok()?..)
        });
        let end = START + code.len() as u64;
        let behind = function.ending_at(end).expect("an instruction");
        function.before(behind, &|_, _| None).is_some()
    }

    #[test]
    fn a_table_of_addresses() {
        // jmp *0x2000(,%rax,8)
        let jump = [0xff, 0x24, 0xc5, 0, 0x20, 0, 0];
        let target = START + jump.len() as u64;
        let entries = [0x9999u64, target].map(u64::to_le_bytes).concat();
        assert!(is_reached(&jump, &entries));
        assert!(!is_reached(&jump, &entries[..8]), "the other target is elsewhere");
        assert!(!is_reached(&jump, &entries[..15]), "half an entry");
        assert!(!is_reached(&jump, &[]));
    }

    #[test]
    fn a_table_of_distances() {
        // lea 0xff9(%rip),%rdx; movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax
        let jump = [0x48, 0x8d, 0x15, 0xf9, 0x0f, 0, 0, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0];
        let target = (START + jump.len() as u64).wrapping_sub(TABLE) as i32;
        let entries = [0x7000_0000, target].map(i32::to_le_bytes).concat();
        assert!(is_reached(&jump, &entries));
        assert!(!is_reached(&jump, &entries[..4]), "the other target is elsewhere");
        assert!(!is_reached(&jump, &[]));
    }
}
