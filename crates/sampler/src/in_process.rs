//! Samples the own process without a launcher, for the crate `stackglass`.

use crate::lifecycle::{self, NotStarted, Plan};
use crate::orders::Orders;
use crate::run_state;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use stackglass_host::signal::Placement;
use stackglass_host::stream_memory::{Refused, StreamMemory};
use stackglass_host::{agent, fork_guard, system};
use stackglass_wire::{AGENT_SYMBOL, ControlPage, STREAM_BYTES};

/// How to sample.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Time between two ticks, ns.
    pub delay_ns: u64,
    /// The signal: SIGURG, or SIGWINCH for a program that needs SIGURG for itself.
    pub signal: i32,
    /// Bytes of the stream (a power of two).
    pub stream_bytes: usize,
    /// A wall-time profile: each tick samples one live task, whatever it does.
    pub walltime: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config { delay_ns: 1_000_000, signal: libc::SIGURG, stream_bytes: STREAM_BYTES, walltime: false }
    }
}

/// Sampling in progress. [`Handle::stop`] stops it; dropping the handle does not.
pub struct Handle {
    control: &'static ControlPage,
    ring: &'static [AtomicU64],
    thread: libc::pthread_t,
    pid: u32,
}

/// The longest that [`Handle::stop`] waits for the sampler, ns.
const STOP_PATIENCE: u64 = 1_000_000_000;

/// The memory of an earlier run, which the next run uses again. Control page and stream are never unmapped, because a late signal
/// may still add to a counter there.
static USED: AtomicPtr<Kept> = AtomicPtr::new(core::ptr::null_mut());
static WORDS: AtomicUsize = AtomicUsize::new(0);

struct Kept {
    stream: StreamMemory,
    pid: u32,
}

/// Starts sampling this process into private memory.
///
/// Not for two threads at once. The reader of an earlier run must have finished, because its stream is used again.
///
/// # Errors
/// [`NotStarted::Delegated`] under `stackglass record`, [`NotStarted::Running`] if this process is sampled already,
/// [`NotStarted::Refused`] if the kernel refuses memory or a thread.
///
/// # Example
/// ```
/// use stackglass_sampler::{Config, start};
/// use stackglass_wire::stream::Reader;
///
/// let handle = start(Config::default()).unwrap();
/// let until = std::time::Instant::now() + std::time::Duration::from_millis(50);
/// while std::time::Instant::now() < until {}
/// handle.stop();
/// let mut reader = Reader::new(handle.control(), handle.ring());
/// assert!(reader.read().unwrap().is_some());
/// ```
pub fn start(config: Config) -> Result<Handle, NotStarted> {
    if is_delegated() {
        return Err(NotStarted::Delegated);
    }
    if run_state::is_running() {
        return Err(NotStarted::Running);
    }
    stay_loaded();
    let start = system::now();
    let stream = match kept(config.stream_bytes) {
        Some(kept) => {
            kept.renew(start);
            kept
        }
        None => keep(StreamMemory::in_memory(start, config.stream_bytes as u64)?),
    };
    let (control, ring) = (stream.control, stream.ring);
    let thread = lifecycle::launch(Plan {
        orders: Orders::Own { delay: config.delay_ns, walltime: config.walltime },
        signal: config.signal,
        placement: Placement::Interrupted,
        make_stream: |_| Err(Refused { step: "a stream", errno: libc::EINVAL }),
        stream: Some(stream.share()),
        start,
        start_cpu: None,
        patience: 0,
        create_thread: libc::pthread_create,
    })?;
    Ok(Handle { control, ring, thread, pid: system::process_id() })
}

fn kept(stream_bytes: usize) -> Option<&'static StreamMemory> {
    // SAFETY: null, or a `Kept` that is never freed.
    let kept = unsafe { USED.load(Acquire).as_ref() }?;
    (WORDS.load(Relaxed) == stream_bytes && kept.pid == system::process_id()).then_some(&kept.stream)
}

fn keep(stream: StreamMemory) -> &'static StreamMemory {
    let asked = stream.ring.len() * 8;
    let kept = Box::leak(Box::new(Kept { stream, pid: system::process_id() }));
    WORDS.store(asked, Relaxed);
    USED.store(kept, Release);
    &kept.stream
}

/// Keeps the library that contains this code from being unloaded, because the handler stays installed.
fn stay_loaded() {
    // SAFETY: `info` is live and filled by dladdr before it is read; RTLD_NOLOAD only looks for what is loaded.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        if libc::dladdr(stay_loaded as *const c_void, &mut info) != 0 && !info.dli_fname.is_null() {
            libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}

/// Whether the preload library of `stackglass record` is in this process and samples it.
pub fn is_delegated() -> bool {
    agent::is_here(AGENT_SYMBOL)
}

impl Handle {
    /// The control page: state, counters, and the positions of both ends of the stream.
    pub fn control(&self) -> &'static ControlPage {
        self.control
    }

    /// The stream's words, for a `stream::Reader`.
    pub fn ring(&self) -> &'static [AtomicU64] {
        self.ring
    }

    /// Stops sampling. It waits some milliseconds at most for samples that are still to come, gives all time up to this moment,
    /// and ends every thread in the stream. In a forked child it does nothing.
    pub fn stop(&self) {
        if fork_guard::sampled_process().map(|process| process.pid) != Some(self.pid) {
            return;
        }
        if lifecycle::stop(STOP_PATIENCE) && lifecycle::claim_join(self.thread) {
            // SAFETY: the handle of a thread that we made, whose last act was to say that it has stopped; it is
            // joined once, since it can be claimed once.
            unsafe { libc::pthread_join(self.thread, core::ptr::null_mut()) };
        }
    }
}
