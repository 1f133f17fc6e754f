//! The program's own instructions that injected calls borrow.
//!
//! An injected call needs `syscall; ret`, and the stub that returns from signal handlers (`mov $15, %eax; syscall`). Every
//! C library has both. The search reads megabytes, so it comes before the threads stop; the few bytes found are compared
//! again once they have stopped.

use super::Mapping;
use super::memory::ProcessMemory;

const SYSCALL_RETURN: &[u8] = &[0x0f, 0x05, 0xc3];
/// `mov $15, %rax; syscall` and `mov $15, %eax; syscall`.
const SIGNAL_RETURN: [&[u8]; 2] =
    [&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05], &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05]];
/// Bytes that are read at once.
const WINDOW: usize = 1 << 20;

/// Addresses of borrowed instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BorrowedCode {
    /// `syscall; ret`.
    pub(super) syscall: u64,
    /// The stub that returns from signal handlers.
    pub(super) signal_return: u64,
}

impl BorrowedCode {
    /// Searches the executable mappings.
    pub(super) fn find(mappings: &[Mapping], memory: &ProcessMemory) -> Option<BorrowedCode> {
        let mut syscall = None;
        let mut signal_return = None;
        let mut window = vec![0; WINDOW];
        // The page of legacy calls is emulated and cannot be read.
        let mut executable: Vec<&Mapping> =
            mappings.iter().filter(|mapping| mapping.executable && mapping.path != "[vsyscall]").collect();
        // The C library has both; the program itself may be large.
        executable.sort_by_key(|mapping| !(mapping.path.contains("libc") || mapping.path.contains("musl")));
        for mapping in executable {
            let mut at = mapping.range.start;
            while at < mapping.range.end {
                let wanted = (mapping.range.end - at).min(WINDOW as u64) as usize;
                let read = memory.read(at, &mut window[..wanted]);
                let bytes = &window[..read];
                let found = |needle: &[u8]| {
                    bytes
                        .windows(needle.len())
                        .position(|part| part == needle)
                        .map(|offset| at + offset as u64)
                };
                syscall = syscall.or_else(|| found(SYSCALL_RETURN));
                signal_return =
                    signal_return.or_else(|| SIGNAL_RETURN.iter().find_map(|needle| found(needle)));
                if let (Some(syscall), Some(signal_return)) = (syscall, signal_return) {
                    return Some(BorrowedCode { syscall, signal_return });
                }
                // A needle may begin at the end of a window.
                at += if read == WINDOW { (WINDOW - 16) as u64 } else { wanted as u64 };
            }
        }
        None
    }

    /// Whether the instructions are still there.
    pub(super) fn is_intact(&self, memory: &ProcessMemory) -> bool {
        let begins_with = |at: u64, bytes: &[u8]| {
            let mut there = [0; 16];
            memory.read(at, &mut there[..bytes.len()]) == bytes.len() && there.starts_with(bytes)
        };
        begins_with(self.syscall, SYSCALL_RETURN)
            && SIGNAL_RETURN.iter().any(|bytes| begins_with(self.signal_return, bytes))
    }
}
