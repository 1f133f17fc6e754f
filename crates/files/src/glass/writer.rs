//! Writes a recording while it grows.
//!
//! The writer keeps counts of tables, which only grow, and copies of rows that may change (processes, threads). Every flush
//! writes complete chunks, each of which refers only to earlier ones. So any prefix of the file can be read.

use super::bytes::Body;
use super::chunk::{self, LAST, NO_PROCESS, Packer, Tag};
use super::error::WriteError;
use super::index::{Index, Totals};
use super::samples::SampleWriter;
use super::tables::{self, TextWriter};
use super::{allocations, names, slices, tasks};
use crate::{atomic_write, hidden_file};
use stackglass_profile::{
    AllocationGroup, Allocations, Nanos, Process, Recording, RecordingInfo, Sample, Task, Thread,
};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A flush of more bytes than this is written in several parts.
const FLUSH: usize = 4 << 20;

/// A `.glass` file being written.
///
/// It has its final name from the start and is *incomplete* until [`GlassWriter::finish`]. Dropping it keeps everything
/// that was appended.
pub struct GlassWriter {
    file: File,
    path: PathBuf,
    /// False for a device or a pipe, which cannot be truncated.
    regular: bool,
    /// End of the complete chunks.
    size: u64,
    /// Complete chunks that are not written yet.
    out: Vec<u8>,
    packer: Packer,
    texts: TextWriter,
    done: Done,
    processes: Vec<Process>,
    threads: Vec<Thread>,
    tasks: Vec<Task>,
    info: Option<RecordingInfo>,
    index: Index,
    /// The file could not be truncated after an error, so nothing may be appended.
    lost: bool,
}

/// The part of the recording that is in the file.
#[derive(Clone, Default)]
struct Done {
    texts: usize,
    modules: usize,
    locations: usize,
    nodes: usize,
    samples: usize,
    /// The sample `samples - 1` as written. It may grow afterwards.
    last: Option<Sample>,
    totals: Totals,
    slices: slices::Written,
    chunks: usize,
}

impl GlassWriter {
    /// Creates the file with mode 0600 and writes how the recording is made.
    ///
    /// An older recording of this name is replaced in one step. Other files are never replaced.
    ///
    /// # Errors
    /// [`WriteError::NotOurs`] if the path is that of another kind of file, [`WriteError::Create`] or [`WriteError::Write`] if
    /// the system fails.
    pub fn create(path: impl AsRef<Path>, info: &RecordingInfo) -> Result<GlassWriter, WriteError> {
        let asked = path.as_ref();
        let create_error = |source| WriteError::Create { path: asked.to_owned(), source };
        let special = atomic_write::special(asked).map_err(create_error)?;
        let regular = special.is_none();
        let path = atomic_write::resolve(asked);
        if regular && !is_ours_or_free(&path).map_err(create_error)? {
            return Err(WriteError::NotOurs { path });
        }
        let (file, part) = match special {
            Some(file) => (file, None),
            None => {
                let (file, part) = hidden_file::beside(&path, 0o600).map_err(create_error)?.into_parts();
                (file, Some(part))
            }
        };
        let mut writer = GlassWriter {
            file,
            path: path.clone(),
            regular,
            size: 0,
            out: chunk::file_header().to_vec(),
            packer: Packer::new().map_err(create_error)?,
            texts: TextWriter::default(),
            done: Done::default(),
            processes: Vec::new(),
            threads: Vec::new(),
            tasks: Vec::new(),
            info: None,
            index: Index::default(),
            lost: false,
        };
        writer.attempt(|writer| writer.write_info(info))?;
        // It gets its name only now, so that the named file always has a header.
        if let Some(part) = part {
            part.persist(&path).map_err(|e| create_error(e.error))?;
        }
        Ok(writer)
    }

    /// Writes what is new or changed in `recording` since the last call, in complete chunks.
    ///
    /// The recording must be the same one, which may have grown. If [`Recording::push`] has merged more into the last sample,
    /// the difference is written as another row.
    ///
    /// # Errors
    /// [`WriteError::Write`], for example with a full disk: the file is truncated to its last complete chunk and stays readable.
    /// A later call writes the rest. [`WriteError::Inconsistent`] if the recording is another one or contradicts itself.
    pub fn append(&mut self, recording: &Recording) -> Result<(), WriteError> {
        self.attempt(|writer| writer.write_new(recording, false))
    }

    /// Forgets the number of samples written so far. After that, the caller may clear the samples of the recording to save
    /// memory; the next call writes all samples that are in it.
    pub fn forget_samples(&mut self) {
        self.done.samples = 0;
        self.done.last = None;
    }

