//! Steps out of code that has no unwind rules. What is done here is either certain or marked as cut: frame pointers
//! are followed only to addresses right behind a call, as often as it takes (code made at run time calls itself), and
//! the stack counts as cut from there on, since frames may be missing.

use super::{Cut, Place, Step, Walker};
use crate::memory::{ImageMemory, StackMemory};
use crate::modules::Module;
use crate::registers::{DWARF_RETURN_ADDRESS, RBP, RSP};

impl<I: ImageMemory + ?Sized> Walker<'_, I> {
    /// Code without rules: a signal trampoline known by its bytes, a call through a wrong pointer, or one step by
    /// frame pointer.
    pub(super) fn step_without_rule<S: StackMemory>(
        &mut self,
        module: Option<&Module>,
        place: &mut Place,
        stack: &mut S,
        reason: Cut,
    ) -> Step {
        /// mov $15, %rax; syscall: rt_sigreturn, in C libraries that give no rules for it.
        const TRAMPOLINE: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
        let mut bytes = [0u8; TRAMPOLINE.len()];
        if let Some(module) = module
            && self.images.read(module, place.pc, &mut bytes) == bytes.len()
            && bytes == TRAMPOLINE
        {
            return self.step_over_signal(place, stack);
        }
        // Code without rules ends a stack where it is the file's entry, or says so: by a zero rbp (System V ABI x86-64
        // §3.4.1; ld.so's entry has no rules), or by being returned to although no call left that address: whoever
        // made the stack has put it there (the C library's makecontext).
        if let Some(module) = module
            && !place.exact
            && (place.rbp == Some(0) || module.is_behind_entry(place.pc) || !self.is_behind_call(place.pc))
        {
            return Step::Outermost;
        }
        if let Some(module) = module
            && place.exact
            && self.is_behind_clone(module, place.pc)
        {
            return self.step_over_clone(place, stack);
        }
        // The pointer was null or led to data: nothing has run there, the return address is on top. The same
        // holds at the first instruction of code made at run time, and in assembly without rules, which has one
        // more word on the stack at most (`sub rsp, 8` in `_init` and `_fini`, `push rbp` before a frame pointer).
        let depths = if module.is_some() { 2 } else { 1 };
        for depth in 0..if place.exact { depths } else { 0 } {
            let at = place.sp.wrapping_add(8 * depth);
            if let Some(address) = stack.read_u64(at)
                && self.is_behind_call(address)
            {
                if place.pc >= 4096 {
                    place.guessed = Some(reason);
                }
                place.sp = at.wrapping_add(8);
                return self.guess(place, address);
            }
        }
        place.guessed = Some(reason);
        let Some(rbp) = place.rbp else { return Step::Cut(reason) };
        if rbp < place.sp {
            return Step::Cut(reason);
        }
        let (Some(saved), Some(address)) = (stack.read_u64(rbp), stack.read_u64(rbp.wrapping_add(8))) else {
            return Step::Cut(reason);
        };
        if !self.is_behind_call(address) {
            return Step::Cut(reason);
        }
        place.sp = rbp.wrapping_add(16);
        place.rbp = Some(saved);
        self.guess(place, address)
    }

    /// Whether the address lies right behind the system call by which a C library makes a thread. Its rules end before
    /// that, since they would be wrong in the new thread; both threads then look at what the call has given:
    /// `syscall; test %rax, %rax` (glibc) or `syscall; test %eax, %eax` (musl).
    fn is_behind_clone(&self, module: &Module, pc: u64) -> bool {
        let mut bytes = [0u8; 5];
        let read = self.images.read(module, pc.wrapping_sub(2), &mut bytes);
        read == bytes.len()
            && (bytes == [0x0f, 0x05, 0x48, 0x85, 0xc0] || bytes.starts_with(&[0x0f, 0x05, 0x85, 0xc0]))
    }

    /// The maker of a thread has its return address on top of the stack; a new thread has no caller.
    fn step_over_clone<S: StackMemory>(&mut self, place: &mut Place, stack: &mut S) -> Step {
        match stack.read_u64(place.sp) {
            Some(address) if self.is_behind_call(address) => {
                place.sp = place.sp.wrapping_add(8);
                self.guess(place, address)
            }
            _ => Step::Outermost,
        }
    }

    fn guess(&mut self, place: &mut Place, pc: u64) -> Step {
        place.pc = pc;
        place.exact = false;
        if place.all {
            let registers = &mut self.scratch.registers;
            registers.set(DWARF_RETURN_ADDRESS, Some(place.pc));
            registers.set(RSP, Some(place.sp));
            registers.set(RBP, place.rbp);
        }
        Step::Caller
    }

    /// The kernel's frame: sp points to a `ucontext_t`.
    fn step_over_signal<S: StackMemory>(&mut self, place: &mut Place, stack: &mut S) -> Step {
        const REGISTERS: u64 = std::mem::offset_of!(libc::ucontext_t, uc_mcontext) as u64;
        let mut register = |index: i32| stack.read_u64(place.sp.wrapping_add(REGISTERS + 8 * index as u64));
        let (Some(pc), Some(sp), Some(rbp)) =
            (register(libc::REG_RIP), register(libc::REG_RSP), register(libc::REG_RBP))
        else {
            return Step::Cut(Cut::UnreadableStack);
        };
        (place.sp, place.rbp) = (sp, Some(rbp));
        let step = self.guess(place, pc);
        place.exact = true;
        step
    }
}
