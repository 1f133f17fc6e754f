//! The head of a process's file: who it is, how it fares, how far the stream has come.

use crate::Counters;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::*};

/// `b"SGCTRL01"`: the first word of a control page that is ready.
const MAGIC: u64 = u64::from_le_bytes(*b"SGCTRL01");

/// Bytes kept of a path or command line; longer ones are cut.
pub const TEXT_BYTES: usize = 2048;

/// State of one profiled process image and the two ends of its stream.
///
/// Written by the process, but for `tail`, which belongs to the reader. Everything in it is
/// hostile input for the launcher.
#[repr(C)]
pub struct ControlPage {
    magic: AtomicU64,
    version: AtomicU32,
    /// A [`ProcessState`] as its number.
    pub state: AtomicU32,
    /// Process id, as the process itself sees it.
    pub pid: AtomicU32,
    /// Parent's process id at start.
    pub ppid: AtomicU32,
    /// Kernel id of the sampler thread (left out of all figures about the program).
    pub sampler_tid: AtomicU32,
    /// Bits of [`ImageFlags`].
    pub image: AtomicU32,
    /// Peeks asked for so far.
    pub peeks: AtomicU32,
    /// CLOCK_MONOTONIC ns when the image was taken up.
    pub start_ns: AtomicU64,
    /// CLOCK_REALTIME ns at the same moment.
    pub start_realtime_ns: AtomicU64,
    /// Words in the stream (a power of two).
    pub stream_words: AtomicU64,
    /// Words ever written to the stream. Stored with Release after the words themselves.
    pub head: AtomicU64,
    _line: [AtomicU64; 8],
    /// Words ever read from the stream. Stored by the reader.
    pub tail: AtomicU64,
    _line2: [AtomicU64; 7],
    /// CPU time that the sampler thread itself has used, ns.
    pub sampler_cpu_ns: AtomicU64,
    /// CLOCK_MONOTONIC ns of the last finished tick.
    pub last_tick_ns: AtomicU64,
    /// What happened how often.
    pub counters: Counters,
    /// Length of the path of the executable in `exe`.
    pub exe_len: AtomicU32,
    /// Length of the command line in `cmdline`.
    pub cmdline_len: AtomicU32,
    /// Path of the executable.
    pub exe: [AtomicU8; TEXT_BYTES],
    /// Arguments, each ended by a zero byte.
    pub cmdline: [AtomicU8; TEXT_BYTES],
}

const _: () = assert!(core::mem::size_of::<ControlPage>() <= crate::CONTROL_BYTES);
const _: () = assert!(core::mem::align_of::<ControlPage>() <= 64);

/// How far a process image has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum ProcessState {
    /// Sampler thread is starting.
    Starting = 0,
    /// Ticks are taken (or would be, once the session samples).
    Running = 1,
    /// The sampler has stopped and will write no more.
    Stopped = 2,
    /// Sampling cannot work here; the program goes on without.
    Unable = 3,
}

/// How an image came to be, and what was granted to its sampler: bits of [`ControlPage::image`].
pub struct ImageFlags;

impl ImageFlags {
    /// The image is a forked child that has not called exec.
    pub const FORKED: u32 = 1;
    /// SCHED_RR was granted to the sampler thread.
    pub const REALTIME: u32 = 2;
    /// A better nice value was granted to the sampler thread.
    pub const NICE: u32 = 4;
    /// PROCMAP_QUERY works here (else /proc/self/maps and process_vm_readv are used).
    pub const MAP_QUERY: u32 = 8;
    /// process_vm_readv on oneself works here.
    pub const VM_READ: u32 = 16;
    /// /proc/self/task/T/syscall can be read here (else sleepers are signalled).
    pub const SLEEP_LOOK: u32 = 32;
    /// The program took SIGURG away from us: running threads are not sampled any more.
    pub const SIGNAL_LOST: u32 = 64;
}

impl ControlPage {
    /// Marks the page as complete: version first, magic last.
    pub fn publish(&self) {
        self.version.store(crate::VERSION, Relaxed);
        self.magic.store(MAGIC, Release);
    }

    /// True when the page is complete and of this version.
    pub fn is_ready(&self) -> bool {
        self.magic.load(Acquire) == MAGIC && self.version.load(Relaxed) == crate::VERSION
    }

    /// True when the page is complete but was written by another version.
    pub fn is_foreign_version(&self) -> bool {
        self.magic.load(Acquire) == MAGIC && self.version.load(Relaxed) != crate::VERSION
    }

    /// The state, unknown numbers read as [`ProcessState::Stopped`].
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

    /// Copies a text out; the result is never longer than [`TEXT_BYTES`], whatever `len` says.
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
