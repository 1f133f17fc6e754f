//! The tables of all processes of a session: found in its folder, read when their process has ended.

use super::slices::{RATE_COUNTS, Slices};
use super::table_file::TableFile;
use crate::launch::own_allocator::Executables;
use crate::launch::program::Program;
use stackglass_inspect::allocation_groups::{self, Followed};
use stackglass_procfs::clock::monotonic;
use stackglass_procfs::process::is_alive;
use stackglass_profile::{MemoryPoint, Nanos, Recorder, SliceChange};
use stackglass_wire::heap::{HEAP_FILE_PREFIX, HeapPage, HeapTables, REFUSED_FILE_PREFIX};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

/// Time between two checks of the folder and of live bytes.
const EVERY: Duration = Duration::from_millis(20);
/// Most points of memory over time for one process. Beyond that, every second one is dropped.
const MOST_POINTS: usize = 1024;
/// Most processes at a time.
const MOST: usize = 1024;

/// Reads the allocations of all processes of a session.
pub struct AllocationDrain {
    folder: PathBuf,
    open: Vec<HeapFile>,
    refused: HashSet<OsString>,
    /// Lines about processes whose allocations are not recorded.
    refusals: Vec<String>,
    next: Option<Instant>,
    executables: Executables,
    /// Allocations by time, if they are wanted.
    slices: Option<Slices>,
    /// Number of the next file.
    next_number: u32,
}

/// The tables of one process.
pub(crate) struct HeapFile {
    name: OsString,
    /// Of all files of a session.
    pub(super) number: u32,
    file: TableFile,
    memory: Memory,
    /// Its counters at the last reading.
    followed: Followed,
    /// What it counted in recordings that began before is forgotten, CLOCK_MONOTONIC in ns.
    forgotten_at: u64,
}

/// Live and resident bytes over time.
#[derive(Default)]
struct Memory {
    points: Vec<MemoryPoint>,
    /// Of this many points, one is kept.
    step: u32,
    skipped: u32,
}

impl Memory {
    fn push(&mut self, point: MemoryPoint) {
        if self.points.len() >= MOST_POINTS {
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.step = self.step.max(1) * 2;
        }
        self.skipped += 1;
        if self.skipped >= self.step {
            self.skipped = 0;
            self.points.push(point);
        }
    }
}

impl Memory {
    /// Adds the peak, which lies between two points.
    fn insert_peak(&mut self, page: &HeapPage) {
        let clock = Nanos(page.peak_at_ns().load(Relaxed));
        let live_bytes = page.peak_bytes().load(Relaxed).max(0) as u64;
        let place = self.points.partition_point(|point| point.clock <= clock);
        let near = self.points.get(place).or(self.points.last());
        let resident_bytes = near.map_or(0, |point| point.resident_bytes);
        if clock.0 != 0 {
            self.points.insert(place, MemoryPoint { clock, live_bytes, resident_bytes });
        }
    }
}

impl HeapFile {
    pub(crate) fn open(path: &Path, name: OsString) -> Option<HeapFile> {
        Some(HeapFile {
            name,
            number: 0,
            file: TableFile::open(path)?,
            memory: Memory::default(),
            followed: Followed::default(),
            forgotten_at: 0,
        })
    }

    /// The tables. What it gives must not be used any more when `self` is dropped.
    pub(crate) fn tables(&self) -> HeapTables {
        self.file.tables()
    }

    fn pid(&self) -> u32 {
        self.tables().page().pid.load(Relaxed)
    }

    fn begin(&self) -> u64 {
        self.tables().page().begin_ns.load(Relaxed)
    }

    /// Adds a point to the line of memory over time.
    fn add_point(&mut self) {
        let live_bytes = self.tables().page().live_bytes().load(Relaxed).max(0) as u64;
        let resident_bytes = resident_bytes(self.pid()).unwrap_or(0);
        self.memory.push(MemoryPoint { clock: Nanos(monotonic()), live_bytes, resident_bytes });
    }

    /// It has allocated nothing since all was forgotten.
    fn is_forgotten(&self) -> bool {
        self.begin() < self.forgotten_at
    }

    /// What has changed since the last time, by counter.
    pub(super) fn changes(&mut self) -> Vec<SliceChange> {
        if self.is_forgotten() { Vec::new() } else { self.followed.changes(&self.file.tables(), RATE_COUNTS) }
    }

    /// Makes numbers of counters those of keys.
    pub(super) fn resolve(&mut self, changes: &mut Vec<SliceChange>, recorder: &mut Recorder) {
        self.followed.resolve(&self.file.tables(), RATE_COUNTS, changes, recorder);
    }

    fn read(mut self, slices: &mut Option<Slices>, recorder: &mut Recorder) {
        if self.is_forgotten() {
            return;
        }
        if let Some(slices) = slices {
            slices.resolve(&mut self, recorder);
        }
        self.add_point();
        let tables = self.tables();
        self.memory.insert_peak(tables.page());
        let end = match tables.page().end_ns.load(Relaxed) {
            0 => monotonic(),
            end => end,
        };
        let memory = std::mem::take(&mut self.memory.points);
        match slices {
            Some(slices) => {
                slices.add(self.followed.finish(&tables, RATE_COUNTS, Nanos(end), memory, recorder));
            }
            None => {
                allocation_groups::add(&tables, RATE_COUNTS, Nanos(end), memory, recorder);
            }
        }
    }
}

impl AllocationDrain {
    /// A drain of the session in `folder`.
    pub fn new(folder: &Path) -> AllocationDrain {
        AllocationDrain {
            folder: folder.to_owned(),
            open: Vec::new(),
            refused: HashSet::new(),
            refusals: Vec::new(),
            next: None,
            executables: Executables::default(),
            slices: None,
            next_number: 1,
        }
    }

