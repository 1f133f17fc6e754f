//! Where in the entry of a function a breakpoint of the kernel (uprobe) costs least.
//!
//! The kernel carries out some instructions itself: pushes, relative jumps and calls. Of any other one it executes a copy in single step,
//! which takes 25 µs on a virtual machine, instead of 1 µs.
//!
//! Source: arch/x86/kernel/uprobes.c, `branch_setup_xol_ops` and `push_setup_xol_ops`.

use super::takeover::leads_into;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

/// The registers of arguments, by their numbers.
const ARGUMENTS: [Register; 4] = [Register::RDI, Register::RSI, Register::RDX, Register::RCX];
/// The breakpoint is at most so many bytes into the function.
const FARTHEST: usize = 64;

/// Bytes from the start of a function to the first instruction that the kernel carries out itself. Up to there, the arguments with the
/// given numbers (0 to 3) and the stack are as they were, each call passes by exactly once, and the return address is on top of the stack.
/// `code` is the whole function. `None` if there is no such instruction.
pub fn cheap_breakpoint(code: &[u8], arguments: &[usize]) -> Option<usize> {
    let kept = |register: Register| {
        register == Register::RSP || arguments.iter().any(|number| ARGUMENTS.get(*number) == Some(&register))
    };
    let mut factory = InstructionInfoFactory::new();
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    loop {
        let at = decoder.position();
        if at > FARTHEST || !decoder.can_decode() {
            return None;
        }
        let instruction = decoder.decode();
        if is_carried_out(&instruction) {
            return (at == 0 || !is_reached_by_jump(code, at as u64)).then_some(at);
        }
        if instruction.is_invalid() || instruction.flow_control() != FlowControl::Next {
            return None;
        }
        let used = factory.info(&instruction).used_registers();
        if used.iter().any(|used| writes(used.access()) && kept(used.register().full_register())) {
            return None;
        }
    }
}

fn writes(access: OpAccess) -> bool {
    !matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
}

fn is_carried_out(instruction: &Instruction) -> bool {
    let is_near = matches!(instruction.op0_kind(), OpKind::NearBranch64);
    match instruction.mnemonic() {
        Mnemonic::Push => instruction.op0_kind() == OpKind::Register && instruction.op0_register().is_gpr64(),
        Mnemonic::Jmp | Mnemonic::Call => is_near,
        // Not `jrcxz` and `loop`.
        _ => is_near && instruction.is_jcc_short_or_near(),
    }
}

/// Whether a jump of the function itself leads behind its start, and no farther than `end`: a breakpoint there would count a call twice.
fn is_reached_by_jump(code: &[u8], end: u64) -> bool {
    let mut instructions = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).into_iter();
    instructions.any(|instruction| leads_into(&instruction, &(0..end + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breakpoints_are_where_the_kernel_needs_no_single_step() {
        let at = |code: &[u8]| cheap_breakpoint(code, &[0]);
        assert_eq!(at(&[0x41, 0x54, 0x55, 0x53]), Some(0), "push r12");
        assert_eq!(at(&[0x48, 0x85, 0xff, 0x0f, 0x84, 0, 0, 0, 0]), Some(3), "test rdi, rdi; je");
        assert_eq!(at(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55]), Some(4), "endbr64; push rbp");
        assert_eq!(at(&[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0x55]), Some(7), "mov rax, rdi; push rbp");
        // As jemalloc's malloc begins: cmp rdi, 4096; ja.
        assert_eq!(at(&[0x48, 0x81, 0xff, 0, 0x10, 0, 0, 0x77, 0x10]), Some(7));
        assert_eq!(at(&[0x48, 0x85]), None);
        assert_eq!(at(&[]), None);
    }

    #[test]
    fn arguments_and_stack_are_as_they_were_and_each_call_passes_once() {
        let rsi_changes = [0x48, 0x89, 0xfe, 0x55];
        assert_eq!(cheap_breakpoint(&rsi_changes, &[0]), Some(3), "mov rsi, rdi; push rbp");
        assert_eq!(cheap_breakpoint(&rsi_changes, &[0, 1]), None);
        assert_eq!(cheap_breakpoint(&[0x31, 0xff, 0x55], &[0]), None, "xor edi, edi; push rbp");
        assert_eq!(cheap_breakpoint(&[0x48, 0x83, 0xec, 8, 0x55], &[]), None, "sub rsp, 8; push rbp");
        assert_eq!(cheap_breakpoint(&[0x48, 0x89, 0xf8, 0xc3], &[0]), None, "mov rax, rdi; ret");
        assert_eq!(cheap_breakpoint(&[0x48, 0x89, 0xf8, 0x55, 0xeb, 0xfd], &[0]), None, "a loop to the push");
        assert_eq!(cheap_breakpoint(&[0x90, 0xe3, 0], &[0]), None, "jrcxz");
    }
}
