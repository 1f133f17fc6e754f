//! From a running process to a file.

use super::graph::{self, SiteName};
use super::{HeapError, image};
use stackglass_attach::frozen::{self, FrozenCopy, Pause, StoppedProcess};
use stackglass_files::heapsnapshot::{self, AssembleOptions, PartsWriter};
use stackglass_heapgraph::graph::Totals;
use stackglass_heapgraph::image::Image;
use stackglass_symbols::Options;
use std::path::Path;

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
    if options.stop {
        let process = StoppedProcess::take(pid, &frozen::Options::default())?;
        let frozen = Frozen {
            image: image::of_stopped(&process),
            pause: process.pause(),
            is_alive: &|| process.is_alive(),
        };
        return frozen.write(options, site_name, output);
    }
    let copy = FrozenCopy::take(pid, &frozen::Options::default())?;
    let frozen = Frozen { image: image::of_copy(&copy), pause: copy.pause(), is_alive: &|| copy.is_alive() };
    frozen.write(options, site_name, output)
}

struct Frozen<'a> {
    image: Image,
    pause: Pause,
    /// Whether the memory that was read until now was all there.
    is_alive: &'a dyn Fn() -> bool,
}

impl Frozen<'_> {
    fn write(
        &self,
        options: &TakeOptions,
        site_name: SiteName<'_>,
        output: &Path,
    ) -> Result<Taken, HeapError> {
        let result = self.write_parts(options, site_name, output);
        if result.is_err() || !options.streaming {
            let _ = heapsnapshot::cleanup(output);
        }
        result
    }

    fn write_parts(
        &self,
        options: &TakeOptions,
        site_name: SiteName<'_>,
        output: &Path,
    ) -> Result<Taken, HeapError> {
        let mut parts = PartsWriter::create(output)?;
        let written = graph::write(&self.image, options, site_name, &mut parts)?;
        if !(self.is_alive)() {
            return Err(HeapError::Ended(self.image.pid));
        }
        parts.finish()?;
        if !options.streaming {
            let options = AssembleOptions { group_small: options.group_small };
            heapsnapshot::assemble_with(output, output, options)?;
        }
        Ok(Taken { totals: written.totals, pause: self.pause, remarks: written.remarks })
    }
}
