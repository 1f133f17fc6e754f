//! Heap snapshots of this program: what is alive, and what holds it.

use stackglass_inspect::heap::output::default_output;
use stackglass_inspect::heap::own::{OwnError, take_own};
use stackglass_inspect::heap::{MOST_FRAMES, TakeOptions};
use stackglass_profile::{Recording, StackId};
use stackglass_report::allocation_queries::site_frames;
use std::cell::OnceCell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A snapshot that takes longer is given up, so that it never hangs the program.
const LONGEST: Duration = Duration::from_secs(300);

/// How a heap snapshot is taken. Names and defaults are those of Julia.
#[derive(Clone, Debug)]
pub struct HeapSnapshotOptions {
    /// Give all blocks the size 1, so that retained sizes are numbers of blocks.
    pub all_one: bool,
    /// Leave the contents of strings out. With `false`, strings are named by their text.
    pub redact_data: bool,
    /// Leave four part files with the path as their prefix; `stackglass heap assemble` makes one file of them.
    pub streaming: bool,
    /// Combine the blocks of one type that one block holds, and that hold nothing, into one node: for viewers that cannot hold
    /// all nodes. Like `stackglass heap take --group small`. Part files (`streaming`) have no groups.
    pub group_small: bool,
    /// Folder of [`take_heap_snapshot_with`]; `None`: the current folder, or else the temporary one.
    pub dir: Option<PathBuf>,
}

impl Default for HeapSnapshotOptions {
    fn default() -> HeapSnapshotOptions {
        HeapSnapshotOptions {
            all_one: false,
            redact_data: true,
            streaming: false,
            group_small: false,
            dir: None,
        }
    }
}

/// Why no heap snapshot was saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeapSnapshotError {
    /// The process cannot be copied or read.
    #[error(transparent)]
    NotTaken(#[from] OwnError),
    /// The snapshot cannot be passed on to the writer.
    #[error("the heap snapshot cannot be written: {0}")]
    Write(#[from] io::Error),
}

/// Saves the heap of this program as a `.heapsnapshot` file, for Chrome DevTools and `stackglass heap show`.
///
/// A forked child copies the program, which stands still for some milliseconds, and does the work. While the child lives, the
/// program pays for pages that it writes. The child's end sends SIGCHLD.
///
/// All blocks have types and sites if every allocation is recorded from the start of the program, as here, or under `stackglass run
/// --allocs`. [`Alloc`](crate::Alloc) alone records nothing: without [`allocs::start`](crate::allocs::start), most blocks are
/// `(unknown)`. Types are found by debug information (`debug = true` in the Cargo profile).
///
/// ```no_run
/// #[global_allocator]
/// static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     stackglass::allocs::start(1.0)?; // every allocation, before anything else
///     let names: Vec<String> = std::env::args().collect();
///     stackglass::take_heap_snapshot("app.heapsnapshot")?; // stackglass heap show app.heapsnapshot
///     println!("{}", names.len());
///     Ok(())
/// }
/// ```
///
/// # Errors
/// If the process cannot be copied (the message names the reason and the remedy), or the file cannot be written. An incomplete
/// snapshot never has the name of the file.
pub fn take_heap_snapshot(path: impl AsRef<Path>) -> Result<PathBuf, HeapSnapshotError> {
    take_heap_snapshot_to(path, &HeapSnapshotOptions::default())
}

/// Like [`take_heap_snapshot`], with options.
///
/// # Errors
/// As [`take_heap_snapshot`].
pub fn take_heap_snapshot_to(
    path: impl AsRef<Path>,
    options: &HeapSnapshotOptions,
) -> Result<PathBuf, HeapSnapshotError> {
    let take = TakeOptions {
        all_one: options.all_one,
        with_texts: !options.redact_data,
        streaming: options.streaming,
        group_small: options.group_small,
        ..Default::default()
    };
    let rust = OnceCell::new();
    let name = |recording: &Recording, stack: StackId| {
        site_frames(recording, stack, *rust.get_or_init(|| recording.has_rust()), MOST_FRAMES)
    };
    take_own(&take, &name, path.as_ref(), LONGEST)?;
    Ok(path.as_ref().to_owned())
}

/// Like [`take_heap_snapshot`], to a file named `PID_NANOSECONDS.heapsnapshot`. Returns its path. If the current folder cannot be
/// written to, the file is in the temporary folder, and a line on standard error says so.
///
/// # Errors
/// As [`take_heap_snapshot`].
pub fn take_heap_snapshot_with(options: &HeapSnapshotOptions) -> Result<PathBuf, HeapSnapshotError> {
    let folder = options.dir.as_deref().map(expand_home);
    let output = default_output(std::process::id(), folder.as_deref());
    if let Some(warning) = output.warning {
        // A closed standard error is ignored.
        let _ = writeln!(io::stderr(), "stackglass: {warning}");
    }
    take_heap_snapshot_to(output.path, options)
}

/// Like [`take_heap_snapshot`], to a writer, by a file in the temporary folder.
///
/// # Errors
/// As [`take_heap_snapshot`]; those of the writer.
pub fn write_heap_snapshot(
    out: &mut impl Write,
    options: &HeapSnapshotOptions,
) -> Result<(), HeapSnapshotError> {
    let path = default_output(std::process::id(), Some(&std::env::temp_dir())).path;
    let result = take_heap_snapshot_to(&path, &HeapSnapshotOptions { streaming: false, ..options.clone() })
        .and_then(|path| {
            io::copy(&mut std::fs::File::open(path)?, out)?;
            Ok(())
        });
    // It may not have been made.
    let _ = std::fs::remove_file(path);
    result
}

/// `~/x` in the home folder.
fn expand_home(folder: &Path) -> PathBuf {
    match (folder.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => folder.to_owned(),
    }
}
