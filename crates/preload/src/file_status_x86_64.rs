//! `stat` and `fstat` for glibc before 2.33, which has them only in the static part of the library.
//!
//! A library that was linked with a newer glibc could not be loaded there. The symbols are hidden: the program keeps its own.
//! The kernel's structure is that of glibc on x86-64.

core::arch::global_asm!(
    ".pushsection .text.stackglass_file_status, \"ax\", @progbits",
    ".macro stackglass_status name, other, number",
    ".hidden \\name",
    ".globl \\name",
    ".type \\name, @function",
    ".hidden \\other",
    ".globl \\other",
    ".set \\other, \\name",
    "\\name:",
    ".cfi_startproc",
    "mov eax, \\number",
    "syscall",
    "test eax, eax",
    "js 2f",
    "ret",
    "2:",
    "neg eax",
    "push rax",
    ".cfi_adjust_cfa_offset 8",
    "call __errno_location@PLT",
    "pop rcx",
    ".cfi_adjust_cfa_offset -8",
    "mov dword ptr [rax], ecx",
    "mov eax, -1",
    "ret",
    ".cfi_endproc",
    ".size \\name, . - \\name",
    ".endm",
    "stackglass_status stat, stat64, 4",
    "stackglass_status fstat, fstat64, 5",
    ".purgem stackglass_status",
    ".popsection",
);
