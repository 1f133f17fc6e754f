//! Records of a ring buffer, typed.
//!
//! The events have `sample_id_all` with thread and time, so each record ends with both; samples begin with both.

use crate::registers;
use crate::ring::Raw;
use stackglass_unwind::Registers;

const PERF_RECORD_LOST: u32 = 2;
const PERF_RECORD_COMM: u32 = 3;
const PERF_RECORD_EXIT: u32 = 4;
const PERF_RECORD_FORK: u32 = 7;
/// `type` of the header of a sample.
pub const PERF_RECORD_SAMPLE: u32 = 9;
const PERF_RECORD_MMAP2: u32 = 10;
const PERF_RECORD_LOST_SAMPLES: u32 = 13;
const PERF_RECORD_SWITCH: u32 = 14;
const PERF_RECORD_SWITCH_CPU_WIDE: u32 = 15;

/// The bits of `misc` that tell what ran.
pub const MISC_MODE: u16 = 7;
/// The kernel ran.
pub const MISC_KERNEL: u16 = 1;
const MISC_USER: u16 = 2;
const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;
/// `PERF_SAMPLE_REGS_ABI_64`: registers of a 64-bit program follow.
pub const ABI_64: u64 = 2;

/// One record.
pub struct Record<'a> {
    /// The process it is about; 0 if that process has ended.
    pub pid: u32,
    /// The thread it is about; 0 if that thread has ended.
    pub tid: u32,
    /// Time of the record, CLOCK_MONOTONIC ns.
    pub at: u64,
    /// What happened.
    pub what: What<'a>,
}

/// What happened.
pub enum What<'a> {
    /// The thread has run for one period.
    Sample(Sample<'a>),
    /// The thread starts to run on a CPU.
    SwitchIn,
    /// The thread stops running on its CPU.
    SwitchOut {
        /// It is still runnable; otherwise it sleeps.
        preempted: bool,
    },
    /// The thread begins.
    Fork {
        /// Process of the thread that created it.
        parent: u32,
    },
    /// The thread ends.
    Exit,
    /// The thread has a new name.
    Comm {
        /// The change comes from an exec of its process.
        exec: bool,
        /// The new name.
        name: &'a [u8],
    },
    /// Code was mapped.
    Mmap(Mmap<'a>),
    /// So many records were lost because the ring buffer was full.
    Lost(u64),
    /// Anything else.
    Other,
}

/// A sample.
pub struct Sample<'a> {
    /// How long the thread ran since its last sample, ns.
    pub period: u64,
    /// The thread ran the program's own code; otherwise the kernel ran on its behalf.
    pub in_user_code: bool,
    /// Registers in the program; `None` if the thread has none (during exec or exit) or is a 32-bit thread.
    pub registers: Option<Registers>,
    /// The top of the stack, from the stack pointer on.
    pub stack: &'a [u8],
}

/// A mapping of code.
pub struct Mmap<'a> {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Offset in the file.
    pub offset: u64,
    /// The file's build id if the kernel provides it, otherwise empty.
    pub build_id: &'a [u8],
    /// The file's inode if there is no build id, otherwise 0.
    pub inode: u64,
    /// Path of the file, as the process sees it.
    pub path: &'a [u8],
}

/// Reads little-endian numbers from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn get(&mut self, n: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(front)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.get(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.get(8)?.try_into().ok()?))
    }
}

/// The time of a record, without parsing the rest. `None` if the record is too short.
pub fn time_of(raw: Raw<'_>) -> Option<u64> {
    let at = if raw.kind == PERF_RECORD_SAMPLE { 8 } else { raw.body.len().checked_sub(8)? };
    Some(u64::from_le_bytes(raw.body.get(at..at + 8)?.try_into().ok()?))
}

/// The process that was running when a record was written, without parsing the rest. `None` for a record of lost ones, and if
/// the record is too short.
pub fn process_of(raw: Raw<'_>) -> Option<u32> {
    let at = match raw.kind {
        PERF_RECORD_LOST | PERF_RECORD_LOST_SAMPLES => return None,
        PERF_RECORD_SAMPLE => 0,
        _ => raw.body.len().checked_sub(16)?,
    };
    Some(u32::from_le_bytes(raw.body.get(at..at + 4)?.try_into().ok()?))
}

