//! Reads code and unwind rules of another process, and caches them.
//!
//! Only parts of files that are mapped and never written are cached. They do not change while their module is mapped, and
//! the cache is cleared when a module is unmapped. The walker then needs no system calls, which matters while a thread is
//! stopped.

use stackglass_procfs::PageCache;
use stackglass_unwind::memory::{read_file, read_process};
use stackglass_unwind::{Module, ModuleMemory};

/// Most cached pages: 128 MiB.
const MOST_PAGES: usize = 32 << 10;

/// Reads modules of one process.
pub(crate) struct ModuleReader {
    /// The thread through which memory is read.
    tid: u32,
    pages: PageCache,
}

impl ModuleReader {
    /// Reads through a thread of the process.
    pub(crate) fn new(tid: u32) -> ModuleReader {
        ModuleReader { tid, pages: PageCache::new(MOST_PAGES) }
    }

    /// Reads through another thread from now on. Pages could not be read while the one before was ending.
    pub(crate) fn read_through(&mut self, tid: u32) {
        self.tid = tid;
        self.clear();
    }

    /// Clears the cache.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
    }
}

impl ModuleMemory for ModuleReader {
    fn read(&self, module: &Module, address: u64, into: &mut [u8]) -> usize {
        // Code that was generated at run time may change.
        if module.unwind_data().is_empty() && module.build_id().is_empty() {
            return read_process(self.tid as i32, address, into);
        }
        self.pages.read(address, into, |at, into: &mut [u8]| read_file(self.tid as i32, at, into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackglass_unwind::modules::ProgramHeader;

    #[test]
    fn memory_is_read_right_with_and_without_the_cache() {
        let reader = ModuleReader::new(std::process::id());
        let bytes: Vec<u8> = (0..100_000u32).map(|i| (i * 7 % 251) as u8).collect();
        let at = bytes.as_ptr().addr() as u64;
        let header = ProgramHeader { kind: 1, flags: 5, address: 0, size: 10 };
        let generated = Module::from_program_headers(0, std::iter::once(header), |_, _| 0).unwrap();
        let from_file = generated.with_eh_frame(0..10);
        for module in [&generated, &from_file] {
            for (from, len) in [(0, 1), (5, 40_000), (16_380, 10), (99_990, 10)] {
                let mut into = vec![0; len];
                assert_eq!(reader.read(module, at + from as u64, &mut into), len);
                assert_eq!(into, bytes[from..from + len]);
            }
            let mut into = [0; 8];
            assert_eq!(reader.read(module, 0, &mut into), 0);
            assert_eq!(reader.read(module, u64::MAX - 3, &mut into), 0);
        }
    }
}
