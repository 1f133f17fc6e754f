//! Keeps `libgcc_s` out of profiled programs.
//!
//! The standard library refers to the unwinder for panics and backtraces. With `panic = "abort"` it is never called, but the
//! references alone would make the loader search `libgcc_s.so.1`. Small containers do not have that library, so this
//! library could not be loaded; other programs would load one library more. The symbols are therefore defined here, hidden.

core::arch::global_asm!(
    ".pushsection .text.stackglass_no_unwinder, \"ax\", @progbits",
    ".macro stackglass_never name",
    ".hidden \\name",
    ".globl \\name",
    ".type \\name, @function",
    "\\name:",
    "ud2",
    ".size \\name, . - \\name",
    ".endm",
    "stackglass_never _Unwind_Backtrace",
    "stackglass_never _Unwind_DeleteException",
    "stackglass_never _Unwind_FindEnclosingFunction",
    "stackglass_never _Unwind_GetCFA",
    "stackglass_never _Unwind_GetDataRelBase",
    "stackglass_never _Unwind_GetIP",
    "stackglass_never _Unwind_GetIPInfo",
    "stackglass_never _Unwind_GetLanguageSpecificData",
    "stackglass_never _Unwind_GetRegionStart",
    "stackglass_never _Unwind_GetTextRelBase",
    "stackglass_never _Unwind_RaiseException",
    "stackglass_never _Unwind_Resume",
    "stackglass_never _Unwind_SetGR",
    "stackglass_never _Unwind_SetIP",
    ".purgem stackglass_never",
    ".popsection",
);
