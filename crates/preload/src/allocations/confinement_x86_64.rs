//! A program that confines itself to certain system calls (seccomp(2)) is noticed, so that none is made for it any more.
//!
//! So is a thread that redirects its calls to a handler (Syscall User Dispatch), as Wine does: it would get those of this
//! library, and the return from the sampling signal.
//!
//! C programs use prctl(2), or syscall(2), since glibc has no function for seccomp(2).

use crate::{credentials, real_functions};
use core::arch::naked_asm;
use core::ffi::{c_int, c_long, c_ulong, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::*};
use stackglass_host::{fork_guard, signal, system};

/// prctl(2). The C library's takes a variable number of arguments, in the same registers.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(
    option: c_int,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_int {
    let Some(real) = real_functions::prctl() else { return crate::hooks::fail(libc::ENOSYS) };
    // SAFETY: passed on unchanged.
    noticed(option, second, third, || unsafe { real(option, second, third, fourth, fifth) }.into()) as c_int
}

/// Makes a call of prctl(2), by whichever function of the C library, and does before it what its arguments require.
fn noticed(option: c_int, second: c_ulong, third: c_ulong, pass_on: impl Fn() -> c_long) -> c_long {
    if matches!(option, libc::PR_SET_SECUREBITS | libc::PR_SET_KEEPCAPS) {
        credentials::before_change();
    }
    let Some(ends) = confines(option, second, third) else { return pass_on() };
    let mut answer = -1;
    confine(false, ends, || {
        answer = pass_on();
        answer == 0
    });
    answer
}

/// Where the sampler ends after prctl(2) with these arguments, if that confines the calling thread.
fn confines(option: c_int, second: c_ulong, third: c_ulong) -> Option<EndOfSampling> {
    /// `PR_SET_SYSCALL_USER_DISPATCH` and `PR_SYS_DISPATCH_OFF` (include/uapi/linux/prctl.h). There are two ways to be on.
    const USER_DISPATCH: c_int = 59;
    const OFF: c_ulong = 0;
    const FILTER: c_ulong = libc::SECCOMP_MODE_FILTER as c_ulong;
    const STRICT: c_ulong = libc::SECCOMP_MODE_STRICT as c_ulong;
    match (option, second) {
        (USER_DISPATCH, mode) if mode != OFF => Some(EndOfSampling::Thread),
        (libc::PR_SET_SECCOMP, FILTER) if third != 0 => Some(EndOfSampling::Thread),
        (libc::PR_SET_SECCOMP, STRICT) => Some(EndOfSampling::Process),
        _ => None,
    }
}

/// Runs `act`, which confines the calling thread or all threads, if it succeeds. This library makes no call for them afterwards.
fn confine(all: bool, ends: EndOfSampling, act: impl FnOnce() -> bool) {
    // A child of `vfork` has its parent's memory, and confines itself alone.
    if !fork_guard::is_own_process() {
        act();
        return;
    }
    let samples = stackglass_sampler::is_running();
    let mut mask = None;
    if samples && ends == EndOfSampling::Process {
        stackglass_sampler::stop(LONGEST_STOP);
        signal::discard_pending();
    } else if samples {
        // The handler ends with a call. A signal on the way stays pending.
        mask = signal::block();
    }
    let mut is_done = false;
    stackglass_heap::confine(all, || {
        is_done = act();
        is_done
    });
    if let Some(mask) = mask.filter(|_| !is_done) {
        system::set_blocked(mask);
    }
}

/// Where the sampler of this library ends when a thread confines itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndOfSampling {
    /// On that thread.
    Thread,
    /// In the process: the sampler's thread would be confined as well. In strict mode, a thread can end only itself, and the process
    /// would wait for the sampler's thread for ever.
    Process,
}

/// Longest wait for the sampler's last tick, ns.
const LONGEST_STOP: u64 = 1_000_000_000;

/// The C library's `syscall`, or `own_syscall` if it has not been looked up.
static SYSCALL: AtomicPtr<c_void> = AtomicPtr::new(own_syscall as *const () as *mut c_void);

