//! Keeps `libgcc_s` out of the programs we are put into.
//!
//! The standard library refers to the unwinder for panics and their backtraces. Built with `panic = "abort"`
//! nothing of it is ever reached, but the reference alone would make the loader look for `libgcc_s.so.1`, which
//! small containers do not have: then this library could not be loaded at all, and everywhere else each
//! program would load one more. The names are defined here, hidden, so that they are never seen outside.

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
