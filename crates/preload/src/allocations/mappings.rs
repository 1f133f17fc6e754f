//! Large anonymous mappings that the program itself requests: memory that no allocator of the C library gave out. Allocators that
//! are linked into the program get theirs in this way.

use super::entry_code::{begin_aligned_frame, end_aligned_frame, go_to_2_if_on};
use super::{ON, hooks, inside, real};
use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use stackglass_heap::Kind;

/// Smaller mappings are not recorded.
const LARGE: usize = 128 << 10;

/// mmap(2) has six arguments in registers; the two more go to the stack.
macro_rules! map_entry {
    ($name:ident) => {
        #[doc = concat!("The C library's `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for the C library's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            at: *mut c_void,
            len: usize,
            protection: c_int,
            flags: c_int,
            file: c_int,
            offset: i64,
        ) -> *mut c_void {
            naked_asm!(
                ".cfi_startproc",
                go_to_2_if_on!(),
                "jmp qword ptr [rip + {real}]",
                "2:",
                "mov rax, rsp",
                "mov r10, rbp",
                begin_aligned_frame!(),
                "push r10",
                "push rax",
                "call {record}",
                end_aligned_frame!(),
                ".cfi_endproc",
                on = sym ON,
                real = sym real::MMAP,
                record = sym record,
            )
        }
    };
}
map_entry!(mmap);
map_entry!(mmap64);

/// The arguments of mmap(2), then the stack pointer and `rbp` of the entry.
unsafe extern "C" fn record(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
    sp: *const u64,
    rbp: u64,
) -> *mut c_void {
    // SAFETY: the arguments of an entry, passed on; `sp` points to its return address.
    unsafe {
        let found = real::mmap(at, len, protection, flags, file, offset);
        // An allocator is counted by its blocks.
        let is_of_allocator = inside::is_nested(sp) || real::is_in_allocator(sp.read_unaligned() as usize);
        let is_new = flags & libc::MAP_FIXED == 0 && !is_of_allocator;
        if found != libc::MAP_FAILED && flags & libc::MAP_ANONYMOUS != 0 && len >= LARGE && is_new {
            hooks::count(found, len, Kind::Mapping, sp, rbp);
        }
        found
    }
}

/// munmap(2) of a whole recorded mapping ends it. Parts are not followed.
pub(super) unsafe extern "C" fn munmap(at: *mut c_void, len: usize, _sp: *const u64, _rbp: u64) -> c_int {
    let ended = hooks::before_reallocation(at);
    // SAFETY: the arguments of an entry, passed on.
    let answer = unsafe { real::munmap(at, len) };
    if answer == 0 && ended.size().is_none_or(|size| len >= size) {
        ended.count(None);
    } else {
        stackglass_heap::reallocation_failed(ended);
    }
    answer
}
