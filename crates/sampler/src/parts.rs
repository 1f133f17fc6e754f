//! The parts of the sampler, each with one duty.

use crate::event_writer::EventWriter;
use crate::memory::Memory;
use crate::module_events::LoadedModules;
use crate::orders::Orders;
use crate::schedule::Schedule;
use crate::signals::call_ends::SyscallInstructions;
use crate::signals::open_timers::Timers;
use crate::signals::pending::PendingSignals;
use crate::sleep::reader::SleepReader;
use crate::tasks::choice::Walltime;
use crate::tasks::names::TaskNames;
use crate::threads::folder::{ScanBuffer, ThreadFolder};
use crate::threads::open_files::OpenFiles;
use crate::threads::recently_exited::RecentlyExited;
use crate::threads::table::ThreadTable;
use stackglass_host::stream_memory::StreamMemory;
use stackglass_host::task::Polled;
use stackglass_host::{Guest, SlotIndex};
use stackglass_proc_text::ThreadState;
use stackglass_wire::stream::Writer;
use stackglass_wire::{ControlPage, Counter};

/// The pages that the sampler shares with the handler, the hooks and the reader of the stream.
#[derive(Clone, Copy)]
pub(crate) struct Shared {
    pub(crate) guest: &'static Guest,
    pub(crate) control: &'static ControlPage,
    /// Kernel id of the sampler's own thread.
    pub(crate) tid: u32,
}

impl Shared {
    /// Adds one to a counter.
    pub(crate) fn count(self, counter: Counter) {
        self.control.counters.add(counter, 1);
    }
}

/// Checks that are due at the next tick, because something was seen that asks for them.
#[derive(Default)]
pub(crate) struct DueChecks {
    /// List all threads.
    pub(crate) scan: bool,
    /// The scan that finds the threads that were there before sampling began is still to come.
    pub(crate) first_scan: bool,
    /// Look for new modules: a walk met an address in no module.
    pub(crate) modules: bool,
}

/// All parts.
pub(crate) struct Parts {
    pub(crate) shared: Shared,
    pub(crate) schedule: Schedule,
    pub(crate) threads: &'static mut ThreadTable,
    pub(crate) exited: &'static mut RecentlyExited,
    pub(crate) folder: ThreadFolder,
    pub(crate) scan_buffer: &'static mut ScanBuffer,
    pub(crate) files: &'static mut OpenFiles,
    pub(crate) signals: &'static mut PendingSignals,
    pub(crate) timers: &'static mut Timers,
    pub(crate) sleep: &'static mut SleepReader,
    pub(crate) syscalls: &'static mut SyscallInstructions,
    pub(crate) modules: &'static mut LoadedModules,
    pub(crate) task_names: TaskNames,
    pub(crate) walltime: Walltime,
    pub(crate) events: EventWriter,
    pub(crate) due: DueChecks,
    /// The kernel tells the state of threads.
    pub(crate) can_read_state: bool,
}

impl Parts {
    /// The parts before the first tick.
    pub(crate) fn new(
        shared: Shared,
        stream: &StreamMemory,
        memory: &'static mut Memory,
        folder: ThreadFolder,
        orders: &Orders,
    ) -> Parts {
        let Memory { threads, exited, scan_buffer, files, signals, timers, sleep, syscalls, modules } =
            memory;
        let can_read_state = folder.open(shared.tid, b"syscall").is_some();
        timers.begin(&folder, shared.tid, orders.walltime());
        Parts {
            shared,
            schedule: Schedule::new(orders.delay()),
            threads,
            exited,
            folder,
            scan_buffer,
            files,
            signals,
            timers,
            sleep,
            syscalls,
            modules,
            task_names: TaskNames::default(),
            walltime: Walltime::new(orders.walltime()),
            events: EventWriter::new(Writer::new(stream.control, stream.ring), orders.walltime()),
            due: DueChecks { scan: true, first_scan: false, modules: true },
            can_read_state,
        }
    }

    /// What the kernel says of a thread.
    pub(crate) fn state(&mut self, index: SlotIndex) -> ThreadState {
        if !self.can_read_state {
            return ThreadState::Unknown;
        }
        self.files.state(self.threads, &self.folder, index)
    }

    /// The task that a sleeping thread polls. Cells are linked first: the thread may have claimed its cell since this tick began, and
    /// this observation decides for as long as it sleeps.
    pub(crate) fn polled(&mut self, index: SlotIndex) -> Polled {
        self.task_names.link(self.shared.guest, self.threads);
        self.shared.guest.slot(index).polled()
    }

    /// How long a thread has waited for CPUs, by the kernel's account, ns.
    pub(crate) fn waited(&mut self, index: SlotIndex) -> Option<u64> {
        self.files.sched_stat(self.threads, &self.folder, index).map(|stat| stat.waited)
    }

    /// How often a thread has got a CPU.
    pub(crate) fn turns(&mut self, index: SlotIndex) -> Option<u64> {
        self.files.sched_stat(self.threads, &self.folder, index).map(|stat| stat.turns)
    }
}
