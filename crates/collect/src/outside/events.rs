//! The perf events of a program that we start: two on each processor, opened on the starting thread and inherited by
//! the program and all its threads and children.
//!
//! One event samples: after each period that a thread has run, the kernel copies its registers and the top of its
//! stack. The other one counts nothing and tells what happens to threads: begin, end, exec, mappings of code, and each
//! time that a processor is given or taken. Each has a ring of its own, so that many samples push no news out. Both
//! begin with the program's exec.

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

/// Bytes of stack that the kernel copies with each sample: with the rest of a record, as much as a record may have.
pub(super) const DUMP: usize = 63 << 10;
/// Bytes of a ring of news.
const NEWS: usize = 256 << 10;
/// Bytes of a ring of samples: the most that is asked for, and the least that will do (four samples).
const SAMPLES: (usize, usize) = (4 << 20, 256 << 10);
/// Bytes of all rings of samples together, on machines with many processors.
const ALL_SAMPLES: usize = 64 << 20;

/// What is asked of the events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Time that a thread runs between two samples, ns.
    pub period: u64,
    /// Sampling begins with the program, and not when it is [told](Events::set_sampling) to.
    pub at_once: bool,
}

/// All events of a recording.
pub(super) struct Events {
    news: Vec<Ring>,
    samples: Vec<Ring>,
    /// Time in the kernel is sampled as well.
    pub counts_kernel: bool,
    /// Each thread keeps its own events. Else the kernel swaps them between threads that were made from each other, and what a
    /// thread had run towards its next sample ends with a short-lived one that has got its event.
    pub keeps_events: bool,
    /// Rings with something to read: the time of their oldest record.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Events {
    /// Opens them on the calling thread, which must be the one that starts the program.
    ///
    /// # Errors
    /// When perf events are refused here, or the kernel is too old to say when a processor is taken (Linux 4.3).
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
        let (news, samples, waiting) = (Vec::new(), Vec::new(), BinaryHeap::new());
        let mut events = Events { news, samples, counts_kernel, keeps_events, waiting };
        let processors = online();
        let most = (ALL_SAMPLES / processors.len().max(1)).next_power_of_two() / 2;
        let mut size = most.clamp(SAMPLES.1, SAMPLES.0);
        for processor in processors {
            let news = news_of(counts_kernel);
            let ring = match Ring::open(&news, 0, Some(processor), NEWS) {
                // Linux before 5.12 tells no build ids.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    let older = Attributes { flags: news.flags & !flags::BUILD_ID, ..news };
                    Ring::open(&older, 0, Some(processor), NEWS)
                }
                opened => opened,
            };
            events.news.push(ring?);
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

    /// Threads and processes that begin from now on are sampled with this period. Those that go on keep theirs.
    pub(super) fn set_period(&self, period: u64) {
        self.samples.iter().for_each(|ring| attributes::set_period(ring, period));
    }

    /// Processors that have events.
    pub(super) fn processors(&self) -> usize {
        self.samples.len()
    }

    /// Starts or stops the sampling; news go on.
    pub(super) fn set_sampling(&self, on: bool) {
        self.samples.iter().for_each(|ring| set_enabled(ring, on));
    }

    /// Descriptors on which poll(2) returns when a ring has become fairly full.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.news.iter().chain(&self.samples).map(AsRawFd::as_raw_fd)
    }

    /// Takes up, in the order of time, all records up to the moment `until`; later ones wait for the next call, by which
    /// time all processors have written what came before them. How full the fullest ring was, 0 to 1.
    pub(super) fn drain(&mut self, until: u64, mut each: impl FnMut(&Record<'_>)) -> f64 {
        let mut fullest = 0f64;
        let counted = self.keeps_events;
        self.waiting.clear();
        for index in 0..self.news.len() + self.samples.len() {
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
        self.news.iter().chain(&self.samples).for_each(Ring::publish);
        fullest
    }

    /// Enters the time of the ring's oldest record; a record without one is passed over at once.
    fn wait(&mut self, index: usize) {
        let ring = self.ring(index);
        if let Some(raw) = ring.peek() {
            let at = records::time_of(raw).unwrap_or(0);
            self.waiting.push(Reverse((at, index)));
        }
    }

    /// News come first: at equal times a thread begins before it is sampled.
    fn ring(&mut self, index: usize) -> &mut Ring {
        let news = self.news.len();
        if index < news { &mut self.news[index] } else { &mut self.samples[index - news] }
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

fn news_of(counts_kernel: bool) -> Attributes {
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
        wakeup: (NEWS / 4) as u32,
        clockid: libc::CLOCK_MONOTONIC,
        ..Attributes::default()
    }
}

/// Processors that may run something (`0-3,8`).
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
