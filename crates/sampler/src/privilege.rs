//! Requests of the sampler's thread for punctuality: priority, timer slack, and a separate descriptor table.
//!
//! Every request may be refused (containers, limits). The control page says what was granted.

use stackglass_host::system;
use stackglass_wire::ImageFlags;

const SCHED_RESET_ON_FORK: i32 = 0x4000_0000;
const CLOSE_RANGE_UNSHARE: u32 = 2;

/// struct sched_attr, first version (include/uapi/linux/sched/types.h).
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Asks for punctuality. The result is the bits of [`ImageFlags`] that were granted.
pub fn ask_for_punctuality() -> u32 {
    // SAFETY: prctl with these options reads a number or a string that ends with a zero byte; the scheduler
    // calls read the live structs they are given; 0 names the calling thread throughout.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"stackglass".as_ptr());
        libc::prctl(libc::PR_SET_TIMERSLACK, 1usize);
        let parameter = libc::sched_param { sched_priority: 1 };
        if libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_RR | SCHED_RESET_ON_FORK, &parameter)
            == 0
        {
            return ImageFlags::REALTIME;
        }
        if libc::setpriority(libc::PRIO_PROCESS, system::thread_id(), -20) == 0 {
            return ImageFlags::NICE;
        }
        // With a short slice, a thread that sleeps most of the time runs sooner (since Linux 6.12).
        let size = size_of::<SchedAttr>() as u32;
        let slice = SchedAttr { size, runtime: 100_000, ..SchedAttr::default() };
        libc::syscall(libc::SYS_sched_setattr, 0, &slice, 0);
        0
    }
}

/// Gives the calling thread a separate, empty descriptor table. The program never sees what it opens, loses no descriptor
/// number to it, and cannot close it. False if the kernel cannot do that (before 5.9): then no file may stay open.
pub fn own_descriptors() -> bool {
    // SAFETY: close_range with UNSHARE only changes the calling thread's table.
    unsafe { libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, CLOSE_RANGE_UNSHARE) == 0 }
}

/// Whether the kernel tells which mapping holds an address (`PROCMAP_QUERY`, Linux 6.11). This is for the control page only;
/// `stackglass_unwind::mapping` finds out by itself.
pub fn maps_can_be_queried() -> bool {
    const PROCMAP_QUERY: u64 = 0xc068_6611;
    let Some(maps) = system::Fd::open(libc::AT_FDCWD, c"/proc/self/maps", libc::O_RDONLY, 0) else {
        return false;
    };
    // struct procmap_query: its size, flags, the address, then the kernel's answer.
    let mut query = [0u64; 13];
    query[0] = size_of_val(&query) as u64;
    query[2] = (&raw const query).addr() as u64;
    // SAFETY: the kernel reads and writes the bytes that the first word says, which `query` has.
    unsafe { libc::ioctl(maps.raw(), PROCMAP_QUERY, query.as_mut_ptr()) == 0 }
}
