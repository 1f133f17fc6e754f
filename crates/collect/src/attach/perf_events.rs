//! Stacks of running threads by perf events: the kernel copies registers and the top of the stack after each
//! so many nanoseconds that a thread has run, and the thread runs on.
//!
//! Sources: perf_event_open(2), include/uapi/linux/perf_event.h, arch/x86/include/uapi/asm/perf_regs.h.

use stackglass_unwind::{Register, Registers, StackMemory};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of stack that the kernel copies.
pub const DUMP: usize = 32 << 10;
/// Bytes of the ring of one thread, a power of two: seven samples.
const RING: usize = 256 << 10;
const PAGE: usize = 4096;

/// `struct perf_event_attr` as far as PERF_ATTR_SIZE_VER5 (Linux 4.1).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}
const _: () = assert!(size_of::<Attributes>() == 112);

const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;
const PERF_SAMPLE_TIME: u64 = 1 << 2;
const PERF_SAMPLE_READ: u64 = 1 << 4;
const PERF_SAMPLE_REGS_USER: u64 = 1 << 12;
const PERF_SAMPLE_STACK_USER: u64 = 1 << 13;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const USE_CLOCKID: u64 = 1 << 25;
const PERF_RECORD_SAMPLE: u32 = 9;
const PERF_FLAG_FD_CLOEXEC: u64 = 8;
const ABI_64: u64 = 2;

/// The registers asked for, in the order of their bits.
const REGISTERS: [(u32, Option<Register>); 17] = [
    (0, Some(Register::Rax)),
    (1, Some(Register::Rbx)),
    (2, Some(Register::Rcx)),
    (3, Some(Register::Rdx)),
    (4, Some(Register::Rsi)),
    (5, Some(Register::Rdi)),
    (6, Some(Register::Rbp)),
    (7, Some(Register::Rsp)),
    // The program counter.
    (8, None),
    (16, Some(Register::R8)),
    (17, Some(Register::R9)),
    (18, Some(Register::R10)),
    (19, Some(Register::R11)),
    (20, Some(Register::R12)),
    (21, Some(Register::R13)),
    (22, Some(Register::R14)),
    (23, Some(Register::R15)),
];

/// Where head and tail lie in the first page (`struct perf_event_mmap_page`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// The samples of one thread.
pub struct Event {
    fd: OwnedFd,
    map: *mut u8,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Event {}

/// One sample.
pub struct Sample {
    /// When, CLOCK_MONOTONIC ns.
    pub at: u64,
    /// What the thread has run since the event was opened, ns.
    pub ran: u64,
    /// Its registers in the program.
    pub registers: Registers,
}

impl Event {
    /// Samples thread `tid` each time it has run for `period` ns, from now on.
    ///
    /// # Errors
    /// EACCES or EPERM where that is not allowed, ESRCH when the thread is gone, EMFILE, ENOMEM.
    pub fn open(tid: u32, period: u64) -> io::Result<Event> {
        let attributes = Attributes {
            kind: PERF_TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: PERF_COUNT_SW_TASK_CLOCK,
            sample_period: period,
            sample_type: PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
            flags: EXCLUDE_HYPERVISOR | USE_CLOCKID,
            // Nobody waits for it: the ring is looked at each tick.
            wakeup: u32::MAX,
            sample_regs_user: REGISTERS.iter().fold(0, |mask, (bit, _)| mask | 1 << bit),
            sample_stack_user: DUMP as u32,
            clockid: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        // SAFETY: the kernel reads `size` bytes of a live struct and makes a descriptor that is nobody else's.
        let fd = unsafe {
            let (any_processor, no_group) = (-1i64, -1i64);
            let fd = libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                i64::from(tid),
                any_processor,
                no_group,
                PERF_FLAG_FD_CLOEXEC,
            );
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd as i32)
        };
        // SAFETY: a new mapping at an address of the kernel's choice.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGE + RING,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Event { fd, map: map.cast() })
    }

    /// Takes the oldest sample out of the ring, with its stack in `stack`. Other records are passed over.
    pub fn next(&mut self, record: &mut Vec<u8>, stack: &mut Dump) -> Option<Sample> {
        loop {
            let (head, tail) = (self.word(DATA_HEAD), self.word(DATA_TAIL));
            // What was written before the head is seen: it is read with Acquire.
            let (end, at) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
            if end.wrapping_sub(at) < 8 {
                return None;
            }
            let mut header = [0; 8];
            self.copy(at, &mut header);
            let kind = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
            let size = u64::from(u16::from_le_bytes([header[6], header[7]]));
            if size < 8 || size > end.wrapping_sub(at) {
                // It cannot be, since the kernel writes it; nothing after it can be read.
                tail.store(end, Ordering::Release);
                return None;
            }
            record.resize(size as usize - 8, 0);
            self.copy(at + 8, record);
            tail.store(at + size, Ordering::Release);
            if kind == PERF_RECORD_SAMPLE
                && let Some(sample) = parse(record, stack)
            {
                return Some(sample);
            }
        }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: inside the first page, aligned, and changed by the kernel and us atomically only.
        unsafe { AtomicU64::from_ptr(self.map.add(at).cast()) }
    }

