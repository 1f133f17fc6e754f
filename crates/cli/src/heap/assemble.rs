//! `stackglass heap assemble PREFIX [OUT]`: one file of four part files.

use super::open::Progress;
use crate::failure::{Failure, Outcome};
use crate::input::is_stream;
use crate::message;
use clap::Args;
use stackglass_files::heapsnapshot::{self, AssembleOptions, HeapSnapshotError};
use stackglass_report::numbers::{bytes_text, counted};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass heap assemble app.heapsnapshot     of app.heapsnapshot.nodes, …
  stackglass heap assemble parts/app app.heapsnapshot
  stackglass heap assemble app - | gzip > app.heapsnapshot.gz
  stackglass heap assemble --group small app    for more than 10 million blocks

The parts are those of `stackglass heap take --streaming`, or of Julia's
`take_heap_snapshot(…; streaming=true)`. They stay.";

/// Make one .heapsnapshot of the four part files of a streamed snapshot.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// The path of the part files without .nodes, .edges, .strings and .metadata.json
    prefix: PathBuf,

    /// The file to write, or - for stdout [default: the prefix]
    out: Option<PathBuf>,

    /// Make one node of all blocks of one type that one block holds and that hold nothing, for viewers that cannot hold all
    #[arg(long, value_name = "BLOCKS")]
    group: Option<Group>,
}

/// Which blocks become groups.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(super) enum Group {
    /// Blocks that hold no others
    Small,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let out = flags.out.as_ref().unwrap_or(&flags.prefix);
    let options = AssembleOptions { group_small: matches!(flags.group, Some(Group::Small)) };
    let progress = Progress::new();
    progress.step(&format!("assembling {}", out.display()));
    if is_stream(out) {
        drop(progress);
        let mut stdout = BufWriter::new(std::io::stdout().lock());
        heapsnapshot::assemble_to(&flags.prefix, &mut stdout, options).map_err(|error| match error {
            HeapSnapshotError::System { source, .. } if source.kind() == ErrorKind::BrokenPipe => {
                source.into()
            }
            error => Failure::new(error),
        })?;
        stdout.flush()?;
        return Ok(0);
    }
    let assembled = heapsnapshot::assemble_with(&flags.prefix, out, options).map_err(Failure::new)?;
    drop(progress);
    message::print(&format!(
        "{}: {}, {}, {}",
        out.display(),
        counted(assembled.nodes, "node", "nodes"),
        counted(assembled.edges, "edge", "edges"),
        bytes_text(assembled.self_size)
    ));
    Ok(0)
}
