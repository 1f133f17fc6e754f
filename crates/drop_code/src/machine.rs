//! Registers and memory while code is interpreted: the memory of the frozen process, and over it what the code has written.
//!
//! Each value is known or not. What is not known never becomes known by a guess.

use foldhash::{HashMap, HashMapExt};
use stackglass_process_view::pages::Pages;

/// Addresses that no process has: the stack of the interpreted code.
pub(crate) const STACK_TOP: u64 = 0x4000_0000_0000_0000;
const STACK_SIZE: u64 = 1 << 20;

/// The code cannot be followed further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop;

/// What a step of the interpretation has, or that it cannot be made.
pub type Step<T> = Result<T, Stop>;

/// Flags of the processor that decide jumps.
#[derive(Clone, Copy, Default, Debug)]
pub struct Flags {
    /// The result is zero.
    pub zero: Option<bool>,
    /// Its highest bit is set.
    pub sign: Option<bool>,
    /// It does not fit as a number without sign.
    pub carry: Option<bool>,
    /// It does not fit as a number with a sign.
    pub overflow: Option<bool>,
}

/// A word of memory, and which of its bytes are known.
type Word = (u64, u8);

/// A general register, and which of its bytes are known.
#[derive(Clone, Copy, Default, Debug)]
pub struct Register {
    value: u64,
    known: u8,
}

impl Register {
    /// A register with a known value.
    pub fn from_value(value: u64) -> Register {
        Register { value, known: u8::MAX }
    }

    /// Some of its bytes, if they are known.
    pub fn part(self, first: usize, count: usize) -> Option<u64> {
        let mask = byte_mask(first, count);
        (self.known & mask == mask).then_some((u128::from(self.value >> (first * 8)) & ones(count)) as u64)
    }

    /// Sets some of its bytes.
    pub fn set(&mut self, first: usize, count: usize, value: Option<u64>) {
        let (mask, bits) = (byte_mask(first, count), (ones(count) as u64) << (first * 8));
        self.value = self.value & !bits | (value.unwrap_or(0) << (first * 8)) & bits;
        self.known = if value.is_some() { self.known | mask } else { self.known & !mask };
    }
}

/// The state of the processor, and the memory as the code sees it.
pub struct Machine<'a> {
    pages: &'a Pages<'a>,
    /// General registers by their number.
    pub registers: [Register; 16],
    /// Vector registers of 128 bits by their number.
    pub vectors: [Option<u128>; 16],
    /// Flags.
    pub flags: Flags,
    /// Begin of the thread-local storage.
    pub thread_local: Option<u64>,
    /// By address: multiples of 8.
    written: HashMap<u64, Word>,
    /// What words were before.
    undo: Vec<(u64, Option<Word>)>,
}

impl<'a> Machine<'a> {
    /// A machine of which nothing is known but the memory of the process.
    pub fn new(pages: &'a Pages<'a>, thread_local: Option<u64>) -> Machine<'a> {
        Machine {
            pages,
            registers: [Register::default(); 16],
            vectors: [None; 16],
            flags: Flags::default(),
            thread_local,
            written: HashMap::new(),
            undo: Vec::new(),
        }
    }

    /// A register by its number.
    pub fn register(&self, number: usize) -> Option<u64> {
        self.registers[number].part(0, 8)
    }

    /// Sets a register by its number.
    pub fn set_register(&mut self, number: usize, value: Option<u64>) {
        self.registers[number].set(0, 8, value);
    }

    /// Number of changes of memory so far.
    pub fn changes(&self) -> usize {
        self.undo.len()
    }

    /// Takes all changes but the first `count` back.
    pub fn take_back(&mut self, count: usize) {
        while self.undo.len() > count {
            let Some((address, before)) = self.undo.pop() else { return };
            match before {
                Some(word) => self.written.insert(address, word),
                None => self.written.remove(&address),
            };
        }
    }

    /// The words that were written, by address, and their values as far as they are known.
    pub fn written(&self) -> impl Iterator<Item = (u64, Option<u64>)> {
        self.written.iter().map(|(address, (word, known))| (*address, (*known == u8::MAX).then_some(*word)))
    }

    fn word(&self, address: u64) -> Step<Word> {
        if let Some(word) = self.written.get(&address) {
            return Ok(*word);
        }
        match (STACK_TOP - STACK_SIZE..STACK_TOP).contains(&address) {
            true => Ok((0, 0)),
            false => self.pages.word(address).map(|word| (word, u8::MAX)).ok_or(Stop),
        }
    }

    /// Loads up to 16 bytes. `None` if some of them are not known.
    pub fn load(&self, address: u64, size: usize) -> Step<Option<u128>> {
        let (mut value, mut is_known) = (0u128, true);
        for piece in pieces(address, size) {
            let Piece { at, within, done, count } = piece?;
            let (word, known) = self.word(at)?;
            let mask = byte_mask(within, count);
            is_known &= known & mask == mask;
            let part = u128::from(word >> (within * 8)) & ones(count);
            value |= part << (done * 8);
        }
        Ok(is_known.then_some(value))
    }

    /// Stores up to 16 bytes.
    pub fn store(&mut self, address: u64, size: usize, value: Option<u128>) -> Step<()> {
        for piece in pieces(address, size) {
            let Piece { at, within, done, count } = piece?;
            let (word, known) = self.word(at)?;
            let mask = byte_mask(within, count);
            let bits = (ones(count) as u64) << (within * 8);
            let part = ((value.unwrap_or(0) >> (done * 8)) as u64) << (within * 8) & bits;
            let known = if value.is_some() { known | mask } else { known & !mask };
            let before = self.written.insert(at, (word & !bits | part, known));
            self.undo.push((at, before));
        }
        Ok(())
    }

    /// Copies memory.
    pub fn copy(&mut self, to: u64, from: u64, count: u64) -> Step<()> {
        // All of it is read first: the ranges may overlap.
        let mut bytes = Vec::new();
        for start in (0..count).step_by(8) {
            let size = (count - start).min(8) as usize;
            bytes.push((start, size, self.load(from.checked_add(start).ok_or(Stop)?, size)?));
        }
        bytes
            .into_iter()
            .try_for_each(|(start, size, value)| self.store(to.checked_add(start).ok_or(Stop)?, size, value))
    }

    /// What a function that was not followed may have changed: all registers that it need not keep.
    pub fn forget_changed(&mut self) {
        // rax, rcx, rdx, rsi, rdi, r8 to r11 (System V ABI).
        for number in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
            self.registers[number] = Register::default();
        }
        self.vectors = [None; 16];
        self.flags = Flags::default();
    }
}

