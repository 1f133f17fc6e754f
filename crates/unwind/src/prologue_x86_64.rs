//! Finds `rbp` from the function's prologue when only `rsp` is known.
//!
//! A function with a frame pointer begins with `push rbp; mov rbp, rsp; push …; sub rsp, N`. At a call in its body, with no
//! arguments pushed, `rbp` is therefore `rsp + N + 8 * pushes`. The unwind rules give the end of `mov rbp, rsp`, even where
//! the prologue comes after an early exit. From there, instructions are decoded up to one that no prologue contains.
//!
//! The result is a candidate that the caller of [`frame_depth`] must confirm: the word above `rbp` must be a return
//! address behind a call.

use crate::call_site::operand_length;

/// Most bytes of code decoded.
pub(crate) const LOOK: usize = 128;

/// The stack that the prologue allocates below `rbp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depth {
    /// `rbp - rsp` before realignment.
    pub(crate) bytes: u64,
    /// The alignment of `and rsp, -align` before the last subtraction, by which `rbp` is up to `align - 8` bytes higher; 1
    /// without realignment.
    pub(crate) align: u64,
}

/// Decodes the code behind `mov rbp, rsp`. `code` may end before the prologue does.
pub(crate) fn frame_depth(mut code: &[u8]) -> Depth {
    let mut depth = Depth { bytes: 0, align: 1 };
    let mut allocated = false;
    loop {
        let taken = match *code {
            // push r64; after an allocation it can only push an argument
            [0x50..=0x57, ..] if !allocated => {
                depth.bytes = depth.bytes.wrapping_add(8);
                1
            }
            [0x41, 0x50..=0x57, ..] if !allocated => {
                depth.bytes = depth.bytes.wrapping_add(8);
                2
            }
            // sub rsp, imm8 / imm32; `sub rsp, -128` is the short way to add, no allocation
            [0x48, 0x83, 0xec, n, ..] if n < 0x80 => {
                depth.bytes = depth.bytes.wrapping_add(u64::from(n));
                allocated = true;
                4
            }
            [0x48, 0x81, 0xec, a, b, c, d, ..] if d < 0x80 => {
                depth.bytes = depth.bytes.wrapping_add(u64::from(u32::from_le_bytes([a, b, c, d])));
                allocated = true;
                7
            }
            // and rsp, -align
            [0x48, 0x83, 0xe4, n, ..] if n >= 0x80 => {
                depth.align = u64::from(n.wrapping_neg());
                4
            }
            [0x48, 0x81, 0xe4, a, b, c, d, ..] if d == 0xff => {
                depth.align = u64::from(u32::from_le_bytes([a, b, c, d]).wrapping_neg());
                7
            }
            // Many pages: lea r11, [rsp-N], and a loop until rsp is equal
            [0x4c, 0x8d, 0x9c, 0x24, a, b, c, d, ref rest @ ..] if d >= 0x80 && !allocated => {
                let Some(taken) = probing_loop(rest) else { return depth };
                let distance = u32::from_le_bytes([a, b, c, d]).wrapping_neg();
                depth.bytes = depth.bytes.wrapping_add(u64::from(distance));
                allocated = true;
                8 + taken
            }
            // A write to the new page between two subtractions: mov qword [rsp], 0; or qword [rsp], 0.
            [0x48, 0xc7, 0x04, 0x24, 0, 0, 0, 0, ..] => 8,
            [0x48, 0x83, 0x0c, 0x24, 0, ..] => 5,
            _ if !allocated => match scheduled_between(code) {
                Some(taken) => taken,
                None => return depth,
            },
            _ => return depth,
        };
        code = code.get(taken..).unwrap_or(&[]);
    }
}

/// The length of a loop `sub rsp, 4096; (write to the page); cmp rsp, r11; jne` to its beginning.
fn probing_loop(code: &[u8]) -> Option<usize> {
    let touch = code.strip_prefix(&[0x48, 0x81, 0xec, 0, 0x10, 0, 0])?;
    let compare = touch
        .strip_prefix(&[0x48, 0xc7, 0x04, 0x24, 0, 0, 0, 0])
        .or_else(|| touch.strip_prefix(&[0x48, 0x83, 0x0c, 0x24, 0]))?;
    let [0x4c, 0x39, 0xdc, 0x75, back, ref rest @ ..] = *compare else { return None };
    let len = code.len() - rest.len();
    (usize::from(back.wrapping_neg()) == len).then_some(len)
}

/// The operand an instruction writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writes {
    /// The register in ModRM's middle field.
    Register,
    /// The register or memory in the rest of ModRM.
    Operand,
    /// Flags or a vector register.
    Neither,
}

