//! The events of a stream and their layout in words.
//!
//! Word 0 of every event: bits 0..8 kind, 8..32 length in words (itself included), 32..64 the
//! thread or module number. The rest depends on the kind; see [`Event`].

/// Number of a thread within its process image: from 1, in order of discovery, never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ThreadId(pub u32);

/// Number of a module within its process image: from 1, never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// A thread's name as the kernel stores it: at most 15 bytes and a zero.
pub type ThreadName = [u8; 16];

/// State of a thread when its stack was taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum State {
    /// On a CPU.
    Awake = 1,
    /// Blocked in the kernel.
    Asleep = 2,
    /// A sample of a wall-time profile, of a task in any state.
    Task = 3,
    /// Ready to run, but not running.
    Waiting = 4,
}

/// An event, borrowed from the words that it is decoded from.
///
/// Times are CLOCK_MONOTONIC nanoseconds, durations nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event<'a> {
    /// A thread was found: `[head, tid, start, name, name]`.
    ThreadStart {
        /// Its number.
        thread: ThreadId,
        /// The kernel's id.
        tid: u32,
        /// When it was found, or started if that is known.
        at: u64,
        /// Its name at that time.
        name: ThreadName,
    },
    /// A thread changed its name: `[head, at, name, name]`.
    ThreadRename {
        /// The thread.
        thread: ThreadId,
        /// When it was noticed.
        at: u64,
        /// The new name.
        name: ThreadName,
    },
    /// A thread ended: `[head, at, cpu, flags]`.
    ThreadEnd {
        /// The thread.
        thread: ThreadId,
        /// When it was noticed.
        at: u64,
        /// CPU time given to its stacks, in total.
        cpu: u64,
        /// Bit 0: it blocked the signal when a sample was due.
        flags: u64,
    },
    /// A module was mapped: `[head, at, bias, low, high, build id bytes | path bytes << 32, bytes…]`.
    ModuleLoad {
        /// Its number.
        module: ModuleId,
        /// When it was noticed.
        at: u64,
        /// Load bias: run-time address minus address in the file.
        bias: u64,
        /// First address.
        low: u64,
        /// Address after the last.
        high: u64,
        /// The bytes of the build id, then of the path, in little-endian words.
        text: &'a [u64],
        /// Bytes of build id in `text`.
        build_id_len: u32,
        /// Bytes of path in `text`, right after the build id.
        path_len: u32,
    },
    /// A module was unmapped: `[head, at]`.
    ModuleUnload {
        /// The module.
        module: ModuleId,
        /// When it was noticed.
        at: u64,
    },
    /// A stack was taken: `[head, at, time, task, state | cut << 8 | hits << 16, frames…]`.
    Sample {
        /// The thread.
        thread: ThreadId,
        /// Time of the sample.
        at: u64,
        /// The time that it stands for, in ns.
        time: u64,
        /// The async task that was polled, 0 for none.
        task: u64,
        /// Running or asleep.
        state: State,
        /// Why the walk ended early, or why there is no stack ([`crate::cut`]); 0: complete.
        cut: u8,
        /// How often the stack was taken: 0 or 1, more if samples are merged.
        hits: u32,
        /// Lookup addresses, leaf first.
        frames: &'a [u64],
    },
    /// Name of an async task, before its first sample:
    /// `[head, at, task, name bytes | path bytes << 16 | line << 32, bytes…]`.
    TaskStart {
        /// A thread that has polled it.
        thread: ThreadId,
        /// When it was found.
        at: u64,
        /// Its id in this process image.
        task: u64,
        /// Source line where it was created; 0: unknown.
        line: u32,
        /// The bytes of the name, then of the source file's path, in little-endian words.
        text: &'a [u64],
        /// Bytes of name in `text`.
        name_len: u16,
        /// Bytes of path in `text`, right after the name.
        file_len: u16,
    },
    /// More time for the stack of this thread's last `Sample`: `[head, at, time, state]`.
    Repeat {
        /// The thread.
        thread: ThreadId,
        /// End of the time that it stands for.
        at: u64,
        /// The time that it stands for, in ns.
        time: u64,
        /// Running or asleep.
        state: State,
    },
}

