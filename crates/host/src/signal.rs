//! The signal: how it is installed, sent and answered.
//!
//! SIGURG by default: ignored by default, so that a stray or late one, also across exec, is harmless. A program
//! that takes SIGURG for itself and sends it to threads of its own would lose some: one that finds ours waiting is
//! merged with it by the kernel. So from then on ours is SIGWINCH ([`program_action`]), ignored by default as well
//! and sent by terminals, to processes, which never merges with one for a thread. A signal is ours when it was queued by this very process and carries our random word; every other one is
//! passed on to the handler the program has, or had before us.
//!
//! # On which stack the handler runs
//! `SA_ONSTACK` is a property of the handler, not of a thread. With it, a thread that has an alternate stack
//! gives us that one, however small: below [`smallest_alternate_stack`] the kernel would kill the program.
//! Without it, the handler runs on stacks that were never meant for signals (a goroutine has 2 KiB). So it
//! is used only where alternate stacks are seen as they are made ([`Placement::Alternate`], with the preload
//! library), until the first one that is too small ([`avoid_alternate_stacks`]).
//! Once installed the handler stays for good: restoring the default could let a late signal through.

use crate::alternate::HANDLER_BYTES;
use crate::guest::{self, Guest};
use crate::mailbox::{ASIDE, Desk, Ticket};
use crate::slot::Slot;
use crate::{UNWINDER, marker, peek, restart, system, task};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::*};
use stackglass_unwind::{Registers, StackMemory, mapping};
use stackglass_wire::{Counter, cut};

/// What the kernel keeps for a signal (`struct sigaction` of the x86-64 kernel, not of the C library).
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
const SA_RESTART: u64 = libc::SA_RESTART as u64;
const SA_ONSTACK: u64 = libc::SA_ONSTACK as u64;
const SA_SIGINFO: u64 = libc::SA_SIGINFO as u64;
const SA_NODEFER: u64 = libc::SA_NODEFER as u64;
const SA_RESETHAND: u64 = libc::SA_RESETHAND as u64;

impl Action {
    /// The default action.
    pub const DEFAULT: Action = Action { handler: libc::SIG_DFL, flags: 0, restorer: 0, mask: 0 };

    /// An action as a program asks for it.
    pub fn new(handler: usize, flags: u64, mask: u64) -> Action {
        Action { handler, flags, restorer: 0, mask }
    }
}

// The kernel returns from a handler through this. Written as the C libraries write it, byte by byte, since
// unwinders without tables for it (libgcc's) know it by its bytes.
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

/// Where the handler runs on threads that have an alternate stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// On the stack that was interrupted.
    Interrupted,
    /// On the alternate stack.
    Alternate,
}

/// Number of our signal, 0 while none is installed.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static ON_ALTERNATE: AtomicBool = AtomicBool::new(false);
static EMPTY: AtomicBool = AtomicBool::new(false);

/// The program's own action for one of our signals.
struct ProgramAction {
    handler: AtomicUsize,
    flags: AtomicU64,
    mask: AtomicU64,
}

/// For signals 1 to 31 that have our handler, which stays where it once was.
static PROGRAM: [ProgramAction; 32] = [const { ProgramAction::none() }; 32];
/// Signals that have our handler, a bit each.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// The program's own action, if the signal has our handler.
fn program(signal: i32) -> Option<&'static ProgramAction> {
    if !has_our_handler(signal) {
        return None;
    }
    PROGRAM.get(signal as usize)
}

/// Whether our handler stands where the program's for this signal would.
pub fn has_our_handler(signal: i32) -> bool {
    (1..32).contains(&signal) && TAKEN.load(Acquire) >> signal & 1 == 1
}

impl ProgramAction {
    const fn none() -> ProgramAction {
        ProgramAction { handler: AtomicUsize::new(0), flags: AtomicU64::new(0), mask: AtomicU64::new(0) }
    }

    fn load(&self) -> Action {
        Action::new(self.handler.load(Acquire), self.flags.load(Acquire), self.mask.load(Acquire))
    }

    fn store(&self, action: Action) {
        // A handler must not meet another one's flags: no handler while they change.
        self.handler.store(libc::SIG_IGN, Release);
        self.flags.store(action.flags, Release);
        self.mask.store(action.mask, Release);
        self.handler.store(action.handler, Release);
    }
}

