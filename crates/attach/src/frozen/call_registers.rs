//! The registers of a thread that is busy in a system call.
//!
//! It cannot be stopped there without interrupting the call, but it can be sampled. Until the call ends, its registers in the program
//! stay as they were when the call began, but for the result. Only a privileged user may sample what runs in the kernel.
//!
//! Source: perf_event_open(2) (`PERF_SAMPLE_REGS_USER`; `misc` of the header).

use super::sleeper::{PC, SP, UNKNOWN};
use stackglass_perf::attributes::{Attributes, PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_SOFTWARE, flags, sample};
use stackglass_perf::records::{ABI_64, MISC_KERNEL, MISC_MODE, PERF_RECORD_SAMPLE};
use stackglass_perf::registers;
use stackglass_perf::ring::Ring;
use stackglass_sampling::SleepPlace;
use stackglass_unwind::{Register, Registers};

/// Time between two samples, ns. Much shorter ones would leave the thread hardly any time.
const PERIOD: u64 = 100_000;
/// Bytes of the buffer.
const RING: usize = 4096;

/// Samples of one thread in the kernel.
pub(super) struct CallRegisters {
    ring: Ring,
    newest: Option<Registers>,
}

impl CallRegisters {
    /// Samples a thread from now on. `None` if that is not allowed.
    pub(super) fn open(tid: u32) -> Option<CallRegisters> {
        let attributes = Attributes {
            kind: PERF_TYPE_SOFTWARE,
            config: PERF_COUNT_SW_CPU_CLOCK,
            sample_period: PERIOD,
            sample_type: sample::REGS_USER,
            flags: flags::EXCLUDE_HYPERVISOR,
            wakeup: u32::MAX,
            sample_regs_user: registers::mask(),
            ..Attributes::default()
        };
        let ring = Ring::open(&attributes, tid, None, RING).ok()?;
        Some(CallRegisters { ring, newest: None })
    }

    /// Where the thread calls the kernel, by the newest sample since the last call of this function. `None` if there is no new sample,
    /// or it is in user code.
    pub(super) fn next_place(&mut self) -> Option<SleepPlace> {
        self.newest = None;
        self.ring.refresh();
        while let Some(raw) = self.ring.peek() {
            if raw.kind == PERF_RECORD_SAMPLE {
                let is_in_kernel = raw.misc & MISC_MODE == MISC_KERNEL;
                self.newest = of_record(raw.body).filter(|_| is_in_kernel);
            }
            self.ring.advance();
        }
        self.ring.publish();
        self.newest.as_ref().map(|newest| SleepPlace { pc: newest.pc(), sp: newest.sp() })
    }

    /// The registers of the sample that [`CallRegisters::next_place`] has found, in the order of `struct user_regs_struct`. Those that
    /// are not known are `u64::MAX`.
    pub(super) fn newest(&self) -> Option<[u64; 27]> {
        let newest = self.newest.as_ref()?;
        let mut words = [UNKNOWN; 27];
        (words[PC], words[SP]) = (newest.pc(), newest.sp());
        for (register, place) in Register::IN_USER_REGS {
            words[place] = newest.get(register as u8).unwrap_or(UNKNOWN);
        }
        Some(words)
    }
}

fn of_record(body: &[u8]) -> Option<Registers> {
    let (abi, words) = body.split_first_chunk()?;
    (u64::from_le_bytes(*abi) == ABI_64).then(|| registers::of_sample(words))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_unwind::call_site::SYSCALL;
    use std::io::Read;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

    #[test]
    fn a_thread_in_a_long_read_is_where_it_called() {
        static TID: AtomicU32 = AtomicU32::new(0);
        static ENDS: AtomicBool = AtomicBool::new(false);
        let reader = std::thread::spawn(|| {
            let mut file = std::fs::File::open("/dev/urandom").unwrap();
            let mut bytes = vec![1; 1 << 20];
            file.read_exact(&mut bytes).unwrap();
            // SAFETY: a call without arguments.
            TID.store(unsafe { libc::gettid() } as u32, SeqCst);
            while !ENDS.load(SeqCst) {
                file.read_exact(&mut bytes).unwrap();
            }
        });
        while TID.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        let Some(mut samples) = CallRegisters::open(TID.load(SeqCst)) else {
            ENDS.store(true, SeqCst);
            return reader.join().unwrap();
        };
        // Some are in the kernel for an interrupt.
        let mut in_calls = 0;
        for _ in 0..50 {
            let pc = loop {
                match samples.next_place() {
                    Some(place) => break place.pc,
                    None => std::thread::yield_now(),
                }
            };
            // SAFETY: the program counter is in mapped code of this process, and no function begins with its module.
            let before = unsafe { std::slice::from_raw_parts((pc - 2) as *const u8, 2) };
            in_calls += usize::from(before == SYSCALL);
        }
        ENDS.store(true, SeqCst);
        reader.join().unwrap();
        assert!(in_calls > 25, "{in_calls} of 50 are behind the instruction of a call");
    }
}
