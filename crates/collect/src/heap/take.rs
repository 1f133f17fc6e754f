//! From a running process to a file.

use super::graph::{self, SiteName};
use super::{HeapError, image, memory};
use stackglass_attach::frozen::{self, FrozenProcess, Pause};
use stackglass_files::heapsnapshot::{self, AssembleOptions, PartsWriter};
use stackglass_heapgraph::graph::Totals;
use stackglass_symbols::Options;
use std::path::Path;
use std::time::Instant;

/// How a heap snapshot is taken.
#[derive(Clone, Debug, Default)]
pub struct TakeOptions {
    /// Give all nodes the size 1, so that retained sizes are numbers of nodes.
    pub all_one: bool,
    /// Name strings by their text. Without it, no contents of the program are in the snapshot.
    pub with_texts: bool,
    /// Leave the four part files, with the output as their prefix, instead of one file.
    pub streaming: bool,
    /// Make one node of all blocks of one type that one block holds and that hold nothing.
    pub group_small: bool,
    /// Read the process itself, which stays stopped meanwhile, instead of a copy.
    pub stop: bool,
    /// How names and layouts are found.
    pub symbols: Options,
}

/// What a heap snapshot contains, and what it cost.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// Sums.
    pub totals: Totals,
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
    site_name: SiteName<'_>,
    output: &Path,
) -> Result<Taken, HeapError> {
    let result = parts(pid, options, site_name, output).and_then(|taken| {
        if !options.streaming {
            let options = AssembleOptions { group_small: options.group_small };
            heapsnapshot::assemble_with(output, output, options)?;
        }
        Ok(taken)
    });
    if result.is_err() || !options.streaming {
        let _ = heapsnapshot::cleanup(output);
    }
    result
}

/// Writes the part files. When it returns, the process runs, and its copy has ended.
fn parts(
    pid: u32,
    options: &TakeOptions,
    site_name: SiteName<'_>,
    output: &Path,
) -> Result<Taken, HeapError> {
    let freeze = if options.stop { FrozenProcess::stop } else { FrozenProcess::copy };
    memory::map_large_allocations();
    // A program is not stopped for an output that cannot be written.
    let mut parts = PartsWriter::create(output)?;
    let start = Instant::now();
    let process = freeze(pid, &frozen::Options::default())?;
    let written = graph::write(&image::of(&process), options, site_name, &mut parts);
    // What was read from a process that has ended may be incomplete, or nothing.
    if !process.is_alive() {
        return Err(HeapError::Ended(pid));
    }
    let written = written?;
    parts.finish()?;
    let mut pause = process.pause();
    if options.stop {
        pause.whole = start.elapsed();
    }
    Ok(Taken { totals: written.totals, pause, remarks: written.remarks })
}