    fn copy(&self, at: u64, into: &mut [u8]) {
        for (i, byte) in into.chunks_mut(8).enumerate() {
            // Records are aligned to eight bytes, so that no word crosses the end of the ring.
            let from = (at as usize + i * 8) % RING;
            // SAFETY: `from` is below RING and a multiple of eight, as is RING: the word lies in the mapping; the
            // kernel does not write to it before the tail has passed.
            let word = unsafe { self.map.add(PAGE + from).cast::<u64>().read_volatile() };
            byte.copy_from_slice(&word.to_le_bytes()[..byte.len()]);
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _ = &self.fd;
        // SAFETY: mapped by `open` with this length, and not used any more.
        unsafe { libc::munmap(self.map.cast(), PAGE + RING) };
    }
}

/// The top of a stack as it was.
#[derive(Default)]
pub struct Dump {
    at: u64,
    bytes: Vec<u8>,
    /// Something behind its end was asked for.
    pub passed_end: bool,
}

impl StackMemory for Dump {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let from = usize::try_from(address.wrapping_sub(self.at)).ok()?;
        let Some(bytes) = self.bytes.get(from..from.checked_add(8)?) else {
            self.passed_end |= from < self.bytes.len() + (1 << 30);
            return None;
        };
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// Reads what was asked for in `sample_type`, in that order.
fn parse(record: &[u8], stack: &mut Dump) -> Option<Sample> {
    let word = |index: usize| -> Option<u64> {
        Some(u64::from_le_bytes(record.get(index * 8..index * 8 + 8)?.try_into().ok()?))
    };
    let (at, ran, abi) = (word(0)?, word(1)?, word(2)?);
    if abi != ABI_64 {
        return None;
    }
    let value = |bit: u32| {
        let index = REGISTERS.iter().position(|(other, _)| *other == bit)?;
        word(3 + index)
    };
    let (pc, sp) = (value(8)?, value(7)?);
    let mut registers = Registers::new(pc, sp, None);
    for (bit, register) in REGISTERS {
        if let Some(register) = register {
            registers = registers.with(register, value(bit)?);
        }
    }
    let size_at = 3 + REGISTERS.len();
    let size = usize::try_from(word(size_at)?).ok()?;
    let bytes = record.get((size_at + 1) * 8..)?;
    let real = match size {
        0 => 0,
        _ => usize::try_from(u64::from_le_bytes(bytes.get(size..size + 8)?.try_into().ok()?)).ok()?,
    };
    stack.bytes.clear();
    stack.bytes.extend_from_slice(bytes.get(..real.min(size))?);
    (stack.at, stack.passed_end) = (sp, false);
    Some(Sample { at, ran, registers })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(stack: &[u64], real: u64) -> Vec<u8> {
        let mut words = vec![77, 88, ABI_64];
        words.extend(REGISTERS.iter().map(|(bit, _)| 1000 + u64::from(*bit)));
        words.push(stack.len() as u64 * 8);
        words.extend(stack);
        words.push(real);
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut dump = Dump::default();
        let sample = parse(&record(&[5, 6, 7], 16), &mut dump).unwrap();
        assert_eq!((sample.at, sample.ran), (77, 88));
        assert_eq!(
            (sample.registers.pc(), sample.registers.sp(), sample.registers.rbp()),
            (1008, 1007, Some(1006))
        );
        assert_eq!((dump.read_u64(1007), dump.read_u64(1015)), (Some(5), Some(6)));
        assert!(!dump.passed_end);
        assert_eq!(dump.read_u64(1023), None, "that was not copied");
        assert!(dump.passed_end);
        let whole = record(&[5, 6, 7], 24);
        for len in 0..whole.len() {
            assert!(parse(&whole[..len], &mut dump).is_none(), "{len}");
        }
        let mut other = whole.clone();
        other[16] = 0;
        assert!(parse(&other, &mut dump).is_none(), "no registers of the program");
    }

    #[test]
    fn own_samples_come_where_they_are_allowed() {
        let Ok(mut event) = Event::open(std::process::id(), 1_000_000) else { return };
        // The main thread sleeps in this test: nothing comes of it, and that does not stand still.
        assert!(event.next(&mut Vec::new(), &mut Dump::default()).is_none());
    }
}