/// The bytes of a value that lie in one word.
struct Piece {
    /// Address of the word.
    at: u64,
    /// Index of the first of these bytes in the word.
    within: usize,
    /// Bytes of the value before them.
    done: usize,
    count: usize,
}

/// The pieces of up to 16 bytes at an address, in order. The error is an address beyond the last.
fn pieces(address: u64, size: usize) -> impl Iterator<Item = Step<Piece>> {
    let (mut done, size) = (0, size.min(16));
    std::iter::from_fn(move || {
        if done >= size {
            return None;
        }
        let Some(at) = address.checked_add(done as u64) else {
            done = size;
            return Some(Err(Stop));
        };
        let within = (at % 8) as usize;
        let count = (8 - within).min(size - done);
        let piece = Piece { at: at & !7, within, done, count };
        done += count;
        Some(Ok(piece))
    })
}

fn byte_mask(first: usize, count: usize) -> u8 {
    ((((1u16 << count) - 1) << first) & 0xff) as u8
}

fn ones(bytes: usize) -> u128 {
    if bytes >= 16 { u128::MAX } else { (1 << (bytes * 8)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_process_view::core_image::{CoreImage, Memory};

    struct Counted;

    impl Memory for Counted {
        fn read(&self, address: u64, into: &mut [u8]) -> usize {
            into.iter_mut().enumerate().for_each(|(at, byte)| *byte = (address as usize + at) as u8);
            into.len()
        }
    }

    #[test]
    fn written_bytes_lie_over_the_process() {
        let image = CoreImage {
            pid: 1,
            executable: String::new(),
            mappings: Vec::new(),
            threads: Vec::new(),
            memory: Box::new(Counted),
        };
        let pages = Pages::new(&image);
        let mut machine = Machine::new(&pages, None);
        assert_eq!(machine.load(0x1006, 4), Ok(Some(0x0908_0706)));
        machine.store(0x1007, 2, Some(0xaabb)).expect("there is memory");
        assert_eq!(machine.load(0x1006, 4), Ok(Some(0x09aa_bb06)));
        let changes = machine.changes();
        machine.store(0x1008, 1, None).expect("there is memory");
        assert_eq!(machine.load(0x1006, 4), Ok(None));
        assert_eq!(machine.load(0x1006, 2), Ok(Some(0xbb06)));
        machine.take_back(changes);
        assert_eq!(machine.load(0x1006, 4), Ok(Some(0x09aa_bb06)));
        machine.copy(STACK_TOP - 64, 0x1001, 20).expect("there is memory");
        assert_eq!(machine.load(STACK_TOP - 59, 4), Ok(Some(0x09aa_bb06)));
        assert_eq!(machine.load(STACK_TOP - 44, 1), Ok(None));
        let written = machine.written().filter(|(address, _)| *address < STACK_TOP - STACK_SIZE);
        let mut written: Vec<_> = written.collect();
        written.sort_unstable();
        assert_eq!(written, [(0x1000, Some(0xbb06_0504_0302_0100)), (0x1008, Some(0x0f0e_0d0c_0b0a_09aa))]);
        assert_eq!(machine.load(u64::MAX - 1, 8), Err(Stop));
    }
}
