//! Signal frames that the injecting thread returns through if this process dies.
//!
//! While a call is injected, the thread's own registers exist only in this process. So they are written to its stack first,
//! as the kernel writes those of a thread that a signal interrupts. The injected instruction is `syscall; ret`: if nobody
//! stops the thread afterwards, it returns into the program's stub for sigreturn, and continues where it was.
//! Source: arch/x86/include/asm/sigframe.h, arch/x86/include/uapi/asm/sigcontext.h of Linux.

use super::memory::ProcessMemory;
use std::io;

/// Words of `struct rt_sigframe` up to the signal mask, and of `siginfo`, which sigreturn does not read.
const WORDS: usize = 39 + 16;
/// Bytes of the area that `fxsave` writes; the header of `xsave` follows.
const LEGACY: usize = 512;
/// Offset of the words that describe the size of the area, within the legacy part (`struct _fpx_sw_bytes`).
const SIZES: usize = 464;
/// `FP_XSTATE_MAGIC1` and `FP_XSTATE_MAGIC2`.
const MAGIC: [u32; 2] = [0x4650_5853, 0x4650_5845];
/// Flags of `struct ucontext`: extended state is there, `ss` is stored and must be restored strictly.
const FLAG_EXTENDED: u64 = 1;
const FLAGS_SS: u64 = 6;
/// Codes of a call that the kernel makes again: ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK.
const RESTARTED: [i64; 4] = [-512, -513, -514, -516];

/// Bytes that a frame takes for a thread with this extended state, with room to align it.
pub(super) fn size(extended: &[u8]) -> usize {
    extended.len() + 4 + WORDS * 8 + 2 * 64 + 16
}

/// Writes a frame that ends below `top` and restores `registers`, `mask` and the extended state. Returns its address: the
/// stack pointer for a `ret` that enters the stub `signal_return`.
pub(super) fn write(
    memory: &ProcessMemory,
    top: u64,
    signal_return: u64,
    registers: &libc::user_regs_struct,
    mask: u64,
    extended: &[u8],
) -> io::Result<u64> {
    let mut top = top;
    let mut area_at = 0;
    if extended.len() >= LEGACY + 64 {
        let area = area(extended);
        area_at = (top - area.len() as u64) & !63;
        memory.write(area_at, &area)?;
        top = area_at;
    }
    let r = registers;
    let segments = (r.cs & 0xffff) | (r.ss & 0xffff) << 48;
    let flags = if area_at == 0 { FLAGS_SS } else { FLAGS_SS | FLAG_EXTENDED };
    let context = [
        r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rdi, r.rsi, r.rbp, r.rbx, r.rdx, r.rax,
        r.rcx, r.rsp, r.rip, r.eflags, segments, 0, 0, 0, 0, area_at,
    ];
    let mut words = [0u64; WORDS];
    words[0] = signal_return;
    words[1] = flags;
    // The alternate stack stays as it is: the kernel ignores one of size 0.
    words[6..30].copy_from_slice(&context);
    words[38] = mask;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    // As after a call: the stack pointer is 8 below a multiple of 16.
    let at = ((top - bytes.len() as u64) & !15) - 8;
    memory.write(at, &bytes)?;
    Ok(at)
}

/// The extended state as a signal frame has it: with its sizes, and a last word.
fn area(extended: &[u8]) -> Vec<u8> {
    let len = extended.len() as u32;
    let mut area = extended.to_vec();
    // The kernel puts the mask of features where a frame has the sizes.
    let features: [u8; 8] = extended[SIZES..SIZES + 8].try_into().unwrap_or_default();
    area[SIZES..SIZES + 4].copy_from_slice(&MAGIC[0].to_le_bytes());
    area[SIZES + 4..SIZES + 8].copy_from_slice(&(len + 4).to_le_bytes());
    area[SIZES + 8..SIZES + 16].copy_from_slice(&features);
    area[SIZES + 16..SIZES + 20].copy_from_slice(&len.to_le_bytes());
    area.extend_from_slice(&MAGIC[1].to_le_bytes());
    area
}

/// The registers with which a thread continues after sigreturn, which makes no interrupted call again: the thread is put
/// back to the instruction of its call.
pub(super) fn restarted(registers: &libc::user_regs_struct) -> libc::user_regs_struct {
    let is_interrupted = registers.orig_rax as i64 >= 0 && RESTARTED.contains(&(registers.rax as i64));
    if !is_interrupted {
        return *registers;
    }
    libc::user_regs_struct {
        rax: registers.orig_rax,
        rip: registers.rip.wrapping_sub(2),
        orig_rax: u64::MAX,
        ..*registers
    }
}
