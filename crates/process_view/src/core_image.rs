//! The core image of a process: its memory and the registers of its threads. The process is a frozen copy, or itself stopped.

use stackglass_procfs::maps;
pub use stackglass_procfs::maps::Mapping;
use std::ops::Range;

/// Reads memory.
pub trait Memory: Sync {
    /// Copies as many bytes from `address` on as can be read, and returns how many.
    fn read(&self, address: u64, into: &mut [u8]) -> usize;

    /// For each page of 4 KiB from `address` on, whether it may hold data. Pages that were never written do not, and read as
    /// zeros. An implementation that does not know says `true`.
    fn resident(&self, address: u64, pages: &mut [bool]) {
        let _ = address;
        pages.fill(true);
    }

    /// Where a mapping may have addresses that the program has written. An implementation that does not know names private memory of
    /// no file.
    fn written(&self, mapping: &Mapping) -> Written {
        let is_private = mapping.readable && !mapping.shared && mapping.inode == 0;
        let whole = WrittenPart { range: mapping.range.clone(), has_other_writers: false };
        Written { parts: if is_private { vec![whole] } else { Vec::new() }, unread: 0 }
    }
}

/// Where a mapping may have addresses that the program has written.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Written {
    /// Memory that can be read, by address.
    pub parts: Vec<WrittenPart>,
    /// Bytes that may hold such addresses and cannot be read.
    pub unread: u64,
}

/// Memory that may have addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenPart {
    /// Where it lies.
    pub range: Range<u64>,
    /// Other processes may have written it: their addresses look like those of this one.
    pub has_other_writers: bool,
}

/// General registers of a thread, as the kernel's `struct user_regs_struct` orders them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadRegisters(pub [u64; 27]);

/// Value of a register that is not known.
const UNKNOWN: u64 = u64::MAX;

impl ThreadRegisters {
    /// Those of a thread that sleeps in the kernel: only where.
    pub fn of_sleeper(pc: u64, sp: u64) -> ThreadRegisters {
        let mut registers = [UNKNOWN; 27];
        (registers[16], registers[19]) = (pc, sp);
        ThreadRegisters(registers)
    }

    /// Whether all but the program counter, the stack pointer and the thread pointer are unknown.
    pub fn are_of_sleeper(&self) -> bool {
        self.0.iter().enumerate().all(|(place, value)| matches!(place, 16 | 19 | 21) || *value == UNKNOWN)
    }

    /// Frame pointer.
    pub fn rbp(&self) -> u64 {
        self.0[4]
    }

    /// Program counter.
    pub fn rip(&self) -> u64 {
        self.0[16]
    }

    /// Stack pointer.
    pub fn rsp(&self) -> u64 {
        self.0[19]
    }

    /// Base of the thread's static thread-local storage.
    pub fn fs_base(&self) -> u64 {
        self.0[21]
    }
}

/// A thread at the moment of the image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Kernel id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// `None` if they could not be read.
    pub registers: Option<ThreadRegisters>,
}

/// What a core file would have of a process, as far as it is needed here.
pub struct CoreImage {
    /// Id of the process of which this is a copy.
    pub pid: u32,
    /// The path of its program, empty if it is not known.
    pub executable: String,
    /// Its mappings by address.
    pub mappings: Vec<Mapping>,
    /// Its threads; the first has the process id.
    pub threads: Vec<Thread>,
    /// Its memory.
    pub memory: Box<dyn Memory>,
}

impl CoreImage {
    /// The mapping with this address.
    pub fn mapping(&self, address: u64) -> Option<&Mapping> {
        maps::at(&self.mappings, address)
    }

    /// The word at an address, little-endian.
    pub fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.memory.read(address, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
    }
}
