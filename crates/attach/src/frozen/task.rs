//! A task that traces a process and outlives this process for a moment.
//!
//! A stop in user code begins with a SIGTRAP on its way to the thread. Should its tracer die just then, the program would get
//! it, and end. So the tracer is a process of its own, which shares all memory with this one: whoever kills this process
//! does not kill it. It notices that and ends, after it has let everybody go.
//!
//! The task runs on the thread-local storage of a thread that waits for its end (`CLONE_VFORK`), so the standard library works in it.
//! Memory that a killed thread has locked stays locked: a timer ends the task if it does not end by itself.
//!
//! Yama may allow only ancestors to trace a process. A thread traces then.
//!
//! Threads of the program stand still while the task waits for a CPU, so the task requests a high priority.

use super::own_copies;
use crate::clock::run_before_others;
use crate::deadlock::Seizing;
use crate::ptrace;
use stackglass_procfs::Status;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// CAP_SYS_PTRACE as a bit.
const CAN_TRACE: u64 = 1 << 19;
/// Bytes of the task's stack.
const STACK: usize = 1 << 20;
/// Time between two ticks of its timer, in microseconds.
const TICK: i64 = 20_000;
/// It ends at the latest this many ticks after this process.
const MOST_TICKS: u32 = 100;

/// The task, as its work sees it.
pub(super) struct Task {
    /// The process that it serves; 0 if it is a thread of that process.
    serves: u32,
}

impl Task {
    /// Whether the process that it serves has ended.
    pub(super) fn is_orphan(&self) -> bool {
        self.serves != 0 && parent() != self.serves
    }
}

/// Starts a task that works on the process `pid`. The thread ends with the task.
///
/// # Errors
/// If no thread can be started.
pub(super) fn spawn(
    pid: u32,
    seizing: Arc<Seizing>,
    work: impl FnOnce(&Task) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let work = |task: &Task| {
        run_before_others();
        work(task);
    };
    let run = move || match only_ancestors_may_trace() {
        true => work(&Task { serves: 0 }),
        false => run_as_process(pid, &seizing, work),
    };
    std::thread::Builder::new().name("stackglass-stop".into()).spawn(run)
}

fn only_ancestors_may_trace() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    !matches!(scope.trim(), "" | "0") && Status::own().capabilities & CAN_TRACE == 0
}

/// What the new process is given.
struct Start<'a, F: FnOnce(&Task)> {
    work: Option<F>,
    serves: u32,
    watch: &'a Watch<'a>,
}

/// What its timer looks at.
struct Watch<'a> {
    pid: u32,
    serves: u32,
    seizing: &'a Seizing,
    ticks: AtomicU32,
}

std::thread_local! {
    /// What the timer of this task looks at. It ends with the task.
    static WATCHED: Cell<*const Watch<'static>> = const { Cell::new(null()) };
}

fn run_as_process<F: FnOnce(&Task)>(pid: u32, seizing: &Seizing, work: F) {
    let serves = std::process::id();
    let watch = Watch { pid, serves, seizing, ticks: AtomicU32::new(0) };
    let mut start = Start { work: Some(work), serves, watch: &watch };
    let mut stack = vec![0u8; STACK];
    let top = stack.as_mut_ptr().wrapping_add(STACK).map_addr(|address| address & !63);
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the sets are live. The task runs `enter` on its own stack while this thread waits for its end, so that `start` outlives it.
    let task = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_FS | libc::CLONE_VFORK;
        let task = libc::clone(enter::<F>, top.cast(), flags, (&raw mut start).cast());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
        task
    };
    if task > 0 {
        ptrace::reap(task as u32);
    } else if let Some(work) = start.work.take() {
        work(&Task { serves: 0 });
    }
}

extern "C" fn enter<F: FnOnce(&Task)>(start: *mut libc::c_void) -> libc::c_int {
    // SAFETY: what `run_as_process` has passed; its thread waits.
    let start = unsafe { &mut *start.cast::<Start<'_, F>>() };
    // A recording of what this process has started leaves it out.
    own_copies::note(std::process::id());
    begin_timer(start.watch);
    let task = Task { serves: start.serves };
    if let Some(work) = start.work.take() {
        // The message of a panic is all that can be done.
        let _ = catch_unwind(AssertUnwindSafe(|| work(&task)));
    }
    0
}

/// Begins the timer that ends this task if it hangs, and that ends a deadlock with an exec of the program.
fn begin_timer(watch: &Watch<'_>) {
    WATCHED.set((&raw const *watch).cast());
    // SAFETY: this process has handlers and timers of its own. `tick` outlives it, and the structs are live.
    unsafe {
        // Away from the signals of a terminal.
        libc::setsid();
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = tick as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGALRM, &action, null_mut());
        let every = libc::timeval { tv_sec: 0, tv_usec: TICK };
        let timer = libc::itimerval { it_interval: every, it_value: every };
        libc::setitimer(libc::ITIMER_REAL, &timer, null_mut());
        let mut alarm = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(alarm.as_mut_ptr());
        libc::sigaddset(alarm.as_mut_ptr(), libc::SIGALRM);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, alarm.as_ptr(), null_mut());
    }
}

extern "C" fn tick(_: libc::c_int) {
    // SAFETY: the watch lives until this task has ended, and the pointer is set before the timer begins.
    let Some(watch) = (unsafe { WATCHED.get().as_ref() }) else { return };
    // Inside PTRACE_SEIZE, so no lock is held.
    watch.seizing.help(watch.pid);
    let is_orphan = parent() != watch.serves;
    if is_orphan && watch.ticks.fetch_add(1, Ordering::Relaxed) > MOST_TICKS {
        // SAFETY: ends this task only. The kernel lets all traced threads go.
        unsafe { libc::_exit(0) };
    }
}

fn parent() -> u32 {
    // SAFETY: a call without arguments that cannot fail.
    unsafe { libc::getppid() as u32 }
}
