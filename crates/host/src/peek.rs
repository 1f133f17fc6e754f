//! Peek requests: SIGUSR1, as in Julia.
//!
//! The handler counts the request and wakes the thread that waits for one; that thread does the rest. The handler is installed
//! only if the program leaves the signal at its default action, and is removed when the program takes the signal later.
//! A forked child that has not called exec, also one made by `vfork`, is not the sampled process ([`fork_guard`]): the
//! signal ends it, as it would without the profiler.
//!
//! Under `stackglass run` the launcher answers. The handler then counts in a page of the session ([`count_in`]), and a
//! forked child, which shares the page, counts its own requests.
//!
//! A program that is ready is recognised from outside by bit 10 of `SigCgt` in `/proc/PID/status`, and by a mapping named
//! [`PEEK_MARK`] in `/proc/PID/maps`, which forked children do not have.

use crate::action::{self, Action, SA_RESTART};
use crate::{agent, confined, fork_guard, guest, restart, system};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::*};
use stackglass_wire::{PEEK_MARK, PEEK_SYMBOL, Requests};

/// The signal.
pub const SIGNAL: i32 = libc::SIGUSR1;

/// Requests so far. Also the word that waiting threads sleep on.
static REQUESTS: AtomicU32 = AtomicU32::new(0);
static INSTALLED: AtomicBool = AtomicBool::new(false);
static MARK_AT: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// The process that has the mark. A forked child inherits the pointer and not the page.
static MARK_OF: AtomicU32 = AtomicU32::new(0);

/// The page in which a launcher reads the requests; null if they are counted here.
static SHARED: AtomicPtr<Requests> = AtomicPtr::new(core::ptr::null_mut());
/// Forked children count there as well.
static WITH_CHILDREN: AtomicBool = AtomicBool::new(false);

/// From now on requests are counted in a page that a launcher reads. Those of forked children are counted there only
/// with `with_children`.
pub fn count_in(requests: &'static Requests, with_children: bool) {
    WITH_CHILDREN.store(with_children, Release);
    SHARED.store(core::ptr::from_ref(requests).cast_mut(), Release);
}

/// The page of the launcher that answers requests to this process.
fn shared() -> Option<&'static Requests> {
    // SAFETY: null, or a page that is never unmapped.
    let shared = unsafe { SHARED.load(Acquire).as_ref() }?;
    let own = || fork_guard::sampled_process().is_some_and(|process| process.pid == system::process_id());
    (WITH_CHILDREN.load(Relaxed) || own()).then_some(shared)
}

/// The address of the handler that counts for a launcher, 0 if there is none.
pub fn handler_for_launcher() -> usize {
    if shared().is_some() && INSTALLED.load(Acquire) { enter as *const () as usize } else { 0 }
}

/// Whether a handler is the preload library's, which counts for a launcher. The crate replaces it, because it knows more of
/// the program.
fn gives_way(handler: usize) -> bool {
    let Some(agent) = agent::symbol(PEEK_SYMBOL) else { return false };
    // SAFETY: the symbol is a function of this type.
    let address: extern "C" fn() -> usize = unsafe { core::mem::transmute(agent) };
    address() == handler
}

/// Why SIGUSR1 is no request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotInstalled {
    /// The program handles or ignores SIGUSR1 itself.
    Owned,
    /// The kernel refused (its errno).
    Refused(i32),
}

/// Makes SIGUSR1 a request. Harmless if repeated.
///
/// # Errors
/// [`NotInstalled`]; nothing has changed then.
pub fn install() -> Result<(), NotInstalled> {
    let before = action::kernel_action(SIGNAL, None).map_err(NotInstalled::Refused)?;
    if is_handler(before.handler) && fork_guard::is_sampled() {
        return Ok(());
    }
    if before.handler != libc::SIG_DFL && !is_handler(before.handler) && !gives_way(before.handler) {
        return Err(NotInstalled::Owned);
    }
    if !fork_guard::is_sampled() && !fork_guard::arm() {
        return Err(NotInstalled::Refused(libc::ENOMEM));
    }
    action::set_peek_handler(enter as *const () as usize);
    action::kernel_action(SIGNAL, Some(&own_action())).map_err(NotInstalled::Refused)?;
    INSTALLED.store(true, Release);
    show_mark();
    Ok(())
}

/// Whether this is the handler's address. To a program that reads the action, the default one is reported.
pub fn is_handler(handler: usize) -> bool {
    handler == enter as *const () as usize
}

/// The program has taken SIGUSR1, or (`false`) has set it to its default, which the handler replaces.
pub fn program_owns(owns: bool) {
    if owns {
        hide_mark();
    } else if INSTALLED.load(Acquire) && (fork_guard::is_sampled() || shared().is_some()) {
        let _ = action::kernel_action(SIGNAL, Some(&own_action()));
        show_mark();
    }
}

