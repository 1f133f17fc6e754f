//! Starts and stops the sampler's thread.

use crate::memory::Memory;
use crate::orders::Orders;
use crate::run_state;
use crate::sampler::Sampler;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering::*};
use stackglass_host::signal::Placement;
use stackglass_host::stream_memory::{Refused, StreamMemory};
use stackglass_host::{Guest, guest, signal, system};
use stackglass_wire::ProcessState;

/// Handle of the sampler's thread until it is joined.
static THREAD: AtomicU64 = AtomicU64::new(0);

/// Stack of the sampler's thread in bytes; a few KiB of it are touched.
const STACK: usize = 256 << 10;

/// Why sampling did not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotStarted {
    /// The process runs under `stackglass record`, which samples it already.
    Delegated,
    /// This process has a sampler already.
    Running,
    /// The kernel refused something.
    Refused(Refused),
}

impl core::fmt::Display for NotStarted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            NotStarted::Delegated => {
                f.write_str("the program runs under `stackglass record`, which samples it already")
            }
            NotStarted::Running => f.write_str("this process is being sampled already"),
            NotStarted::Refused(Refused { step, errno }) => {
                write!(f, "no sampling: the system refused {step} (error {errno})")
            }
        }
    }
}

impl core::error::Error for NotStarted {}

impl From<Refused> for NotStarted {
    fn from(refused: Refused) -> Self {
        NotStarted::Refused(refused)
    }
}

/// The type of `pthread_create`.
pub type CreateThread = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    extern "C" fn(*mut c_void) -> *mut c_void,
    *mut c_void,
) -> i32;

/// What the sampler's thread needs to begin.
pub struct Plan {
    /// Where its orders come from.
    pub orders: Orders,
    /// The signal, usually SIGURG.
    pub signal: i32,
    /// Where handlers run.
    pub placement: Placement,
    /// Creates the stream to write into. Called on the sampler's thread if `stream` is `None`.
    pub make_stream: fn(start: u64) -> Result<StreamMemory, Refused>,
    /// The stream, if it exists already.
    pub stream: Option<StreamMemory>,
    /// When the process image began, CLOCK_MONOTONIC ns.
    pub start: u64,
    /// CPU time that the main thread had used at `start`, ns, if known. What it ran since is then part of the recording.
    pub start_cpu: Option<u64>,
    /// How long the thread waits before it begins, ns, so that a child that execs at once gets no file.
    pub patience: u64,
    /// The system's `pthread_create`.
    pub create_thread: CreateThread,
}

/// Starts the sampler's thread and returns its pthread handle.
///
/// # Errors
/// [`NotStarted`].
pub fn launch(plan: Plan) -> Result<libc::pthread_t, NotStarted> {
    if run_state::is_running() {
        return Err(NotStarted::Running);
    }
    guest::establish().ok_or(Refused { step: "memory", errno: libc::ENOMEM })?;
    run_state::start();
    let launched = launch_thread(plan);
    if launched.is_err() {
        run_state::finish();
    }
    launched
}

fn launch_thread(plan: Plan) -> Result<libc::pthread_t, NotStarted> {
    signal::install(plan.signal, plan.placement)
        .map_err(|errno| Refused { step: "a signal handler", errno })?;
    let create = plan.create_thread;
    let at = system::map_private(size_of::<Plan>()).cast::<Plan>();
    if at.is_null() {
        return Err(Refused { step: "memory", errno: libc::ENOMEM }.into());
    }
    // SAFETY: new memory, large enough, known to nobody else. The attributes are initialized before use and
    // destroyed after. All signals are blocked around the call, so that the new thread starts with them blocked.
    unsafe {
        at.write(plan);
        let before = system::set_blocked(system::ALL_SIGNALS);
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstacksize(&mut attributes, STACK);
        let mut thread: libc::pthread_t = core::mem::zeroed();
        let errno = create(&mut thread, &attributes, thread_main, at.cast());
        libc::pthread_attr_destroy(&mut attributes);
        system::set_blocked(before);
        match errno {
            0 => {
                THREAD.store(thread, Release);
                Ok(thread)
            }
            errno => Err(Refused { step: "a thread", errno }.into()),
        }
    }
}

/// Whether this is the start function of the sampler's thread.
pub fn is_sampler(start: extern "C" fn(*mut c_void) -> *mut c_void) -> bool {
    start as *const () == thread_main as *const ()
}

extern "C" fn thread_main(plan: *mut c_void) -> *mut c_void {
    // SAFETY: `launch_thread` wrote a plan there and passes it on to this thread alone.
    let plan = unsafe {
        let at = plan;
        let plan = at.cast::<Plan>().read();
        system::munmap(at, size_of::<Plan>());
        plan
    };
    if let Some(guest) = guest::current() {
        sample(guest, plan);
        run_state::finish();
        guest.wake_sampler();
    }
    core::ptr::null_mut()
}

fn sample(guest: &'static Guest, plan: Plan) {
    if plan.patience > 0 {
        let wakeups = guest.wakeups.load(Acquire);
        system::sleep_until(&guest.wakeups, wakeups, system::now() + plan.patience);
        if run_state::is_stopping() {
            return;
        }
    }
    let stream = match plan.stream {
        Some(stream) => stream,
        None => match (plan.make_stream)(plan.start) {
            Ok(stream) => stream,
            Err(_) => return,
        },
    };
    guest.attach(stream.control, stream.ring);
    let Some(memory) = Memory::map() else {
        stream.control.state.store(ProcessState::Unable as u32, Release);
        return;
    };
    let at: *mut Memory = memory;
    // SAFETY: `at` is the mapping just made; the sampler's borrow of it ends with the sampler, before it is
    // given back.
    unsafe {
        if let Some(mut sampler) = Sampler::new(guest, &stream, &mut *at, plan.orders, plan.start_cpu) {
            sampler.run();
        }
        Memory::unmap(at);
    }
}

/// Tells the sampler to stop and waits for it, at most `patience` ns. True if it has stopped.
pub fn stop(patience: u64) -> bool {
    let Some(guest) = guest::current() else { return true };
    if !run_state::request_stop() {
        return true;
    }
    let until = system::now() + patience;
    loop {
        let wakeups = guest.wakeups.fetch_add(1, AcqRel) + 1;
        system::wake(&guest.wakeups);
        if run_state::is_idle() {
            return true;
        }
        let now = system::now();
        if now >= until {
            return false;
        }
        system::sleep_until(&guest.wakeups, wakeups, (now + 200_000).min(until));
    }
}

/// The same, and its thread is gone afterwards.
pub fn end(patience: u64) -> bool {
    let thread = THREAD.load(Acquire);
    let has_stopped = stop(patience);
    if has_stopped && thread != 0 && claim_join(thread) {
        // SAFETY: the handle of a thread that we made, whose last act was to say that it has stopped; it is joined once, since
        // it can be claimed once.
        unsafe { libc::pthread_join(thread, core::ptr::null_mut()) };
    }
    has_stopped
}

/// The same, because a thread changes its own rights: the recording says so.
pub fn end_before_own_rights(patience: u64) -> bool {
    run_state::expect_own_rights();
    end(patience)
}

/// Whether the caller is to join the sampler's thread. True for one caller only.
pub(crate) fn claim_join(thread: libc::pthread_t) -> bool {
    THREAD.compare_exchange(thread, 0, AcqRel, Relaxed).is_ok()
}