/// Error of [`Event::decode`]: the words do not form an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("malformed event in the stream of a profiled process")
    }
}

impl core::error::Error for Malformed {}

pub(crate) mod kind {
    pub const THREAD_START: u8 = 1;
    pub const THREAD_RENAME: u8 = 2;
    pub const THREAD_END: u8 = 3;
    pub const MODULE_LOAD: u8 = 4;
    pub const MODULE_UNLOAD: u8 = 5;
    pub const SAMPLE: u8 = 6;
    pub const REPEAT: u8 = 7;
    pub const TASK_START: u8 = 8;
}

/// Most words an event may have.
pub(crate) const MAX_WORDS: usize = crate::MAX_FRAMES + 16;

pub(crate) fn head(kind: u8, len: usize, number: u32) -> u64 {
    kind as u64 | (len as u64) << 8 | (number as u64) << 32
}

pub(crate) fn head_len(word: u64) -> usize {
    (word >> 8 & 0xff_ffff) as usize
}

fn name_words(name: &ThreadName) -> [u64; 2] {
    let mut words = [0; 2];
    pack(name, &mut words);
    words
}

fn name_of(a: u64, b: u64) -> ThreadName {
    let mut name = [0u8; 16];
    name[..8].copy_from_slice(&a.to_le_bytes());
    name[8..].copy_from_slice(&b.to_le_bytes());
    name
}

impl<'a> Event<'a> {
    /// Fixed words of the event, their number, and the words that follow them.
    pub(crate) fn encode(&self) -> ([u64; 6], usize, &'a [u64]) {
        use kind::*;
        let h = |kind, fixed: usize, tail: usize, number| head(kind, fixed + tail, number);
        match *self {
            Event::ThreadStart { thread, tid, at, name } => {
                let [a, b] = name_words(&name);
                ([h(THREAD_START, 5, 0, thread.0), tid as u64, at, a, b, 0], 5, &[])
            }
            Event::ThreadRename { thread, at, name } => {
                let [a, b] = name_words(&name);
                ([h(THREAD_RENAME, 4, 0, thread.0), at, a, b, 0, 0], 4, &[])
            }
            Event::ThreadEnd { thread, at, cpu, flags } => {
                ([h(THREAD_END, 4, 0, thread.0), at, cpu, flags, 0, 0], 4, &[])
            }
            Event::ModuleLoad { module, at, bias, low, high, text, build_id_len, path_len } => {
                let lens = build_id_len as u64 | (path_len as u64) << 32;
                ([h(MODULE_LOAD, 6, text.len(), module.0), at, bias, low, high, lens], 6, text)
            }
            Event::ModuleUnload { module, at } => {
                ([h(MODULE_UNLOAD, 2, 0, module.0), at, 0, 0, 0, 0], 2, &[])
            }
            Event::Sample { thread, at, time, task, state, cut, hits, frames } => {
                let how = state as u64 | (cut as u64) << 8 | (hits as u64) << 16;
                ([h(SAMPLE, 5, frames.len(), thread.0), at, time, task, how, 0], 5, frames)
            }
            Event::TaskStart { thread, at, task, line, text, name_len, file_len } => {
                let lens = u64::from(name_len) | u64::from(file_len) << 16 | u64::from(line) << 32;
                ([h(TASK_START, 4, text.len(), thread.0), at, task, lens, 0, 0], 4, text)
            }
            Event::Repeat { thread, at, time, state } => {
                ([h(REPEAT, 4, 0, thread.0), at, time, state as u64, 0, 0], 4, &[])
            }
        }
    }

