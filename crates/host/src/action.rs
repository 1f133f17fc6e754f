//! Signal actions as the kernel keeps them, read and set without the C library.
//!
//! The preload library's hooks replace `sigaction`, so the profiler's own calls go to the kernel directly.

use core::sync::atomic::{AtomicUsize, Ordering::*};

/// The kernel's action for a signal (`struct sigaction` of the x86-64 kernel, not of the C library).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Address of the handler, or `SIG_DFL`, `SIG_IGN`.
    pub handler: usize,
    /// `SA_*` bits.
    pub flags: u64,
    restorer: usize,
    /// Signals blocked while the handler runs.
    pub mask: u64,
}

const SA_RESTORER: u64 = 0x0400_0000;
pub(crate) const SA_RESTART: u64 = libc::SA_RESTART as u64;
pub(crate) const SA_ONSTACK: u64 = libc::SA_ONSTACK as u64;
pub(crate) const SA_SIGINFO: u64 = libc::SA_SIGINFO as u64;
pub(crate) const SA_NODEFER: u64 = libc::SA_NODEFER as u64;
pub(crate) const SA_RESETHAND: u64 = libc::SA_RESETHAND as u64;

impl Action {
    /// The default action.
    pub const DEFAULT: Action = Action { handler: libc::SIG_DFL, flags: 0, restorer: 0, mask: 0 };

    /// An action as a program asks for it.
    pub fn new(handler: usize, flags: u64, mask: u64) -> Action {
        Action { handler, flags, restorer: 0, mask }
    }

    /// An action for one of the profiler's handlers: the handler gets a siginfo, and every other signal is
    /// blocked while it runs.
    pub(crate) fn own(handler: usize, flags: u64) -> Action {
        Action {
            handler,
            flags: flags | SA_SIGINFO | SA_RESTORER,
            restorer: stackglass_restore as *const () as usize,
            mask: u64::MAX,
        }
    }

    /// Whether the action calls a handler.
    pub(crate) fn has_handler(&self) -> bool {
        self.handler > libc::SIG_IGN
    }
}

// The kernel returns from a handler through this code. It has the same bytes as in the C libraries, because
// unwinders that find no unwind rules for it (libgcc's) recognise it by its bytes.
core::arch::global_asm!(
    ".pushsection .text.stackglass_restore, \"ax\", @progbits",
    ".p2align 4",
    ".hidden stackglass_restore",
    ".globl stackglass_restore",
    ".type stackglass_restore, @function",
    "stackglass_restore:",
    ".byte 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00", // mov $15, %rax (rt_sigreturn)
    ".byte 0x0f, 0x05",                               // syscall
    ".size stackglass_restore, . - stackglass_restore",
    ".popsection",
);

unsafe extern "C" {
    fn stackglass_restore();
}

/// Bytes of the kernel's signal mask.
const MASK_BYTES: usize = 8;

/// Reads and, with `new`, sets the action of a signal. The errno on failure.
pub(crate) fn kernel_action(signal: i32, new: Option<&Action>) -> Result<Action, i32> {
    let mut old = Action::DEFAULT;
    let new = new.map_or(core::ptr::null(), |a| a as *const Action);
    // SAFETY: both pointers are null or live actions of the kernel's layout.
    let answer =
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, &mut old as *mut Action, MASK_BYTES) };
    if answer == 0 { Ok(old) } else { Err(errno()) }
}

pub(crate) fn errno() -> i32 {
    // SAFETY: errno's address is this thread's own and always valid.
    unsafe { *libc::__errno_location() }
}

/// Signals that the kernel raises for an instruction of the thread itself. They never interrupt a system call.
/// Rust's runtime installs handlers for two of them in every program.
const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// Whether this is a signal of a fault.
pub fn is_fault(number: i32) -> bool {
    FAULTS.contains(&number)
}

/// The handler of peek requests, 0 until it is first installed.
static PEEK_HANDLER: AtomicUsize = AtomicUsize::new(0);

/// Registers the handler of peek requests, so that it is not taken for one of the program's.
pub(crate) fn set_peek_handler(handler: usize) {
    PEEK_HANDLER.store(handler, Release);
}

/// Whether this is the handler of peek requests.
pub(crate) fn is_peek_handler(handler: usize) -> bool {
    handler != 0 && handler == PEEK_HANDLER.load(Acquire)
}
