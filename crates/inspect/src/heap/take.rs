//! From a running process to a file, or to a graph in memory.

use super::error::HeapError;
use super::graph::{self, SiteFrames};
use super::in_allocator;
use super::memory;
use super::options::TakeOptions;
use crate::{complete, core_image};
use stackglass_attach::frozen::{self, FreezeError, FrozenProcess, Pause};
use stackglass_files::heapsnapshot::{self, AssembleOptions, HeapSnapshotError, PartsWriter};
use stackglass_heapgraph::graph::Totals;
use stackglass_procfs::ImageKey;
use stackglass_profile::ReachedBlocks;
use stackglass_profile::heap_graph::{HeapGraph, HeapGraphBuilder, HeapGraphSink};
use std::path::Path;
use std::time::{Duration, Instant};

/// Attempts more for a process that executes another program meanwhile.
const EXEC_ATTEMPTS: u32 = 10;

/// Attempts for a process with a thread inside the allocator, and the longest time for which all but the last may hold it up.
const ALLOCATOR_ATTEMPTS: u32 = 30;
const LONGEST_PAUSES: Duration = Duration::from_millis(100);

/// What it means that there is still one.
const IN_ALLOCATOR: &str = "a thread was inside malloc or free whenever the process was stopped: memory that was being freed may count as leaked";

/// What a heap snapshot contains, and what it cost.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// Sums.
    pub totals: Totals,
    /// Nodes in the file: fewer than in the sums if small blocks are grouped.
    pub nodes: u64,
    /// Which blocks something holds, by the stack that allocated them, if that is wanted and known.
    pub reached: Vec<ReachedBlocks>,
    /// How long the process was held up.
    pub pause: Pause,
    /// Remarks for the user.
    pub remarks: Vec<String>,
}

/// Takes a heap snapshot of process `pid`. `output` is the file, or the prefix of the part files. An incomplete file never has that name.
///
/// # Errors
/// [`HeapError`].
pub fn take(
    pid: u32,
    options: &TakeOptions,
    site_frames: SiteFrames<'_>,
    output: &Path,
) -> Result<Taken, HeapError> {
    with_retries(pid, || whole(options, output, |parts| write_frozen(pid, options, site_frames, parts)))
}

/// Makes the graph of process `pid` in memory.
///
/// # Errors
/// [`HeapError`].
pub fn take_graph(
    pid: u32,
    options: &TakeOptions,
    site_frames: SiteFrames<'_>,
) -> Result<(HeapGraph, Taken), HeapError> {
    with_retries(pid, || {
        let mut builder = HeapGraphBuilder::default();
        let taken = write_frozen(pid, options, site_frames, &mut builder)?;
        Ok((builder.finish(), taken))
    })
}

fn with_retries<T>(pid: u32, once: impl Fn() -> Result<T, HeapError>) -> Result<T, HeapError> {
    let mut attempts = EXEC_ATTEMPTS;
    loop {
        let image = ImageKey::read(pid);
        match once() {
            // The copy of a program ends when the program executes another.
            Err(HeapError::CopyEnded(_) | HeapError::Freeze(FreezeError::Gone { .. }))
                if attempts > 0 && has_executed(pid, image) =>
            {
                attempts -= 1;
            }
            result => return result,
        }
    }
}

/// Whether a process has executed another program since it had this image.
fn has_executed(pid: u32, image: Option<ImageKey>) -> bool {
    image.is_some() && ImageKey::read(pid).is_some_and(|now| Some(now) != image)
}

/// Freezes a process, and writes its graph.
fn write_frozen<S: HeapGraphSink>(
    pid: u32,
    options: &TakeOptions,
    site_frames: SiteFrames<'_>,
    sink: &mut S,
) -> Result<Taken, HeapError>
where
    HeapError: From<S::Error>,
{
    let Frozen { process, start, pause_before, is_in_allocator } = freeze(pid, options)?;
    let mut taken = write(process, options, site_frames, sink)?;
    if options.stop {
        taken.pause.whole = start.elapsed();
    }
    taken.pause.whole += pause_before;
    if is_in_allocator {
        taken.remarks.push(IN_ALLOCATOR.to_owned());
    }
    Ok(taken)
}

