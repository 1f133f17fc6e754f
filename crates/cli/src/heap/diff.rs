//! `stackglass heap diff A B [C]`: what grew from snapshot to snapshot.

use super::open::{self, Progress};
use super::table_flags::TableFlags;
use crate::failure::{Failure, Outcome};
use crate::input::is_stream;
use crate::message;
use clap::Args;
use stackglass_files::heapsnapshot::ReadOptions;
use stackglass_heap_report::answers::growth::{HeapSums, growth};
use stackglass_heap_report::reports;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  stackglass heap diff before.heapsnapshot after.heapsnapshot
  stackglass heap diff 1.heapsnapshot 2.heapsnapshot 3.heapsnapshot   only what
                                            grew in both steps: likely a leak
  stackglass heap diff app.glass:1 app.glass:2    two snapshots of one recording
  stackglass heap diff a.heapsnapshot b.heapsnapshot --json | jq '.types[0]'";

/// Compare heap snapshots: growth by type, or by site where the type is unknown.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// The oldest snapshot: as for `heap show`
    #[arg(value_name = "A")]
    before: PathBuf,

    /// A newer one
    #[arg(value_name = "B")]
    after: PathBuf,

    /// The newest one: only what grew in both steps is shown
    #[arg(value_name = "C")]
    last: Option<PathBuf>,

    #[command(flatten)]
    table: TableFlags<20>,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let files: Vec<&PathBuf> = [&flags.before, &flags.after].into_iter().chain(&flags.last).collect();
    if files.iter().filter(|file| is_stream(file)).count() > 1 {
        let line = "only one snapshot can come from stdin: name files for the others".into();
        return Err(Failure { status: 2, line });
    }
    let progress = Progress::new();
    let mut snapshots = Vec::new();
    for file in &files {
        // One graph at a time is in memory.
        snapshots.push(HeapSums::new(&open::read(file, ReadOptions::default(), &progress)?));
    }
    refuse_other_units(&files, &snapshots)?;
    tell_other_origin(&files, &snapshots);
    let rows = growth(&snapshots);
    drop(progress);
    let mut out = BufWriter::new(std::io::stdout().lock());
    if flags.table.json {
        reports::write_growth_json(&snapshots, &rows, &mut out)?;
    } else {
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        flags.table.text("").growth(&names, &snapshots, &rows, &mut out)?;
    }
    out.flush()?;
    Ok(0)
}

/// Snapshots with and without recorded allocations can be compared as a whole, but not type by type.
fn tell_other_origin(files: &[&PathBuf], snapshots: &[HeapSums]) {
    let first =
        |recorded: bool| snapshots.iter().position(|one| one.nodes > 0 && one.is_recorded == recorded);
    if let (Some(with), Some(without)) = (first(true), first(false)) {
        message::print(&format!(
            "{} has recorded allocations, {} has not: the same blocks may have other sizes and types there, so rows may \
             differ without growth; take both in the same way (`stackglass run --allocs`, or neither)",
            files[with].display(),
            files[without].display()
        ));
    }
}

/// Bytes and numbers of blocks cannot be compared.
fn refuse_other_units(files: &[&PathBuf], snapshots: &[HeapSums]) -> Result<(), Failure> {
    // A snapshot without a block has no unit.
    let unit =
        |counts: bool| snapshots.iter().position(|one| one.nodes > 0 && one.sizes_are_counts == counts);
    match (unit(true), unit(false)) {
        (Some(counts), Some(bytes)) if snapshots[bytes].self_size > 0 => Err(Failure::new(format!(
            "sizes in {} are numbers of blocks (`heap take --all-one`), those in {} are bytes: take both alike",
            files[counts].display(),
            files[bytes].display()
        ))),
        _ => Ok(()),
    }
}