/// Passes calls on to the next library's function.
pub(super) fn resolve() {
    // SAFETY: the name ends with a zero byte. RTLD_NEXT is relative to this library.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"syscall".as_ptr()) };
    if !found.is_null() {
        SYSCALL.store(found, Release);
    }
}

/// syscall(2): comparisons and a jump, since children of vfork(2) return from it twice. What changes the rights of the calling
/// thread is passed on after [`credentials::before_call`], with all registers and the stack as they were.
///
/// # Safety
/// As for the C library's.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(number: c_long) -> c_long {
    naked_asm!(
        ".cfi_startproc",
        "cmp rdi, {seccomp}",
        "je {confining}",
        "cmp rdi, {prctl}",
        "je {prctl_by_number}",
        "lea r11, [rdi - {first}]",
        "cmp r11, {span}",
        "ja 2f",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        ".cfi_adjust_cfa_offset 56",
        "call {changing}",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        ".cfi_adjust_cfa_offset -56",
        "2:",
        "jmp qword ptr [rip + {next}]",
        ".cfi_endproc",
        seccomp = const libc::SYS_seccomp,
        first = const credentials::FIRST,
        span = const credentials::LAST - credentials::FIRST,
        confining = sym confining,
        prctl = const libc::SYS_prctl,
        prctl_by_number = sym prctl_by_number,
        changing = sym credentials::before_call,
        next = sym SYSCALL,
    )
}

/// seccomp(2).
unsafe extern "C" fn confining(
    number: c_long,
    operation: c_long,
    flags: c_ulong,
    argument: c_ulong,
) -> c_long {
    type Syscall = unsafe extern "C" fn(c_long, c_long, c_ulong, c_ulong) -> c_long;
    // SAFETY: the C library's `syscall`, or the one below, which take what they need.
    let real = unsafe { core::mem::transmute::<*mut c_void, Syscall>(SYSCALL.load(Acquire)) };
    // SAFETY: passed on unchanged.
    let pass_on = || unsafe { real(number, operation, flags, argument) };
    // Programs pass no filter to learn which flags there are.
    let is_filter = operation as u32 == libc::SECCOMP_SET_MODE_FILTER && argument != 0;
    if !(is_filter || operation as u32 == libc::SECCOMP_SET_MODE_STRICT) {
        return pass_on();
    }
    let mut answer = -1;
    let all = flags & libc::SECCOMP_FILTER_FLAG_TSYNC != 0;
    let ends = if is_filter && !all { EndOfSampling::Thread } else { EndOfSampling::Process };
    confine(all, ends, || {
        answer = pass_on();
        // A filter with a listener answers with its descriptor.
        answer >= 0
    });
    answer
}

/// prctl(2).
unsafe extern "C" fn prctl_by_number(
    number: c_long,
    option: c_ulong,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_long {
    type Syscall = unsafe extern "C" fn(c_long, c_ulong, c_ulong, c_ulong, c_ulong, c_ulong) -> c_long;
    // SAFETY: the C library's `syscall`, or the one below, which take what they need.
    let real = unsafe { core::mem::transmute::<*mut c_void, Syscall>(SYSCALL.load(Acquire)) };
    // SAFETY: passed on unchanged.
    let pass_on = || unsafe { real(number, option, second, third, fourth, fifth) };
    noticed(option as c_int, second, third, pass_on)
}

/// The system call as the C library makes it, for callers before that is looked up.
#[unsafe(naked)]
unsafe extern "C" fn own_syscall(number: c_long) -> c_long {
    naked_asm!(
        ".cfi_startproc",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, qword ptr [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 2f",
        "ret",
        "2:",
        "neg eax",
        "mov edi, eax",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {failed}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "mov rax, -1",
        "ret",
        ".cfi_endproc",
        failed = sym failed,
    )
}

unsafe extern "C" fn failed(errno: c_int) {
    stackglass_host::system::set_errno(errno);
}