    /// Writes what is new, the names, and the end. The file is then complete.
    ///
    /// # Errors
    /// As [`GlassWriter::append`]. The file then stays incomplete.
    pub fn finish(mut self, recording: &Recording) -> Result<Totals, WriteError> {
        self.attempt(|writer| writer.write_new(recording, true))?;
        self.attempt(|writer| {
            writer.write_names(recording)?;
            writer.write_info(&recording.info)?;
            writer.write_end()
        })?;
        Ok(self.done.totals)
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.size
    }

    /// Runs one flush. If it fails, file and writer are as before.
    fn attempt(&mut self, write: impl FnOnce(&mut Self) -> Result<(), FlushError>) -> Result<(), WriteError> {
        let before = self.done.clone();
        let size = self.size;
        let result = if self.lost {
            Err(FlushError::System(io::Error::other("an earlier error could not be undone")))
        } else {
            write(self).and_then(|()| Ok(self.flush()?))
        };
        let Err(error) = result else { return Ok(()) };
        self.out.clear();
        self.texts.truncate(before.texts);
        self.index.truncate(before.chunks);
        self.done = before;
        self.processes.clear();
        self.threads.clear();
        self.tasks.clear();
        self.info = None;
        self.size = size;
        if self.regular && !self.lost {
            let undone = self.file.set_len(size).and_then(|()| self.file.seek(SeekFrom::Start(size)));
            self.lost = undone.is_err();
        }
        let path = self.path.clone();
        Err(match error {
            FlushError::System(source) => WriteError::Write { path, source, kept: size },
            FlushError::Inconsistent(what) => WriteError::Inconsistent { path, what },
        })
    }

    /// Writes the complete chunks, in one write if possible.
    fn flush(&mut self) -> io::Result<()> {
        let len = self.out.len() as u64;
        let result = self.file.write_all(&self.out);
        self.out.clear();
        result?;
        self.size += len;
        Ok(())
    }

    fn seal(&mut self, tag: Tag, process: u32, body: &Body) -> io::Result<()> {
        let size = self.packer.seal(&mut self.out, tag, process, body)?;
        self.index.add(tag, size);
        self.done.chunks += 1;
        if self.out.len() >= FLUSH {
            self.flush()?;
        }
        Ok(())
    }

    /// Completes a chunk, after a chunk of its new texts.
    fn seal_with_texts(&mut self, tag: Tag, process: u32, body: &Body) -> io::Result<()> {
        for texts in self.texts.take() {
            self.seal(Tag::STRINGS, NO_PROCESS, &texts)?;
        }
        self.done.texts = self.texts.len();
        if body.raw.is_empty() { Ok(()) } else { self.seal(tag, process, body) }
    }

    fn write_info(&mut self, info: &RecordingInfo) -> Result<(), FlushError> {
        self.seal(Tag::ABOUT, NO_PROCESS, &tables::write_info(info))?;
        self.info = Some(info.clone());
        Ok(())
    }

    /// Writes everything but names. With `all`, also changes of ended processes and threads.
    fn write_new(&mut self, recording: &Recording, all: bool) -> Result<(), FlushError> {
        if !all && !self.info.as_ref().is_some_and(|info| same_but_for_clocks(info, &recording.info)) {
            self.write_info(&recording.info)?;
        }
        self.write_processes(recording, all)?;
        self.write_modules(recording)?;
        self.write_threads(recording, all)?;
        self.write_tasks(recording)?;
        let stacks = &recording.stacks;
        let (locations, nodes) = (stacks.locations(), stacks.nodes());
        if locations.len() < self.done.locations || nodes.len() < self.done.nodes {
            return Err(FlushError::Inconsistent("it has fewer stacks"));
        }
        tables::write_locations(locations, self.done.locations, |body| {
            self.seal(Tag::LOCATIONS, NO_PROCESS, &body)
        })?;
        self.done.locations = locations.len();
        tables::write_nodes(nodes, self.done.nodes, |body| self.seal(Tag::NODES, NO_PROCESS, &body))?;
        self.done.nodes = nodes.len();
        self.write_samples(recording)?;
        self.write_slices(recording)?;
        if all { self.write_allocations(recording) } else { Ok(()) }
    }

    fn write_processes(&mut self, recording: &Recording, all: bool) -> Result<(), FlushError> {
        let processes = &recording.processes;
        if processes.len() < self.done.totals.processes as usize {
            return Err(FlushError::Inconsistent("it has fewer processes"));
        }
        let is_final = |process: &Process| process.end.is_some() && !all;
        let written = std::mem::take(&mut self.processes);
        self.processes =
            self.write_changed(Tag::PROCESSES, written, processes, is_final, tables::write_process)?;
        self.done.totals.processes = processes.len() as u64;
        Ok(())
    }

