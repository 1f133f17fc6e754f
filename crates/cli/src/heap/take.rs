//! `stackglass heap take PID`: a heap snapshot of a running process.

use super::assemble::Group;
use crate::copy_flags::CopyFlags;
use crate::failure::{Failure, Outcome};
use crate::input::is_stream;
use crate::message;
use crate::values::process_id;
use clap::Args;
use stackglass_collect::launch::{FrozenProcess, SnapshotSummary};
use stackglass_inspect::heap::output::{Output, default_output};
use stackglass_inspect::heap::{self, MOST_FRAMES, SiteFrames, TakeOptions, Taken};
use stackglass_procfs::status::process_of;
use stackglass_profile::heap_graph::HeapGraph;
use stackglass_profile::{Recording, StackId};
use stackglass_report::allocation_queries::site_frames;
use stackglass_report::numbers::{bytes_text, counted, grouped, pause_text, percent_text};
use std::cell::OnceCell;
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  stackglass heap take 1234                  1234_….heapsnapshot in this folder
  stackglass heap take $(pidof server) -o server.heapsnapshot
  stackglass heap show server.heapsnapshot   what is alive, and what holds it
  stackglass heap take 1234 -o - | gzip > server.heapsnapshot.gz

The process is copied: it stands still for some milliseconds, and continues
while its copy is read. The copy ends with the command.

All blocks have sites, and nearly all have types, if the program has full debug
information and was started with `stackglass run --allocs` or `record --allocs`,
or if it has the crate's allocator and `stackglass::allocs::start(1.0)` at the
beginning of main(). Otherwise only some types are found, and sizes are those of
malloc's blocks, which may be a few bytes more than the program asked for.

Threads stop only in their own code, by perf events. A thread in a system call
is not interrupted. While all threads are in calls, the process itself is read.

A process that cannot be copied can be read with --stop. It stands still until
it has been read.";

/// Save what is alive on the heap of a running process, for Chrome DevTools and `heap show`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Id of the process
    #[arg(value_parser = process_id)]
    pid: u32,

    /// File for the snapshot, or - for stdout [default: PID_NANOSECONDS.heapsnapshot in this folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Leave four part files with the output as their prefix; `heap assemble` makes one file of them
    #[arg(long)]
    streaming: bool,

    #[command(flatten)]
    copy: CopyFlags,

    /// Name strings by their text; without it, the snapshot has no contents of the program
    #[arg(long)]
    with_texts: bool,

    /// Make one node of all blocks of one type that one block holds and that hold nothing, for viewers that cannot hold all
    #[arg(long, value_name = "BLOCKS", conflicts_with = "streaming")]
    group: Option<Group>,

    /// Give all blocks the size 1, so that sizes are numbers of blocks
    #[arg(long)]
    all_one: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let pid = process_of(flags.pid);
    let output = match &flags.output {
        Some(path) if is_stream(path) => {
            if flags.streaming {
                let line = "four part files cannot go to stdout: name a file with -o".into();
                return Err(Failure { status: 2, line });
            }
            default_output(pid, Some(&std::env::temp_dir()))
        }
        Some(path) => Output { path: path.clone(), warning: None },
        None => default_output(pid, None),
    };
    let to_stdout = flags.output.as_ref().is_some_and(|path| is_stream(path));
    if let Some(warning) = &output.warning {
        message::print(warning);
    }
    let options = TakeOptions {
        all_one: flags.all_one,
        with_texts: flags.with_texts,
        streaming: flags.streaming,
        group_small: matches!(flags.group, Some(Group::Small)),
        stop: flags.copy.stop,
        interrupt_calls: flags.copy.interrupt_calls,
        ..Default::default()
    };
    let taken = take(pid, &options, &output.path)?;
    if to_stdout {
        let copied = copy_to_stdout(&output.path);
        // The file was made only to be copied.
        let _ = std::fs::remove_file(&output.path);
        copied?;
    }
    for remark in &taken.remarks {
        message::print(remark);
    }
    if options.group_small && taken.nodes < taken.totals.nodes {
        let gone = taken.totals.nodes - taken.nodes;
        let (nodes, all) = (counted(taken.nodes, "node", "nodes"), grouped(taken.totals.nodes));
        message::print(&format!(
            "--group small: the file has {nodes} instead of {all}, since {} stand in groups such as \"2 × TYPE\"",
            counted(gone, "small block", "small blocks")
        ));
    }
    message::print(&match to_stdout {
        true => numbers(&taken),
        false => line(&output.path, &taken),
    });
    Ok(0)
}

fn copy_to_stdout(path: &Path) -> Result<(), Failure> {
    let read = |error| Failure::new(format!("cannot read {}: {error}", path.display()));
    let mut file = std::fs::File::open(path).map_err(read)?;
    let mut stdout = std::io::stdout().lock();
    std::io::copy(&mut file, &mut stdout)?;
    Ok(stdout.flush()?)
}

/// Takes a snapshot. Blocks without types are named by the place that allocated them.
pub(crate) fn take(pid: u32, options: &TakeOptions, output: &Path) -> Result<Taken, Failure> {
    with_site_frames(|name| heap::take(pid, options, name, output)).map_err(Failure::new)
}

/// Takes the graph alone.
pub(super) fn take_graph(pid: u32, options: &TakeOptions) -> Result<(HeapGraph, Taken), String> {
    with_site_frames(|name| heap::take_graph(pid, options, name)).map_err(|error| error.to_string())
}

/// Makes a snapshot of a process that was frozen during a recording (`--heap-at`).
pub(crate) fn save_during_recording(
    process: FrozenProcess,
    output: &Path,
) -> Result<SnapshotSummary, String> {
    let options = TakeOptions { with_reached: true, ..TakeOptions::default() };
    let saved = with_site_frames(|name| heap::save(process, &options, name, output));
    let taken = saved.map_err(|error| error.to_string())?;
    Ok(SnapshotSummary { bytes: taken.totals.bytes, text: numbers(&taken), reached: taken.reached })
}

fn with_site_frames<T>(take: impl FnOnce(SiteFrames<'_>) -> T) -> T {
    let rust = OnceCell::new();
    take(&|recording: &Recording, stack: StackId| {
        site_frames(recording, stack, *rust.get_or_init(|| recording.has_rust()), MOST_FRAMES)
    })
}

/// `app.heapsnapshot: 12 345 blocks, 3.40 MB, 99 % typed, 12 reached by no root; paused for 4.20 ms`.
pub(crate) fn line(output: &Path, taken: &Taken) -> String {
    format!("{}: {}", output.display(), numbers(taken))
}

fn numbers(taken: &Taken) -> String {
    let totals = &taken.totals;
    let typed = match totals.blocks {
        0 => String::new(),
        blocks => format!(", {} typed", percent_text(totals.typed_blocks, blocks)),
    };
    let unreached = match totals.unreached_blocks {
        0 => String::new(),
        blocks => format!(", {} reached by no root", grouped(blocks)),
    };
    let pause = pause_text(u64::try_from(taken.pause.whole.as_nanos()).unwrap_or(u64::MAX));
    format!(
        "{}, {}{typed}{unreached}; {pause}",
        counted(totals.blocks, "block", "blocks"),
        bytes_text(totals.bytes),
    )
}