/// A process that was frozen once or several times.
struct Frozen {
    process: FrozenProcess,
    /// When it was frozen last.
    start: Instant,
    /// How long it was held up before.
    pause_before: Duration,
    /// A thread stands inside the allocator, whose lists may be incomplete.
    is_in_allocator: bool,
}

/// Freezes a process. If a thread stands inside the allocator, the process goes on, and is frozen again.
fn freeze(pid: u32, options: &TakeOptions) -> Result<Frozen, HeapError> {
    let freeze = if options.stop { FrozenProcess::stop } else { FrozenProcess::copy };
    let frozen = frozen::Options { interrupt_calls: options.interrupt_calls, ..Default::default() };
    let mut pause_before = Duration::ZERO;
    let mut attempts = ALLOCATOR_ATTEMPTS;
    loop {
        let start = Instant::now();
        let process = freeze(pid, &frozen)?;
        let is_in_allocator = in_allocator::is_in_allocator(&process, &options.symbols);
        attempts -= 1;
        if !is_in_allocator || attempts == 0 || pause_before > LONGEST_PAUSES {
            return Ok(Frozen { process, start, pause_before, is_in_allocator });
        }
        let pause = process.pause().whole;
        drop(process);
        pause_before += if options.stop { start.elapsed() } else { pause };
    }
}

/// Makes a heap snapshot of a process that is already frozen. `output` is as in [`take`].
///
/// # Errors
/// [`HeapError`].
pub fn save(
    process: FrozenProcess,
    options: &TakeOptions,
    site_frames: SiteFrames<'_>,
    output: &Path,
) -> Result<Taken, HeapError> {
    whole(options, output, |parts| write(process, options, site_frames, parts))
}

/// Makes one file of the parts that `write_parts` writes, unless parts are wanted.
fn whole(
    options: &TakeOptions,
    output: &Path,
    write_parts: impl FnOnce(&mut PartsWriter) -> Result<Taken, HeapError>,
) -> Result<Taken, HeapError> {
    // A program is not stopped for an output that cannot be written.
    let mut parts = PartsWriter::create(output).map_err(|error| named(error, output))?;
    let mut taken = write_parts(&mut parts)?;
    if options.streaming {
        parts.finish().inspect_err(|_| drop(heapsnapshot::cleanup(output)))?;
    } else {
        let options = AssembleOptions { group_small: options.group_small };
        taken.nodes = parts.assemble(output, options).map_err(|error| named(error, output))?.nodes;
    }
    Ok(taken)
}

/// Names the file that the user has named, instead of a part of it.
fn named(error: HeapSnapshotError, output: &Path) -> HeapSnapshotError {
    match error {
        HeapSnapshotError::System { doing, source, .. } => {
            HeapSnapshotError::System { doing, path: output.to_owned(), source }
        }
        error => error,
    }
}

/// Writes the graph. When it returns, the process runs, and its copy has ended.
fn write<S: HeapGraphSink>(
    process: FrozenProcess,
    options: &TakeOptions,
    site_frames: SiteFrames<'_>,
    sink: &mut S,
) -> Result<Taken, HeapError>
where
    HeapError: From<S::Error>,
{
    memory::map_large_allocations();
    let written = graph::write(&core_image::from_frozen(&process), options, site_frames, sink);
    complete::check(&process, process.pid(), HeapError::Ended, HeapError::CopyEnded)?;
    let written = written?;
    let nodes = written.totals.nodes;
    let graph::Written { totals, reached, remarks } = written;
    Ok(Taken { totals, nodes, reached, pause: process.pause(), remarks })
}
