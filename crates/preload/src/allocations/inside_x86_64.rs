//! Whether the calling thread is inside of an allocator that was taken over: one word of thread-local storage.
//!
//! It holds the stack pointer of the outermost call. A call that was left by a jump (siglongjmp) is recognised by it: its frame
//! lies below.

use core::arch::{asm, global_asm};
use core::marker::PhantomData;

// As in `heap`, at a fixed distance from the thread pointer: an access that calls no function.
global_asm!(
    ".section .tbss.stackglass_inside,\"awT\",@nobits",
    ".globl stackglass_inside",
    ".hidden stackglass_inside",
    ".type stackglass_inside,@object",
    ".size stackglass_inside,8",
    ".balign 8",
    "stackglass_inside:",
    ".zero 8",
    ".text",
);

#[inline(always)]
fn get() -> usize {
    let word;
    // SAFETY: reads the thread's own word, whose offset the loader fills in.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + stackglass_inside@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) word,
            options(nostack, preserves_flags, readonly),
        );
    }
    word
}

#[inline(always)]
fn set(word: usize) {
    // SAFETY: writes the thread's own word.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + stackglass_inside@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}

/// Whether a call with this stack pointer comes from inside of the allocator.
#[inline(always)]
pub fn is_nested(sp: *const u64) -> bool {
    let outer = get();
    outer != 0 && sp.addr() < outer
}

/// The outermost call of the allocator on this thread.
pub struct Outermost(PhantomData<*const ()>);

/// Marks the thread as inside; `None` if it is already.
#[inline(always)]
pub fn enter(sp: *const u64) -> Option<Outermost> {
    if is_nested(sp) {
        return None;
    }
    set(sp.addr());
    Some(Outermost(PhantomData))
}

impl Drop for Outermost {
    #[inline(always)]
    fn drop(&mut self) {
        set(0);
    }
}