    /// Decodes an event from its words.
    ///
    /// # Errors
    /// [`Malformed`] if the words do not form an event.
    pub fn decode(words: &'a [u64]) -> Result<Event<'a>, Malformed> {
        let (&h, rest) = words.split_first().ok_or(Malformed)?;
        if head_len(h) != words.len() || words.len() > MAX_WORDS {
            return Err(Malformed);
        }
        let number = (h >> 32) as u32;
        let (thread, module) = (ThreadId(number), ModuleId(number));
        if number == 0 {
            return Err(Malformed);
        }
        let state = |n: u64| match n & 0xff {
            1 => Ok(State::Awake),
            2 => Ok(State::Asleep),
            3 => Ok(State::Task),
            4 => Ok(State::Waiting),
            _ => Err(Malformed),
        };
        Ok(match (h as u8, rest) {
            (kind::THREAD_START, &[tid, at, a, b]) => {
                let tid = u32::try_from(tid).map_err(|_| Malformed)?;
                Event::ThreadStart { thread, tid, at, name: name_of(a, b) }
            }
            (kind::THREAD_RENAME, &[at, a, b]) => Event::ThreadRename { thread, at, name: name_of(a, b) },
            (kind::THREAD_END, &[at, cpu, flags]) => Event::ThreadEnd { thread, at, cpu, flags },
            (kind::MODULE_LOAD, &[at, bias, low, high, lens, ref text @ ..]) => {
                let (build_id_len, path_len) = (lens as u32, (lens >> 32) as u32);
                let bytes = build_id_len as usize + path_len as usize;
                if bytes > text.len() * 8 || low > high {
                    return Err(Malformed);
                }
                Event::ModuleLoad { module, at, bias, low, high, text, build_id_len, path_len }
            }
            (kind::MODULE_UNLOAD, &[at]) => Event::ModuleUnload { module, at },
            (kind::SAMPLE, &[at, time, task, how, ref frames @ ..]) => Event::Sample {
                thread,
                at,
                time,
                task,
                state: state(how)?,
                cut: (how >> 8) as u8,
                hits: (how >> 16) as u32,
                frames,
            },
            (kind::TASK_START, &[at, task, lens, ref text @ ..]) => {
                let (name_len, file_len, line) = (lens as u16, (lens >> 16) as u16, (lens >> 32) as u32);
                if usize::from(name_len) + usize::from(file_len) > text.len() * 8 || task == 0 {
                    return Err(Malformed);
                }
                Event::TaskStart { thread, at, task, line, text, name_len, file_len }
            }
            (kind::REPEAT, &[at, time, how]) => Event::Repeat { thread, at, time, state: state(how)? },
            _ => return Err(Malformed),
        })
    }
}

/// Words that hold the build id and the path of a module.
pub const MODULE_TEXT_WORDS: usize = (crate::TEXT_BYTES + 64) / 8;

/// Packs the build id and the path of a module as [`Event::ModuleLoad`] has them, cut to the room that there is. Returns the number of words.
///
/// ```
/// use stackglass_wire::{MODULE_TEXT_WORDS, module_text, text_byte};
///
/// let mut text = [7; MODULE_TEXT_WORDS];
/// let words = module_text(&[1, 2], b"/bin/sh", &mut text);
/// assert_eq!(words, 2);
/// assert_eq!((text_byte(&text, 1), text_byte(&text, 2), text_byte(&text, 8), text_byte(&text, 9)), (2, b'/', b'h', 0));
/// ```
pub fn module_text(build_id: &[u8], path: &[u8], text: &mut [u64; MODULE_TEXT_WORDS]) -> usize {
    text.fill(0);
    pack(build_id.iter().chain(path), text)
}

/// Packs bytes into little-endian words that are zero, as far as there is room. Returns the number of words that have bytes.
pub(crate) fn pack<'a>(bytes: impl IntoIterator<Item = &'a u8>, words: &mut [u64]) -> usize {
    let mut used = 0;
    for (i, byte) in bytes.into_iter().enumerate().take(words.len() * 8) {
        words[i / 8] |= u64::from(*byte) << (i % 8 * 8);
        used = i / 8 + 1;
    }
    used
}

/// Byte `i` of a text that is packed into little-endian words.
pub fn text_byte(words: &[u64], i: usize) -> u8 {
    (words[i / 8] >> (i % 8 * 8)) as u8
}
