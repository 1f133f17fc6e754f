//! What the machine code of all entry points has: the comparison at the start, and calls with an aligned stack.
//!
//! Programs in assembly may call with a stack that is not aligned to 16 bytes, against the calling convention. The allocator bears
//! that, compiled Rust does not: such a call gets an aligned stack.

/// Goes on at label 2 if allocations are recorded.
macro_rules! go_to_2_if_on {
    () => {
        "mov rax, qword ptr [rip + {on}]
        cmp dword ptr [rax], 0
        jne 2f"
    };
}

/// Begins a frame whose stack is aligned.
macro_rules! begin_aligned_frame {
    () => {
        "push rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        mov rbp, rsp
        .cfi_def_cfa_register rbp
        and rsp, -16"
    };
}

/// Ends the frame and returns.
macro_rules! end_aligned_frame {
    () => {
        "mov rsp, rbp
        pop rbp
        .cfi_def_cfa rsp, 8
        .cfi_restore rbp
        ret"
    };
}

/// Passes the call on to the recording function, which has its arguments in registers.
macro_rules! record {
    () => {
        concat!(
            "lea eax, [rsp - 8]
            test al, 15
            jne 8f
            jmp {record}
            8:\n",
            begin_aligned_frame!(),
            "\ncall {record}\n",
            end_aligned_frame!(),
        )
    };
}

pub(super) use {begin_aligned_frame, end_aligned_frame, go_to_2_if_on, record};
