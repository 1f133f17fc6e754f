//! The stack use of a walk inside a signal handler: an alternate stack is filled with a pattern, the handler runs on it, and
//! the bytes that no longer have the pattern are counted.
#![allow(unsafe_code, reason = "calls the C library")]

use stackglass_unwind::{End, OwnStack, Registers, Scratch, Unwinder, mapping};
use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Most bytes that the walk may use below the handler's frame.
const LIMIT: u64 = 1400;

static UNWINDER: Unwinder = Unwinder::new();
static HANDLER_FRAME: AtomicU64 = AtomicU64::new(0);
static LEN: AtomicU64 = AtomicU64::new(0);
static END: AtomicU32 = AtomicU32::new(u32::MAX);

/// The tests share the handler's memory.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct HandlersOwn(UnsafeCell<(Scratch, [u64; 256])>);
// SAFETY: used by one handler at a time, of one thread.
unsafe impl Sync for HandlersOwn {}
static OWN: HandlersOwn = HandlersOwn(UnsafeCell::new((Scratch::new(), [0; 256])));

unsafe extern "C" fn handler(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid context; only this handler uses OWN.
    unsafe {
        let registers = Registers::of_signal(&*context.cast());
        HANDLER_FRAME.store(Registers::here().sp(), Ordering::Relaxed);
        let (scratch, frames) = &mut *OWN.0.get();
        walk(&registers, scratch, frames);
    }
}

/// Calls all functions of this crate that a handler uses.
#[inline(never)]
fn walk(registers: &Registers, scratch: &mut Scratch, frames: &mut [u64]) {
    let mut stack = OwnStack::at(registers.sp());
    let walk = UNWINDER.walk(registers, &mut stack, scratch, frames);
    LEN.store(walk.len as u64, Ordering::Relaxed);
    END.store(u32::from(walk.end.code()), Ordering::Relaxed);
}

/// Raises the signal with a new alternate stack; returns the bytes used below the handler's frame.
fn used() -> u64 {
    const SIZE: usize = 64 << 10;
    const PAINT: u8 = 0xa5;
    let mut stack = vec![PAINT; SIZE];
    // SAFETY: complete structures; the stack outlives its use and is disabled before it is freed.
    unsafe {
        let new = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIZE };
        let mut old: libc::stack_t = std::mem::zeroed();
        assert_eq!(libc::sigaltstack(&new, &raw mut old), 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGURG, &action, std::ptr::null_mut()), 0);
        assert_eq!(libc::raise(libc::SIGURG), 0);
        assert_eq!(libc::sigaltstack(&old, std::ptr::null_mut()), 0);
    }
    let untouched = stack.iter().take_while(|b| **b == PAINT).count() as u64;
    let lowest = stack.as_ptr() as u64 + untouched;
    let frame = HANDLER_FRAME.load(Ordering::Relaxed);
    assert!(stack.as_ptr_range().contains(&(frame as *const u8)), "the handler ran on the painted stack");
    frame - lowest
}

#[test]
fn a_walk_uses_little_of_the_hosts_stack() {
    let _alone = ONE_AT_A_TIME.lock();
    UNWINDER.refresh().unwrap();
    // The first walk evaluates every row, the second finds them in the table, the third finds the mapping in the text of
    // /proc/self/maps.
    let mut bytes = Vec::new();
    for round in 0..std::hint::black_box(3) {
        mapping::force_text(round == 2);
        bytes.push(used());
        assert_eq!(END.load(Ordering::Relaxed), u32::from(End::Complete.code()));
        assert!(LEN.load(Ordering::Relaxed) > 5);
    }
    mapping::force_text(false);
    let [cold, warm, by_text] = bytes[..] else { unreachable!() };
    println!("bytes of stack: cold {cold}, warm {warm}, mapping by text {by_text}");
    assert!(cold <= LIMIT && warm <= LIMIT && by_text <= LIMIT, "{cold} {warm} {by_text}");
    assert!(warm > 100 && warm < cold, "the measurement sees nothing");
}

static USED: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn interrupted_handler(_: libc::c_int) {
    USED.store(used(), Ordering::Relaxed);
}

#[test]
fn nor_does_a_walk_by_expressions() {
    let _alone = ONE_AT_A_TIME.lock();
    UNWINDER.refresh().unwrap();
    // The C library describes the signal trampoline by expressions, the most complex rows.
    // SAFETY: a handler that may be called here.
    unsafe {
        libc::signal(libc::SIGUSR2, interrupted_handler as *const () as libc::sighandler_t);
        assert_eq!(libc::raise(libc::SIGUSR2), 0);
    }
    assert_eq!(END.load(Ordering::Relaxed), u32::from(End::Complete.code()));
    let used = USED.load(Ordering::Relaxed);
    println!("bytes of stack: by expressions {used}");
    assert!(used > 100 && used <= LIMIT, "{used}");
}
