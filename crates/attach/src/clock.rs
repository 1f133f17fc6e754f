//! Clocks, waiting, and the scheduling of the sampling thread.

use std::mem::MaybeUninit;

pub use stackglass_procfs::clock::{monotonic, thread_cpu};

/// Requests low latency; the kernel may refuse each request. Blocks all signals in the calling thread except that
/// SIGCHLD is read by [`wait_for_report`].
pub fn prepare_thread() {
    run_before_others();
    // SAFETY: prctl reads a string that ends with a zero byte. The set is filled before it is used.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"stackglass-look".as_ptr());
        let mut all = MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// Requests a high priority for the calling thread. Without the right to one, its priority stays.
pub fn run_before_others() {
    // SAFETY: prctl reads a number, and the scheduler calls read a live struct. 0 is the calling thread.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1usize);
        let parameter = libc::sched_param { sched_priority: 1 };
        if libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &parameter) != 0 {
            libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t, -20);
        }
    }
}

/// Sleeps until `moment` (CLOCK_MONOTONIC).
pub fn sleep_until(moment: u64) {
    let time = timespec(moment);
    // SAFETY: reads a live timespec.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut());
    }
}

/// Sleeps for `time` ns, or until a tracee stops or ends.
pub fn wait_for_report(time: u64) {
    let time = timespec(time);
    let mut set = MaybeUninit::uninit();
    // SAFETY: the set is filled before it is used; the kernel reads both arguments and returns no information.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::sigtimedwait(set.as_ptr(), std::ptr::null_mut(), &time);
    }
}

fn timespec(nanos: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (nanos / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    }
}
