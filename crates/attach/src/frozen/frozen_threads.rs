//! The threads of a process at the moment of its stop.

use super::memory::ProcessMemory;
use super::sleeper;
use super::traced::{State, StoppedThreads, TracedThread};
use super::{FrozenThread, Mapping};

/// The threads as they were stopped or sleep, the main thread first, with the thread pointers of those that sleep.
pub(super) fn all(
    stopped: &StoppedThreads<'_>,
    mappings: &[Mapping],
    memory: &ProcessMemory,
) -> Vec<FrozenThread> {
    threads(stopped, |registers, tid| sleeper::with_thread_pointer(registers, tid, mappings, memory))
}

/// The threads as they were stopped or sleep, the main thread first. Of those that sleep, the kernel tells where.
pub(super) fn as_told(stopped: &StoppedThreads<'_>) -> Vec<FrozenThread> {
    threads(stopped, |registers, _| registers)
}

/// The threads, those in calls with what is known of their registers by kernel id.
fn threads(stopped: &StoppedThreads<'_>, in_call: impl Fn([u64; 27], u32) -> [u64; 27]) -> Vec<FrozenThread> {
    let is_there = |thread: &&TracedThread| {
        thread.registers.is_some() || matches!(thread.state, State::InKernel | State::Asleep)
    };
    let of = |thread: &TracedThread| FrozenThread {
        tid: thread.tid,
        name: thread.name.clone(),
        registers: match &thread.registers {
            Some(registers) => Some(words(registers)),
            None => {
                let asleep = thread.sleeping.map(|sleeping| sleeper::registers(sleeping.place()));
                let told = asleep.or_else(|| thread.registers_in_call());
                told.map(|registers| in_call(registers, thread.tid))
            }
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
