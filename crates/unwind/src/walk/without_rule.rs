//! Steps out of code that has no unwind rules. Each step is either certain, or the stack counts as cut from there on,
//! since frames may be missing. An epilogue is certain. Frame pointers are followed only to addresses right behind a call, any number of times:
//! code generated at run time calls itself.

use super::{Cut, Position, Step, Walker};
use crate::epilogue;
use crate::memory::{ModuleMemory, StackMemory};
use crate::modules::Module;
use crate::registers::{DWARF_RETURN_ADDRESS, RBP, RSP};

impl<M: ModuleMemory + ?Sized> Walker<'_, M> {
    /// A step out of code without rules: over a signal trampoline recognised by its bytes, out of a call through a wrong
    /// pointer, or by frame pointer.
    pub(super) fn step_without_rule<S: StackMemory>(
        &mut self,
        module: Option<&Module>,
        position: &mut Position,
        stack: &mut S,
        reason: Cut,
    ) -> Step {
        /// mov $15, %rax; syscall: rt_sigreturn, in C libraries that give no rules for it.
        const TRAMPOLINE: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
        let mut bytes = [0u8; TRAMPOLINE.len()];
        if let Some(module) = module
            && self.memory.read(module, position.pc, &mut bytes) == bytes.len()
            && bytes == TRAMPOLINE
        {
            return self.step_over_signal(position, stack);
        }
        if let Some(module) = module
            && let Some(step) = self.step_by_epilogue(module, position, stack)
        {
            return step;
        }
        // Code without rules ends a stack in three cases. It is the file's entry; ld.so's entry has no rules. rbp is zero
        // (System V ABI x86-64 §3.4.1). Or the return address is not behind a call: the code that made the stack wrote it
        // there, such as makecontext of the C library.
        if let Some(module) = module
            && !position.exact
            && (position.rbp == Some(0)
                || module.is_behind_entry(position.pc)
                || !self.is_behind_call(position.pc))
        {
            return Step::Outermost;
        }
        if let Some(module) = module
            && position.exact
            && self.is_behind_clone(module, position.pc)
        {
            return self.step_over_clone(position, stack);
        }
        // After a call through a null pointer or into data, nothing has run: the return address is on top. The same
        // holds at the first instruction of code generated at run time. Assembly without rules has at most one more
        // word on the stack (`sub rsp, 8` in `_init` and `_fini`, `push rbp` before a frame pointer).
        let depths = if module.is_some() { 2 } else { 1 };
        for depth in 0..if position.exact { depths } else { 0 } {
            let at = position.sp.wrapping_add(8 * depth);
            if let Some(address) = stack.read_u64(at)
                && self.is_behind_call(address)
            {
                if position.pc >= 4096 {
                    position.guessed = Some(reason);
                }
                position.sp = at.wrapping_add(8);
                return self.guess(position, address);
            }
        }
        position.guessed = Some(reason);
        let Some(rbp) = position.rbp else { return Step::Cut(reason) };
        if rbp < position.sp {
            return Step::Cut(reason);
        }
        let (Some(saved), Some(address)) = (stack.read_u64(rbp), stack.read_u64(rbp.wrapping_add(8))) else {
            return Step::Cut(reason);
        };
        if !self.is_behind_call(address) {
            return Step::Cut(reason);
        }
        position.sp = rbp.wrapping_add(16);
        position.rbp = Some(saved);
        self.guess(position, address)
    }

    /// A certain step out of code that has only its epilogue left.
    fn step_by_epilogue<S: StackMemory>(
        &mut self,
        module: &Module,
        position: &mut Position,
        stack: &mut S,
    ) -> Option<Step> {
        let mut code = [0u8; epilogue::LOOK];
        let read = self.memory.read(module, position.pc, &mut code);
        let returned = epilogue::run(code.get(..read)?, position.sp, position.rbp, stack)?;
        if !self.is_behind_call(returned.pc) {
            return None;
        }
        (position.sp, position.rbp) = (returned.sp, returned.rbp);
        Some(self.guess(position, returned.pc))
    }

    /// Whether the address lies right behind the system call by which a C library starts a thread. The rules of that
    /// function end before it, since they would be wrong in the new thread. Both threads then test the result:
    /// `syscall; test %rax, %rax` (glibc) or `syscall; test %eax, %eax` (musl).
    fn is_behind_clone(&self, module: &Module, pc: u64) -> bool {
        let mut bytes = [0u8; 5];
        let read = self.memory.read(module, pc.wrapping_sub(2), &mut bytes);
        read == bytes.len()
            && (bytes == [0x0f, 0x05, 0x48, 0x85, 0xc0] || bytes.starts_with(&[0x0f, 0x05, 0x85, 0xc0]))
    }

    /// The starting thread has its return address on top of the stack. The new thread has no caller.
    fn step_over_clone<S: StackMemory>(&mut self, position: &mut Position, stack: &mut S) -> Step {
        match stack.read_u64(position.sp) {
            Some(address) if self.is_behind_call(address) => {
                position.sp = position.sp.wrapping_add(8);
                self.guess(position, address)
            }
            _ => Step::Outermost,
        }
    }

    fn guess(&mut self, position: &mut Position, pc: u64) -> Step {
        position.pc = pc;
        position.exact = false;
        if position.all {
            let registers = &mut self.scratch.registers;
            registers.set(DWARF_RETURN_ADDRESS, Some(position.pc));
            registers.set(RSP, Some(position.sp));
            registers.set(RBP, position.rbp);
        }
        Step::Caller
    }

    /// Steps over the kernel's signal frame: sp points to a `ucontext_t`.
    fn step_over_signal<S: StackMemory>(&mut self, position: &mut Position, stack: &mut S) -> Step {
        const REGISTERS: u64 = std::mem::offset_of!(libc::ucontext_t, uc_mcontext) as u64;
        let mut register =
            |index: i32| stack.read_u64(position.sp.wrapping_add(REGISTERS + 8 * index as u64));
        let (Some(pc), Some(sp), Some(rbp)) =
            (register(libc::REG_RIP), register(libc::REG_RSP), register(libc::REG_RBP))
        else {
            return Step::Cut(Cut::UnreadableStack);
        };
        (position.sp, position.rbp) = (sp, Some(rbp));
        let step = self.guess(position, pc);
        position.exact = true;
        step
    }
}
