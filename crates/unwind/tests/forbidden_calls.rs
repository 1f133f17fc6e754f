//! Sandboxes that forbid `process_vm_readv` and the mapping ioctl, like containers: walks use the slower ways. A forked child
//! installs a real seccomp filter and reports by its exit status.
#![allow(unsafe_code, reason = "calls the C library")]

use stackglass_unwind::{
    End, OwnStack, ProcessStack, Registers, Scratch, StackMemory, Unwinder, mapping, memory,
};

static UNWINDER: Unwinder = Unwinder::new();

/// Makes some system calls fail with an error.
fn forbid(calls: &[i64], error: i32) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    // Loads the call's number, compares, and returns the error where equal.
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for call in calls {
        program.push(libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: *call as u32,
        });
        program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | error as u32));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: a complete filter program; it restricts only this child process.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter), 0);
    }
}

/// Calls all functions that read memory by system calls; false at the first wrong result.
fn works() -> bool {
    let value = 0x1234_5678_9abc_def0u64;
    let address = &raw const value as u64;
    let mut bytes = [0u8; 8];
    let read = memory::read_own(address, &mut bytes) == 8 && u64::from_le_bytes(bytes) == value;
    let nothing = memory::read_own(8, &mut bytes) == 0;
    let holding = mapping::holding(address).is_some_and(|m| m.readable && m.writable && m.start <= address);
    let mut buffer = [0u8; 64];
    // SAFETY: no arguments.
    let pid = unsafe { libc::getpid() };
    let process = ProcessStack::new(pid, &mut buffer).read_u64(address) == Some(value)
        && ProcessStack::own(pid, &mut buffer).read_u64(address) == Some(value);
    let here = Registers::here();
    let mut frames = [0u64; 128];
    let walk = UNWINDER.walk(&here, &mut OwnStack::at(here.sp()), &mut Scratch::new(), &mut frames);
    read && nothing && holding && process && walk.end == End::Complete && walk.len > 3
}

#[test]
fn a_sandbox_is_no_obstacle() {
    UNWINDER.refresh().unwrap();
    assert!(works());
    for error in [libc::EPERM, libc::ENOSYS] {
        // SAFETY: the child allocates at most a few bytes before it ends by _exit.
        let status = unsafe {
            let pid = libc::fork();
            if pid == 0 {
                UNWINDER.after_fork();
                forbid(&[libc::SYS_process_vm_readv, libc::SYS_ioctl], error);
                let mut byte = 0u8;
                let own = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
                let forbidden = libc::process_vm_readv(libc::getpid(), &own, 1, &own, 1, 0) == -1;
                libc::_exit(if forbidden && works() { 42 } else { 1 });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
            status
        };
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42,
            "error {error}: status {status:#x}"
        );
    }
}
