//! Reports starts and ends of the program's threads to the sampler.
//!
//! Threads begin in a start function of this library, which pushes an event and then *jumps* to the program's: it leaves no
//! frame on the thread's stack. The destructor of a thread key pushes the end, which covers return, `pthread_exit` and
//! cancellation.

use crate::{real_functions, signal_sets};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use stackglass_host::thread_events::ThreadEvent;
use stackglass_host::{confined, fork_guard, guest, system};

type Start = extern "C" fn(*mut c_void) -> *mut c_void;

/// Threads between `pthread_create` and their first instruction.
const CELLS: usize = 1024;

const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// The start function of a new thread.
struct Cell {
    state: AtomicU32,
    start: AtomicUsize,
    argument: AtomicPtr<c_void>,
    /// Signals removed from the mask of its creator.
    removed_signals: AtomicU64,
}

static PENDING: [Cell; CELLS] = [const {
    Cell {
        state: AtomicU32::new(FREE),
        start: AtomicUsize::new(0),
        argument: AtomicPtr::new(core::ptr::null_mut()),
        removed_signals: AtomicU64::new(0),
    }
}; CELLS];
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The thread key + 1, or 0 without one.
static KEY: AtomicU64 = AtomicU64::new(0);

/// Creates the key whose destructor reports ends.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: `key` is live; `ended` is a function of this library, which is never unloaded.
    if KEY.load(Acquire) == 0 && unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0 {
        KEY.store(key as u64 + 1, Release);
    }
}

/// Start function and argument, returned in the two registers of a C pair.
#[repr(C)]
struct Begun {
    start: usize,
    argument: *mut c_void,
}

// Calls `begun` with the cell and jumps to what it returns. The call needs the stack aligned to 16 bytes.
core::arch::global_asm!(
    ".pushsection .text.stackglass_thread_start, \"ax\", @progbits",
    ".p2align 4",
    ".hidden stackglass_thread_start",
    ".globl stackglass_thread_start",
    ".type stackglass_thread_start, @function",
    "stackglass_thread_start:",
    ".cfi_startproc",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {begun}",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "mov rdi, rdx",
    "jmp rax",
    ".cfi_endproc",
    ".size stackglass_thread_start, . - stackglass_thread_start",
    ".popsection",
    begun = sym begun,
);

unsafe extern "C" {
    fn stackglass_thread_start(cell: *mut c_void) -> *mut c_void;
}

extern "C" fn begun(cell: *mut c_void) -> Begun {
    // SAFETY: `pthread_create` below gave a cell of the static array.
    let cell = unsafe { &*cell.cast::<Cell>() };
    let begun = Begun { start: cell.start.load(Acquire), argument: cell.argument.load(Acquire) };
    signal_sets::inherit(cell.removed_signals.load(Acquire));
    cell.state.store(FREE, Release);
    if let Some(guest) = guest::current()
        && !confined::is_confined()
    {
        guest.thread_events.push(ThreadEvent::Start { tid: system::thread_id(), at: system::now() });
        if let Some(key) = KEY.load(Acquire).checked_sub(1) {
            // SAFETY: the key exists; any value but null makes the destructor run.
            unsafe { libc::pthread_setspecific(key as libc::pthread_key_t, (&raw const KEY).cast()) };
        }
    }
    begun
}

unsafe extern "C" fn ended(_: *mut c_void) {
    if let Some(guest) = guest::current().filter(|_| !confined::is_confined() && fork_guard::is_own_process())
    {
        let (at, cpu) = (system::now(), system::own_cpu());
        guest.thread_events.push(ThreadEvent::Exit { tid: system::thread_id(), at, cpu });
    }
}

fn take_cell() -> Option<&'static Cell> {
    let from = NEXT.fetch_add(1, Relaxed);
    (0..CELLS).map(|i| &PENDING[(from + i) % CELLS]).find(|cell| {
        cell.state.load(Relaxed) == FREE && cell.state.compare_exchange(FREE, TAKEN, AcqRel, Relaxed).is_ok()
    })
}

/// pthread_create(3).
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let Some(real) = real_functions::pthread_create() else { return libc::EAGAIN };
    let sampled = guest::current().is_some()
        && !confined::is_confined()
        && !stackglass_sampler::is_sampler(start)
        && fork_guard::is_own_process();
    let Some(cell) = sampled.then(take_cell).flatten() else {
        // SAFETY: passed on unchanged.
        return unsafe { real(thread, attributes, start, argument) };
    };
    cell.start.store(start as usize, Release);
    cell.argument.store(argument, Release);
    cell.removed_signals.store(signal_sets::removed(), Release);
    // SAFETY: the assembly above is a start function in the C library's calling convention.
    let ours = unsafe {
        core::mem::transmute::<unsafe extern "C" fn(*mut c_void) -> *mut c_void, Start>(
            stackglass_thread_start,
        )
    };
    // SAFETY: the caller's pointers, unchanged; the cell stays taken until the new thread has read it.
    let errno = unsafe { real(thread, attributes, ours, (&raw const *cell).cast_mut().cast()) };
    if errno != 0 {
        cell.state.store(FREE, Release);
    }
    errno
}