    fn write_modules(&mut self, recording: &Recording) -> Result<(), FlushError> {
        let modules = &recording.modules;
        if modules.len() < self.done.modules {
            return Err(FlushError::Inconsistent("it has fewer modules"));
        }
        let mut body = Body::default();
        for (index, module) in modules.iter().enumerate().skip(self.done.modules) {
            if body.raw.is_empty() {
                body.number(index as u64);
            }
            tables::write_module(&mut body, &mut self.texts, module);
            if body.is_full() {
                self.seal_with_texts(Tag::MODULES, NO_PROCESS, &std::mem::take(&mut body))?;
            }
        }
        self.seal_with_texts(Tag::MODULES, NO_PROCESS, &body)?;
        self.done.modules = modules.len();
        self.done.totals.modules = modules.len() as u64;
        Ok(())
    }

    fn write_threads(&mut self, recording: &Recording, all: bool) -> Result<(), FlushError> {
        let threads = &recording.threads;
        if threads.len() < self.done.totals.threads as usize {
            return Err(FlushError::Inconsistent("it has fewer threads"));
        }
        if threads.iter().any(|thread| thread.process.0 as usize >= recording.processes.len()) {
            return Err(FlushError::Inconsistent("a thread belongs to no process"));
        }
        let is_final = |thread: &Thread| thread.end.is_some() && !all;
        let written = std::mem::take(&mut self.threads);
        self.threads = self.write_changed(Tag::THREADS, written, threads, is_final, tables::write_thread)?;
        self.done.totals.threads = threads.len() as u64;
        Ok(())
    }

    fn write_tasks(&mut self, recording: &Recording) -> Result<(), FlushError> {
        let tasks = &recording.tasks;
        if tasks.len() < self.tasks.len() {
            return Err(FlushError::Inconsistent("it has fewer tasks"));
        }
        if tasks.iter().any(|task| task.process.0 as usize >= recording.processes.len()) {
            return Err(FlushError::Inconsistent("a task belongs to no process"));
        }
        let written = std::mem::take(&mut self.tasks);
        self.tasks = self.write_changed(Tag::TASKS, written, tasks, |_| false, tasks::write_task)?;
        Ok(())
    }

    /// Writes the rows that are new or differ from those `written`, unless those are final. Returns what is written now.
    fn write_changed<Row: Clone + PartialEq>(
        &mut self,
        tag: Tag,
        mut written: Vec<Row>,
        rows: &[Row],
        is_final: impl Fn(&Row) -> bool,
        write: impl Fn(&mut Body, &mut TextWriter, usize, &Row),
    ) -> Result<Vec<Row>, FlushError> {
        let mut body = Body::default();
        for (index, row) in rows.iter().enumerate() {
            match written.get_mut(index) {
                Some(known) if known == row || is_final(known) => continue,
                Some(known) => known.clone_from(row),
                None => written.push(row.clone()),
            }
            write(&mut body, &mut self.texts, index, row);
            if body.is_full() {
                self.seal_with_texts(tag, NO_PROCESS, &std::mem::take(&mut body))?;
            }
        }
        self.seal_with_texts(tag, NO_PROCESS, &body)?;
        Ok(written)
    }

    fn write_samples(&mut self, recording: &Recording) -> Result<(), FlushError> {
        let samples = &recording.samples;
        let amendment = amendment(samples, &self.done)?;
        let mut writer = SampleWriter::starting_at(self.done.totals.rows);
        let mut process = None;
        for sample in amendment.iter().chain(&samples[self.done.samples..]) {
            let Some(thread) = recording.thread(sample.thread) else {
                return Err(FlushError::Inconsistent("a sample belongs to no thread"));
            };
            if sample.stack.0 as usize > recording.stacks.nodes().len() {
                return Err(FlushError::Inconsistent("a sample has no stack"));
            }
            let this = thread.process.0;
            process = Some(process.map_or(this, |p| if p == this { p } else { NO_PROCESS }));
            self.done.totals.count(sample);
            if writer.push(sample) {
                self.seal_samples(&mut writer, process.take())?;
            }
        }
        self.seal_samples(&mut writer, process)?;
        self.done.samples = samples.len();
        self.done.last = samples.last().copied();
        Ok(())
    }

