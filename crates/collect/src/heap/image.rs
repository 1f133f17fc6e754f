//! A frozen process, as the crate `heapgraph` reads it.

use stackglass_attach::frozen::{
    FrozenCopy, FrozenThread, Mapping as FrozenMapping, ProcessMemory, StoppedProcess,
};
use stackglass_heapgraph::image::{Image, Mapping, Memory, Thread, ThreadRegisters};

struct FrozenMemory(ProcessMemory);

impl Memory for FrozenMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.0.read(address, into)
    }

    fn resident(&self, address: u64, pages: &mut [bool]) {
        self.0.resident(address, pages);
    }
}

/// The image of a copy. Its memory can be read as long as the copy lives.
pub(super) fn of_copy(copy: &FrozenCopy) -> Image {
    image(copy.pid(), copy.mappings(), copy.threads(), copy.memory())
}

/// The image of a process that is stopped. Its memory can be read as long as it is.
pub(super) fn of_stopped(process: &StoppedProcess) -> Image {
    image(process.pid(), process.mappings(), process.threads(), process.memory())
}

fn image(pid: u32, mappings: &[FrozenMapping], threads: &[FrozenThread], memory: &ProcessMemory) -> Image {
    let mapping = |mapping: &FrozenMapping| Mapping {
        range: mapping.range.clone(),
        readable: mapping.readable,
        writable: mapping.writable,
        executable: mapping.executable,
        shared: mapping.shared,
        offset: mapping.offset,
        inode: mapping.inode,
        path: mapping.path.clone(),
    };
    let thread = |thread: &FrozenThread| Thread {
        tid: thread.tid,
        name: thread.name.clone(),
        registers: thread.registers.map(ThreadRegisters),
    };
    Image {
        pid,
        mappings: mappings.iter().map(mapping).collect(),
        threads: threads.iter().map(thread).collect(),
        memory: Box::new(FrozenMemory(memory.clone())),
    }
}
