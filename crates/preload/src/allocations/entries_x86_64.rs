//! The entry points of the allocator: a comparison and a jump.
//!
//! Off, an entry jumps to the next library's function with all arguments in place, so that even its stack looks as without this
//! library. On, it jumps to the recording function (`hooks`) with two more arguments: the stack pointer, where the return address of the
//! program lies, and `rbp`. From them the walk begins at the program's function.

use super::entry_code::{begin_aligned_frame, end_aligned_frame, go_to_2_if_on, record};
use super::{ON, hooks, mappings, real};
use core::arch::naked_asm;
use core::ffi::{c_int, c_void};

/// One entry: its arguments, where the stack pointer and `rbp` go, the real function and the recording one.
macro_rules! entry {
    ($name:ident($($arg:ident: $type:ty),*) -> $result:ty, $sp:literal, $rbp:literal, $real:path, $record:path) => {
        #[doc = concat!("The C library's `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for the C library's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> $result {
            naked_asm!(
                ".cfi_startproc",
                go_to_2_if_on!(),
                "jmp qword ptr [rip + {real}]",
                "2:",
                concat!("mov ", $sp, ", rsp"),
                concat!("mov ", $rbp, ", rbp"),
                record!(),
                ".cfi_endproc",
                on = sym ON,
                real = sym $real,
                record = sym $record,
            )
        }
    };
}

entry!(malloc(size: usize) -> *mut c_void, "rsi", "rdx", real::MALLOC, hooks::malloc);
entry!(calloc(count: usize, size: usize) -> *mut c_void, "rdx", "rcx", real::CALLOC, hooks::calloc);
entry!(realloc(old: *mut c_void, size: usize) -> *mut c_void, "rdx", "rcx", real::REALLOC, hooks::realloc);
entry!(reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void, "rcx", "r8", real::REALLOCARRAY, hooks::reallocarray);
entry!(memalign(align: usize, size: usize) -> *mut c_void, "rdx", "rcx", real::MEMALIGN, hooks::memalign);
entry!(aligned_alloc(align: usize, size: usize) -> *mut c_void, "rdx", "rcx", real::ALIGNED_ALLOC, hooks::aligned_alloc);
entry!(posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int, "rcx", "r8", real::POSIX_MEMALIGN, hooks::posix_memalign);
entry!(valloc(size: usize) -> *mut c_void, "rsi", "rdx", real::VALLOC, hooks::valloc);
entry!(pvalloc(size: usize) -> *mut c_void, "rsi", "rdx", real::PVALLOC, hooks::pvalloc);
entry!(free(block: *mut c_void) -> (), "rsi", "rdx", real::FREE, hooks::free);
entry!(munmap(at: *mut c_void, len: usize) -> c_int, "rdx", "rcx", real::MUNMAP, mappings::munmap);
