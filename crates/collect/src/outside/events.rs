//! The perf events of a program that we start. There are two for each processor. They are opened on the starting
//! thread and inherited by the program, its threads and its children.
//!
//! One event samples: after each period of a running thread, the kernel copies its registers and the top of its
//! stack. The other event counts nothing and reports thread events: begin, end, exec, mappings of code, and each
//! switch to or from a processor. Each has its own ring buffer, so that samples do not displace thread events. Both
//! start at the program's exec.

use stackglass_perf::attributes::{
    self, Attributes, PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, flags, sample,
    set_enabled,
};
use stackglass_perf::records::{self, Record};
use stackglass_perf::registers;
use stackglass_perf::ring::Ring;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};

/// Bytes of stack that the kernel copies in each sample. With the other fields, the record has its largest possible
/// size.
pub(super) const DUMP: usize = 63 << 10;
/// Bytes of a ring buffer of thread events.
const THREAD_EVENTS: usize = 256 << 10;
/// Bytes of a ring buffer of samples: the most that is requested, and the least that is sufficient (four samples).
const SAMPLES: (usize, usize) = (4 << 20, 256 << 10);
/// Bytes of all ring buffers of samples together, for machines with many processors.
const ALL_SAMPLES: usize = 64 << 20;

/// Settings of the events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// CPU time between two samples of a thread, ns.
    pub period: u64,
    /// Sampling starts with the program, and not with [`Events::set_sampling`].
    pub at_once: bool,
}

/// All events of a recording.
pub(super) struct Events {
    thread_events: Vec<Ring>,
    samples: Vec<Ring>,
    /// Kernel time is sampled as well.
    pub counts_kernel: bool,
    /// Each thread keeps its own events. Otherwise the kernel swaps events between related threads. What a thread has
    /// run since its last sample is then lost when a short-lived thread ends with its event.
    pub keeps_events: bool,
    /// Ring buffers with records, by the time of their oldest record.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Events {
    /// Opens the events on the calling thread, which must be the one that starts the program.
    ///
    /// # Errors If perf events are refused here, or the kernel does not report switches (before Linux 4.3).
    pub(super) fn open(plan: Plan) -> io::Result<Events> {
        let kernel_too = match Events::open_with(plan, true, true) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Events::open_with(plan, true, false),
            opened => opened,
        };
        match kernel_too {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
            opened => return opened,
        }
        match Events::open_with(plan, false, true) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Events::open_with(plan, false, false),
            opened => opened,
        }
    }

    fn open_with(plan: Plan, counts_kernel: bool, keeps_events: bool) -> io::Result<Events> {
        let (thread_events, samples, waiting) = (Vec::new(), Vec::new(), BinaryHeap::new());
        let mut events = Events { thread_events, samples, counts_kernel, keeps_events, waiting };
        let processors = online();
        let most = (ALL_SAMPLES / processors.len().max(1)).next_power_of_two() / 2;
        let mut size = most.clamp(SAMPLES.1, SAMPLES.0);
        for processor in processors {
            let thread_events = thread_events_of(counts_kernel);
            let ring = match Ring::open(&thread_events, 0, Some(processor), THREAD_EVENTS) {
                // Linux before 5.12 does not report build ids.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    let older = Attributes { flags: thread_events.flags & !flags::BUILD_ID, ..thread_events };
                    Ring::open(&older, 0, Some(processor), THREAD_EVENTS)
                }
                opened => opened,
            };
            events.thread_events.push(ring?);
            let ring = loop {
                let samples = samples_of(plan, counts_kernel, keeps_events, size);
                match Ring::open(&samples, 0, Some(processor), size) {
                    // More than this user may lock in memory.
                    Err(error)
                        if size > SAMPLES.1
                            && matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM)) =>
                    {
                        size /= 2;
                    }
                    opened => break opened?,
                }
            };
            events.samples.push(ring);
        }
        Ok(events)
    }

    /// Changes the period of threads and processes that begin from now on. Existing ones keep theirs.
    pub(super) fn set_period(&self, period: u64) {
        self.samples.iter().for_each(|ring| attributes::set_period(ring, period));
    }

    /// Number of processors that have events.
    pub(super) fn processors(&self) -> usize {
        self.samples.len()
    }

    /// Starts or stops the sampling. Thread events continue.
    pub(super) fn set_sampling(&self, on: bool) {
        self.samples.iter().for_each(|ring| set_enabled(ring, on));
    }

    /// Descriptors that become readable when a ring buffer has filled to a quarter.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.thread_events.iter().chain(&self.samples).map(AsRawFd::as_raw_fd)
    }

    /// Passes all records up to the moment `until` to `each`, in the order of time. Later records wait for the next
    /// call: by then, all processors have written the records before them. Returns how full the fullest ring buffer
    /// was, 0 to 1.
    pub(super) fn drain(&mut self, until: u64, mut each: impl FnMut(&Record<'_>)) -> f64 {
        let mut fullest = 0f64;
        let counted = self.keeps_events;
        self.waiting.clear();
        for index in 0..self.thread_events.len() + self.samples.len() {
            fullest = fullest.max(self.ring(index).refresh());
            self.wait(index);
        }
        while let Some(Reverse((at, index))) = self.waiting.pop() {
            if at > until {
                break;
            }
            let ring = self.ring(index);
            if let Some(record) = ring.peek().and_then(|raw| records::parse(raw, counted)) {
                each(&record);
            }
            ring.advance();
            self.wait(index);
        }
        self.thread_events.iter().chain(&self.samples).for_each(Ring::publish);
        fullest
    }

    /// Enters the time of the buffer's oldest record; a record without a time comes first.
    fn wait(&mut self, index: usize) {
        let ring = self.ring(index);
        if let Some(raw) = ring.peek() {
            let at = records::time_of(raw).unwrap_or(0);
            self.waiting.push(Reverse((at, index)));
        }
    }

    /// Thread events come first: at equal times, a thread begins before it is sampled.
    fn ring(&mut self, index: usize) -> &mut Ring {
        let thread_events = self.thread_events.len();
        if index < thread_events {
            &mut self.thread_events[index]
        } else {
            &mut self.samples[index - thread_events]
        }
    }
}

