//! Heap snapshots during a recording (`--heap-at`): at the end of the program, when its live bytes reach a new maximum, or at a
//! signal.
//!
//! A snapshot is taken on a separate thread, so that samples are still read. The copy of a program ends with the program. So
//! the library inside the program waits at its end until its heap has been read.

mod added_snapshots;
mod options;
mod peak;
mod program;

pub(super) use added_snapshots::AddedSnapshots;
pub use options::{HeapAt, HeapAtOptions, SaveSnapshot, SnapshotSummary};

use crate::recording::Observer;
use crate::session::bus_guard::GuardedMap;
use added_snapshots::Snapshot;
use peak::PeakJob;
use program::{NOT_WAITED, ProgramTables, program_of};
use stackglass_attach::frozen::{self, FrozenProcess};
use stackglass_procfs::clock::monotonic;
use stackglass_wire::{HEAP_BEING_READ, HEAP_NOT_READ, HEAP_TO_BE_READ, SESSION_FILE, SessionPage};
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
    kept: AddedSnapshots,
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
        let ends = (options.at == HeapAt::Exit).then_some(pid);
        let kept = AddedSnapshots::new(recording, options.output.is_none(), ends);
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

    /// Begins a snapshot at a signal. None begins once the program has reached its end: it would wait again and again as long as
    /// signals come.
    pub(super) fn begin_at_signal(&mut self) {
        if !self.has_ended() {
            self.begin();
        }
    }

    /// Begins a snapshot, unless one is being taken.
    fn begin(&mut self) {
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
        let has_ended = self.has_ended();
        if has_ended && self.job.is_some() == (self.options.at == HeapAt::Peak) {
            self.waits_since.get_or_insert_with(Instant::now);
        }
        match self.options.at {
            HeapAt::Exit if has_ended => self.begin(),
            HeapAt::Peak if has_ended && self.job.is_some() => self.set_wait(HEAP_BEING_READ),
            _ => {}
        }
    }

    /// Whether the program has called `exit`, according to its newest tables.
    fn has_ended(&mut self) -> bool {
        ProgramTables::find_newest(&mut self.tables, self.pid, &self.folder);
        self.tables.as_ref().is_some_and(ProgramTables::has_ended)
    }

    /// Waits for a snapshot that is being taken, and lets the program end. What is returned can be added to the recording when
    /// that is complete.
    pub(super) fn finish(mut self, observer: &mut dyn Observer) -> AddedSnapshots {
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
    Ok(Snapshot { file, clock, program, text: summary.text, reached: summary.reached })
}
