//! Heap snapshots during a recording (`--heap-at`): at the end of the program, when its live bytes reach a new maximum, or at a
//! signal.
//!
//! A snapshot is taken on a separate thread, so that samples are still read. At the end, the library inside the program waits
//! until the snapshot is made.

use crate::allocations::table_file::TableFile;
use crate::recording::Observer;
use crate::session::bus_guard::GuardedMap;
use stackglass_wire::heap::HEAP_FILE_PREFIX;
use stackglass_wire::{SESSION_FILE, SessionPage};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::*;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two looks at the program's tables.
const EVERY: Duration = Duration::from_millis(20);
/// A peak is a new one if it is higher than the last snapshot by this part, as a divisor.
const HIGHER: u64 = 32;
/// Pause between two snapshots of peaks, as a multiple of the time that the last one took.
const PAUSE: u32 = 4;
/// Shortest pause between them.
const SHORTEST_PAUSE: Duration = Duration::from_millis(250);

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

/// Snapshots during a recording.
#[derive(Clone, Debug)]
pub struct HeapAtOptions {
    /// When.
    pub at: HeapAt,
    /// The file; an older one is replaced.
    pub output: PathBuf,
    /// Takes a snapshot of a process, and returns a line about it, or about what failed.
    pub take: fn(u32, &Path) -> String,
}

/// The snapshots of one program.
pub(super) struct HeapSnapshots {
    options: HeapAtOptions,
    pid: u32,
    folder: PathBuf,
    page: Option<GuardedMap>,
    tables: Option<TableFile>,
    next: Instant,
    /// Live bytes at the last snapshot.
    peak: u64,
    job: Option<Job>,
    /// Number of snapshots that were begun.
    taken: u32,
}

struct Job {
    thread: JoinHandle<String>,
    began: Instant,
}

impl HeapSnapshots {
    /// For the program `pid` of the session in `folder`.
    pub(super) fn new(options: HeapAtOptions, pid: u32, folder: &Path) -> HeapSnapshots {
        let page = File::options().read(true).write(true).open(folder.join(SESSION_FILE));
        let page = page.and_then(|file| GuardedMap::new(file.as_fd(), size_of::<SessionPage>())).ok();
        let folder = folder.to_owned();
        HeapSnapshots {
            options,
            pid,
            folder,
            page,
            tables: None,
            next: Instant::now(),
            peak: 0,
            job: None,
            taken: 0,
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
        let (pid, output, take) = (self.pid, self.options.output.clone(), self.options.take);
        let thread =
            std::thread::Builder::new().name("stackglass-heap".into()).spawn(move || take(pid, &output));
        self.taken += 1;
        self.job = thread.ok().map(|thread| Job { thread, began: Instant::now() });
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
        if self.tables.is_none() {
            self.tables = self.find_tables();
        }
        let Some(tables) = &self.tables else { return };
        let page = tables.tables();
        let page = page.page();
        match self.options.at {
            HeapAt::Exit if self.taken == 0 && page.ended.load(Acquire) != 0 => self.begin(),
            HeapAt::Peak => {
                let live = page.live_bytes().load(Relaxed).max(0) as u64;
                if self.job.is_none() && live > self.peak + self.peak / HIGHER {
                    self.peak = live;
                    self.begin();
                }
            }
            _ => {}
        }
    }

    /// Waits for a snapshot that is being taken, and lets the program end.
    pub(super) fn finish(&mut self, observer: &mut dyn Observer) {
        self.end_job(observer);
        self.release_program();
        if self.taken == 0 && self.options.at == HeapAt::Exit {
            observer.note(
                "no heap snapshot: the program did not end by exit, or its allocations are not recorded",
            );
        }
    }

    fn end_job(&mut self, observer: &mut dyn Observer) {
        let Some(job) = self.job.take() else { return };
        let line = job.thread.join().unwrap_or_else(|_| "no heap snapshot: please report this".to_owned());
        // Snapshots of peaks are many, and only the last one is kept.
        if self.options.at != HeapAt::Peak || self.taken == 1 || line.starts_with("no ") {
            observer.note(&line);
        }
        self.next = match self.options.at {
            HeapAt::Peak => Instant::now() + (job.began.elapsed() * PAUSE).max(SHORTEST_PAUSE),
            _ => self.next,
        };
        if self.options.at == HeapAt::Exit {
            self.release_program();
        }
    }

    /// The program may end.
    fn release_program(&self) {
        if let Some(page) = &self.page {
            // SAFETY: that many bytes are mapped while `self` lives, page-aligned. The type is made of atomics, for which any
            // bytes are a value.
            let page = unsafe { &*page.base().cast::<SessionPage>() };
            page.heap_at_exit.store(0, Release);
        }
    }

    fn find_tables(&self) -> Option<TableFile> {
        let prefix = format!("{HEAP_FILE_PREFIX}{}-", self.pid);
        let names = std::fs::read_dir(&self.folder).ok()?.flatten().map(|entry| entry.file_name());
        let name = names.filter(|name| name.to_string_lossy().starts_with(&prefix)).max()?;
        TableFile::open(&self.folder.join(name))
    }
}