fn common(counts_kernel: bool, at_once: bool) -> u64 {
    let mut bits = flags::DISABLED
        | flags::INHERIT
        | flags::EXCLUDE_HYPERVISOR
        | flags::USE_CLOCKID
        | flags::SAMPLE_ID_ALL
        | flags::WATERMARK;
    if at_once {
        bits |= flags::ENABLE_ON_EXEC;
    }
    if !counts_kernel {
        bits |= flags::EXCLUDE_KERNEL;
    }
    bits
}

fn samples_of(plan: Plan, counts_kernel: bool, keeps_events: bool, size: usize) -> Attributes {
    // Inherited events with the count in their samples are never swapped (Linux 6.12; older kernels refuse this).
    let count = if keeps_events { sample::READ } else { 0 };
    Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_CPU_CLOCK,
        sample_period: plan.period,
        sample_type: sample::TID
            | sample::TIME
            | sample::PERIOD
            | count
            | sample::REGS_USER
            | sample::STACK_USER,
        flags: common(counts_kernel, plan.at_once),
        wakeup: (size / 4) as u32,
        sample_regs_user: registers::mask(),
        sample_stack_user: DUMP as u32,
        clockid: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    }
}

fn thread_events_of(counts_kernel: bool) -> Attributes {
    Attributes {
        kind: PERF_TYPE_SOFTWARE,
        config: PERF_COUNT_SW_DUMMY,
        sample_period: 1,
        sample_type: sample::TID | sample::TIME,
        flags: common(counts_kernel, true)
            | flags::MMAP
            | flags::MMAP2
            | flags::BUILD_ID
            | flags::COMM
            | flags::COMM_EXEC
            | flags::TASK
            | flags::CONTEXT_SWITCH,
        wakeup: (THREAD_EVENTS / 4) as u32,
        clockid: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    }
}

/// Processors that are online (`0-3,8`).
fn online() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let mut all = ranges(text.trim());
    if all.is_empty() {
        all = (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect();
    }
    all
}

fn ranges(text: &str) -> Vec<u32> {
    text.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse::<u32>().ok()?.min(1 << 16))
        })
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(ranges("0-3,8,10-11"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(ranges("0"), [0]);
        assert!(ranges("").is_empty() && ranges("x-").is_empty());
    }
}
