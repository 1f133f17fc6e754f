//! The stack frames of the threads, and which part of the stack each has.

use crate::core_image::{CoreImage, ThreadRegisters};
use crate::modules::{LoadedModule, unwind_list};
use stackglass_unwind::{
    Module, ModuleMemory, Register, Registers, RuleTable, Scratch, StackMemory, WalkedFrame, Walker,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

/// Bytes below the stack pointer that a function may use (System V ABI x86-64).
pub const RED_ZONE: u64 = 128;
/// Most frames of a stack.
const MOST_FRAMES: usize = 4096;
/// Most bytes of a stack in which frames are searched.
const LONGEST_SEARCH: u64 = 8 << 20;
/// Bytes that are read at once.
const PAGE: usize = 4096;
/// Pages of modules that are kept.
const MOST_PAGES: usize = 2048;

/// A frame of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackFrame {
    /// Its lookup address: the pc, or the return address minus 1.
    pub lookup: u64,
    /// Its part of the stack.
    pub range: Range<u64>,
    /// The stack pointer before its call, if it is known.
    pub cfa: Option<u64>,
    /// Values of its registers by DWARF's numbers, as far as they are known. The last is the pc.
    pub registers: [Option<u64>; 17],
}

/// The frames of a thread, innermost first; `end` is the end of its stack. The last frame contains the rest.
pub fn frames(
    image: &CoreImage,
    modules: &[LoadedModule],
    threads: &[(ThreadRegisters, u64)],
) -> Vec<Vec<StackFrame>> {
    let list = unwind_list(modules);
    let table = RuleTable::new();
    let reader = ModuleReader { image, pages: RefCell::default() };
    let mut scratch = Box::<Scratch>::default();
    let mut out = vec![0; MOST_FRAMES];
    let mut walk = |registers: &ThreadRegisters| -> (Vec<u64>, Vec<WalkedFrame>) {
        let Some(list) = &list else { return (vec![registers.rip()], Vec::new()) };
        let mut walker =
            Walker { modules: list, table: Some(&table), memory: &reader, scratch: &mut scratch };
        let mut stack = StackReader { image, start: 0, bytes: Vec::new() };
        let start = all_registers(registers);
        let walk = walker.walk(&start, &mut stack, &mut out);
        let mut walked = Vec::new();
        walker.frames(&start, &mut stack, walk.len, &mut |frame| walked.push(frame));
        (out[..walk.len].to_vec(), walked)
    };
    let of_thread = |(registers, end): &(ThreadRegisters, u64)| {
        let (lookups, walked) = walk(registers);
        let mut frames = ranges(image, registers.rsp(), *end, &lookups);
        let same = frames.iter_mut().zip(&walked).take_while(|(frame, walked)| frame.lookup == walked.lookup);
        for (frame, walked) in same {
            frame.cfa = walked.cfa;
            frame.registers = std::array::from_fn(|column| walked.registers.get(column as u8));
        }
        frames
    };
    threads.iter().map(of_thread).collect()
}

fn all_registers(registers: &ThreadRegisters) -> Registers {
    let known = Registers::new(registers.rip(), registers.rsp(), None);
    if registers.are_of_sleeper() {
        return known;
    }
    let with = |known: Registers, (register, place)| known.with(register, registers.0[place]);
    Register::IN_USER_REGS.into_iter().fold(known, with)
}

/// The part of the stack of each frame: it ends with the return address to its caller.
fn ranges(image: &CoreImage, sp: u64, end: u64, lookups: &[u64]) -> Vec<StackFrame> {
    let start = sp.saturating_sub(RED_ZONE);
    let searched = end.saturating_sub(start).min(LONGEST_SEARCH);
    let mut bytes = vec![0; searched as usize];
    let count = image.memory.read(start, &mut bytes);
    bytes.truncate(count);
    let frame = |lookup, range| StackFrame { lookup, range, cfa: None, registers: [None; 17] };
    let mut frames = Vec::new();
    // Return addresses are stored at multiples of 8 in nearly all code.
    let mut at = (start.next_multiple_of(8) - start) as usize;
    let mut begin = start;
    for (index, lookup) in lookups.iter().enumerate() {
        let returns_to = lookups.get(index + 1).map(|caller| caller.wrapping_add(1).to_le_bytes());
        let found = returns_to.and_then(|address| {
            let first = at.max((sp - start) as usize);
            let words = bytes.get(first..)?.chunks_exact(8);
            words.clone().position(|word| word == address).map(|number| first + number * 8 + 8)
        });
        match found {
            Some(behind) => {
                at = behind;
                frames.push(frame(*lookup, begin..start + behind as u64));
                begin = start + behind as u64;
            }
            None => {
                frames.push(frame(*lookup, begin..end.max(begin)));
                return frames;
            }
        }
    }
    frames
}

/// Reads unwind information of modules. All threads need the same few pages of it.
struct ModuleReader<'a> {
    image: &'a CoreImage,
    /// Pages by their numbers, up to the first byte that cannot be read.
    pages: RefCell<HashMap<u64, Box<[u8]>>>,
}

impl ModuleReader<'_> {
    /// Copies bytes of one page, as many as can be read.
    fn read_within_page(&self, address: u64, into: &mut [u8]) -> usize {
        let (number, from) = (address / PAGE as u64, (address % PAGE as u64) as usize);
        let mut pages = self.pages.borrow_mut();
        if pages.len() >= MOST_PAGES && !pages.contains_key(&number) {
            pages.clear();
        }
        let page = pages.entry(number).or_insert_with(|| {
            let mut page = vec![0; PAGE];
            let count = self.image.memory.read(number * PAGE as u64, &mut page);
            page.truncate(count);
            page.into()
        });
        let available = page.get(from..).unwrap_or_default();
        let count = available.len().min(into.len());
        into[..count].copy_from_slice(&available[..count]);
        count
    }
}

impl ModuleMemory for ModuleReader<'_> {
    fn read(&self, _: &Module, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let rest = (into.len() - done).min(PAGE - (at % PAGE as u64) as usize);
            let count = self.read_within_page(at, &mut into[done..done + rest]);
            done += count;
            if count < rest {
                break;
            }
        }
        done
    }
}

struct StackReader<'a> {
    image: &'a CoreImage,
    start: u64,
    bytes: Vec<u8>,
}

impl StackMemory for StackReader<'_> {
    fn read_u64(&mut self, address: u64) -> Option<u64> {
        let end = self.start + self.bytes.len() as u64;
        if address < self.start || address.checked_add(8)? > end {
            self.bytes.resize(PAGE * 2, 0);
            let count = self.image.memory.read(address, &mut self.bytes);
            self.bytes.truncate(count);
            self.start = address;
        }
        let from = (address - self.start) as usize;
        Some(u64::from_le_bytes(self.bytes.get(from..from + 8)?.try_into().ok()?))
    }
}
