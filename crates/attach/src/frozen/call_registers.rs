//! The registers of a thread that is busy in a system call.
//!
//! It cannot be stopped there without interrupting the call, but it can be sampled. Until the call ends, its registers in the program
//! stay as they were when the call began, but for the result. Only a privileged user may sample what runs in the kernel.
//!
//! A thread is in the kernel for an interrupt or a page fault as well. A breakpoint catches it behind a call only: the processor
//! skips that of an instruction that is repeated.
//!
//! Source: perf_event_open(2) (`PERF_SAMPLE_REGS_USER`; `misc` of the header). Intel SDM volume 2, SYSCALL: RCX is the address
//! behind it; volume 3, 19.3.1.1: the resume flag. Linux, arch/x86/entry/entry_64.S: RAX is `-ENOSYS` until the call has a result.

use super::sleeper::{PC, SP, UNKNOWN};
use stackglass_perf::attributes::{Attributes, PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_SOFTWARE, flags, sample};
use stackglass_perf::records::{ABI_64, MISC_KERNEL, MISC_MODE, PERF_RECORD_SAMPLE};
use stackglass_perf::registers;
use stackglass_perf::ring::Ring;
use stackglass_proc_text::SleepPlace;
use stackglass_unwind::{Register, Registers};

/// Time between two samples, ns. Much shorter ones would leave the thread hardly any time.
const PERIOD: u64 = 100_000;
/// Bytes of the buffer.
const RING: usize = 4096;

/// Samples of one thread in the kernel.
pub(super) struct CallRegisters {
    ring: Ring,
    newest: Option<Registers>,
    /// Number of samples in calls.
    in_calls: u64,
    /// Number of samples elsewhere in the kernel.
    in_faults: u64,
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
        Some(CallRegisters { ring, newest: None, in_calls: 0, in_faults: 0 })
    }

    /// Where the thread calls the kernel, by the newest sample since the last call of this function. `None` if there is no new sample,
    /// or it is not in a call.
    pub(super) fn next_place(&mut self) -> Option<SleepPlace> {
        self.newest = None;
        self.ring.refresh();
        while let Some(raw) = self.ring.peek() {
            if raw.kind == PERF_RECORD_SAMPLE {
                let is_in_kernel = raw.misc & MISC_MODE == MISC_KERNEL;
                self.newest = of_record(raw.body).filter(|_| is_in_kernel);
                let is_in_call = self.newest.as_ref().is_some_and(is_in_call);
                self.in_calls += u64::from(is_in_call);
                self.in_faults += u64::from(is_in_kernel && !is_in_call);
            }
            self.ring.advance();
        }
        self.ring.publish();
        let in_call = self.newest.as_ref().filter(|newest| is_in_call(newest))?;
        Some(SleepPlace { pc: in_call.pc(), sp: in_call.sp() })
    }

    /// How long the samples that [`CallRegisters::next_place`] has read show the thread in calls, ns.
    pub(super) fn in_calls(&self) -> u64 {
        self.in_calls * PERIOD
    }

    /// How long they show it in the kernel, but in no call, ns: for an interrupt or a page fault.
    pub(super) fn in_faults(&self) -> u64 {
        self.in_faults * PERIOD
    }

    /// The registers of the sample in the kernel that [`CallRegisters::next_place`] has seen, in the order of `struct user_regs_struct`.
    /// Those that are not known are `u64::MAX`.
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

/// Whether a thread that is in the kernel has called it. Otherwise, an interrupt or a page fault has brought it there.
fn is_in_call(registers: &Registers) -> bool {
    const NO_RESULT: u64 = -(libc::ENOSYS as i64) as u64;
    let has = |register: Register, value| registers.get(register as u8) == Some(value);
    has(Register::Rcx, registers.pc()) && has(Register::Rax, NO_RESULT)
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

    /// Samples a thread that does `work` again and again. `None` if this is not allowed.
    fn sampled<T>(
        work: impl Fn() + Sync,
        test: impl FnOnce(&mut CallRegisters, &AtomicU32) -> T,
    ) -> Option<T> {
        let (tid, rounds, ends) = (AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: a call without arguments.
                tid.store(unsafe { libc::gettid() } as u32, SeqCst);
                while !ends.load(SeqCst) {
                    work();
                    rounds.fetch_add(1, SeqCst);
                }
            });
            while rounds.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            let mut samples = CallRegisters::open(tid.load(SeqCst));
            let result = samples.as_mut().map(|samples| test(samples, &rounds));
            ends.store(true, SeqCst);
            result
        })
    }

    /// Whether the instruction before this place is that of a call.
    fn is_behind_call(place: SleepPlace) -> bool {
        let before = (place.pc - SYSCALL.len() as u64) as *const [u8; SYSCALL.len()];
        // SAFETY: the place is in mapped code of this process, where its thread was, and no module begins with a call.
        unsafe { before.read() == SYSCALL }
    }

    fn next_place(samples: &mut CallRegisters) -> SleepPlace {
        loop {
            match samples.next_place() {
                Some(place) => return place,
                None => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn a_thread_in_a_long_read_is_where_it_called() {
        let read = || {
            let mut bytes = vec![1; 1 << 20];
            std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
        };
        sampled(read, |samples, _| {
            for _ in 0..50 {
                assert!(is_behind_call(next_place(samples)));
            }
        });
    }

    /// New pages are zeroed in the kernel, hundreds of them at once where they are huge.
    #[test]
    fn a_thread_in_a_page_fault_is_in_no_call() {
        const BYTES: usize = 32 << 20;
        // SAFETY: a new mapping at a place of the kernel's choice, and advice about it. It stays mapped until this process ends.
        let memory = unsafe {
            let (rights, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let memory = libc::mmap(std::ptr::null_mut(), BYTES, rights, kind, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            libc::madvise(memory, BYTES, libc::MADV_HUGEPAGE);
            memory as usize
        };
        let fault = || {
            for page in (memory..memory + BYTES).step_by(4096) {
                // SAFETY: a byte of the mapping, which is writable, and which only the sampled thread uses.
                unsafe { (page as *mut u8).write_volatile(1) };
            }
            // SAFETY: the whole mapping, to which no reference exists. Its pages read as zeros afterwards.
            unsafe { libc::madvise(memory as *mut libc::c_void, BYTES, libc::MADV_DONTNEED) };
        };
        sampled(fault, |samples, rounds| {
            let (first, mut faults, mut calls) = (rounds.load(SeqCst), 0, 0);
            while rounds.load(SeqCst) < first + 50 {
                std::thread::sleep(std::time::Duration::from_micros(100));
                if let Some(place) = samples.next_place() {
                    assert!(is_behind_call(place));
                    calls += 1;
                } else {
                    faults += usize::from(samples.newest().is_some());
                }
            }
            assert!(faults > calls, "{faults} in faults, {calls} in calls");
        });
    }
}
