//! The signal handler: walks the stack of the thread that it interrupts, into the mailbox that the signal names.
//!
//! A signal is the profiler's when it was queued by this very process and carries the process's random cookie, or when one of the
//! profiler's timers has sent it. Every other signal is passed on to the handler that the program has, or had before.

use crate::action::{Action, SA_NODEFER, SA_RESETHAND, SA_SIGINFO};
use crate::guest::{self, Guest};
use crate::mailbox::{ASIDE, Hit, HitTimer, MAILBOXES, MailboxWriter, SignalToken};
use crate::program_actions::program_action_of;
use crate::slot::{Slot, SlotIndex};
use crate::user_timer::TimerSignal;
use crate::{UNWINDER, call_timer, fork_guard, restart, system, task};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering::*};
use stackglass_unwind::{Registers, StackMemory, mapping};
use stackglass_wire::{Counter, cut};

/// Bytes of stack that the handler uses below the kernel's frame, at most.
pub const HANDLER_BYTES: usize = 2048;

static EMPTY: AtomicBool = AtomicBool::new(false);

/// Makes the handler return without a walk, so that benchmarks can measure what a walk costs.
pub fn set_empty(on: bool) {
    EMPTY.store(on, Relaxed);
}

/// Address of the handler.
pub(crate) fn address() -> usize {
    enter as *const () as usize
}

unsafe extern "C" fn enter(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands a handler with SA_SIGINFO a valid siginfo and ucontext; errno's address is the
    // interrupted thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        match whose(&*info) {
            Whose::Queued(word) => {
                if let Some(guest) = guest::current() {
                    answer(guest, word, &mut *context.cast());
                }
            }
            Whose::Timer(guest, slot, timer) => hit(guest, slot, timer, &mut *context.cast()),
            Whose::Late => {}
            Whose::Foreign => pass_on(signal, info, context),
        }
        *errno = saved;
    }
}