    fn write_slices(&mut self, recording: &Recording) -> Result<(), FlushError> {
        let new = &recording.allocations.slices;
        let mut written = self.done.slices;
        let forgotten = written.begin(new);
        let (processes, keys) = written.known();
        if !written.fits(recording) {
            return Err(FlushError::Inconsistent(
                "slices of allocations have no process, thread, stack or key",
            ));
        }
        if forgotten {
            let mut body = Body::default();
            body.number(0);
            self.seal(Tag::SLICED, NO_PROCESS, &body)?;
        }
        if let Some(body) = written.processes(new) {
            self.seal(Tag::SLICED, NO_PROCESS, &body)?;
        }
        written.keys(new, |body| self.seal(Tag::SLICE_KEYS, NO_PROCESS, &body))?;
        let first = self.done.totals.slice_changes;
        let (changes, parts) =
            written.slices(new, first, |body| self.seal(Tag::SLICES, NO_PROCESS, &body))?;
        let totals = &mut self.done.totals;
        totals.slice_changes += changes;
        let added = new.processes().len() - processes + new.keys().len() - keys;
        totals.slice_parts += parts + added as u64 + u64::from(forgotten);
        self.done.slices = written;
        Ok(())
    }

    fn seal_samples(&mut self, writer: &mut SampleWriter, process: Option<u32>) -> io::Result<()> {
        let Some((spreads, samples)) = writer.take() else { return Ok(()) };
        let process = process.unwrap_or(NO_PROCESS);
        if let Some(spreads) = spreads {
            self.seal(Tag::SPREADS, process, &spreads)?;
        }
        self.seal(Tag::SAMPLES, process, &samples)
    }

    fn write_allocations(&mut self, recording: &Recording) -> Result<(), FlushError> {
        let Allocations { processes, groups, .. } = &recording.allocations;
        let mut body = Body::default();
        for process in processes {
            if process.process.0 as usize >= recording.processes.len() {
                return Err(FlushError::Inconsistent("allocations belong to no process"));
            }
            allocations::write_process(&mut body, process);
            if body.is_full() {
                self.seal(Tag::ALLOCATING, NO_PROCESS, &std::mem::take(&mut body))?;
            }
        }
        self.seal_with_texts(Tag::ALLOCATING, NO_PROCESS, &body)?;
        allocations::write_memory(processes, |body| self.seal(Tag::MEMORY, NO_PROCESS, &body))?;
        let known = |group: &AllocationGroup| {
            (group.process.0 as usize) < recording.processes.len()
                && group.thread.0 as usize <= recording.threads.len()
                && group.stack.0 as usize <= recording.stacks.nodes().len()
        };
        if !groups.iter().all(known) {
            return Err(FlushError::Inconsistent("allocations have no process, thread or stack"));
        }
        allocations::write_groups(groups, |body| self.seal(Tag::ALLOCATIONS, NO_PROCESS, &body))?;
        let totals = &mut self.done.totals;
        totals.allocation_groups = groups.len() as u64;
        totals.memory_points = processes.iter().map(|process| process.memory.len() as u64).sum();
        Ok(())
    }

    fn write_names(&mut self, recording: &Recording) -> Result<(), FlushError> {
        let symbols = &recording.symbols;
        if symbols.locations() > recording.stacks.locations().len() {
            return Err(FlushError::Inconsistent("it has names of locations that it has not"));
        }
        let mut next = 0;
        while next < symbols.frames().len() {
            let mut body = Body::default();
            next = names::write_frames(&mut body, &mut self.texts, symbols.frames(), next);
            self.seal_with_texts(Tag::FRAMES, NO_PROCESS, &body)?;
        }
        let mut next = 0;
        while next < symbols.locations() {
            let mut body = Body::default();
            next = names::write_symbols(&mut body, symbols, next);
            self.seal_with_texts(Tag::SYMBOLS, NO_PROCESS, &body)?;
        }
        names::write_dispatches(symbols, self.done.locations, |body| {
            self.seal(Tag::DISPATCHES, NO_PROCESS, &body)
        })?;
        let mut body = Body::default();
        for (file, short) in symbols.short_paths() {
            names::write_short_path(&mut body, &mut self.texts, file, short);
            if body.is_full() {
                self.seal_with_texts(Tag::SHORT_PATHS, NO_PROCESS, &std::mem::take(&mut body))?;
            }
        }
        self.seal_with_texts(Tag::SHORT_PATHS, NO_PROCESS, &body)?;
        let mut body = Body::default();
        names::write_notes(&mut body, &mut self.texts, symbols.notes());
        self.seal_with_texts(Tag::NOTES, NO_PROCESS, &body)?;
        let types = symbols.allocated_types();
        if types.last().is_some_and(|(stack, _)| stack.0 as usize > recording.stacks.nodes().len()) {
            return Err(FlushError::Inconsistent("it has types of stacks that it has not"));
        }
        let mut next = 0;
        while next < types.len() {
            let mut body = Body::default();
            next = allocations::write_types(&mut body, &mut self.texts, &types, next);
            self.seal_with_texts(Tag::TYPES, NO_PROCESS, &body)?;
        }
        self.done.totals.frames = symbols.frames().len() as u64;
        Ok(())
    }

