//! Starting and stopping the sampler's thread.

use crate::memory::Memory;
use crate::sampler::{Orders, Sampler};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use stackglass_host::image::{ProcessImage, Refused};
use stackglass_host::signal::Placement;
use stackglass_host::{Guest, guest, fork_guard, signal, system};
use stackglass_wire::{ControlPage, ProcessState};

const IDLE: u32 = 0;
const RUNNING: u32 = 1;
const STOPPING: u32 = 2;

/// Whether there is a sampler in this process. In a forked child the number is the parent's; `marker` tells.
static STATE: AtomicU32 = AtomicU32::new(IDLE);
/// Threads of ours, left out of all figures: kernel ids, 0 for none.
static OURS: [AtomicU32; 8] = [const { AtomicU32::new(0) }; 8];

/// Handle of the sampler's thread as long as nobody has joined it.
static THREAD: AtomicU64 = AtomicU64::new(0);

/// Stack of the sampler's thread in bytes; a few KiB of it are touched.
const STACK: usize = 256 << 10;

/// Threads of ours that are being made: until they have told who they are, no new thread is taken up.
static EXPECTED: AtomicU32 = AtomicU32::new(0);

/// A thread is about to be made that will call [`leave_out_this_thread`] first.
pub fn expect_helper() {
    EXPECTED.fetch_add(1, AcqRel);
}

/// The thread that was [expected](expect_helper) could not be made.
pub fn expect_no_helper() {
    let _ = EXPECTED.fetch_update(AcqRel, Acquire, |expected| expected.checked_sub(1));
}

/// Whether a thread is being made that has not yet told that it is ours.
pub fn expects_helper() -> bool {
    EXPECTED.load(Acquire) > 0
}

/// Leaves the calling thread, which was [expected](expect_helper), out of all figures, because it serves the profiler.
/// At most eight threads.
pub fn leave_out_this_thread() {
    let tid = system::thread_id();
    let _ = OURS.iter().find(|o| o.compare_exchange(0, tid, AcqRel, Relaxed).is_ok());
    expect_no_helper();
}

/// Takes back [`leave_out_this_thread`], before the thread ends.
pub fn count_this_thread_again() {
    let tid = system::thread_id();
    let _ = OURS.iter().find(|o| o.compare_exchange(tid, 0, AcqRel, Relaxed).is_ok());
}

/// True for threads that serve the profiler, the sampler's own included.
pub fn is_ours(tid: u32) -> bool {
    OURS.iter().any(|o| o.load(Relaxed) == tid)
        || control().is_some_and(|control| control.sampler_tid.load(Relaxed) == tid)
}

pub(crate) fn asked_to_stop() -> bool {
    STATE.load(Acquire) == STOPPING
}

/// True while this process has a sampler.
pub fn is_running() -> bool {
    fork_guard::armed().is_some() && STATE.load(Acquire) != IDLE
}

/// Why nothing is sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotStarted {
    /// The process runs under `stackglass record`: its sampler sees everything already.
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

/// The shape of `pthread_create`.
pub type CreateThread = unsafe extern "C" fn(
    *mut libc::pthread_t,
    *const libc::pthread_attr_t,
    extern "C" fn(*mut c_void) -> *mut c_void,
    *mut c_void,
) -> i32;

/// What the sampler's thread needs to begin.
pub struct Plan {
    /// From whom it takes orders.
    pub orders: Orders,
    /// The signal, SIGURG unless asked otherwise.
    pub signal: i32,
    /// Where handlers run.
    pub placement: Placement,
    /// Makes the process's image: where it writes. Called on the sampler's thread if `image` is `None`.
    pub make_image: fn(start: u64) -> Result<ProcessImage, Refused>,
    /// The image, if it is made already.
    pub image: Option<ProcessImage>,
    /// CLOCK_MONOTONIC ns when the process image was taken up.
    pub start: u64,
    /// CPU time that the main thread had used at `start`, ns, where that is known: what it ran since is told, too.
    pub start_cpu: Option<u64>,
    /// How long the thread waits before it begins, ns: a child that execs at once is not worth a file.
    pub patience: u64,
    /// The system's `pthread_create`.
    pub create_thread: CreateThread,
}

/// Starts the sampler's thread; its pthread handle.
///
/// # Errors
/// [`NotStarted`].
pub fn launch(plan: Plan) -> Result<libc::pthread_t, NotStarted> {
    if is_running() {
        return Err(NotStarted::Running);
    }
    guest::establish().ok_or(Refused { step: "memory", errno: libc::ENOMEM })?;
    STATE.store(RUNNING, Release);
    let launched = launch_thread(plan);
    if launched.is_err() {
        STATE.store(IDLE, Release);
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
    // destroyed after. Blocking everything around the call makes the new thread begin so.
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

/// True for the start function of the sampler's own thread.
pub fn is_sampler(start: extern "C" fn(*mut c_void) -> *mut c_void) -> bool {
    start as *const () == thread_main as *const ()
}

extern "C" fn thread_main(plan: *mut c_void) -> *mut c_void {
    // SAFETY: `launch_thread` wrote a plan there and passes it on to this thread alone.
    let plan = unsafe {
        let at = plan;
        let plan = at.cast::<Plan>().read();
        libc::munmap(at, size_of::<Plan>());
        plan
    };
    if let Some(guest) = guest::current() {
        sample(guest, plan);
        STATE.store(IDLE, Release);
        guest.wake_sampler();
    }
    core::ptr::null_mut()
}

fn sample(guest: &'static Guest, plan: Plan) {
    if plan.patience > 0 {
        let call = guest.wakeups.load(Acquire);
        system::sleep_until(&guest.wakeups, call, system::now() + plan.patience);
        if asked_to_stop() {
            return;
        }
    }
    let image = match plan.image {
        Some(image) => image,
        None => match (plan.make_image)(plan.start) {
            Ok(image) => image,
            Err(_) => return,
        },
    };
    guest.attach(image.control, image.ring);
    let Some(memory) = Memory::map() else {
        image.control.state.store(ProcessState::Unable as u32, Release);
        return;
    };
    let at: *mut Memory = memory;
    // SAFETY: `at` is the mapping just made; the sampler's borrow of it ends with the sampler, before it is
    // given back.
    unsafe {
        if let Some(mut sampler) = Sampler::new(guest, &image, &mut *at, plan.orders, plan.start_cpu) {
            sampler.run();
        }
        Memory::unmap(at);
    }
}

/// Tells the sampler to stop and waits for it, at most `patience` ns. True when it has stopped.
pub fn stop(patience: u64) -> bool {
    let Some(guest) = guest::current() else { return true };
    if STATE.compare_exchange(RUNNING, STOPPING, AcqRel, Acquire) == Err(IDLE) {
        return true;
    }
    let until = system::now() + patience;
    loop {
        let call = guest.wakeups.fetch_add(1, AcqRel) + 1;
        system::wake(&guest.wakeups);
        if STATE.load(Acquire) == IDLE {
            return true;
        }
        let now = system::now();
        if now >= until {
            return false;
        }
        system::sleep_until(&guest.wakeups, call, (now + 200_000).min(until));
    }
}

/// Whether the caller is the one to join the sampler's thread.
pub(crate) fn claim_join(thread: libc::pthread_t) -> bool {
    THREAD.compare_exchange(thread, 0, AcqRel, Relaxed).is_ok()
}

/// The control page of this process image, once there is one.
pub fn control() -> Option<&'static ControlPage> {
    guest::current()?.control()
}
