//! The perf events of a recorded program: two on each CPU, opened on the starting thread and inherited by the
//! program and all its threads and children.
//!
//! One event samples: each time a thread has run for a period, the kernel copies its registers and the top of its stack. The
//! other event counts nothing. It reports what happens to threads: start, exit, exec, mappings of code, and switches. Each has
//! a separate ring, so that many samples displace no thread events. Both begin with the program's exec.

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

/// Bytes of stack that the kernel copies with each sample. With the rest it fills the largest possible record.
pub(super) const DUMP: usize = 63 << 10;
/// Bytes of a ring of thread events.
const THREAD_EVENTS: usize = 256 << 10;
/// Largest ring of samples, in bytes.
const MOST_SAMPLES: usize = 4 << 20;
/// Smallest ring of samples, in bytes: four samples.
const LEAST_SAMPLES: usize = 256 << 10;
/// Most bytes of all rings of samples, for machines with many CPUs.
const ALL_SAMPLES: usize = 64 << 20;

/// How the events sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// CPU time between two samples of a thread, ns.
    pub period: u64,
    /// Sampling begins with the program, and not with [`Events::set_sampling`].
    pub at_once: bool,
}

/// All events of a recording.
pub(super) struct Events {
    thread_events: Vec<Ring>,
    samples: Vec<Ring>,
    /// Time in the kernel is sampled as well.
    pub counts_kernel: bool,
    /// Each thread keeps its own events. Otherwise the kernel swaps the events of related threads at switches. The time that a
    /// thread has run towards its next sample is then lost when a short-lived thread ends with its event.
    pub keeps_events: bool,
    /// Rings with records, by the time of the oldest one.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Events {
    /// Opens them on the calling thread, which must be the one that starts the program.
    ///
    /// # Errors
    /// If perf events are refused, or the kernel does not report switches (before Linux 4.3).
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
        let cpus = online();
        let most = (ALL_SAMPLES / cpus.len().max(1)).next_power_of_two() / 2;
        let mut size = most.clamp(LEAST_SAMPLES, MOST_SAMPLES);
        for cpu in cpus {
            let attributes = thread_events_of(counts_kernel);
            let ring = match Ring::open(&attributes, 0, Some(cpu), THREAD_EVENTS) {
                // Linux before 5.12 reports no build ids.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    let older = Attributes { flags: attributes.flags & !flags::BUILD_ID, ..attributes };
                    Ring::open(&older, 0, Some(cpu), THREAD_EVENTS)
                }
                opened => opened,
            };
            events.thread_events.push(ring?);
            let ring = loop {
                let samples = samples_of(plan, counts_kernel, keeps_events, size);
                match Ring::open(&samples, 0, Some(cpu), size) {
                    // The ring is larger than this user may lock in memory.
                    Err(error)
                        if size > LEAST_SAMPLES
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

    /// Sets the period of threads and processes that start from now on. Others keep theirs.
    pub(super) fn set_period(&self, period: u64) {
        self.samples.iter().for_each(|ring| attributes::set_period(ring, period));
    }

    /// CPUs that have events.
    pub(super) fn cpus(&self) -> usize {
        self.samples.len()
    }

    /// Starts or stops sampling. Thread events continue.
    pub(super) fn set_sampling(&self, on: bool) {
        self.samples.iter().for_each(|ring| set_enabled(ring, on));
    }

    /// Descriptors on which poll(2) returns when a ring is a quarter full.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.thread_events.iter().chain(&self.samples).map(AsRawFd::as_raw_fd)
    }

    /// Reads all records up to the moment `until`, in the order of time. Later ones wait for the next call: by then all
    /// CPUs have written the records before them.
    pub(super) fn drain(&mut self, until: u64, mut each: impl FnMut(&Record<'_>)) {
        let counted = self.keeps_events;
        self.waiting.clear();
        for index in 0..self.thread_events.len() + self.samples.len() {
            self.ring(index).refresh();
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
    }

    /// Queues a ring by the time of its oldest record. A record without a time is read first.
    fn wait(&mut self, index: usize) {
        let ring = self.ring(index);
        if let Some(raw) = ring.peek() {
            let at = records::time_of(raw).unwrap_or(0);
            self.waiting.push(Reverse((at, index)));
        }
    }

    /// Thread events come first: at equal times, a thread starts before it is sampled.
    fn ring(&mut self, index: usize) -> &mut Ring {
        let first = self.thread_events.len();
        if index < first { &mut self.thread_events[index] } else { &mut self.samples[index - first] }
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
    // Inherited events whose count is in their samples are never swapped (Linux 6.12; refused before).
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

/// The CPUs that are online.
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
    fn lists_of_cpus_are_read() {
        assert_eq!(ranges("0-3,8,10-11"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(ranges("0"), [0]);
        assert!(ranges("").is_empty() && ranges("x-").is_empty());
    }
}
