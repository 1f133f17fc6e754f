//! Stacks of threads by perf events. Each time a thread has run for one period, the kernel copies its registers and the
//! top of its stack, and the thread continues. A breakpoint does the same once, where a sleeping thread will wake up.
//!
//! Without privileges only user code is sampled. The count of CPU time is then still that of all code.
//!
//! Sources: perf_event_open(2), include/uapi/linux/perf_event.h, arch/x86/include/uapi/asm/perf_regs.h.

use stackglass_perf::attributes::{
    self, Attributes, PERF_COUNT_SW_TASK_CLOCK, PERF_TYPE_SOFTWARE, flags, sample,
};
use stackglass_perf::breakpoint;
use stackglass_perf::deep_stack::{DeepStack, SampledStack};
use stackglass_perf::records::{ABI_64, PERF_RECORD_SAMPLE};
use stackglass_perf::registers;
use stackglass_perf::ring::Ring;
use stackglass_unwind::Registers;
use std::io;

/// Bytes of stack that the kernel copies.
const DUMP: usize = 32 << 10;
/// The same for stacks that are deeper: with the rest it fills the largest possible record.
const DEEP_DUMP: usize = 63 << 10;
/// Bytes of the ring buffer of one thread, a power of two: room for seven samples, or three deep ones.
const RING: usize = 256 << 10;
/// Smallest ring buffer: room for one sample. Users without privileges may lock few pages.
const LEAST_RING: usize = 64 << 10;

/// The perf event of one thread.
pub struct Event {
    ring: Ring,
    /// CPU time in the kernel is counted and not sampled.
    pub is_user_only: bool,
}

/// One sample of a thread.
pub struct Sample {
    /// Time of the sample, CLOCK_MONOTONIC ns.
    pub at: u64,
    /// CPU time of the thread since the event was opened, ns.
    pub ran: u64,
    /// Its registers in the program.
    pub registers: Registers,
}

impl Event {
    /// Samples thread `tid` each time it has run for `period` ns, from now on. For a `deep` stack, more of it is copied.
    ///
    /// # Errors
    /// EACCES or EPERM if that is not allowed, ESRCH if the thread has ended, EMFILE, ENOMEM.
    pub fn open(tid: u32, period: u64, deep: bool) -> io::Result<Event> {
        let attributes = Attributes {
            kind: PERF_TYPE_SOFTWARE,
            config: PERF_COUNT_SW_TASK_CLOCK,
            sample_period: period,
            ..sampling(if deep { DEEP_DUMP } else { DUMP })
        };
        match Event::open_with(&attributes, tid, RING) {
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                let user_only = Attributes { flags: attributes.flags | flags::EXCLUDE_KERNEL, ..attributes };
                Ok(Event { is_user_only: true, ..Event::open_with(&user_only, tid, RING)? })
            }
            opened => opened,
        }
    }

    /// Takes one sample of thread `tid`, when it reaches the instruction at `pc`.
    ///
    /// # Errors
    /// As [`Event::open`]; ENOSPC if the thread has no breakpoint left.
    pub fn at(tid: u32, pc: u64) -> io::Result<Event> {
        let event = Event::open_with(&breakpoint::once(pc, sampling(DUMP)), tid, LEAST_RING)?;
        breakpoint::enable_once(&event.ring)?;
        Ok(event)
    }

    /// Opens an event with the largest ring that this user may lock in memory.
    fn open_with(attributes: &Attributes, tid: u32, largest: usize) -> io::Result<Event> {
        let mut size = largest;
        loop {
            match Ring::open(attributes, tid, None, size) {
                Err(error) if size > LEAST_RING && error.raw_os_error() == Some(libc::EPERM) => size /= 2,
                opened => return Ok(Event { ring: opened?, is_user_only: false }),
            }
        }
    }

    /// What its thread has run since it was opened, ns; `None` if it cannot be read.
    pub fn ran(&self) -> Option<u64> {
        attributes::count(&self.ring)
    }

    /// Begins a new period of `period` ns now.
    pub fn set_period(&self, period: u64) {
        attributes::set_period(&self.ring, period);
    }

    /// Removes the oldest sample and copies its stack to `stack`. Other records are skipped.
    pub fn next(&mut self, stack: &mut Dump) -> Option<Sample> {
        self.ring.refresh();
        loop {
            let raw = self.ring.peek()?;
            let sample = (raw.kind == PERF_RECORD_SAMPLE).then(|| parse(raw.body, stack)).flatten();
            self.ring.advance();
            self.ring.publish();
            if sample.is_some() {
                return sample;
            }
        }
    }
}