/// Requests so far.
pub fn requests() -> u32 {
    REQUESTS.load(Acquire)
}

/// Resets the count in a forked child, before its sampler starts.
pub fn after_fork() {
    REQUESTS.store(0, Release);
}

/// Waits until the count differs from `seen`, for at most `time`. May return early.
pub fn wait_for(seen: u32, time: core::time::Duration) {
    let until = system::now().saturating_add(time.as_nanos() as u64);
    system::sleep_until(&REQUESTS, seen, until);
}

/// Counts a request that came without a signal, and wakes the threads that wait.
pub fn request() {
    REQUESTS.fetch_add(1, AcqRel);
    if confined::is_confined() {
        return;
    }
    system::wake(&REQUESTS);
    if let Some(guest) = guest::current() {
        guest.wake_sampler();
    }
}

fn own_action() -> Action {
    Action::own(enter as *const () as usize, SA_RESTART)
}

/// The handler.
unsafe extern "C" fn enter(number: i32, _info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: `context` is the third argument of this handler; errno's address is the interrupted thread's own; the calls below are system calls without memory
    // of the program.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        let is_request = if let Some(requests) = shared() {
            // A child of `vfork` has its parent's memory and its own process id.
            requests.add(match fork_guard::sampled_process() {
                Some(process) if confined::is_confined() => process.pid,
                _ => system::process_id(),
            });
            true
        } else if fork_guard::is_sampled() && fork_guard::is_own_process() {
            request();
            true
        } else {
            false
        };
        if is_request && confined::is_confined() {
            // An interrupted call stays as it is: the kernel must not be asked what else may have interrupted it.
        } else if is_request {
            restart::put_back(&mut *context.cast());
        } else {
            // The signal is blocked while this handler runs, and delivered when it returns.
            let _ = action::kernel_action(number, Some(&Action::DEFAULT));
            libc::syscall(libc::SYS_tkill, system::thread_id(), number);
        }
        *errno = kept;
    }
}

/// Maps a page with the name of the mark. It is never written to.
fn show_mark() {
    let pid = system::process_id();
    if MARK_OF.swap(pid, AcqRel) != pid {
        MARK_AT.store(core::ptr::null_mut(), Release);
    }
    if !MARK_AT.load(Acquire).is_null() {
        return;
    }
    // SAFETY: the name ends with a zero byte; the descriptor is closed before the block ends; the mapping is new
    // and its advice concerns it alone.
    unsafe {
        let fd = libc::syscall(libc::SYS_memfd_create, PEEK_MARK.as_ptr(), libc::MFD_CLOEXEC) as i32;
        if fd < 0 {
            return;
        }
        let at = system::mmap(core::ptr::null_mut(), 4096, libc::PROT_NONE, libc::MAP_PRIVATE, fd, 0);
        libc::syscall(libc::SYS_close, fd);
        if at == libc::MAP_FAILED {
            return;
        }
        libc::madvise(at, 4096, libc::MADV_DONTFORK);
        if MARK_AT.compare_exchange(core::ptr::null_mut(), at.cast(), AcqRel, Acquire).is_err() {
            system::munmap(at, 4096);
        }
    }
}

fn hide_mark() {
    let at = MARK_AT.swap(core::ptr::null_mut(), AcqRel);
    if !at.is_null() && MARK_OF.load(Acquire) == system::process_id() {
        // SAFETY: the page mapped by `show_mark` in this very process, taken out of the variable by this call alone.
        unsafe { system::munmap(at.cast(), 4096) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_installed() -> bool {
        fork_guard::is_sampled()
            && INSTALLED.load(Acquire)
            && action::kernel_action(SIGNAL, None).is_ok_and(|action| is_handler(action.handler))
    }

    fn mapped() -> bool {
        std::fs::read_to_string("/proc/self/maps").unwrap().contains(PEEK_MARK.to_str().unwrap())
    }

    #[test]
    fn requests_are_counted_and_children_die_of_the_signal() {
        install().unwrap();
        assert!(is_installed() && mapped());
        let before = requests();
        // SAFETY: a signal to this process, whose handler is ours; the child makes system calls only.
        let status = unsafe {
            assert_eq!(libc::kill(libc::getpid(), SIGNAL), 0);
            let child = libc::fork();
            if child == 0 {
                libc::kill(libc::getpid(), SIGNAL);
                libc::_exit(7);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            status
        };
        while requests() == before {
            wait_for(before, core::time::Duration::from_millis(1));
        }
        assert_eq!(requests(), before + 1);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == SIGNAL, "{status:x}");
        program_owns(true);
        assert!(!mapped());
        program_owns(false);
        assert!(mapped() && is_installed());
    }
}
