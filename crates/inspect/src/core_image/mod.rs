//! The core image of a frozen process, or of the own one (`own`).

mod not_copied;
pub(crate) mod own;

use not_copied::NotCopied;
use stackglass_attach::frozen::{FrozenProcess, FrozenThread, ProcessMemory};
use stackglass_process_view::core_image::{CoreImage, Memory, Thread, ThreadRegisters};

struct FrozenMemory {
    memory: ProcessMemory,
    not_copied: NotCopied,
}

impl Memory for FrozenMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        match self.not_copied.contains(address) {
            true => self.not_copied.read(address, into),
            false => self.memory.read(address, into),
        }
    }

    fn resident(&self, address: u64, pages: &mut [bool]) {
        match self.not_copied.contains(address) {
            true => pages.fill(true),
            false => self.memory.resident(address, pages),
        }
    }
}

/// The core image of a process. Its memory can be read as long as that value lives.
pub fn from_frozen(process: &FrozenProcess) -> CoreImage {
    let thread = |thread: &FrozenThread| Thread {
        tid: thread.tid,
        name: thread.name.clone(),
        registers: thread.registers.map(ThreadRegisters),
    };
    let not_copied = match process.is_copy() {
        true => NotCopied::find(process.pid(), process.mappings(), process.given_back()),
        false => NotCopied::default(),
    };
    let mut mappings = process.mappings().to_vec();
    mappings.extend_from_slice(&not_copied.excluded);
    mappings.sort_by_key(|mapping| mapping.range.start);
    CoreImage {
        pid: process.pid(),
        executable: stackglass_procfs::process::executable(process.pid()).display().to_string(),
        mappings,
        threads: process.threads().iter().map(thread).collect(),
        memory: Box::new(FrozenMemory { memory: process.memory().clone(), not_copied }),
    }
}