/// Asks the kernel for, and with `new` sets, the action of a signal. The errno on failure.
pub(crate) fn kernel_action(signal: i32, new: Option<&Action>) -> Result<Action, i32> {
    let mut old = Action::DEFAULT;
    let new = new.map_or(core::ptr::null(), |a| a as *const Action);
    // SAFETY: both pointers are null or live actions of the kernel's layout; 8 is the size of its mask.
    let answer = unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, &mut old as *mut Action, 8) };
    if answer == 0 { Ok(old) } else { Err(errno()) }
}

fn errno() -> i32 {
    // SAFETY: errno's address is this thread's own and always valid.
    unsafe { *libc::__errno_location() }
}

/// An action for a handler that only notes something: calls are restarted, every other signal waits meanwhile.
pub(crate) fn quiet_action(handler: usize) -> Action {
    Action {
        handler,
        flags: SA_SIGINFO | SA_RESTORER | SA_RESTART,
        restorer: stackglass_restore as *const () as usize,
        mask: u64::MAX,
    }
}

/// Our action as it should be installed now, given what the program wants for the same signal.
fn our_action(program: &ProgramAction) -> Action {
    let program = program.load();
    // Signals that the program means to interrupt its system calls must go on doing so.
    let wants_eintr = program.handler > libc::SIG_IGN && program.flags & SA_RESTART == 0;
    let restart = if wants_eintr { 0 } else { SA_RESTART };
    let on_stack = if ON_ALTERNATE.load(Relaxed) { SA_ONSTACK } else { 0 };
    Action {
        handler: enter as *const () as usize,
        flags: SA_SIGINFO | SA_RESTORER | restart | on_stack,
        restorer: stackglass_restore as *const () as usize,
        mask: u64::MAX,
    }
}

/// Installs our handler; what was there before becomes the program's own. Harmless when repeated.
///
/// # Errors
/// The errno of rt_sigaction.
pub fn install(signal: i32, placement: Placement) -> Result<(), i32> {
    ON_ALTERNATE.store(placement == Placement::Alternate, Relaxed);
    take(signal)?;
    give_way(signal);
    Ok(())
}

/// If the program has taken SIGURG, ours is SIGWINCH from now on. A refusal leaves us with SIGURG.
fn give_way(signal: i32) {
    let taken = program(signal).is_some_and(|p| p.handler.load(Acquire) > libc::SIG_IGN);
    if taken && signal == libc::SIGURG && installed() == Some(libc::SIGURG) {
        let _ = take(libc::SIGWINCH);
    }
}

/// Puts our handler in front of the program's and sends this signal from now on.
fn take(signal: i32) -> Result<(), i32> {
    let program = PROGRAM.get(signal as usize).ok_or(libc::EINVAL)?;
    let before = kernel_action(signal, None)?;
    if !is_handler(before.handler) {
        program.store(before);
    }
    TAKEN.fetch_or(1 << signal, AcqRel);
    kernel_action(signal, Some(&our_action(program)))?;
    SIGNAL.store(signal, Release);
    Ok(())
}

/// The signal whose handler is ours, if any.
pub fn installed() -> Option<i32> {
    match SIGNAL.load(Acquire) {
        0 => None,
        signal => Some(signal),
    }
}

/// True for the address of our handler.
pub fn is_handler(handler: usize) -> bool {
    handler == enter as *const () as usize
}

/// True while the kernel still has our handler for our signal.
pub fn is_ours() -> bool {
    installed().is_some_and(|s| kernel_action(s, None).is_ok_and(|a| is_handler(a.handler)))
}

/// The program asks for, or sets, its own action for a signal that has our handler: what it would have got from the
/// kernel. If it takes SIGURG, ours is SIGWINCH from now on.
pub fn program_action(signal: i32, new: Option<Action>) -> Action {
    let Some(program) = program(signal) else { return Action::DEFAULT };
    let old = program.load();
    if let Some(new) = new {
        program.store(new);
        // Only the restart flag can differ from before; a refusal leaves our handler as it is.
        let _ = kernel_action(signal, Some(&our_action(program)));
        give_way(signal);
    }
    old
}

/// Bytes an alternate stack must have for our handler: the kernel's frame and what the handler uses itself.
///
/// The kernel's own figure (`AT_MINSIGSTKSZ`) also counts register sets that a thread must ask for first
/// (AMX, 8 KiB); 3.5 KiB are what it really writes with AVX-512.
pub fn smallest_alternate_stack() -> usize {
    6 * 1024
}

