//! The first page of a process's file: identity, state, counters, and the positions of the stream.

use crate::{Counters, ready};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::*};

/// First word of a control page that is ready.
const MAGIC: u64 = u64::from_le_bytes(*b"SGCTRL01");

/// Most bytes of a path or command line; longer texts are cut.
pub const TEXT_BYTES: usize = 2048;

/// State of one profiled process image and the two ends of its stream.
///
/// The process writes all but `tail`, which the reader writes. To the launcher, it is hostile input.
#[repr(C)]
pub struct ControlPage {
    magic: AtomicU64,
    version: AtomicU32,
    /// A [`ProcessState`] as its number.
    pub state: AtomicU32,
    /// Process id, in the process's own namespace.
    pub pid: AtomicU32,
    /// Process id of the parent at the start.
    pub ppid: AtomicU32,
    /// Kernel id of the sampler thread, which is excluded from all figures about the program.
    pub sampler_tid: AtomicU32,
    /// Bits of [`ImageFlags`].
    pub image: AtomicU32,
    /// Peeks requested so far.
    pub peeks: AtomicU32,
    /// CLOCK_MONOTONIC ns when profiling of the image started.
    pub start_ns: AtomicU64,
    /// CLOCK_REALTIME ns at the same moment.
    pub start_realtime_ns: AtomicU64,
    /// Words in the stream (a power of two).
    pub stream_words: AtomicU64,
    /// Words ever written to the stream. Stored with Release after the words.
    pub head: AtomicU64,
    _line: [AtomicU64; 8],
    /// Words ever read from the stream. Stored by the reader.
    pub tail: AtomicU64,
    _line2: [AtomicU64; 7],
    /// CPU time that the sampler thread itself has used, ns.
    pub sampler_cpu_ns: AtomicU64,
    /// CLOCK_MONOTONIC ns of the last finished tick.
    pub last_tick_ns: AtomicU64,
    /// Event counts.
    pub counters: Counters,
    /// Length of the path of the executable in `exe`.
    pub exe_len: AtomicU32,
    /// Length of the command line in `cmdline`.
    pub cmdline_len: AtomicU32,
    /// Path of the executable.
    pub exe: [AtomicU8; TEXT_BYTES],
    /// Arguments, each followed by a zero byte.
    pub cmdline: [AtomicU8; TEXT_BYTES],
}

const _: () = assert!(core::mem::size_of::<ControlPage>() <= crate::CONTROL_BYTES);
const _: () = assert!(core::mem::align_of::<ControlPage>() <= 64);

/// State of the sampler in a process image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ProcessState {
    /// The sampler thread is starting.
    Starting = 0,
    /// It is sampling, or waits for the session to sample.
    Running = 1,
    /// It has stopped and writes no more.
    Stopped = 2,
    /// Sampling is impossible in this process.
    Unable = 3,
}

/// Origin of an image and rights of its sampler: bits of [`ControlPage::image`].
pub struct ImageFlags;

impl ImageFlags {
    /// The image is a forked child before any exec.
    pub const FORKED: u32 = 1;
    /// SCHED_RR was granted to the sampler thread.
    pub const REALTIME: u32 = 2;
    /// A better nice value was granted to the sampler thread.
    pub const NICE: u32 = 4;
    /// PROCMAP_QUERY works here (else /proc/self/maps and process_vm_readv are used).
    pub const MAP_QUERY: u32 = 8;
    /// process_vm_readv on the own process works here.
    pub const VM_READ: u32 = 16;
    /// /proc/self/task/T/syscall can be read here (else where threads sleep is unknown).
    pub const SLEEP_LOOK: u32 = 32;
    /// The program took over the sampling signal: running threads are no longer sampled.
    pub const SIGNAL_LOST: u32 = 64;
    /// Stacks of running threads come by timers, which interrupt no system call.
    pub const TIMERS: u32 = 128;
    /// Running threads are signalled wherever they are, because timers are not allowed.
    pub const NO_TIMERS: u32 = 256;
    /// A thread changes its own rights alone: sampling has ended before.
    pub const OWN_RIGHTS: u32 = 512;
}

impl ControlPage {
    /// Marks the page as complete.
    pub fn publish(&self) {
        ready::publish(&self.magic, &self.version, MAGIC);
    }

    /// True when the page is complete and of this version.
    pub fn is_ready(&self) -> bool {
        ready::is_ready(&self.magic, &self.version, MAGIC)
    }

    /// True when the page is complete but was written by another version.
    pub fn is_foreign_version(&self) -> bool {
        self.magic.load(Acquire) == MAGIC && self.version.load(Relaxed) != crate::VERSION
    }

    /// The state; [`ProcessState::Stopped`] for unknown numbers.
    pub fn process_state(&self) -> ProcessState {
        match self.state.load(Acquire) {
            0 => ProcessState::Starting,
            1 => ProcessState::Running,
            3 => ProcessState::Unable,
            _ => ProcessState::Stopped,
        }
    }

    /// Stores a path or command line, cut to [`TEXT_BYTES`].
    pub fn set_text(field: &[AtomicU8; TEXT_BYTES], len: &AtomicU32, text: &[u8]) {
        let n = text.len().min(TEXT_BYTES);
        for (cell, byte) in field.iter().zip(&text[..n]) {
            cell.store(*byte, Relaxed);
        }
        len.store(n as u32, Release);
    }

    /// Copies a text to `out`. It has at most [`TEXT_BYTES`] bytes, whatever `len` is.
    pub fn text<'a>(
        field: &[AtomicU8; TEXT_BYTES],
        len: &AtomicU32,
        out: &'a mut [u8; TEXT_BYTES],
    ) -> &'a [u8] {
        let n = (len.load(Acquire) as usize).min(TEXT_BYTES);
        for (byte, cell) in out.iter_mut().zip(field).take(n) {
            *byte = cell.load(Relaxed);
        }
        &out[..n]
    }
}
