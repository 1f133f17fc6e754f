//! `struct perf_event_attr`, and the system call that opens an event.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `struct perf_event_attr` as far as PERF_ATTR_SIZE_VER5 (Linux 4.1).
#[repr(C)]
#[derive(Clone, Default)]
pub struct Attributes {
    /// `type`: the kind of event, for example [`PERF_TYPE_SOFTWARE`].
    pub kind: u32,
    /// Size of this struct in bytes; [`open`] fills it in.
    pub size: u32,
    /// Which event of that kind, for example [`PERF_COUNT_SW_CPU_CLOCK`].
    pub config: u64,
    /// Count between two samples; ns for the clocks.
    pub sample_period: u64,
    /// What each sample holds: bits of [`sample`].
    pub sample_type: u64,
    /// What a count holds.
    pub read_format: u64,
    /// Bits of [`flags`].
    pub flags: u64,
    /// Number of events (bytes, with [`flags::WATERMARK`]) after which a waiting poll(2) returns.
    pub wakeup: u32,
    /// Kind of a breakpoint.
    pub bp_type: u32,
    /// Address of a breakpoint.
    pub config1: u64,
    /// Length of a breakpoint.
    pub config2: u64,
    /// Not used.
    pub branch_sample_type: u64,
    /// Registers of the program that each sample holds: see [`registers::mask`](crate::registers::mask).
    pub sample_regs_user: u64,
    /// Bytes of stack that each sample holds, a multiple of 8.
    pub sample_stack_user: u32,
    /// Clock of all times, with [`flags::USE_CLOCKID`].
    pub clockid: i32,
    /// Not used.
    pub sample_regs_intr: u64,
    /// Not used.
    pub aux_watermark: u32,
    /// Not used.
    pub sample_max_stack: u16,
    /// Zero.
    pub reserved: u16,
}
const _: () = assert!(size_of::<Attributes>() == 112);

/// Events that the kernel itself counts.
pub const PERF_TYPE_SOFTWARE: u32 = 1;
/// Events that the kernel's trace file system names; [`Attributes::config`] is their number.
pub const PERF_TYPE_TRACEPOINT: u32 = 2;
/// A timer of each CPU, ns.
pub const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
/// CPU time of a thread, ns.
pub const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;
/// Counts nothing; for the records about threads and mappings.
pub const PERF_COUNT_SW_DUMMY: u64 = 9;
/// A page fault.
pub const PERF_COUNT_SW_PAGE_FAULTS: u64 = 2;

/// Bits of `sample_type`.
pub mod sample {
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// Time of the sample.
    pub const TIME: u64 = 1 << 2;
    /// The count of the event.
    pub const READ: u64 = 1 << 4;
    /// The event's own number: [`id`](super::id).
    pub const ID: u64 = 1 << 6;
    /// The period that the sample stands for.
    pub const PERIOD: u64 = 1 << 8;
    /// Registers of the program.
    pub const REGS_USER: u64 = 1 << 12;
    /// The top of the stack.
    pub const STACK_USER: u64 = 1 << 13;
}

/// Bits of `flags`.
pub mod flags {
    /// Starts stopped.
    pub const DISABLED: u64 = 1 << 0;
    /// Threads and children get the event as well.
    pub const INHERIT: u64 = 1 << 1;
    /// Does not count in the kernel.
    pub const EXCLUDE_KERNEL: u64 = 1 << 5;
    /// Does not count in the hypervisor.
    pub const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    /// Takes no samples of a CPU that is idle.
    pub const EXCLUDE_IDLE: u64 = 1 << 7;
    /// Records executable mappings.
    pub const MMAP: u64 = 1 << 8;
    /// Records changes of thread names.
    pub const COMM: u64 = 1 << 9;
    /// Starts at the next exec.
    pub const ENABLE_ON_EXEC: u64 = 1 << 12;
    /// Records fork and exit.
    pub const TASK: u64 = 1 << 13;
    /// [`wakeup`](super::Attributes::wakeup) counts bytes.
    pub const WATERMARK: u64 = 1 << 14;
    /// All records end with thread and time.
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    /// Mapping records have inode or build id.
    pub const MMAP2: u64 = 1 << 23;
    /// Name changes by exec are marked.
    pub const COMM_EXEC: u64 = 1 << 24;
    /// Times are of [`clockid`](super::Attributes::clockid).
    pub const USE_CLOCKID: u64 = 1 << 25;
    /// Records each switch to and from a CPU.
    pub const CONTEXT_SWITCH: u64 = 1 << 26;
    /// Mapping records have the build id. Since Linux 5.12.
    pub const BUILD_ID: u64 = 1 << 34;
}