/// Whose a signal is.
enum Whose {
    /// The profiler's, queued with this word.
    Queued(u64),
    /// That of a timer of the thread with this slot.
    Timer(&'static Guest, SlotIndex, HitTimer),
    /// That of a timer that is closed.
    Late,
    /// Not the profiler's.
    Foreign,
}

/// `si_code` of signals for a descriptor (include/uapi/asm-generic/siginfo.h).
const POLL_IN: i32 = 1;

#[inline]
fn whose(info: &libc::siginfo_t) -> Whose {
    // SAFETY: a signal that was queued, or comes from a timer, has a value.
    let value = || unsafe { info.si_value() }.sival_ptr.addr() as u64;
    match info.si_code {
        libc::SI_QUEUE => {
            // SAFETY: a signal with this code has a sender.
            let pid = unsafe { info.si_pid() } as u32;
            let is_ours = fork_guard::sampled_process()
                .is_some_and(|process| info.si_errno as u32 == process.cookie && pid == process.pid);
            if is_ours { Whose::Queued(value()) } else { Whose::Foreign }
        }
        libc::SI_TIMER => match (call_timer::slot_of(value()), guest::current()) {
            (Some(slot), Some(guest)) => Whose::Timer(guest, slot, HitTimer::Call),
            _ => Whose::Foreign,
        },
        // What an event of a descriptor has in common with a signal of asynchronous input.
        POLL_IN => {
            let Some(guest) = guest::current() else { return Whose::Foreign };
            // SAFETY: `struct siginfo` of the x86-64 kernel has 128 bytes; `si_fd` is the seventh word of four bytes.
            let descriptor = unsafe { (&raw const *info).cast::<i32>().add(6).read() };
            match guest.timers.whose(descriptor) {
                TimerSignal::Of(slot) => Whose::Timer(guest, slot, HitTimer::User),
                TimerSignal::Stale => Whose::Late,
                TimerSignal::Foreign => Whose::Foreign,
            }
        }
        _ => Whose::Foreign,
    }
}

/// Writes the stack of the interrupted thread into any free mailbox.
///
/// # Safety
/// To be called from the handler only, with its own context.
#[inline]
unsafe fn hit(guest: &Guest, slot: SlotIndex, timer: HitTimer, context: &mut libc::ucontext_t) {
    let order = guest.hits.fetch_add(1, Relaxed);
    let tid = guest.slot(slot).tid.load(Acquire);
    // SAFETY: by the caller.
    let claim = || guest.mailboxes.iter().find_map(|mailbox| Some((mailbox, unsafe { mailbox.claim() }?)));
    if tid == 0 {
        guest.count(Counter::StaleSignal);
    } else if let Some((mailbox, (generation, writer))) = claim() {
        let cpu = system::thread_cpu(tid).unwrap_or(0);
        writer.header.hit = Some(Hit { slot, tid, order, timer, cpu });
        walk(guest.slot(slot), writer, context);
        mailbox.finish_write(generation);
    } else {
        guest.count(Counter::NoMailbox);
    }
    // Only a wait that does the timer's work before its end has EINTR.
    // SAFETY: `context` is the third argument of the handler that runs now.
    if timer == HitTimer::Call && unsafe { restart::put_back(context) } {
        guest.count(Counter::CallsPutBack);
    }
}

/// Writes the stack of the interrupted thread into the mailbox that `word` names.
///
/// # Safety
/// To be called from the handler only, with its own context.
#[inline]
unsafe fn answer(guest: &Guest, word: u64, context: &mut libc::ucontext_t) {
    let Some(token) = SignalToken::from_word(word) else { return };
    let mailbox = &guest.mailboxes[token.mailbox as usize % MAILBOXES];
    // SAFETY: this is the handler of the token's signal, and a signal is delivered once.
    match unsafe { mailbox.begin_write(token.generation) } {
        Some(writer) => {
            writer.header.hit = None;
            walk(guest.slot(token.slot), writer, context);
            mailbox.finish_write(token.generation);
        }
        None => guest.count(Counter::StaleSignal),
    }
    // SAFETY: `context` is the third argument of the handler that runs now.
    if unsafe { restart::put_back(context) } {
        guest.count(Counter::CallsPutBack);
    }
}

#[inline]
fn walk(slot: &Slot, writer: MailboxWriter<'_>, context: &libc::ucontext_t) {
    let registers = Registers::of_signal(context);
    let sp = registers.sp();
    let header = writer.header;
    header.sp = sp;
    header.polled = slot.polled();
    header.text = task::unsent_text(header.polled);
    header.alternate = match context.uc_stack.ss_flags & libc::SS_DISABLE {
        0 => context.uc_stack.ss_size as u64,
        _ => 0,
    };
    let known = slot.stack_around(sp);
    header.bounds_missing = known.is_none();
    header.thread_pointer = if known.is_none() { thread_pointer() } else { 0 };
    header.no_room = stack_room(context, known, slot.stack_grows()) < HANDLER_BYTES as u64;
    if header.no_room || EMPTY.load(Relaxed) {
        (header.len, header.cut) = (0, if header.no_room { cut::NOT_TAKEN } else { 0 });
        return;
    }
    let (low, high) = known.unwrap_or((0, 0));
    let mut stack = BoundedStack { low: low.max(1), high, aside_at: 0, aside_len: 0, aside: writer.aside };
    let walk = UNWINDER.walk(&registers, &mut stack, writer.scratch, writer.frames);
    header.len = walk.len;
    header.cut = walk.end.code();
}

/// Bytes of stack left below the handler, as far as that can be known: to the end of the alternate stack it runs on, or of
/// the mapping. The end of a stack inside a larger mapping (one from `malloc`, for example) cannot be known.
#[inline]
fn stack_room(context: &libc::ucontext_t, known: Option<(u64, u64)>, grows: bool) -> u64 {
    let here = (context as *const libc::ucontext_t).addr() as u64;
    let low = context.uc_stack.ss_sp.addr() as u64;
    if low <= here && here - low < context.uc_stack.ss_size as u64 {
        return here - low;
    }
    match known {
        // The first thread's stack grows as it is used.
        Some(_) if grows => u64::MAX,
        Some((low, high)) if low <= here && here < high => here - low,
        // The handler runs on an alternate stack, or on one that the sampler does not know.
        _ => room_in_mapping(here),
    }
}

#[cold]
#[inline(never)]
fn room_in_mapping(here: u64) -> u64 {
    match mapping::holding(here) {
        Some(map) if !is_first_stack(map.start, map.end) => here - map.start,
        _ => u64::MAX,
    }
}

/// Whether this is the mapping of the process's first stack, which grows as it is used.
pub fn is_first_stack(start: u64, end: u64) -> bool {
    // SAFETY: no pointers. The sixteen random bytes lie at the top of the first stack.
    let top = unsafe { libc::getauxval(libc::AT_RANDOM) };
    start <= top && top < end
}

/// ARCH_GET_FS: the thread pointer, without relying on what it points to.
fn thread_pointer() -> u64 {
    let mut base = 0u64;
    const ARCH_GET_FS: i32 = 0x1003;
    // SAFETY: the kernel writes one word to `base`.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_FS, &mut base as *mut u64) };
    base
}

/// A stack of which one range is read with plain loads, and everything else through the kernel.
struct BoundedStack<'a> {
    low: u64,
    high: u64,
    aside_at: u64,
    aside_len: usize,
    aside: &'a mut [u8; ASIDE],
}

