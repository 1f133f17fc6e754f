//! From the tables of this process to a recording with names.

use super::running;
use stackglass_heap::{LeftOut, tables};
use stackglass_inspect::allocation_groups::{self, Identities, RateCounts};
use stackglass_profile::{Frame, MemoryPoint, Nanos, Recorder, Recording, RecordingInfo, StackId};
use stackglass_wire::heap::HeapTables;
use std::collections::HashMap;
use std::fs;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

/// Everything recorded so far, with names and types, for a [`Report`](crate::Report), a view of
/// [`Metric`](crate::Metric)s, or a file. Its allocations are groups: counts by stack, thread, async task and size, of what was
/// allocated, freed, alive now, and alive at the peak.
///
/// It may be called while a recording is running. What it allocates itself is not recorded.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();
/// use stackglass::allocs;
/// use stackglass::model::AllocationKind;
///
/// # fn main() {
/// let kept = allocs::profile!(sample_rate = 1.0, vec![1u64; 500]);
/// let total = allocs::recording().allocations.total(AllocationKind::Block);
/// assert_eq!((total.bytes, total.live_bytes()), (4000, 4000));
/// drop(kept);
/// let total = allocs::recording().allocations.total(AllocationKind::Block);
/// assert_eq!((total.bytes, total.live_bytes(), total.peak_bytes), (4000, 0, 4000));
/// # }
/// ```
pub fn recording() -> Recording {
    let _left_out = LeftOut::new();
    Snapshot::take().recording
}

/// A recording, and what the numbers in the tables are in it.
pub(super) struct Snapshot {
    pub recording: Recording,
    pub identities: Identities,
    /// The stacks of allocations without the frames of the allocator.
    callers: HashMap<StackId, StackId>,
}

impl Snapshot {
    /// Reads the tables as they are now.
    pub fn take() -> Snapshot {
        let is_running = running::state().is_running();
        let mut recorder = Recorder::new(info());
        let tables = tables();
        let identities = match &tables {
            Some(tables) => {
                let page = tables.page();
                let end = match page.end_ns.load(Relaxed) {
                    0 => now(),
                    end => end,
                };
                let info = recorder.info_mut();
                info.start = Nanos(page.begin_ns.load(Relaxed));
                info.wall = Nanos(end.saturating_sub(info.start.0));
                allocation_groups::add(
                    tables,
                    RateCounts::OfRecorded,
                    Nanos(end),
                    memory(tables),
                    &mut recorder,
                )
            }
            None => Identities::default(),
        };
        let mut recording = recorder.into_recording();
        name_threads(&mut recording);
        let options = stackglass_symbols::Options {
            // What other threads allocate would be recorded.
            threads: is_running.then_some(1),
            ..Default::default()
        };
        stackglass_symbols::symbolize(&mut recording, &options, &mut |_| {});
        let callers = leave_out_the_allocator(&mut recording);
        Snapshot { recording, identities, callers }
    }

    /// A stack of an allocation without the frames of the allocator.
    pub fn caller(&self, stack: StackId) -> StackId {
        self.callers.get(&stack).copied().unwrap_or(stack)
    }
}

fn now() -> u64 {
    stackglass_heap::own_recording::now()
}

fn info() -> RecordingInfo {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    RecordingInfo {
        command: std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect(),
        started: since.as_nanos() as u64,
        writer: concat!("stackglass ", env!("CARGO_PKG_VERSION")).to_string(),
        ..RecordingInfo::default()
    }
}

/// Live and resident bytes at this moment.
fn memory(tables: &HeapTables) -> Vec<MemoryPoint> {
    let live_bytes = tables.page().live_bytes().load(Relaxed).max(0) as u64;
    vec![MemoryPoint { clock: Nanos(now()), live_bytes, resident_bytes: resident_bytes().unwrap_or(0) }]
}

fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

/// Threads that still exist have names.
fn name_threads(recording: &mut Recording) {
    for thread in &mut recording.threads {
        if let Ok(name) = fs::read_to_string(format!("/proc/self/task/{}/comm", thread.tid)) {
            thread.name = name.trim_end().into();
        }
    }
}

/// Removes the innermost frames that belong to the allocator, from stacks of allocations only. Returns the new stacks.
fn leave_out_the_allocator(recording: &mut Recording) -> HashMap<StackId, StackId> {
    let mut callers: HashMap<StackId, StackId> = HashMap::new();
    for index in 0..recording.allocations.groups.len() {
        let stack = recording.allocations.groups[index].stack;
        let caller = match callers.get(&stack) {
            Some(caller) => *caller,
            None => {
                let caller = caller_of_the_allocator(recording, stack);
                if let Some(name) = recording.symbols.allocated_type(stack).cloned() {
                    recording.symbols.set_allocated_type(caller, name);
                }
                callers.insert(stack, caller);
                caller
            }
        };
        recording.allocations.groups[index].stack = caller;
    }
    callers
}

fn caller_of_the_allocator(recording: &mut Recording, mut stack: StackId) -> StackId {
    while let Some((caller, location)) = recording.stacks.frame(stack) {
        let frames = recording.symbols.frame_indices(location).len();
        let outside: Vec<Frame> =
            recording.symbols.frames_of(location).skip_while(|frame| is_allocator(frame)).cloned().collect();
        if outside.is_empty() && frames > 0 && caller.0 != 0 {
            stack = caller;
            continue;
        }
        if outside.len() < frames && !outside.is_empty() {
            // Only calls of the allocator return to this location.
            recording.symbols.set(location, outside);
        }
        break;
    }
    stack
}

/// Entry points that the compiler adds, and allocators.
fn is_allocator(frame: &Frame) -> bool {
    let is_shim = |name: &str| name.starts_with("__rust_") || name.starts_with("__rg_");
    *frame.krate == *"stackglass_heap"
        || frame.func.rsplit("::").next().is_some_and(is_shim)
        || frame.func.contains("GlobalAlloc>::")
        || frame.spec.as_deref().is_some_and(|full| full.contains("GlobalAlloc>::"))
}
