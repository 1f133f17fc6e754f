//! Heap snapshots during a recording (`--heap-at`): at the end of the program, when its live bytes reach a new maximum, or at a
//! signal.
//!
//! A snapshot is taken on a separate thread, so that samples are still read. The copy of a program ends with the program. So
//! the library inside the program waits at its end until its heap has been read.

mod kept;
mod peak;

pub(super) use kept::KeptSnapshots;

use crate::allocations::table_file::TableFile;
use crate::recording::Observer;
use crate::session::bus_guard::GuardedMap;
use kept::Snapshot;
use peak::PeakJob;
use stackglass_attach::frozen::{self, FrozenProcess};
use stackglass_procfs::clock::monotonic;
use stackglass_wire::heap::HEAP_FILE_PREFIX;
use stackglass_wire::{HEAP_BEING_READ, HEAP_NOT_READ, HEAP_TO_BE_READ, SESSION_FILE, SessionPage};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::*;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two checks of the program's tables.
const EVERY: Duration = Duration::from_millis(20);
/// Time between two checks whether an awaited snapshot is done.
const WAIT: Duration = Duration::from_millis(2);

/// Why there is no snapshot if the program did not wait for one.
const NOT_WAITED: &str = "the program did not end by exit, its allocations are not recorded, or it has a \
    sanitizer or a filter of system calls; \
    other programs that it starts have none either";

/// When a snapshot is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeapAt {
    /// When the program ends by `exit` or by returning from `main`.
    Exit,
    /// When live bytes reach a new maximum; the last snapshot is kept.
    Peak,
    /// When Stackglass receives this signal, which the program then does not get.
    Signal(i32),
}

/// What a snapshot contains.
#[derive(Clone, Debug)]
pub struct SnapshotSummary {
    /// Bytes of all live blocks.
    pub bytes: u64,
    /// Numbers for the user, in one line.
    pub text: String,
}

/// Makes a snapshot of a frozen process, or says why there is none.
pub type SaveSnapshot = fn(FrozenProcess, &Path) -> Result<SnapshotSummary, String>;

/// Snapshots during a recording.
#[derive(Clone, Debug)]
pub struct HeapAtOptions {
    /// When.
    pub at: HeapAt,
    /// A file for the last snapshot, which replaces an older one. `None`: snapshots are kept inside the recording.
    pub output: Option<PathBuf>,
    /// Makes the file of a snapshot.
    pub save: SaveSnapshot,
}

/// The snapshots of one program.
pub(super) struct HeapSnapshots {
    options: HeapAtOptions,
    pid: u32,
    /// The session folder.
    folder: PathBuf,
    page: Option<GuardedMap>,
    tables: Option<ProgramTables>,
    next: Instant,
    job: Option<Job>,
    /// Number of snapshots that were begun.
    begun: u32,
    /// When the program reached its end and began to wait.
    waits_since: Option<Instant>,
    kept: KeptSnapshots,
}

struct Job {
    thread: JoinHandle<Result<Snapshot, String>>,
    /// Set to end a job that waits for peaks.
    stop: Arc<AtomicBool>,
}

impl HeapSnapshots {
    /// For the program `pid` of the session in `folder`, whose recording is `recording`.
    pub(super) fn new(options: HeapAtOptions, pid: u32, folder: &Path, recording: &Path) -> HeapSnapshots {
        let page = File::options().read(true).write(true).open(folder.join(SESSION_FILE));
        let page = page.and_then(|file| GuardedMap::new(file.as_fd(), size_of::<SessionPage>())).ok();
        let kept = KeptSnapshots::new(recording, options.output.is_none());
        let mut snapshots = HeapSnapshots {
            options,
            pid,
            folder: folder.to_owned(),
            page,
            tables: None,
            next: Instant::now(),
            job: None,
            begun: 0,
            waits_since: None,
            kept,
        };
        if snapshots.options.at == HeapAt::Peak {
            snapshots.begin();
        }
        snapshots
    }

    /// Whether the program waits at its end, before it is started.
    pub(super) fn wait_at_start(at: HeapAt) -> u32 {
        match at {
            HeapAt::Exit | HeapAt::Peak => HEAP_TO_BE_READ,
            HeapAt::Signal(_) => HEAP_NOT_READ,
        }
    }

    /// The signal that asks for a snapshot.
    pub(super) fn signal(&self) -> Option<i32> {
        match self.options.at {
            HeapAt::Signal(number) => Some(number),
            _ => None,
        }
    }

    /// Begins a snapshot, unless one is being taken.
    pub(super) fn begin(&mut self) {
        if self.job.is_some() {
            return;
        }
        self.begun += 1;
        let file = self.options.output.clone().unwrap_or_else(|| self.kept.file(self.begun));
        let (pid, save) = (self.pid, self.options.save);
        let stop = Arc::new(AtomicBool::new(false));
        let builder = std::thread::Builder::new().name("stackglass-heap".into());
        let thread = match self.options.at {
            HeapAt::Peak => {
                let job = PeakJob { pid, folder: self.folder.clone(), save, file, stop: stop.clone() };
                builder.spawn(move || job.run())
            }
            _ => {
                self.set_wait(HEAP_BEING_READ);
                builder.spawn(move || take(pid, save, file))
            }
        };
        self.job = thread.ok().map(|thread| Job { thread, stop });
        if self.job.is_none() {
            self.set_wait(HEAP_NOT_READ);
        }
    }

