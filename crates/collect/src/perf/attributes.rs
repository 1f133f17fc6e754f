//! `struct perf_event_attr`, and the system call that opens an event.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `struct perf_event_attr` as far as PERF_ATTR_SIZE_VER5 (Linux 4.1).
#[repr(C)]
#[derive(Clone, Default)]
pub(crate) struct Attributes {
    pub kind: u32,
    pub size: u32,
    pub config: u64,
    pub sample_period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    /// Events, or with [`flags::WATERMARK`] bytes, after which a waiting poll(2) returns.
    pub wakeup: u32,
    pub bp_type: u32,
    pub config1: u64,
    pub config2: u64,
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_stack_user: u32,
    pub clockid: i32,
    pub sample_regs_intr: u64,
    pub aux_watermark: u32,
    pub sample_max_stack: u16,
    pub reserved: u16,
}
const _: () = assert!(size_of::<Attributes>() == 112);

pub(crate) const PERF_TYPE_SOFTWARE: u32 = 1;
pub(crate) const PERF_COUNT_SW_CPU_CLOCK: u64 = 0;
pub(crate) const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;
pub(crate) const PERF_COUNT_SW_DUMMY: u64 = 9;

/// Bits of `sample_type`.
pub(crate) mod sample {
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
}

/// Bits of `flags`.
pub(crate) mod flags {
    pub(crate) const DISABLED: u64 = 1 << 0;
    pub(crate) const INHERIT: u64 = 1 << 1;
    pub(crate) const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub(crate) const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    pub(crate) const MMAP: u64 = 1 << 8;
    pub(crate) const COMM: u64 = 1 << 9;
    pub(crate) const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub(crate) const TASK: u64 = 1 << 13;
    pub(crate) const WATERMARK: u64 = 1 << 14;
    pub(crate) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(crate) const MMAP2: u64 = 1 << 23;
    pub(crate) const COMM_EXEC: u64 = 1 << 24;
    pub(crate) const USE_CLOCKID: u64 = 1 << 25;
    pub(crate) const CONTEXT_SWITCH: u64 = 1 << 26;
    /// Since Linux 5.12.
    pub(crate) const BUILD_ID: u64 = 1 << 34;
}

const PERF_FLAG_FD_CLOEXEC: u64 = 8;
const PERF_EVENT_IOC_ENABLE: u64 = 0x2400;
const PERF_EVENT_IOC_DISABLE: u64 = 0x2401;
const PERF_EVENT_IOC_PERIOD: u64 = 0x4008_2404;

/// Opens an event of thread `tid` (0: the calling one), on one processor or (`None`) on all.
///
/// # Errors
/// EACCES or EPERM where that is not allowed, ESRCH when the thread is gone, EINVAL for attributes that this
/// kernel does not know, EMFILE, ENOMEM.
pub(crate) fn open(attributes: &Attributes, tid: u32, processor: Option<u32>) -> io::Result<OwnedFd> {
    let attributes = Attributes { size: size_of::<Attributes>() as u32, ..attributes.clone() };
    let no_group = -1i64;
    // SAFETY: the kernel reads `size` bytes of a live struct and makes a descriptor that is nobody else's.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            i64::from(tid),
            processor.map_or(-1, i64::from),
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        );
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Gives an event another period, ns, and all that will be inherited from it; those inherited already keep theirs.
pub(crate) fn set_period(event: &impl AsRawFd, period: u64) {
    // SAFETY: the kernel reads eight bytes of a live number. A refusal leaves the period as it is.
    unsafe { libc::ioctl(event.as_raw_fd(), PERF_EVENT_IOC_PERIOD, &raw const period) };
}

/// Starts or stops an event and all that were inherited from it.
pub(crate) fn set_enabled(event: &impl AsRawFd, on: bool) {
    let request = if on { PERF_EVENT_IOC_ENABLE } else { PERF_EVENT_IOC_DISABLE };
    // SAFETY: a request without a pointer, on an open descriptor. It cannot fail for an event.
    unsafe { libc::ioctl(event.as_raw_fd(), request, 0) };
}
