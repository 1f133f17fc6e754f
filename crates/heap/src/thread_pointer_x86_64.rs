//! One word of thread-local storage, at a fixed distance from the thread pointer (the initial-exec model of the ELF
//! specification for thread-local storage, §4.4.6).
//!
//! Rust's `thread_local!` in a shared library asks `__tls_get_addr` for the address each time, which costs as much as half of an
//! allocation, and may allocate.

use core::arch::{asm, global_asm};

global_asm!(
    ".section .tbss.stackglass_heap_slot,\"awT\",@nobits",
    ".globl stackglass_heap_slot",
    ".hidden stackglass_heap_slot",
    ".type stackglass_heap_slot,@object",
    ".size stackglass_heap_slot,8",
    ".balign 8",
    "stackglass_heap_slot:",
    ".zero 8",
    ".text",
);

/// The word of the calling thread; 0 in a new thread.
#[inline(always)]
pub fn get() -> usize {
    let word;
    // SAFETY: reads the thread's own word, whose offset the linker or the loader fills in.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + stackglass_heap_slot@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) word,
            options(nostack, preserves_flags, readonly, pure),
        );
    }
    word
}

/// Sets the word of the calling thread.
#[inline(always)]
pub fn set(word: usize) {
    // SAFETY: writes the thread's own word.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + stackglass_heap_slot@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_thread_has_its_own_word() {
        assert_eq!(super::get(), 0);
        super::set(7);
        std::thread::spawn(|| {
            assert_eq!(super::get(), 0);
            super::set(8);
            assert_eq!(super::get(), 8);
        })
        .join()
        .unwrap();
        assert_eq!(super::get(), 7);
        super::set(0);
    }
}
