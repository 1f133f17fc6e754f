//! Unusual stacks: alternate signal stacks, fibres, code generated at run time, a call through a null pointer.
#![allow(unsafe_code, reason = "calls the C library")]

#[path = "support/signals.rs"]
mod signals;

use signals::on_signal;
use stackglass_unwind::{Cut, End, OwnStack, Registers, Scratch, Unwinder, Walk};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::hint::black_box;

static UNWINDER: Unwinder = Unwinder::new();

thread_local! {
    static SEEN: RefCell<(Vec<u64>, Option<Walk>)> = const { RefCell::new((Vec::new(), None)) };
}

#[inline(never)]
fn walk_from(registers: &Registers) {
    let mut frames = vec![0; 1024];
    let walk = UNWINDER.walk(registers, &mut OwnStack::at(registers.sp()), &mut Scratch::new(), &mut frames);
    frames.truncate(walk.len);
    SEEN.set((frames, Some(walk)));
}

extern "C" fn walk_here() {
    walk_from(&black_box(Registers::here()));
}

fn seen() -> (Vec<u64>, End) {
    let (frames, walk) = SEEN.take();
    (frames, walk.expect("a walk").end)
}

/// Lookup addresses of the frames below the caller, which do not depend on its pc.
#[inline(never)]
fn frames_below() -> Vec<u64> {
    walk_here();
    let (frames, end) = seen();
    assert_eq!(end, End::Complete);
    // Innermost are walk_here, this function, and the caller, whose pc differs at every call.
    frames[3..].to_vec()
}

/// Recursion whose frames can be counted.
#[inline(never)]
fn under(depth: usize, f: &mut dyn FnMut()) {
    if depth == 0 {
        f();
    } else {
        under(black_box(depth - 1), f);
    }
    black_box(());
}

fn longest_run(frames: &[u64]) -> usize {
    frames.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0)
}

#[test]
fn from_an_alternate_stack_back_to_the_interrupted_one() {
    UNWINDER.refresh().unwrap();
    unsafe extern "C" fn handler(_: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
        walk_here();
    }
    on_signal(libc::SIGUSR2, libc::SA_ONSTACK, handler);
    let mut stack = vec![0u8; 256 << 10];
    // SAFETY: the stack outlives its use.
    unsafe {
        let new = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
        let mut old: libc::stack_t = std::mem::zeroed();
        assert_eq!(libc::sigaltstack(&new, &raw mut old), 0);
        under(300, &mut || assert_eq!(libc::raise(libc::SIGUSR2), 0));
        assert_eq!(libc::sigaltstack(&old, std::ptr::null_mut()), 0);
    }
    let (frames, end) = seen();
    assert_eq!(end, End::Complete);
    assert_eq!(longest_run(&frames), 300);
    assert!(frames.ends_with(&frames_below()));
}

#[test]
fn a_fibre_ends_where_it_was_made() {
    UNWINDER.refresh().unwrap();
    extern "C" fn fibre() {
        under(50, &mut || walk_here());
    }
    let mut stack = vec![0u8; 256 << 10];
    // SAFETY: both contexts and the stack live until the fibre has returned to `main`.
    unsafe {
        let mut main: libc::ucontext_t = std::mem::zeroed();
        let mut context: libc::ucontext_t = std::mem::zeroed();
        assert_eq!(libc::getcontext(&raw mut context), 0);
        context.uc_stack.ss_sp = stack.as_mut_ptr().cast();
        context.uc_stack.ss_size = stack.len();
        context.uc_link = &raw mut main;
        libc::makecontext(&raw mut context, fibre, 0);
        assert_eq!(libc::swapcontext(&raw mut main, &raw const context), 0);
    }
    let (frames, end) = seen();
    assert_eq!(end, End::Complete);
    assert_eq!(longest_run(&frames), 50);
    assert!(frames.len() < 60, "nothing of the stack it was started from");
}

#[test]
fn a_call_through_a_null_pointer_shows_the_caller() {
    UNWINDER.refresh().unwrap();
    unsafe extern "C" fn handler(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel passes a valid context. Returning to the word on top of the stack undoes the call.
        unsafe {
            let context = &mut *context.cast::<libc::ucontext_t>();
            walk_from(&Registers::of_signal(context));
            let registers = &mut context.uc_mcontext.gregs;
            assert_eq!(registers[libc::REG_RIP as usize], 0);
            registers[libc::REG_RIP as usize] = *(registers[libc::REG_RSP as usize] as *const i64);
            registers[libc::REG_RSP as usize] += 8;
        }
    }
    on_signal(libc::SIGSEGV, libc::SA_ONSTACK, handler);
    under(20, &mut || {
        // SAFETY: the handler makes the call return at once; nothing depends on its result.
        unsafe { std::arch::asm!("call {}", in(reg) black_box(0u64), clobber_abi("C")) };
    });
    let (frames, end) = seen();
    assert_eq!(end, End::Complete);
    assert_eq!(frames[0], 0);
    assert_eq!(longest_run(&frames), 20);
    assert!(frames.ends_with(&frames_below()));
}

#[test]
fn code_made_at_run_time_is_stepped_over_once_and_called_cut() {
    UNWINDER.refresh().unwrap();
    // push rbp; mov rbp, rsp; sub rsp, 32; call rdi; leave; ret
    let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0xc9, 0xc3];
    // SAFETY: a new page, filled before it is made executable.
    let function = unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(page, libc::MAP_FAILED);
        page.cast::<u8>().copy_from_nonoverlapping(code.as_ptr(), code.len());
        assert_eq!(libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC), 0);
        std::mem::transmute::<*mut c_void, extern "C" fn(extern "C" fn())>(page)
    };
    under(20, &mut || function(walk_here));
    let (frames, end) = seen();
    assert_eq!(end, End::Cut(Cut::NoModule), "frames may be missing");
    assert!(frames.contains(&(function as *const () as u64 + 9)), "the made code's own call");
    assert_eq!(longest_run(&frames), 20, "what called it");
    assert!(frames.ends_with(&frames_below()));
}
