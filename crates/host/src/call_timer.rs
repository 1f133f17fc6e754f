//! A timer of one thread's CPU time that sends it the sampling signal wherever it is, and interrupts no system call.
//!
//! This is a POSIX timer of the thread's CPU clock. The kernel looks at it in the tick of the CPU on which the thread runs, and
//! leaves the rest to the thread's own return to user code (`task_work_add` with `TWA_RESUME`). So a thread in a system call gets
//! the signal at the end of that call, which has done all it was asked for: until then, nothing is pending. A thread in its
//! own code gets it where it is. There are as many signals as the kernel has ticks, 100 to 1000 for each second of CPU time.
//!
//! Two waits in the kernel do such work before their end, and return EINTR then: those of `io_uring_enter`, and the run of a
//! virtual CPU.
//!
//! Sources: timer_create(2); `run_posix_cpu_timers` and `posix_cpu_timers_work` of kernel/time/posix-cpu-timers.c (Linux 5.9),
//! `exit_to_user_mode_loop` of kernel/entry/common.c, `io_cqring_wait` of io_uring/io_uring.c.

use crate::fork_guard;
use crate::slot::{CAPACITY, SlotIndex};
use crate::system;

const SIGEV_THREAD_ID: i32 = 4;

/// `struct sigevent` of the kernel.
#[repr(C)]
struct Event {
    value: u64,
    signal: i32,
    notify: i32,
    tid: i32,
    padding: [i32; 11],
}

/// A timer of one thread. It is ended by [`CallTimer::delete`] only, so that it can lie in memory that is never dropped.
#[derive(Clone, Copy, Debug)]
pub struct CallTimer(i32);

impl CallTimer {
    /// A timer for a thread of this process, which fires after `first` ns of the thread's CPU time, and every `interval` ns from
    /// then on, at the kernel's next tick.
    ///
    /// # Errors
    /// The errno: EINVAL if the thread has ended, EAGAIN at the limit of pending signals.
    pub fn start(
        tid: u32,
        slot: SlotIndex,
        signal: i32,
        first: u64,
        interval: u64,
    ) -> Result<CallTimer, i32> {
        let cookie = fork_guard::sampled_process().ok_or(libc::ESRCH)?.cookie;
        let value = u64::from(cookie) << 32 | u64::from(slot.0);
        let event = Event { value, signal, notify: SIGEV_THREAD_ID, tid: tid as i32, padding: [0; 11] };
        let clock = (!tid << 3 | 6) as i32;
        let mut id = 0i32;
        let times = [interval, first.max(1)].map(|time| [time / 1_000_000_000, time % 1_000_000_000]);
        let no_old: *mut u64 = core::ptr::null_mut();
        // SAFETY: the kernel reads a live event of its size, writes a live number, and reads four live numbers.
        unsafe {
            if libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut id) != 0 {
                return Err(system::errno());
            }
            let timer = CallTimer(id);
            if libc::syscall(libc::SYS_timer_settime, id, 0, times.as_ptr(), no_old) != 0 {
                let errno = system::errno();
                timer.delete();
                return Err(errno);
            }
            Ok(timer)
        }
    }

    /// Ends it.
    pub fn delete(self) {
        // SAFETY: a number of this timer alone, which nobody uses afterwards.
        unsafe { libc::syscall(libc::SYS_timer_delete, self.0) };
    }
}

/// The thread whose timer has sent a signal with this value, if it is one of the profiler's.
#[inline]
pub fn slot_of(value: u64) -> Option<SlotIndex> {
    let process = fork_guard::sampled_process()?;
    let slot = value as u32;
    ((value >> 32) as u32 == process.cookie && (slot as usize) < CAPACITY).then_some(SlotIndex(slot as u16))
}

/// Whether a thread of this process may have such a timer. It never fires.
pub fn can_start(tid: u32, signal: i32) -> bool {
    const NEVER: u64 = 1 << 62;
    CallTimer::start(tid, SlotIndex(0), signal, NEVER, NEVER).map(CallTimer::delete).is_ok()
}

/// Whether signals of these timers wait for the end of a system call: Linux 5.9 or later, on x86-64.
pub fn spare_calls() -> bool {
    // SAFETY: all zeros is a value, and the kernel fills it.
    let release = unsafe {
        let mut name: libc::utsname = core::mem::zeroed();
        if libc::uname(&mut name) != 0 {
            return false;
        }
        name.release
    };
    cfg!(target_arch = "x86_64") && is_new(&release.map(|letter| letter as u8))
}

fn is_new(release: &[u8]) -> bool {
    let mut numbers = release.split(|letter| !letter.is_ascii_digit()).map(|digits| {
        digits.iter().fold(0u32, |all, digit| all.saturating_mul(10).saturating_add(u32::from(digit - b'0')))
    });
    (numbers.next(), numbers.next()) >= (Some(5), Some(9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        for (release, answer) in [
            (&b"5.8.18"[..], false),
            (b"5.9.0-rc1", true),
            (b"5.10.0", true),
            (b"6.1.170\0", true),
            (b"4.19", false),
            (b"10.0", true),
            (b"", false),
        ] {
            assert_eq!(is_new(release), answer, "{}", release.escape_ascii());
        }
    }
}
