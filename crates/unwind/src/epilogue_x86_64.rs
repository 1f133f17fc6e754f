//! Finds the caller of code that has only its epilogue left to run: `add rsp, N; pop …; ret`.
//!
//! Straight-line code up to `ret` says for certain where the return address is, without unwind rules or frame pointers.
//! Trampolines that interpreters generate at run time look like this behind their call. CPython's are `sub rsp, 8;
//! call rcx; add rsp, 8; ret` (Python/asm_trampoline.S).

use crate::memory::StackMemory;

/// Most bytes of code decoded: a dozen instructions.
pub(crate) const LOOK: usize = 32;

/// The registers after the `ret`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    pub pc: u64,
    pub sp: u64,
    pub rbp: Option<u64>,
}

/// Runs the code from its start up to a `ret`; `None` if it does anything else.
pub(crate) fn run<S: StackMemory>(
    mut code: &[u8],
    mut sp: u64,
    mut rbp: Option<u64>,
    stack: &mut S,
) -> Option<Returned> {
    loop {
        let taken = match *code {
            // ret; rep ret
            [0xc3, ..] | [0xf3, 0xc3, ..] => {
                return Some(Returned { pc: stack.read_u64(sp)?, sp: sp.checked_add(8)?, rbp });
            }
            // add rsp, imm8 / imm32
            [0x48, 0x83, 0xc4, n, ..] if n < 0x80 => {
                sp = sp.checked_add(u64::from(n))?;
                4
            }
            [0x48, 0x81, 0xc4, a, b, c, d, ..] if d < 0x80 => {
                sp = sp.checked_add(u64::from(u32::from_le_bytes([a, b, c, d])))?;
                7
            }
            // pop rbp; pop r64, except rsp
            [0x5d, ..] => {
                rbp = Some(stack.read_u64(sp)?);
                sp = sp.checked_add(8)?;
                1
            }
            [0x58..=0x5b | 0x5e | 0x5f, ..] => {
                sp = sp.checked_add(8)?;
                1
            }
            [0x41, 0x58..=0x5f, ..] => {
                sp = sp.checked_add(8)?;
                2
            }
            // leave
            [0xc9, ..] => {
                let base = rbp.filter(|rbp| *rbp >= sp)?;
                rbp = Some(stack.read_u64(base)?);
                sp = base.checked_add(8)?;
                1
            }
            // vzeroupper
            [0xc5, 0xf8, 0x77, ..] => 3,
            _ => return None,
        };
        code = code.get(taken..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words(u64, Vec<u64>);

    impl StackMemory for Words {
        fn read_u64(&mut self, address: u64) -> Option<u64> {
            let offset = address.checked_sub(self.0)?;
            (offset % 8 == 0).then(|| self.1.get((offset / 8) as usize).copied())?
        }
    }

    #[test]
    fn epilogues_are_run() {
        let mut stack = Words(0x1000, vec![1, 2, 3, 4, 5, 6]);
        let mut run = |code: &[u8], rbp| run(code, 0x1000, rbp, &mut stack);
        let returned = |pc, sp, rbp| Some(Returned { pc, sp, rbp });
        assert_eq!(run(&[0x48, 0x83, 0xc4, 8, 0xc3, 0xcc], None), returned(2, 0x1010, None));
        assert_eq!(run(&[0xc3], Some(7)), returned(1, 0x1008, Some(7)));
        assert_eq!(run(&[0x5b, 0x5d, 0x41, 0x5c, 0xc3], None), returned(4, 0x1020, Some(2)));
        assert_eq!(run(&[0xc5, 0xf8, 0x77, 0xc9, 0xc3], Some(0x1018)), returned(5, 0x1028, Some(4)));
        assert_eq!(run(&[0x48, 0x81, 0xc4, 16, 0, 0, 0, 0xf3, 0xc3], None), returned(3, 0x1018, None));
    }

    #[test]
    fn other_code_is_not() {
        let mut stack = Words(0x1000, vec![1, 2, 3]);
        let mut run = |code: &[u8], rbp| run(code, 0x1000, rbp, &mut stack);
        for code in [
            &[][..],
            &[0x90, 0xc3],
            &[0x5b],
            &[0x5c, 0xc3],
            &[0x48, 0x83, 0xc4, 0xf8, 0xc3],
            &[0x48, 0x83, 0xc4],
            &[0x48, 0x83, 0xc4, 64, 0xc3],
            &[0xc9, 0xc3],
        ] {
            assert_eq!(run(code, None), None, "{code:x?}");
        }
        assert_eq!(run(&[0xc9, 0xc3], Some(0xff8)), None, "below the stack pointer");
        assert_eq!(run(&[0xc9, 0xc3], Some(u64::MAX - 3)), None);
    }
}