/// An alternate stack too small for us is about to be used somewhere: keep off alternate stacks from now on.
pub fn avoid_alternate_stacks() {
    if ON_ALTERNATE.swap(false, AcqRel) {
        for signal in 1..32 {
            if let Some(program) = program(signal) {
                let _ = kernel_action(signal, Some(&our_action(program)));
            }
        }
    }
}

/// Signals that the kernel makes for an instruction of the thread itself: they never end a system call. (Rust's runtime has
/// handlers for two of them in every program.) Nobody who sends one by hand waits for what it interrupts.
const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// Whether this is a signal of a fault.
pub fn is_fault(number: i32) -> bool {
    FAULTS.contains(&number)
}

/// Whether the program has a handler of its own that may end a system call, as the kernel knows it at this moment.
///
/// Left out are ours, and 32 and 33, which the C library keeps for itself.
pub fn program_has_handlers() -> bool {
    handlers().any(|(number, _)| !is_fault(number))
}

/// The program's own handlers, as the kernel knows them.
pub(crate) fn handlers() -> impl Iterator<Item = (i32, Action)> {
    (1..=64).filter(|number| !(32..=33).contains(number)).filter_map(|number| {
        let action = match program(number) {
            Some(own) => own.load(),
            None => kernel_action(number, None).ok()?,
        };
        (action.handler > libc::SIG_IGN && !peek::is_handler(action.handler)).then_some((number, action))
    })
}

/// Makes the handler answer without walking: the yardstick for the cost of a walk.
pub fn set_empty(on: bool) {
    EMPTY.store(on, Relaxed);
}

/// Sends our signal with a ticket to a thread of this process.
///
/// # Errors
/// The errno: EAGAIN when the kernel's queue limit is reached, ESRCH when there is no such thread.
pub fn send(tid: u32, ticket: Ticket) -> Result<(), i32> {
    let (Some((pid, cookie)), Some(signal)) = (marker::armed(), installed()) else { return Err(libc::ESRCH) };
    // struct siginfo of the x86-64 kernel: signo, errno, code, padding, pid, uid, value.
    let mut info = [0u32; 32];
    info[0] = signal as u32;
    info[1] = cookie;
    info[2] = libc::SI_QUEUE as u32;
    info[4] = pid;
    let word = ticket.to_word();
    info[6] = word as u32;
    info[7] = (word >> 32) as u32;
    // SAFETY: the kernel reads 128 bytes of `info`, which has them.
    let answer = unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, info.as_ptr()) };
    if answer == 0 { Ok(()) } else { Err(errno()) }
}

/// The handler.
unsafe extern "C" fn enter(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands a handler with SA_SIGINFO a valid siginfo and ucontext; errno's address is the
    // interrupted thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        let queued = (*info).si_code == libc::SI_QUEUE;
        match marker::armed() {
            Some((pid, cookie))
                if queued && (*info).si_errno as u32 == cookie && (*info).si_pid() as u32 == pid =>
            {
                let word = (*info).si_value().sival_ptr.addr() as u64;
                if let Some(guest) = guest::current() {
                    answer(guest, word, &mut *context.cast());
                }
            }
            Some(_) if !queued && answer_event(&*info, &mut *context.cast()) => {}
            _ => pass_on(signal, info, context),
        }
        *errno = kept;
    }
}

/// Takes the stack of the thread we interrupted.
///
/// # Safety
/// To be called from the handler only, with its own context.
#[inline]
unsafe fn answer(guest: &Guest, word: u64, context: &mut libc::ucontext_t) {
    let Some(ticket) = Ticket::from_word(word) else { return };
    // SAFETY: by the caller.
    unsafe { fill(guest, ticket, context) };
    // SAFETY: `context` is the third argument of the handler that runs now.
    if unsafe { restart::put_back(context) } {
        guest.count(Counter::CallsPutBack);
    }
}

/// Puts the stack into its mailbox.
///
/// # Safety
/// As for [`answer`].
#[inline]
unsafe fn fill(guest: &Guest, ticket: Ticket, context: &libc::ucontext_t) {
    let mailbox = &guest.mailboxes[ticket.mailbox as usize % crate::mailbox::MAILBOXES];
    // SAFETY: we are the handler of this ticket's signal, and a signal is delivered once.
    match unsafe { mailbox.begin(ticket.generation) } {
        Some(desk) => {
            walk(guest.slot(ticket.slot), desk, context);
            mailbox.finish(ticket.generation);
        }
        None => guest.count(Counter::StaleSignal),
    }
}