impl BoundedStack<'_> {
    #[cold]
    #[inline(never)]
    fn read_aside(&mut self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.aside_at);
        let offset = if offset.saturating_add(8) <= self.aside_len as u64 {
            offset as usize
        } else {
            self.aside_len = stackglass_unwind::memory::read_own(address, self.aside).min(ASIDE);
            self.aside_at = address;
            0
        };
        let bytes = self.aside[..self.aside_len].get(offset..offset + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl StackMemory for BoundedStack<'_> {
    #[inline(always)]
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        if self.low <= address && address < self.high && self.high - address >= 8 {
            // SAFETY: [low, high) was found by the sampler to be this thread's own stack, which is mapped as
            // long as the thread runs on it (see `Slot::stack_around`); the eight bytes lie inside.
            return Some(unsafe { (address as *const u64).read_unaligned() });
        }
        self.read_aside(address)
    }
}

/// Handles a signal that is not the profiler's as the program would without the profiler.
///
/// # Safety
/// The arguments are the handler's own.
#[cold]
#[inline(never)]
unsafe fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    if let Some(guest) = guest::current() {
        guest.count(Counter::ForeignSignal);
    }
    let Some(own) = program_action_of(signal) else { return };
    let program = own.load();
    if !program.has_handler() {
        return;
    }
    if program.flags & SA_RESETHAND != 0 {
        own.store(Action::DEFAULT);
    }
    // SAFETY: `context` is the kernel's ucontext; `program.handler` is a function the program installed for
    // this signal, called as its flags ask for.
    unsafe {
        let interrupted = &mut (*context.cast::<libc::ucontext_t>()).uc_sigmask as *mut libc::sigset_t;
        let own = if program.flags & SA_NODEFER != 0 { 0 } else { 1u64 << (signal - 1) };
        let mask = *interrupted.cast::<u64>() | program.mask | own;
        system::set_blocked(mask);
        if program.flags & SA_SIGINFO != 0 {
            let handler: unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
                core::mem::transmute(program.handler);
            handler(signal, info, context);
        } else {
            let handler: unsafe extern "C" fn(i32) = core::mem::transmute(program.handler);
            handler(signal);
        }
        system::set_blocked(u64::MAX);
    }
}
