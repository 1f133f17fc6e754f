//! Which calls choose their callee while the program runs: through a vtable or a function pointer.
//!
//! Nothing but the code says so: the instruction that ends at the return address, `FF /2` with a register or
//! with memory that is not relative to the instruction. (That kind, `call *slot(%rip)`, is a call through the
//! dynamic linker's table, as is one to a PLT entry: bound once, no choice.) Compilers also load such a slot
//! into a register, ahead of a loop, and call through that: for a call through a register all of its function
//! is read to learn where the register comes from ([`register`]). What leaves no return address
//! cannot be told: after a tail call the frame below seems to have been called by the caller's caller, and
//! how an `ifunc` was chosen is long past.

mod flow;
mod functions;
mod register;
mod slots;

use crate::elf::Elf;
use crate::mapped::Mapped;
use stackglass_unwind::call_site::{Call, LONGEST, before};

/// Code from this size on is given back when it has been read.
const LARGE: usize = 128 << 10;

/// Those of the addresses (by index) whose instruction is such a call. They are look-up addresses: that of a
/// caller lies in its call instruction's last byte.
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

/// Executable segments: where each begins, and its bytes.
struct Code<'data>(Vec<(u64, &'data [u8])>);

impl<'data> Code<'data> {
    /// The last bytes before an address, at most as many as a call has.
    fn until(&self, end: u64) -> &'data [u8] {
        let found = self.0.iter().find_map(|(start, bytes)| {
            let end = usize::try_from(end.checked_sub(*start)?).ok()?;
            bytes.get(end.saturating_sub(LONGEST)..end).filter(|bytes| !bytes.is_empty())
        });
        found.unwrap_or_default()
    }

    /// The bytes from an address on; none where there is no code.
    fn from(&self, address: u64) -> &'data [u8] {
        let found = self.0.iter().find_map(|(start, bytes)| {
            let start = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(start..).filter(|bytes| !bytes.is_empty())
        });
        found.unwrap_or_default()
    }
}

/// Whether code jumps to where a register says in the way that gives processors nothing to guess (*retpoline*):
/// what compilers call `__x86_indirect_thunk_*` and `__llvm_retpoline_*`, or put in line. Told by its bytes,
/// which do not change, since names may be stripped: `call 2f; 1: pause; lfence; jmp 1b`.
///
/// Source: Intel, "Retpoline: A Branch Target Injection Mitigation".
fn is_thunk(code: &[u8]) -> bool {
    const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    let code = code.strip_prefix(&ENDBR64).unwrap_or(code);
    matches!(code, [0xe8, _, _, _, _, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9, ..])
}