    fn write_end(&mut self) -> Result<(), FlushError> {
        let totals = &mut self.done.totals;
        totals.locations = self.done.locations as u64;
        totals.nodes = self.done.nodes as u64;
        totals.texts = self.texts.len() as u64;
        for body in self.index.bodies() {
            self.seal(Tag::INDEX, NO_PROCESS, &body)?;
        }
        let mut body = Body::default();
        self.done.totals.write(&mut body);
        self.index.write_places(&mut body);
        self.done.totals.write_rest(&mut body);
        let end = self.size + self.out.len() as u64;
        self.packer.seal(&mut self.out, Tag::END, NO_PROCESS, &body)?;
        self.out.extend_from_slice(&end.to_le_bytes());
        self.out.extend_from_slice(&LAST);
        Ok(())
    }
}

/// Why a flush failed.
enum FlushError {
    System(io::Error),
    Inconsistent(&'static str),
}

impl From<io::Error> for FlushError {
    fn from(error: io::Error) -> FlushError {
        FlushError::System(error)
    }
}

/// The part of the last written sample that is not written yet.
fn amendment(samples: &[Sample], done: &Done) -> Result<Option<Sample>, FlushError> {
    const OTHER: FlushError = FlushError::Inconsistent("its samples are others");
    let Some(before) = done.last else { return Ok(None) };
    let Some(now) = samples.get(done.samples - 1) else { return Err(OTHER) };
    if *now == before {
        return Ok(None);
    }
    let same = now.kind() == before.kind();
    let hits = now.hits.checked_sub(before.hits);
    let time = now.time.0.checked_sub(before.time.0);
    match (same, hits, time) {
        (true, Some(hits), Some(time)) => {
            // It begins where the sample ended when it was written, or before if the sample begins earlier now.
            let is_earlier = now.spread.0 > 0 && now.begin() < before.begin();
            let begin = if is_earlier { now.begin() } else { before.clock };
            let spread = now.clock.0.saturating_sub(begin.0).saturating_sub(time);
            Ok(Some(Sample { hits, time: Nanos(time), spread: Nanos(spread), ..*now }))
        }
        _ => Err(OTHER),
    }
}

/// Whether nothing but wall time and own CPU time has changed.
fn same_but_for_clocks(a: &RecordingInfo, b: &RecordingInfo) -> bool {
    RecordingInfo { wall: b.wall, own_cpu: b.own_cpu, ..a.clone() } == *b
}

/// Whether the path is free, an empty file, or a recording.
fn is_ours_or_free(path: &Path) -> io::Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(e) => return Err(e),
    };
    let mut magic = [0; 8];
    let n = file.read(&mut magic)?;
    Ok(magic[..n] == chunk::MAGIC[..n])
}

/// Writes a complete recording. The file appears under its name only when it is complete.
///
/// # Errors
/// As [`GlassWriter::create`] and [`GlassWriter::finish`]. No file is left behind.
pub fn write(path: impl AsRef<Path>, recording: &Recording) -> Result<Totals, WriteError> {
    let path = path.as_ref();
    let create_error = |source| WriteError::Create { path: path.to_owned(), source };
    if atomic_write::special(path).map_err(create_error)?.is_some() {
        return GlassWriter::create(path, &recording.info)?.finish(recording);
    }
    let path = atomic_write::resolve(path);
    if !is_ours_or_free(&path).map_err(create_error)? {
        return Err(WriteError::NotOurs { path });
    }
    let part = hidden_file::beside(&path, 0o600).map_err(create_error)?.into_temp_path();
    // Dropping the temporary file removes it.
    let renamed = |error| match error {
        WriteError::Create { source, .. } => create_error(source),
        WriteError::Write { source, .. } => WriteError::Write { path: path.clone(), source, kept: 0 },
        other => other,
    };
    let totals = GlassWriter::create(&part, &recording.info)
        .and_then(|writer| writer.finish(recording))
        .map_err(renamed)?;
    part.persist(&path).map_err(|e| create_error(e.error))?;
    Ok(totals)
}
