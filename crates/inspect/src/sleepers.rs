//! The threads of a process that sleep, read where they stand: nothing is stopped.

use stackglass_attach::frozen::FrozenThread;
use stackglass_proc_text::{Call, SchedStat, Sleep, ThreadState};
use stackglass_process_view::core_image::ThreadRegisters;
use stackglass_procfs::threads::{self, Files};

/// A thread that sleeps.
pub(crate) struct Sleeper {
    /// What is known of it.
    pub thread: FrozenThread,
    /// The system call in which it sleeps.
    pub call: Call,
    /// How much it has run.
    pub ran: SchedStat,
}

impl Sleeper {
    /// A thread, if it sleeps in a system call.
    pub fn read(pid: u32, tid: u32) -> Option<Sleeper> {
        let mut files = Files::new(pid, tid);
        let ran = files.stat()?;
        let ThreadState::Asleep(Sleep { place, call: Some(call) }) = files.state() else { return None };
        // It was asleep all the time between the two reads.
        if files.stat() != Some(ran) {
            return None;
        }
        let registers = ThreadRegisters::of_sleeper(place.pc, place.sp);
        let name = threads::name(pid, tid).unwrap_or_default();
        Some(Sleeper { thread: FrozenThread { tid, name, registers: Some(registers.0) }, call, ran })
    }

    /// Whether it has slept on until now.
    pub fn is_still(&self, pid: u32) -> bool {
        Files::new(pid, self.thread.tid).stat() == Some(self.ran)
    }
}
