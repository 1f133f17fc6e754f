//! The entry points of an allocator that is part of the executable, once it is taken over.
//!
//! They get the arguments of its functions, and in `r11` the address of the function's own code. As in `entries_x86_64`, an entry is
//! a comparison and a jump while nothing is recorded. But sizes below 16 are always rounded up, so that blocks lie at least 16 bytes
//! apart, and sizes at the end of a block agree.

use super::entry_code::{begin_aligned_frame, end_aligned_frame, go_to_2_if_on, record};
use super::{ON, own_hooks};
use core::arch::naked_asm;
use core::ffi::c_void;
use stackglass_wire::takeover::Action;

macro_rules! entry {
    ($name:ident, $record:path, $($round:literal),*) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(_: usize, _: usize, _: usize) -> *mut c_void {
            naked_asm!(
                ".cfi_startproc",
                go_to_2_if_on!(),
                $($round,)*
                "3:",
                "jmp r11",
                "2:",
                "mov rcx, rsp",
                "mov r8, rbp",
                "mov r9, r11",
                record!(),
                ".cfi_endproc",
                on = sym ON,
                record = sym $record,
            )
        }
    };
}

entry!(allocate, own_hooks::allocate, "cmp rdi, 16", "jae 3f", "mov edi, 16");
entry!(allocate_aligned, own_hooks::allocate_aligned, "cmp rsi, 16", "jae 3f", "mov esi, 16");
entry!(allocate_at, own_hooks::allocate_at, "cmp rdx, 16", "jae 3f", "mov edx, 16");
// The product is rounded up in Rust.
entry!(allocate_array, own_hooks::allocate_array, "jmp 2f");
// A size of 0 has a meaning of its own.
entry!(reallocate, own_hooks::reallocate, "lea rax, [rsi - 1]", "cmp rax, 15", "jae 3f", "mov esi, 16");
entry!(free, own_hooks::free,);
entry!(free_sized, own_hooks::free_sized, "lea rax, [rsi - 1]", "cmp rax, 15", "jae 3f", "mov esi, 16");

/// The address of the entry for an action.
pub fn address(action: Action) -> usize {
    let entry: unsafe extern "C" fn(usize, usize, usize) -> *mut c_void = match action {
        Action::Allocate => allocate,
        Action::AllocateArray => allocate_array,
        Action::AllocateAligned => allocate_aligned,
        Action::AllocateAt => allocate_at,
        Action::Reallocate => reallocate,
        Action::Free => free,
        Action::FreeSized => free_sized,
    };
    entry as *const () as usize
}