/// A signal of an event of ours, for this thread: takes its stack, if one is wanted. False for any other signal.
///
/// Such an event counts user code alone: it has interrupted no call, and none is put back.
///
/// # Safety
/// To be called from the handler only, with its own arguments.
#[inline]
unsafe fn answer_event(info: &libc::siginfo_t, context: &mut libc::ucontext_t) -> bool {
    /// POLL_IN to POLL_HUP: the kernel's, for a descriptor.
    const OF_DESCRIPTOR: core::ops::RangeInclusive<i32> = 1..=6;
    if !OF_DESCRIPTOR.contains(&info.si_code) {
        return false;
    }
    // struct siginfo of the x86-64 kernel: signo, errno, code, padding, band (eight bytes), descriptor.
    // SAFETY: 128 bytes, and this is the kind that has a descriptor.
    let descriptor = unsafe { *(info as *const libc::siginfo_t).cast::<u32>().add(6) };
    let Some(guest) = guest::current() else { return false };
    let Some(event) = guest.events.get(descriptor as usize) else { return false };
    let Some((tid, slot)) = event.thread() else { return false };
    let sp = context.uc_mcontext.gregs[libc::REG_RSP as usize] as u64;
    if guest.slot(slot).stack_around(sp).is_none() && system::thread_id() != tid {
        return false;
    }
    if let Some(ticket) = event.hit() {
        // SAFETY: by the caller; the ticket was in the table for one signal.
        unsafe { fill(guest, ticket, context) };
    }
    true
}

#[inline]
fn walk(slot: &Slot, desk: Desk<'_>, context: &libc::ucontext_t) {
    let registers = Registers::of_signal(context);
    let sp = registers.sp();
    let letter = desk.letter;
    letter.sp = sp;
    letter.polled = slot.polled();
    letter.text = task::untold(letter.polled);
    letter.alternate = match context.uc_stack.ss_flags & libc::SS_DISABLE {
        0 => context.uc_stack.ss_size as u64,
        _ => 0,
    };
    let known = slot.stack_around(sp);
    letter.bounds_missing = known.is_none();
    letter.thread_pointer = if known.is_none() { thread_pointer() } else { 0 };
    letter.no_room = room(context, known, slot.stack_grows()) < HANDLER_BYTES as u64;
    if letter.no_room || EMPTY.load(Relaxed) {
        (letter.len, letter.cut) = (0, if letter.no_room { cut::NOT_TAKEN } else { 0 });
        return;
    }
    let (low, high) = known.unwrap_or((0, 0));
    let mut stack = BoundedStack { low: low.max(1), high, aside_at: 0, aside_len: 0, aside: desk.aside };
    let walk = UNWINDER.walk(&registers, &mut stack, desk.scratch, desk.frames);
    letter.len = walk.len;
    letter.cut = walk.end.code();
}

/// Bytes of stack that are left below the handler, as far as can be known: to the end of the alternate stack it runs on, or of
/// the mapping. A stack in the middle of a larger mapping (from `malloc`, say) does not tell where it ends.
#[inline]
fn room(context: &libc::ucontext_t, known: Option<(u64, u64)>, grows: bool) -> u64 {
    let here = (context as *const libc::ucontext_t).addr() as u64;
    let low = context.uc_stack.ss_sp.addr() as u64;
    if low <= here && here - low < context.uc_stack.ss_size as u64 {
        return here - low;
    }
    match known {
        // The first thread's stack grows as it is used.
        Some(_) if grows => u64::MAX,
        Some((low, high)) if low <= here && here < high => here - low,
        // The handler runs on an alternate stack, or the stack is one that the sampler does not know.
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

/// A stack of which one range may be read with plain loads and everything else only by asking the kernel.
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

/// A signal that is not ours: what the program would have got without us.
///
/// # Safety
/// The arguments are the handler's own.
#[cold]
#[inline(never)]
unsafe fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    if let Some(guest) = guest::current() {
        guest.count(Counter::ForeignSignal);
    }
    let Some(own) = program(signal) else { return };
    let program = own.load();
    if program.handler == libc::SIG_DFL || program.handler == libc::SIG_IGN {
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