    /// Stores allocations by slice of time as well. The caller must then call [`AllocationDrain::settle`] again and again.
    pub fn by_time(mut self) -> AllocationDrain {
        self.slices = Some(Slices::new());
        self
    }

    /// Says nothing more about the allocator of this program.
    pub fn skip_executable(&mut self, program: &Program) {
        self.executables.skip(program);
    }

    /// Finds new processes and adds points to the lines of memory over time.
    pub fn update(&mut self) {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + EVERY);
        self.find();
        self.open.iter_mut().for_each(HeapFile::add_point);
        if let Some(slices) = &mut self.slices {
            slices.update(&mut self.open);
        }
    }

    /// Reads the processes that have ended. All that is known of them must be in the recording already.
    pub fn settle(&mut self, recorder: &mut Recorder) {
        self.find();
        self.read_if(recorder, |file, open| !is_alive(file.pid()) || is_replaced(file, open));
        if let Some(slices) = &mut self.slices {
            slices.hand_over(&mut self.open, recorder);
        }
    }

    /// Forgets what all processes have counted in recordings that began before this moment, CLOCK_MONOTONIC in ns.
    pub(crate) fn forget(&mut self, before: u64) {
        self.find();
        for file in &mut self.open {
            (file.forgotten_at, file.memory) = (before, Memory::default());
            file.followed = Followed::default();
        }
        self.slices.iter_mut().for_each(Slices::forget);
    }

    /// Live bytes of all processes.
    pub fn live_bytes(&self) -> u64 {
        self.open.iter().map(|file| file.tables().page().live_bytes().load(Relaxed).max(0) as u64).sum()
    }

    /// Reads one process, which may run on and be recorded again.
    pub fn read_one(mut self, pid: u32, recorder: &mut Recorder) {
        self.find();
        self.executables.take_remarks().into_iter().for_each(|remark| recorder.remark(remark));
        for file in self.open {
            if file.pid() == pid && !is_ended(&file) {
                file.read(&mut None, recorder);
            }
        }
    }

    /// Reads all processes. Returns a line if there are some whose allocations are not recorded.
    pub fn close(mut self, recorder: &mut Recorder) -> Option<String> {
        self.find();
        self.read_if(recorder, |_, _| true);
        if let Some(slices) = self.slices.take() {
            slices.finish(recorder);
        }
        let first = self.refusals.first()?;
        Some(match self.refusals.len() {
            1 => first.clone(),
            count => format!("{first} (and {} more processes)", count - 1),
        })
    }

    fn read_if(&mut self, recorder: &mut Recorder, ended: impl Fn(&HeapFile, &[HeapFile]) -> bool) {
        let ended: Vec<bool> = self.open.iter().map(|file| ended(file, &self.open)).collect();
        let mut ended = ended.into_iter();
        let (gone, open): (Vec<HeapFile>, Vec<HeapFile>) =
            std::mem::take(&mut self.open).into_iter().partition(|_| ended.next().unwrap_or(false));
        self.open = open;
        self.executables.take_remarks().into_iter().for_each(|remark| recorder.remark(remark));
        for file in gone {
            let _ = fs::remove_file(self.folder.join(&file.name));
            file.read(&mut self.slices, recorder);
        }
    }

    /// What a process tells about the allocations that it cannot record.
    fn refusal_of(&self, name: &OsStr) -> Option<String> {
        let (pid, errno) = name.to_str()?.strip_prefix(REFUSED_FILE_PREFIX)?.split_once('-')?;
        let (pid, errno): (u32, i32) = (pid.parse().ok()?, errno.parse().ok()?);
        let mut step = [0u8; 128];
        let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(self.folder.join(name));
        let len = file.and_then(|mut file| file.read(&mut step)).unwrap_or(0);
        let step = String::from_utf8_lossy(&step[..len]).into_owned();
        let why = match (errno, step.is_empty()) {
            // It is still being written.
            (0, true) => return None,
            (0, false) => step,
            (_, true) => std::io::Error::from_raw_os_error(errno).to_string(),
            (_, false) => format!("{step}: {}", std::io::Error::from_raw_os_error(errno)),
        };
        Some(format!("the allocations of process {pid} are not recorded: {why}"))
    }

    fn find(&mut self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if let Some(refusal) = self.refusal_of(&name) {
                let _ = fs::remove_file(entry.path());
                self.refusals.push(refusal);
                continue;
            }
            let is_new = name.as_bytes().starts_with(HEAP_FILE_PREFIX.as_bytes())
                && !self.refused.contains(&name)
                && self.open.iter().all(|file| file.name != name);
            if !is_new || self.open.len() >= MOST {
                continue;
            }
            // A file that is not ready yet is tried again.
            if let Some(mut file) = HeapFile::open(&entry.path(), name) {
                file.number = self.next_number;
                self.next_number += 1;
                self.executables.check(file.pid(), &self.folder);
                self.open.push(file);
            }
        }
        self.open.sort_by_key(HeapFile::begin);
    }
}

/// Whether the tables are those of a process that has ended.
fn is_ended(file: &HeapFile) -> bool {
    file.tables().page().ended.load(Relaxed) != 0
}

/// Whether the same process has later tables: these ended with an exec.
fn is_replaced(file: &HeapFile, open: &[HeapFile]) -> bool {
    open.iter().any(|other| other.pid() == file.pid() && other.begin() > file.begin())
}

/// Resident set size of a process (proc(5), `/proc/PID/statm`).
pub(super) fn resident_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(page).ok()?)
}
