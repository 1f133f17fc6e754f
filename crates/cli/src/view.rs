//! `stackglass view [FILE]`: a recording as one page with a time axis, with its heap and tasks.

use crate::drawn_output::DrawnOutput;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::view_beside::{self, Alone};
use clap::Args;
use stackglass_heap_report::HeapAnswers;
use stackglass_profile::Recording;
use stackglass_report::numbers::bytes_text;
use stackglass_view::{Beside, Heap, Packed, Page, Tasks};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  stackglass view                       the newest recording: rg-view.html
  stackglass view rg.glass -o rg.html   the same, in this file
  stackglass view rg.glass --open       and in the browser
  stackglass view app.heapsnapshot      a heap: its types, and what holds them
  stackglass view app.glass --heap app.heapsnapshot     both in one page
  stackglass tasks 1234 --json > t.json && stackglass view t.json

The page is one file, which opens from disk and makes no request. Drag over
the lanes to count a part of the time, click the name of a thread to count
only that. / searches, u undoes, ? lists all keys. A heap snapshot in the
recording (--heap-at), or of the same name beside it, has a tab of its own.";

/// Write a page with a recording: its threads over time, flame graph and functions of any part of it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// A .glass or .heapsnapshot file, the output of `tasks --json`, or - for a recording from stdin [default: the newest *.glass in this folder]
    file: Option<PathBuf>,

    /// Also show this heap snapshot [default: the last one in the recording, or that of the same name beside it]
    #[arg(long, value_name = "SNAPSHOT")]
    heap: Option<PathBuf>,

    /// Also show these await stacks and locks: the output of `stackglass tasks PID --json`
    #[arg(long, value_name = "JSON")]
    tasks: Option<PathBuf>,

    /// File to write, or - for stdout [default: FILE-view.html in this folder]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Title [default: the command that was recorded]
    #[arg(long)]
    title: Option<String>,

    /// Open the file with $BROWSER, or with the desktop's default program
    #[arg(long)]
    open: bool,
}

pub(crate) fn run(flags: &Flags) -> Outcome {
    let path = input::choose(flags.file.as_deref())?;
    let output = flags.output.clone().unwrap_or_else(|| beside(&path));
    let output = DrawnOutput::new(output, flags.open, &path, "pages")?;
    let alone = view_beside::alone(&path);
    let (recording, title, shown) = match alone {
        Some(what) if flags.heap.is_some() && what == Alone::Heap => {
            let line = format!(
                "{} is a heap snapshot already: name a recording, or leave out --heap",
                path.display()
            );
            return Err(Failure { status: 2, line });
        }
        Some(_) => (Recording::default(), path.display().to_string(), None),
        None => {
            let (recording, title) = recording(&path)?;
            let shown = format!("{} threads, {} samples", recording.threads.len(), recording.samples.len());
            (recording, title, Some(shown))
        }
    };
    let title = flags.title.clone().unwrap_or(title);
    let heap = view_beside::heap_of(&path, flags.heap.as_deref())?;
    let tasks = match alone {
        Some(Alone::Tasks) => Some(view_beside::tasks_of(&path)?),
        _ => flags.tasks.as_deref().map(view_beside::tasks_of).transpose()?,
    };
    let answers = heap.as_ref().map(|heap| HeapAnswers::new(&heap.graph));
    let beside = Beside {
        heap: heap.as_ref().zip(answers.as_ref()).map(|(heap, answers)| Heap { name: &heap.name, answers }),
        tasks: tasks.as_ref().map(|(name, dump)| Tasks { name, dump }),
    };
    let of_heap = heap.as_ref().map(|heap| format!("the heap of {}", heap.name));
    let of_tasks = tasks.as_ref().map(|(name, _)| format!("the tasks of {name}"));
    let shown: Vec<String> = [shown, of_heap, of_tasks].into_iter().flatten().collect();
    let packed = Packed::with(recording, &title, &beside);
    let page = Page::new(&packed);
    output.write(
        |mut out| page.write_to(&mut out),
        |file| {
            let size = bytes_text(file.metadata().map_or(0, |file| file.len()));
            format!("a page of {size} with {}", shown.join(", "))
        },
    )?;
    Ok(0)
}

/// A recording and its title.
fn recording(path: &Path) -> Result<(Recording, String), Failure> {
    let input = input::read_exactly(path)?;
    if input.timed().is_none() {
        let line = format!("{}: its samples have no times; `stackglass flamegraph` draws them", input.name);
        return Err(Failure::new(line));
    }
    let title = input.title();
    Ok((input.into_recording()?, title))
}

/// The default output: the name of the recording, in the current folder. The flame graph has another.
fn beside(input: &Path) -> PathBuf {
    let stem = input.file_stem().filter(|_| !input::is_stream(input));
    let mut name = stem.unwrap_or(OsStr::new("recording")).to_os_string();
    name.push("-view.html");
    PathBuf::from(name)
}