/// The length of an instruction that compilers schedule between the pushes and that changes neither rsp nor rbp:
/// moves, arithmetic, vector moves. `None` for jumps, calls and all others.
fn scheduled_between(code: &[u8]) -> Option<usize> {
    use Writes::{Neither, Operand, Register};
    let mandatory = usize::from(matches!(*code.first()?, 0x66 | 0xf2 | 0xf3));
    let rest = code.get(mandatory..)?;
    let (rex, rest) = match *rest {
        [rex @ 0x40..=0x4f, ref rest @ ..] => (rex, rest),
        _ => (0, rest),
    };
    // Registers 4 and 5 are rsp and rbp, or r12 and r13 with the prefix's bit.
    let free = |register: u8, extended: bool| extended || !matches!(register & 7, 4 | 5);
    let (opcode_len, writes, immediate) = match *rest {
        // mov r32, imm32
        [opcode @ 0xb8..=0xbf, ..] if rex & 8 == 0 && mandatory == 0 => {
            return free(opcode, rex & 1 != 0).then(|| code.len() - rest.len() + 5);
        }
        // Immediates of two bytes and vector forms of these are not worth knowing.
        [0x0f, opcode, ..] => match opcode {
            // movups, movaps, xorps, movdqa, pxor, punpcklqdq …
            0x10..=0x12 | 0x16 | 0x1f | 0x28 | 0x29 | 0x57 | 0x6c | 0x6e | 0x6f | 0x7f | 0xd6 | 0xef => {
                (2, Neither, 0)
            }
            // cmov, imul, movzx, movsx
            0x40..=0x4f | 0xaf | 0xb6 | 0xb7 | 0xbe | 0xbf => (2, Register, 0),
            _ => return None,
        },
        _ if mandatory != 0 => return None,
        [0x39 | 0x3b | 0x84 | 0x85, ..] => (1, Neither, 0),
        [opcode @ 0x01..=0x33, ..] if opcode & 7 == 1 => (1, Operand, 0),
        [opcode @ 0x01..=0x33, ..] if opcode & 7 == 3 => (1, Register, 0),
        [0x63 | 0x8b | 0x8d, ..] => (1, Register, 0),
        [0x69, ..] => (1, Register, 4),
        [0x6b, ..] => (1, Register, 1),
        [0x89 | 0xd1 | 0xd3, ..] => (1, Operand, 0),
        [0x81 | 0xc7, ..] => (1, Operand, 4),
        [0x83 | 0xc1, ..] => (1, Operand, 1),
        _ => return None,
    };
    let operands = *rest.get(opcode_len)?;
    let harmless = match writes {
        Register => free(operands >> 3, rex & 4 != 0),
        Operand => operands >> 6 != 3 || free(operands, rex & 1 != 0),
        Neither => true,
    };
    let operand_len = operand_length(operands, rest.get(opcode_len + 1).copied());
    harmless.then(|| code.len() - rest.len() + opcode_len + operand_len + immediate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(code: &[u8]) -> (u64, u64) {
        let depth = frame_depth(code);
        (depth.bytes, depth.align)
    }

    #[test]
    fn prologues_as_compilers_write_them() {
        // LLVM: push r15; push r14; push rbx; sub rsp, 0x78; mov rbx, rdi; call
        assert_eq!(
            depth(&[0x41, 0x57, 0x41, 0x56, 0x53, 0x48, 0x83, 0xec, 0x78, 0x48, 0x89, 0xfb, 0xe8]),
            (0x90, 1)
        );
        // gcc: mov r12, rdi between the pushes
        assert_eq!(depth(&[0x41, 0x54, 0x49, 0x89, 0xfc, 0x53, 0xe8]), (16, 1));
        // large frame with a probe
        let large = [
            0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0x48, 0xc7, 0x04, 0x24, 0, 0, 0, 0, 0x48, 0x81, 0xec, 0x20,
            0x01, 0, 0, 0xc3,
        ];
        assert_eq!(depth(&large), (0x1120, 1));
        // lea r11, [rsp-0x4000]; loop; sub rsp, 0x18
        let many = [
            0x4c, 0x8d, 0x9c, 0x24, 0, 0xc0, 0xff, 0xff, 0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0x48, 0x83, 0x0c,
            0x24, 0, 0x4c, 0x39, 0xdc, 0x75, 0xef, 0x48, 0x83, 0xec, 0x18, 0x53,
        ];
        assert_eq!(depth(&many), (0x4018, 1));
        // realigned: and rsp, -64; sub rsp, 0x80
        assert_eq!(depth(&[0x48, 0x83, 0xe4, 0xc0, 0x48, 0x83, 0xec, 0x70]), (0x70, 64));
        // gcc: lea r13, [rip+x]; push r12; xor r12d, r12d; mov eax, 7; mov rdx, [rdi+8]; push rbx; sub rsp, 0x18; and
        // what follows the allocation does not count
        let scheduled = [
            0x4c, 0x8d, 0x2d, 1, 2, 3, 4, 0x41, 0x54, 0x45, 0x31, 0xe4, 0xb8, 7, 0, 0, 0, 0x48, 0x8b, 0x57,
            8, 0x53, 0x48, 0x83, 0xec, 0x18, 0x50, 0x50,
        ];
        assert_eq!(depth(&scheduled), (0x28, 1));
        // gcc -O2: imul r15, r8; push r13; movzx ecx, byte [rdi]; imul edx, esi, 100; push rbx; sub rsp, 8
        let arithmetic = [
            0x4d, 0x0f, 0xaf, 0xf8, 0x41, 0x55, 0x0f, 0xb6, 0x0f, 0x6b, 0xd6, 100, 0x53, 0x48, 0x83, 0xec, 8,
        ];
        assert_eq!(depth(&arithmetic), (24, 1));
        // add rsp, 8; lea rsp, [rbp-8]; jumps
        assert_eq!(depth(&[0x53, 0x48, 0x83, 0xc4, 8, 0x53]), (8, 1));
        assert_eq!(depth(&[0x53, 0x48, 0x8d, 0x65, 0xf8, 0x53]), (8, 1));
        assert_eq!(depth(&[0x53, 0x74, 2, 0x53, 0x53]), (8, 1));
        // mov rsp, rax is no part of a prologue that can be followed
        assert_eq!(depth(&[0x53, 0x48, 0x89, 0xc4, 0x53]), (8, 1));
        assert_eq!(depth(&[]), (0, 1));
    }
}