/// In place of a thread's id: all threads that run on a CPU. Needs CAP_PERFMON or `kernel.perf_event_paranoid` 0 or less.
pub const EVERY_THREAD: u32 = u32::MAX;

const PERF_FLAG_FD_CLOEXEC: u64 = 8;
const PERF_EVENT_IOC_ENABLE: u64 = 0x2400;
const PERF_EVENT_IOC_DISABLE: u64 = 0x2401;
const PERF_EVENT_IOC_PERIOD: u64 = 0x4008_2404;
const PERF_EVENT_IOC_SET_OUTPUT: u64 = 0x2405;
const PERF_EVENT_IOC_ID: u64 = 0x8008_2407;

/// Opens an event for thread `tid` (0: the calling thread, or [`EVERY_THREAD`]), on one CPU or, with `None`, on all.
///
/// # Errors
/// EACCES or EPERM if that is not allowed, ESRCH if the thread has ended, EINVAL if this kernel does not know an
/// attribute, EMFILE, ENOMEM.
pub fn open(attributes: &Attributes, tid: u32, cpu: Option<u32>) -> io::Result<OwnedFd> {
    let attributes = Attributes { size: size_of::<Attributes>() as u32, ..attributes.clone() };
    // SAFETY: a live struct of that size.
    unsafe { open_sized(&raw const attributes, tid, cpu) }
}

/// As [`open`], with attributes that are the first part of a larger struct.
///
/// # Safety
/// A live struct of at least `size` bytes begins at `attributes`.
pub(crate) unsafe fn open_sized(
    attributes: *const Attributes,
    tid: u32,
    cpu: Option<u32>,
) -> io::Result<OwnedFd> {
    let no_group = -1i64;
    // SAFETY: the kernel reads `size` bytes, by the caller, and returns a new descriptor.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_perf_event_open,
            attributes,
            // `EVERY_THREAD` is -1.
            i64::from(tid as i32),
            cpu.map_or(-1, i64::from),
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        );
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// The shortest period of a clock, ns: the kernel takes shorter ones for it (kernel/events/core.c, `perf_swevent_start_hrtimer`).
pub const SHORTEST_PERIOD: u64 = 10_000;
/// Range of random periods, relative to the delay that is asked for. It is wider than a delay, and the mean number of samples in a
/// second is that of the delay.
pub const PERIODS: (f64, f64) = (0.55, 1.65);

/// Changes the period of an event, ns. Events inherited from it later get the new period; earlier ones keep theirs.
pub fn set_period(event: &impl AsRawFd, period: u64) {
    // SAFETY: the kernel reads eight bytes of a live number. A refusal leaves the period as it is.
    unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_PERIOD, &raw const period) };
}

/// What an event has counted so far: for a clock, the ns in which its thread ran. `None` if it cannot be read.
pub fn count(event: &impl AsRawFd) -> Option<u64> {
    let mut count = 0u64;
    // SAFETY: the kernel writes eight bytes to a live number.
    let read = unsafe { libc::read(event.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
    (read == size_of::<u64>() as isize).then_some(count)
}

/// The number of an event, which its samples and those of the events inherited from it hold as [`sample::ID`].
///
/// # Errors
/// Not for an event.
pub fn id(event: &impl AsRawFd) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: the kernel writes eight bytes to a live number.
    match unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_ID, &raw mut id) } {
        0 => Ok(id),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets an event write its records into the ring of another event, which must be of the same CPU and have the same clock.
///
/// # Errors
/// EINVAL if the events do not fit.
pub fn set_output(event: &impl AsRawFd, ring: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: a request with a descriptor as its argument, on an open descriptor.
    match unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_SET_OUTPUT, ring.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Starts or stops an event and all events inherited from it.
pub fn set_enabled(event: &impl AsRawFd, on: bool) {
    let request = if on { PERF_EVENT_IOC_ENABLE } else { PERF_EVENT_IOC_DISABLE };
    // SAFETY: a request without a pointer, on an open descriptor. It cannot fail for an event.
    unsafe { libc::ioctl(event.as_raw_fd(), request, 0) };
}
