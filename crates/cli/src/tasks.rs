//! `stackglass tasks PID`: what every async task of a process waits for, line by line.

use crate::copy_flags::CopyFlags;
use crate::failure::{Failure, Outcome};
use crate::message;
use crate::terminal::LayoutFlags;
use crate::values::{positive_duration, process_id};
use clap::Args;
use stackglass_inspect::tasks::{self, TasksOptions};
use stackglass_procfs::status::process_of;
use stackglass_report::TasksText;
use std::io::Write;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  stackglass tasks 1234             tasks with equal await stacks, most first
  stackglass tasks $(pidof server) --tree
  stackglass tasks 1234 --for 10s   which tasks nothing polls for 10 s
  stackglass tasks 1234 --json | jq '.groups[0]'

Works on running tokio programs without preparation: the process is copied,
which takes some milliseconds, and the copy is read. Nothing runs in the
program. If threads poll tasks, they are looked at again 100 ms later, on a busy
machine up to a second later: a task whose poll has not returned blocks its
worker. The program's own crate needs full debug information: `debug = 2` (or
`true`) in the Cargo profile that it is built with. Dependencies may have none.
Symbols alone tell the number of tasks, and the function and state of each.

With --for, the copy lives as long, and shares its memory with the program. A
task whose memory the program has not written meanwhile was not polled. Of others
nothing is said: something else on the same page (4 KiB) may have been written.
The program takes some microseconds more for each page that it writes first.

Tasks of any executor are listed if the program names them: `.task(\"name\")`
of the crate stackglass. Without types, they have no await stack: only their
name, the place where they were created, and whether they run.";

/// Print what every async task of a process waits for, line by line.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Id of the process
    #[arg(value_parser = process_id)]
    pid: u32,

    /// One tree of all await stacks, from the outermost function on
    #[arg(long, conflicts_with = "json")]
    tree: bool,

    /// All groups, all ids, and all frames of libraries
    #[arg(long, conflicts_with = "json")]
    all: bool,

    /// Watch for this long which tasks are not polled, and say so: `waiting for at least 5 s`
    #[arg(long = "for", value_name = "DURATION", value_parser = positive_duration, conflicts_with = "stop")]
    watch: Option<Duration>,

    #[command(flatten)]
    copy: CopyFlags,

    /// Print one JSON object (docs/json.md)
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    layout: LayoutFlags,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let pid = process_of(flags.pid);
    let options = TasksOptions {
        stop: flags.copy.stop,
        interrupt_calls: flags.copy.interrupt_calls,
        watch: flags.watch.unwrap_or_default(),
        ..TasksOptions::default()
    };
    let dump = tasks::read(pid, &options).map_err(Failure::new)?;
    if dump.tasks.is_empty() {
        let why = dump.remarks.first().map_or("it has no tasks", String::as_str);
        return Err(Failure::new(format!("process {pid} has no await stacks: {why}")));
    }
    for remark in &dump.remarks {
        message::print(remark);
    }
    let layout = flags.layout.of_stdout();
    let rows = (layout.terminal && !flags.all).then_some(layout.rows);
    let text =
        TasksText::new().cols(layout.short_columns).rows(rows).style(layout.style).everything(flags.all);
    let mut out = Vec::new();
    match (flags.json, flags.tree) {
        (true, _) => stackglass_report::tasks::write_json(&dump, &mut out)?,
        (_, true) => text.tree(&dump, &mut out)?,
        (_, false) => text.groups(&dump, &mut out)?,
    }
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&out)?;
    stdout.flush()?;
    Ok(0)
}