/// Parses a record; `None` if it is shorter than its kind requires. With `counted`, samples hold the event's count.
pub fn parse(raw: Raw<'_>, counted: bool) -> Option<Record<'_>> {
    if raw.kind == PERF_RECORD_SAMPLE {
        return sample(raw, counted);
    }
    let (body, trailer) = raw.body.split_at_checked(raw.body.len().checked_sub(16)?)?;
    let mut trailer = Bytes(trailer);
    let (pid, tid, at) = (trailer.u32()?, trailer.u32()?, trailer.u64()?);
    let mut body = Bytes(body);
    let mut record = Record { pid, tid, at, what: What::Other };
    record.what = match raw.kind {
        // Events of a whole CPU also name the other thread of a switch, which has a record of its own.
        PERF_RECORD_SWITCH | PERF_RECORD_SWITCH_CPU_WIDE if raw.misc & MISC_SWITCH_OUT == 0 => What::SwitchIn,
        PERF_RECORD_SWITCH | PERF_RECORD_SWITCH_CPU_WIDE => {
            What::SwitchOut { preempted: raw.misc & MISC_SWITCH_OUT_PREEMPT != 0 }
        }
        PERF_RECORD_FORK | PERF_RECORD_EXIT => {
            record.pid = body.u32()?;
            let parent = body.u32()?;
            record.tid = body.u32()?;
            body.u32()?;
            record.at = body.u64()?;
            if raw.kind == PERF_RECORD_FORK { What::Fork { parent } } else { What::Exit }
        }
        PERF_RECORD_COMM => {
            (record.pid, record.tid) = (body.u32()?, body.u32()?);
            What::Comm { exec: raw.misc & MISC_COMM_EXEC != 0, name: until_zero(body.0) }
        }
        PERF_RECORD_MMAP2 => {
            (record.pid, record.tid) = (body.u32()?, body.u32()?);
            let (start, len, offset) = (body.u64()?, body.u64()?, body.u64()?);
            let mut file = Bytes(body.get(24)?);
            let protection = body.u32()?;
            body.u32()?;
            let (build_id, inode) = if raw.misc & MISC_MMAP_BUILD_ID != 0 {
                let len = usize::from(file.get(4)?[0]);
                (file.0.get(..len)?, 0)
            } else {
                file.get(8)?;
                (&[][..], file.u64()?)
            };
            match protection & PROT_EXEC {
                0 => What::Other,
                _ => What::Mmap(Mmap { start, len, offset, build_id, inode, path: until_zero(body.0) }),
            }
        }
        PERF_RECORD_LOST => {
            body.u64()?;
            What::Lost(body.u64()?)
        }
        PERF_RECORD_LOST_SAMPLES => What::Lost(body.u64()?),
        _ => What::Other,
    };
    Some(record)
}

/// Parses a sample: TID, TIME, PERIOD, READ (if `counted`), REGS_USER and STACK_USER, in this order.
fn sample(raw: Raw<'_>, counted: bool) -> Option<Record<'_>> {
    let mut body = Bytes(raw.body);
    let (pid, tid, at, period) = (body.u32()?, body.u32()?, body.u64()?, body.u64()?);
    if counted {
        body.u64()?;
    }
    let abi = body.u64()?;
    // ABI 0 means that the sample has no registers.
    let words = if abi == 0 { &[][..] } else { body.get(registers::COUNT * 8)? };
    let registers = if abi == ABI_64 { registers::of_sample(words) } else { None };
    let size = usize::try_from(body.u64()?).ok()?;
    let stack = match size {
        0 => &[][..],
        _ => {
            let room = body.get(size)?;
            let copied = usize::try_from(body.u64()?).ok()?;
            &room[..copied.min(size)]
        }
    };
    let in_user_code = raw.misc & MISC_MODE == MISC_USER;
    Some(Record { pid, tid, at, what: What::Sample(Sample { period, in_user_code, registers, stack }) })
}

fn until_zero(text: &[u8]) -> &[u8] {
    &text[..text.iter().position(|b| *b == 0).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from(low) | u64::from(high) << 32
    }

    #[test]
    fn a_sample_is_read_as_it_was_written() {
        let mut body = vec![pair(7, 8), 99, 1000, ABI_64];
        body.extend((0..registers::COUNT as u64).map(|i| 100 + i));
        body.extend([24, 1, 2, 3, 16]);
        let body = words(&body);
        let raw = |body| Raw { kind: PERF_RECORD_SAMPLE, misc: MISC_USER, body };
        assert_eq!(time_of(raw(&body)), Some(99));
        let record = parse(raw(&body), false).unwrap();
        assert_eq!((record.pid, record.tid, record.at), (7, 8, 99));
        let What::Sample(sample) = record.what else { panic!("a sample") };
        let registers = sample.registers.unwrap();
        assert_eq!(
            (sample.period, registers.pc(), registers.sp(), registers.rbp()),
            (1000, 108, 107, Some(106))
        );
        assert_eq!((sample.stack, sample.in_user_code), (&words(&[1, 2])[..], true));
        for len in 0..body.len() {
            assert!(parse(raw(&body[..len]), false).is_none(), "{len}");
        }
        // A thread that is exiting has no registers and no stack.
        let body = words(&[pair(7, 8), 99, 1000, 0, 0]);
        let record = parse(Raw { kind: PERF_RECORD_SAMPLE, misc: 1, body: &body }, false).unwrap();
        let What::Sample(sample) = record.what else { panic!("a sample") };
        assert!(sample.registers.is_none() && sample.stack.is_empty() && !sample.in_user_code);
    }

    #[test]
    fn what_happened_to_threads_is_read() {
        let read = |kind, misc, body: &[u64]| {
            let body = words(body);
            let record = parse(Raw { kind, misc, body: &body }, false).unwrap();
            let what = match record.what {
                What::SwitchIn => "in".to_owned(),
                What::SwitchOut { preempted } => format!("out {preempted}"),
                What::Fork { parent } => format!("fork {parent}"),
                What::Exit => "exit".to_owned(),
                What::Comm { exec, name } => format!("comm {exec} {}", String::from_utf8_lossy(name)),
                What::Lost(n) => format!("lost {n}"),
                _ => "other".to_owned(),
            };
            (record.pid, record.tid, record.at, what)
        };
        let end = [pair(3, 4), 50];
        assert_eq!(read(PERF_RECORD_SWITCH, 0, &end), (3, 4, 50, "in".into()));
        assert_eq!(read(PERF_RECORD_SWITCH, 1 << 13, &end), (3, 4, 50, "out false".into()));
        assert_eq!(read(PERF_RECORD_SWITCH, 3 << 13, &end), (3, 4, 50, "out true".into()));
        let wide = [pair(8, 9), pair(3, 4), 50];
        assert_eq!(read(PERF_RECORD_SWITCH_CPU_WIDE, 0, &wide), (3, 4, 50, "in".into()));
        assert_eq!(read(PERF_RECORD_SWITCH_CPU_WIDE, 1 << 13, &wide), (3, 4, 50, "out false".into()));
        let process = |kind, body: &[u64]| process_of(Raw { kind, misc: 0, body: &words(body) });
        assert_eq!(process(PERF_RECORD_SWITCH_CPU_WIDE, &wide), Some(3));
        assert_eq!(process(PERF_RECORD_SAMPLE, &[pair(7, 8), 99]), Some(7));
        assert_eq!(process(PERF_RECORD_LOST, &[1, 9, pair(3, 4), 50]), None);
        assert_eq!(process(PERF_RECORD_SWITCH, &[50]), None);
        let fork = [pair(5, 3), pair(6, 4), 49, pair(3, 4), 50];
        assert_eq!(read(PERF_RECORD_FORK, 0, &fork), (5, 6, 49, "fork 3".into()));
        assert_eq!(read(PERF_RECORD_EXIT, 0, &fork), (5, 6, 49, "exit".into()));
        let comm = [pair(5, 6), u64::from_le_bytes(*b"name\0\0\0\0"), pair(3, 4), 50];
        assert_eq!(read(PERF_RECORD_COMM, 1 << 13, &comm), (5, 6, 50, "comm true name".into()));
        assert_eq!(read(PERF_RECORD_LOST, 0, &[1, 9, pair(3, 4), 50]), (3, 4, 50, "lost 9".into()));
        assert_eq!(read(77, 0, &end).3, "other");
    }

    #[test]
    fn a_mapping_has_a_build_id_or_an_inode() {
        let path = u64::from_le_bytes(*b"/lib/x\0\0");
        let head = [pair(5, 6), 0x1000, 0x2000, 0x3000];
        let tail = [pair(PROT_EXEC, 2), path, pair(5, 6), 50];
        let with_inode = words(&[&head[..], &[pair(8, 1), 77, 1], &tail].concat());
        let raw = Raw { kind: PERF_RECORD_MMAP2, misc: 0, body: &with_inode };
        let Some(Record { what: What::Mmap(map), pid: 5, tid: 6, at: 50 }) = parse(raw, false) else {
            panic!()
        };
        assert_eq!((map.start, map.len, map.offset, map.inode), (0x1000, 0x2000, 0x3000, 77));
        assert_eq!((map.path, map.build_id.len()), (&b"/lib/x"[..], 0));
        let with_id = words(&[&head[..], &[8 | 0x0403_0201 << 32, 0x0807_0605, 0], &tail].concat());
        let raw = Raw { kind: PERF_RECORD_MMAP2, misc: MISC_MMAP_BUILD_ID, body: &with_id };
        let Some(Record { what: What::Mmap(map), .. }) = parse(raw, false) else { panic!() };
        assert_eq!(map.build_id, [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