    /// Checks whether a snapshot is due, or done.
    pub(super) fn update(&mut self, observer: &mut dyn Observer) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        if self.job.as_ref().is_some_and(|job| job.thread.is_finished()) {
            self.end_job(observer);
        }
        if self.begun > 0 && self.options.at != HeapAt::Peak {
            return;
        }
        if !ProgramTables::find_newest(&mut self.tables, self.pid, &self.folder) {
            return;
        }
        let has_ended = self.tables.as_ref().is_some_and(ProgramTables::has_ended);
        if has_ended && self.job.is_some() == (self.options.at == HeapAt::Peak) {
            self.waits_since.get_or_insert_with(Instant::now);
        }
        match self.options.at {
            HeapAt::Exit if has_ended => self.begin(),
            HeapAt::Peak if has_ended && self.job.is_some() => self.set_wait(HEAP_BEING_READ),
            _ => {}
        }
    }

    /// Waits for a snapshot that is being taken, and lets the program end. What is returned can be added to the recording when
    /// that is complete.
    pub(super) fn finish(mut self, observer: &mut dyn Observer) -> KeptSnapshots {
        self.end_job(observer);
        self.set_wait(HEAP_NOT_READ);
        if self.begun == 0 && self.options.at == HeapAt::Exit {
            observer.note(&format!("no heap snapshot of process {}: {NOT_WAITED}", self.pid));
        }
        self.kept
    }

    fn end_job(&mut self, observer: &mut dyn Observer) {
        let Some(job) = self.job.take() else { return };
        job.stop.store(true, Release);
        while !job.thread.is_finished() {
            // A program at its end does not wait for a launcher without a beat.
            self.page().inspect(|page| _ = page.beat.fetch_add(1, Relaxed));
            std::thread::sleep(WAIT);
        }
        if let Some(since) = self.waits_since.take() {
            self.kept.waited(since.elapsed());
        }
        let result = job.thread.join().unwrap_or_else(|_| Err("please report this".to_owned()));
        self.set_wait(HEAP_NOT_READ);
        match result {
            Ok(snapshot) => {
                let name = self.options.output.as_deref().unwrap_or(self.kept.recording());
                observer.note(&format!(
                    "{}: heap snapshot of {}: {}",
                    name.display(),
                    snapshot.program,
                    snapshot.text
                ));
                self.kept.add(snapshot);
            }
            Err(reason) => observer.note(&format!("no heap snapshot: {reason}")),
        }
    }

    fn page(&self) -> Option<&SessionPage> {
        // SAFETY: `new` maps the size of the type, page-aligned, and the mapping lives as long as `self`. The type consists of
        // atomics, for which any bytes are a value.
        self.page.as_ref().map(|page| unsafe { &*page.base().cast::<SessionPage>() })
    }

    /// Sets whether the program waits at its end.
    fn set_wait(&self, wait: u32) {
        if let Some(page) = self.page() {
            page.heap_at_exit.store(wait, Release);
        }
    }
}

/// Takes one snapshot.
fn take(pid: u32, save: SaveSnapshot, file: PathBuf) -> Result<Snapshot, String> {
    let clock = monotonic();
    let copy = FrozenProcess::copy(pid, &frozen::Options::default()).map_err(|error| error.to_string())?;
    let program = program_of(&copy);
    let summary = save(copy, &file)?;
    Ok(Snapshot { file, clock, program, text: summary.text })
}

/// The name and id of the process that was copied: a script is one, and the programs that it starts are others.
fn program_of(copy: &FrozenProcess) -> String {
    let name = copy.threads().first().map_or("", |thread| &thread.name);
    format!("{name} (process {})", copy.pid())
}

/// The tables of the program: those of the image that it executed last.
struct ProgramTables {
    name: OsString,
    file: TableFile,
}

impl ProgramTables {
    /// Opens newer tables, if there are any. Returns whether there are tables.
    fn find_newest(tables: &mut Option<ProgramTables>, pid: u32, folder: &Path) -> bool {
        let prefix = format!("{HEAP_FILE_PREFIX}{pid}-");
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let newest = names
            .filter(|name| name.to_string_lossy().starts_with(&prefix))
            // Names end in a number.
            .max_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        if let Some(name) = newest.filter(|name| tables.as_ref().is_none_or(|known| known.name != *name))
            && let Some(file) = TableFile::open(&folder.join(&name))
        {
            *tables = Some(ProgramTables { name, file });
        }
        tables.is_some()
    }

    /// Whether the program has called `exit`. It then waits, if the session page says so.
    fn has_ended(&self) -> bool {
        self.file.tables().page().ended.load(Acquire) != 0
    }

    fn live_bytes(&self) -> u64 {
        self.file.tables().page().live_bytes().load(Relaxed).max(0) as u64
    }

    fn peak_bytes(&self) -> u64 {
        self.file.tables().page().peak_bytes().load(Relaxed).max(0) as u64
    }
}
