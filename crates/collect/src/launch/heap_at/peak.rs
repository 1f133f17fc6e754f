//! The snapshot at the peak of live bytes.
//!
//! Only the end shows which moment was the peak. So the program is copied whenever its live bytes have grown, and the newest copy
//! replaces the last one. A copy is read when the program ends, when no higher peak has come for a while, or when no copy
//! has been read for a long time.

use super::added_snapshots::Snapshot;
use super::options::{SaveSnapshot, SnapshotSummary};
use super::program::{NOT_WAITED, ProgramTables, program_of};
use stackglass_attach::frozen::{self, FrozenProcess};
use stackglass_procfs::clock::monotonic;
use stackglass_procfs::process;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::*;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two checks of the live bytes: the time since the last copy divided by `CHECKS`, within bounds.
const CHECKS: u32 = 16;
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);
const LONGEST_INTERVAL: Duration = Duration::from_millis(20);
/// The program is copied again if its live bytes have grown by one part in `GROWTH`.
const GROWTH: u64 = 32;
/// Time between two copies, as a multiple of the time that the program was held up by the last one.
const PAUSE: u32 = 3;
/// Pause after an attempt that failed.
const AFTER_FAILURE: Duration = Duration::from_millis(250);
/// A copy that no higher peak replaces for this long is read.
const SETTLED: Duration = Duration::from_secs(1);
/// While live bytes keep growing, a copy is read after this time, and after a multiple of the time that the last one took.
const LONGEST_UNREAD: Duration = Duration::from_secs(5);
const UNREAD: u32 = 4;

/// What is needed to find the peak.
pub(super) struct PeakJob {
    pub(super) pid: u32,
    /// The session folder.
    pub(super) folder: PathBuf,
    pub(super) save: SaveSnapshot,
    pub(super) file: PathBuf,
    /// The recording ends.
    pub(super) stop: Arc<AtomicBool>,
}

impl PeakJob {
    /// Copies and reads the program until it ends, or the recording does.
    pub(super) fn run(self) -> Result<Snapshot, String> {
        let began = Instant::now();
        let mut tables = None;
        let mut peaks = Peaks::new(self.pid, self.save, self.file);
        let mut next_search = began;
        loop {
            if Instant::now() >= next_search {
                // A program that executes another has new tables.
                let is_found = ProgramTables::find_newest(&mut tables, self.pid, &self.folder);
                next_search = Instant::now() + if is_found { LONGEST_INTERVAL } else { SHORTEST_INTERVAL };
            }
            let is_over = self.stop.load(Acquire) || tables.as_ref().is_some_and(ProgramTables::has_ended);
            if let Some(tables) = &tables {
                peaks.check(tables, is_over);
            }
            if is_over {
                break;
            }
            let since = peaks.copied_at.unwrap_or(began).elapsed();
            std::thread::sleep((since / CHECKS).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL));
        }
        let peak = tables.as_ref().map_or(0, ProgramTables::peak_bytes);
        let (mut snapshot, summary) = peaks.finish()?;
        let part = (100 * u128::from(summary.bytes) / u128::from(peak.max(summary.bytes).max(1))) as u64;
        snapshot.text = format!("{}; at {part} % of the peak of live bytes", summary.text);
        Ok(snapshot)
    }
}

/// A copy that was not read yet.
struct Unread {
    process: FrozenProcess,
    at: Instant,
    clock: u64,
}

type Reading = JoinHandle<Result<(Snapshot, SnapshotSummary), String>>;

struct Peaks {
    pid: u32,
    save: SaveSnapshot,
    file: PathBuf,
    copy: Option<Unread>,
    copied_at: Option<Instant>,
    /// Live bytes at the last copy.
    highest: u64,
    /// The program is not copied before this time.
    next: Instant,
    reading: Option<(Reading, Instant)>,
    /// While live bytes grow, no copy is read before this time.
    next_reading: Instant,
    saved: Option<(Snapshot, SnapshotSummary)>,
    failure: Option<String>,
}

