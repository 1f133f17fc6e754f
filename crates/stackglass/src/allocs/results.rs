//! Single allocations.

use super::recording::Snapshot;
use stackglass_heap::{LeftOut, read_records, tables};
use stackglass_profile::{Frame, Recording, StackId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The recorded allocations.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AllocResults {
    /// Thread by thread, in the order of time for each.
    pub allocs: Vec<Alloc>,
    /// Allocations that were recorded and are in [`recording`](super::recording()), but found no room here.
    pub lost: u64,
    /// Bytes of memory that the records take, before they are expanded to this.
    pub bytes: u64,
}

/// One recorded allocation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Alloc {
    /// Its type as a Rust programmer writes it, [`UNKNOWN_TYPE`](super::UNKNOWN_TYPE) if it is not known.
    pub type_name: Arc<str>,
    /// Its stack, innermost frame first, inlined functions included. Records of one stack share it.
    pub stacktrace: Arc<[Frame]>,
    /// The requested size in bytes.
    pub size: u64,
    /// The kernel's id of the thread.
    pub thread: u32,
    /// The async task that the thread polled, 0 for none.
    pub task: u64,
    /// CLOCK_MONOTONIC, ns.
    pub timestamp: u64,
    /// The address.
    pub address: u64,
}

/// Type, innermost frame, and size: `Alloc(String, [main at main.rs:7, ...], 24)`.
impl fmt::Display for Alloc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Alloc({}, [", self.type_name)?;
        if let Some(frame) = self.stacktrace.first() {
            write!(f, "{}", frame.func)?;
            if frame.line > 0 {
                write!(f, " at {}:{}", frame.file.rsplit('/').next().unwrap_or(""), frame.line)?;
            }
            if self.stacktrace.len() > 1 {
                f.write_str(", ...")?;
            }
        }
        write!(f, "], {})", self.size)
    }
}

/// All single allocations that were recorded since the last [`clear`](super::clear), also those that an earlier call returned.
///
/// It may be called while a recording is running. What it allocates itself is not recorded.
pub fn fetch() -> AllocResults {
    let _left_out = LeftOut::new();
    let Some(tables) = tables() else { return AllocResults::default() };
    let mut records = Vec::new();
    // Before the tables, so that they have all counters.
    let sums = read_records(&mut |record| records.push(record));
    let snapshot = Snapshot::take();
    let mut known: HashMap<StackId, (Arc<str>, Arc<[Frame]>)> = HashMap::new();
    let unknown_type: Arc<str> = super::UNKNOWN_TYPE.into();
    let allocs = records.into_iter().map(|record| {
        let counter = tables.counter(record.counter);
        let (stack, thread) = snapshot.identities.of(counter);
        let stack = snapshot.caller(stack);
        let (type_name, stacktrace) = known.entry(stack).or_insert_with(|| {
            let name = snapshot.recording.symbols.allocated_type(stack).unwrap_or(&unknown_type);
            (name.clone(), frames(&snapshot.recording, stack))
        });
        let tid = |number: u32| snapshot.recording.threads.get(number.checked_sub(1)? as usize);
        Alloc {
            type_name: type_name.clone(),
            stacktrace: stacktrace.clone(),
            size: record.size,
            thread: tid(thread.0).map_or(0, |thread| thread.tid),
            task: counter.task.load(std::sync::atomic::Ordering::Relaxed),
            timestamp: record.clock,
            address: record.address,
        }
    });
    AllocResults { allocs: allocs.collect(), lost: sums.lost, bytes: sums.bytes }
}

fn frames(recording: &Recording, stack: StackId) -> Arc<[Frame]> {
    recording.stacks.walk(stack).flat_map(|location| recording.symbols.frames_of(location).cloned()).collect()
}
