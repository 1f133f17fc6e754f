//! A frozen process, as the crate `heapgraph` reads it.

use stackglass_attach::frozen::{FrozenProcess, FrozenThread, ProcessMemory};
use stackglass_heapgraph::image::{Image, Memory, Thread, ThreadRegisters};

struct FrozenMemory(ProcessMemory);

impl Memory for FrozenMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.0.read(address, into)
    }

    fn resident(&self, address: u64, pages: &mut [bool]) {
        self.0.resident(address, pages);
    }
}

/// The image of a process. Its memory can be read as long as that value lives.
pub(super) fn of(process: &FrozenProcess) -> Image {
    let thread = |thread: &FrozenThread| Thread {
        tid: thread.tid,
        name: thread.name.clone(),
        registers: thread.registers.map(ThreadRegisters),
    };
    Image {
        pid: process.pid(),
        mappings: process.mappings().to_vec(),
        threads: process.threads().iter().map(thread).collect(),
        memory: Box::new(FrozenMemory(process.memory().clone())),
    }
}