/// What all samples hold. No wake-up is needed: the buffer is read at each tick.
fn sampling(stack: usize) -> Attributes {
    Attributes {
        sample_type: sample::TIME | sample::READ | sample::REGS_USER | sample::STACK_USER,
        flags: flags::EXCLUDE_HYPERVISOR | flags::USE_CLOCKID,
        wakeup: u32::MAX,
        sample_regs_user: registers::mask(),
        sample_stack_user: stack as u32,
        clockid: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    }
}

/// A copy of the top of a stack.
#[derive(Default)]
pub struct Dump {
    at: u64,
    bytes: Vec<u8>,
}

impl Dump {
    /// Copies bytes from `address` on. Returns the number of those that are there.
    pub fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let from = usize::try_from(address.wrapping_sub(self.at)).unwrap_or(usize::MAX);
        let Some(bytes) = self.bytes.get(from..) else { return 0 };
        let len = bytes.len().min(into.len());
        into[..len].copy_from_slice(&bytes[..len]);
        len
    }

    /// Address of the first byte.
    pub fn start(&self) -> u64 {
        self.at
    }

    /// Address behind the last byte.
    pub fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// The stack of a sample that was `taken` at this moment: the copy, and what is `beyond` it.
    pub fn stack<'a>(&'a self, taken: u64, beyond: Option<&'a mut DeepStack>) -> SampledStack<'a> {
        SampledStack::new(self.at, &self.bytes, taken, beyond)
    }
}

/// Parses the fields of `sample_type`, in that order.
fn parse(record: &[u8], stack: &mut Dump) -> Option<Sample> {
    let word = |index: usize| -> Option<u64> {
        Some(u64::from_le_bytes(record.get(index * 8..index * 8 + 8)?.try_into().ok()?))
    };
    let (at, ran, abi) = (word(0)?, word(1)?, word(2)?);
    if abi != ABI_64 {
        return None;
    }
    let size_at = 3 + registers::COUNT;
    let registers = registers::of_sample(record.get(24..size_at * 8)?)?;
    let size = usize::try_from(word(size_at)?).ok()?;
    let bytes = record.get((size_at + 1) * 8..)?;
    let real = match size {
        0 => 0,
        _ => usize::try_from(u64::from_le_bytes(bytes.get(size..size + 8)?.try_into().ok()?)).ok()?,
    };
    stack.bytes.clear();
    stack.bytes.extend_from_slice(bytes.get(..real.min(size))?);
    stack.at = registers.sp();
    Some(Sample { at, ran, registers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_unwind::StackMemory;

    fn record(stack: &[u64], real: u64) -> Vec<u8> {
        let mut words = vec![77, 88, ABI_64];
        words.extend((0..registers::COUNT as u64).map(|i| 1000 + i));
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
        let mut stack = dump.stack(77, None);
        assert_eq!((stack.read_u64(1007), stack.read_u64(1015)), (Some(5), Some(6)));
        assert!(!stack.passed_top);
        assert_eq!(stack.read_u64(1023), None, "that was not copied");
        assert!(stack.passed_top);
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
        let Ok(mut event) = Event::open(std::process::id(), 1_000_000, false) else { return };
        // The main thread sleeps during this test, so there are no samples, and `next` returns at once.
        assert!(event.next(&mut Dump::default()).is_none());
    }
}