impl Peaks {
    fn new(pid: u32, save: SaveSnapshot, file: PathBuf) -> Peaks {
        let now = Instant::now();
        Peaks {
            pid,
            save,
            file,
            copy: None,
            copied_at: None,
            highest: 0,
            next: now,
            reading: None,
            next_reading: now + LONGEST_UNREAD,
            saved: None,
            failure: None,
        }
    }

    /// Copies the program if it has more live bytes than before, and reads a copy that is due. A program that ends is copied
    /// at once.
    fn check(&mut self, tables: &ProgramTables, is_over: bool) {
        let live = tables.live_bytes();
        // When a program executes another, its copy ends.
        if self.copy.take_if(|copy| !copy.process.is_alive()).is_some() {
            self.highest = self.saved.as_ref().map_or(0, |(_, summary)| summary.bytes);
        }
        // Live bytes can double only a few times, so this causes few copies.
        let is_time = || is_over || live / 2 > self.highest || Instant::now() >= self.next;
        if live > self.highest + self.highest / GROWTH && is_time() {
            self.copy(tables, live);
        }
        if self.reading.as_ref().is_some_and(|(thread, _)| thread.is_finished()) {
            self.end_reading();
        }
        let now = Instant::now();
        let is_due = |copy: &mut Unread| now > copy.at + SETTLED || now > self.next_reading;
        if !is_over
            && self.reading.is_none()
            && let Some(copy) = self.copy.take_if(is_due)
        {
            let (save, file) = (self.save, self.file.clone());
            let thread = std::thread::Builder::new().name("stackglass-read".into());
            let thread = thread.spawn(move || read(copy, save, file));
            self.reading = thread.ok().map(|thread| (thread, now));
        }
    }

    fn copy(&mut self, tables: &ProgramTables, live: u64) {
        let (start, clock) = (Instant::now(), monotonic());
        match FrozenProcess::copy(self.pid, &frozen::Options::default()) {
            Ok(copy) => {
                self.next = Instant::now() + copy.pause().whole * PAUSE;
                self.copied_at = Some(start);
                // A program that still sleeps has what it had when it fell asleep. One that runs may have freed some before the copy, or
                // allocated more since: it may have slept in a page fault.
                let now = tables.live_bytes();
                let live = if copy.sleeps() { now } else { live.min(now) };
                if live > self.highest {
                    self.copy = Some(Unread { process: copy, at: start, clock });
                    self.highest = live;
                }
            }
            Err(error) => {
                // If the program was killed, its end is the reason, not this error.
                if process::is_alive(self.pid) {
                    self.failure = Some(error.to_string());
                }
                self.highest = self.highest.max(live / 2);
                self.next = Instant::now() + AFTER_FAILURE;
            }
        }
    }

    fn end_reading(&mut self) {
        let Some((thread, began)) = self.reading.take() else { return };
        self.keep(thread.join().unwrap_or_else(|_| Err("please report this".into())));
        self.next_reading = Instant::now() + LONGEST_UNREAD.max(began.elapsed() * UNREAD);
    }

    fn keep(&mut self, result: Result<(Snapshot, SnapshotSummary), String>) {
        match result {
            Ok(saved) => self.saved = Some(saved),
            Err(reason) => self.failure = Some(reason),
        }
    }

    /// Reads the newest copy. The result is that of the last copy that could be read.
    fn finish(mut self) -> Result<(Snapshot, SnapshotSummary), String> {
        self.end_reading();
        if let Some(copy) = self.copy.take() {
            let result = read(copy, self.save, self.file.clone());
            self.keep(result);
        }
        match (self.saved, self.failure) {
            (Some(saved), _) => Ok(saved),
            (None, failure) => Err(failure.unwrap_or_else(|| NOT_WAITED.into())),
        }
    }
}

fn read(copy: Unread, save: SaveSnapshot, file: PathBuf) -> Result<(Snapshot, SnapshotSummary), String> {
    let program = program_of(&copy.process);
    let summary = save(copy.process, &file)?;
    Ok((Snapshot { file, clock: copy.clock, program, text: String::new(), reached: Vec::new() }, summary))
}
