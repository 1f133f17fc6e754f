//! The threads of a process at the moment of its stop.

use super::memory::ProcessMemory;
use super::sleeper;
use super::stop::{State, StoppedThreads, TracedThread};
use super::{FrozenThread, Mapping};

/// The threads as they were stopped or sleep, the main thread first, with the thread pointers of those that sleep.
pub(super) fn all(
    stopped: &StoppedThreads<'_>,
    mappings: &[Mapping],
    memory: &ProcessMemory,
) -> Vec<FrozenThread> {
    let mut threads = as_told(stopped);
    for thread in &mut threads {
        let is_told =
            stopped.threads.iter().all(|other| other.tid != thread.tid || other.registers.is_none());
        if let Some(registers) = thread.registers.filter(|_| is_told) {
            thread.registers = Some(sleeper::with_thread_pointer(registers, thread.tid, mappings, memory));
        }
    }
    threads
}

/// The threads as they were stopped or sleep, the main thread first. Of those that sleep, the kernel tells where.
pub(super) fn as_told(stopped: &StoppedThreads<'_>) -> Vec<FrozenThread> {
    let is_there = |thread: &&TracedThread| {
        thread.registers.is_some() || matches!(thread.state, State::InKernel | State::Asleep)
    };
    let of = |thread: &TracedThread| FrozenThread {
        tid: thread.tid,
        name: thread.name.clone(),
        registers: match (&thread.registers, thread.sleeping) {
            (Some(registers), _) => Some(words(registers)),
            (None, Some(sleeping)) => Some(sleeper::registers(sleeping.place())),
            (None, None) => thread.registers_in_call(),
        },
    };
    stopped.threads.iter().filter(is_there).map(of).collect()
}

fn words(r: &libc::user_regs_struct) -> [u64; 27] {
    [
        r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx, r.rsi,
        r.rdi, r.orig_rax, r.rip, r.cs, r.eflags, r.rsp, r.ss, r.fs_base, r.gs_base, r.ds, r.es, r.fs, r.gs,
    ]
}
