//! Finds calls whose callee is chosen at run time, through a vtable or a function pointer.
//!
//! The code shows them: the instruction before the return address is `FF /2` with a register or with memory that is not
//! relative to the instruction. A call `call *slot(%rip)` goes through the dynamic linker's table, like a call to a PLT
//! entry: it is bound once and involves no choice. Compilers also load such a slot into a register before a loop. For a call
//! through a register, the whole function is therefore decoded to find the origin of the register ([`register`]).
//!
//! Tail calls leave no return address and cannot be found, nor can the choice of an `ifunc`.

mod flow;
mod functions;
mod register;
mod slots;

pub(crate) use functions::around as functions_around;

use stackglass_debug_info::elf::Elf;
use stackglass_debug_info::mapped::Mapped;
use stackglass_unwind::call_site::{Call, LONGEST, before};

/// Smallest code whose pages are released after reading.
const LARGE: usize = 128 << 10;

/// The addresses, by index, whose instruction is such a call. They are lookup addresses: that of a caller is the last byte
/// of its call instruction.
pub(crate) fn calls(file: &Mapped, addresses: &[u64]) -> Vec<usize> {
    let Ok(elf) = Elf::parse(file) else { return Vec::new() };
    let code = Code(elf.code_bytes());
    let (mut found, mut by_register) = (Vec::new(), Vec::new());
    for (index, address) in addresses.iter().enumerate() {
        let Some(end) = address.checked_add(1) else { continue };
        match before(code.until(end), end, |target| !code.from(target).is_empty()) {
            Some(Call::Register) => by_register.push((end, index)),
            Some(Call::Memory) => found.push(index),
            Some(Call::Direct(target)) if is_thunk(code.from(target)) => found.push(index),
            Some(Call::Direct(_) | Call::Slot(_)) | None => {}
        }
    }
    by_register.sort_unstable();
    let ends: Vec<u64> = by_register.iter().map(|(end, _)| *end).collect();
    let bound = register::bound_once(&elf, &code, &ends);
    found.extend(by_register.iter().zip(bound).filter(|(_, bound)| !bound).map(|((_, index), _)| *index));
    for (_, bytes) in code.0.iter().filter(|(_, bytes)| bytes.len() >= LARGE) {
        file.give_back(bytes);
    }
    found
}

/// Executable segments: start address and bytes of each.
struct Code<'data>(Vec<(u64, &'data [u8])>);

impl<'data> Code<'data> {
    /// The bytes before an address, at most as many as a call has.
    fn until(&self, end: u64) -> &'data [u8] {
        let found = self.0.iter().find_map(|(start, bytes)| {
            let end = usize::try_from(end.checked_sub(*start)?).ok()?;
            bytes.get(end.saturating_sub(LONGEST)..end).filter(|bytes| !bytes.is_empty())
        });
        found.unwrap_or_default()
    }

    /// The bytes from an address on; empty outside of code.
    fn from(&self, address: u64) -> &'data [u8] {
        let found = self.0.iter().find_map(|(start, bytes)| {
            let start = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(start..).filter(|bytes| !bytes.is_empty())
        });
        found.unwrap_or_default()
    }
}

/// Whether code is a *retpoline*, an indirect jump that CPUs do not predict: `__x86_indirect_thunk_*` and
/// `__llvm_retpoline_*` of compilers, or the same inlined. It is recognised by its bytes, which never change, since names may
/// be stripped: `call 2f; 1: pause; lfence; jmp 1b`.
///
/// Source: Intel, "Retpoline: A Branch Target Injection Mitigation".
fn is_thunk(code: &[u8]) -> bool {
    const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let code = code.strip_prefix(&ENDBR64).unwrap_or(code);
    matches!(code, [0xe8, _, _, _, _, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9, ..])
}
