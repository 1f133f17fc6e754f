//! Chunks of about, texts, processes, threads, modules, locations and stack nodes.
//!
//! Texts are in one table and referred to by number. Rows of processes and threads have an index and replace an earlier row
//! with the same index, for example when a thread has ended.

use super::bytes::{Body, Malformed, Source};
use super::columns::{Columns, expect_first, split};
use foldhash::HashMap;
use stackglass_profile::{
    End, Location, LocationId, Module, ModuleIndex, Nanos, Process, ProcessIndex, Recording, RecordingInfo,
    StackId, Thread,
};
use std::sync::Arc;

/// Maximum length of a stored text. Longer texts are truncated.
const MAX_TEXT: usize = 1 << 20;

/// Maximum size and number of the texts in a list. The rest is omitted.
const MAX_LIST: usize = 2 << 20;
const MAX_ENTRIES: usize = 1 << 18;

/// Maximum number of counters of a process.
const MAX_COUNTERS: usize = 1 << 12;

/// The text, truncated to the maximum length.
fn cut(text: &str) -> &str {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let end = (0..=MAX_TEXT).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// The entries of a list, up to the maximum.
fn cut_list(list: &[String]) -> &[String] {
    let mut bytes = 0;
    let end = list.iter().take(MAX_ENTRIES).take_while(|text| {
        bytes += cut(text).len();
        bytes <= MAX_LIST
    });
    &list[..end.count()]
}

/// The writer's table of texts.
#[derive(Default)]
pub(crate) struct TextWriter {
    ids: HashMap<Arc<str>, u32>,
    /// Texts with a number that are not written yet.
    pending: Vec<Arc<str>>,
}

impl TextWriter {
    /// The number of a text.
    pub fn id(&mut self, text: &str) -> u64 {
        let text = cut(text);
        if let Some(id) = self.ids.get(text) {
            return u64::from(*id);
        }
        let id = self.ids.len() as u32;
        let text: Arc<str> = text.into();
        self.ids.insert(text.clone(), id);
        self.pending.push(text);
        u64::from(id)
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Chunks of the texts that are not written yet.
    pub fn take(&mut self) -> Vec<Body> {
        let mut id = self.ids.len() - self.pending.len();
        let mut bodies = Vec::new();
        let mut texts = self.pending.drain(..).peekable();
        while texts.peek().is_some() {
            let mut body = Body::default();
            body.number(id as u64);
            while !body.is_full()
                && let Some(text) = texts.next()
            {
                body.text(&text);
                id += 1;
            }
            bodies.push(body);
        }
        bodies
    }

    /// Removes the texts from number `len` on, which did not reach the file.
    pub fn truncate(&mut self, len: usize) {
        self.ids.retain(|_, id| (*id as usize) < len);
        self.pending.clear();
    }
}

/// Reads a chunk of texts.
pub(crate) fn read_texts(mut source: Source<'_>, texts: &mut Vec<Arc<str>>) -> Result<(), Malformed> {
    expect_first(&mut source, texts.len() as u64, "texts")?;
    while source.remaining() > 0 {
        texts.push(source.text()?.into());
    }
    Ok(())
}

/// Reads the number of a text and returns the text.
pub(crate) fn text_at(source: &mut Source<'_>, texts: &[Arc<str>]) -> Result<Arc<str>, Malformed> {
    let id = source.number()?;
    match usize::try_from(id).ok().and_then(|id| texts.get(id)) {
        Some(text) => Ok(text.clone()),
        None => Err(source.malformed(format!("text {id} of {}", texts.len()))),
    }
}

/// As [`text_at`], as a copy.
fn copied_text(source: &mut Source<'_>, texts: &[Arc<str>]) -> Result<String, Malformed> {
    let text = text_at(source, texts)?;
    source.spend(super::bytes::weight_of_text(text.len()))?;
    Ok(text.to_string())
}

/// The chunk of [`RecordingInfo`].
pub(crate) fn write_info(info: &RecordingInfo) -> Body {
    let mut body = Body::default();
    let texts = |body: &mut Body, list: &[String]| {
        let list = cut_list(list);
        body.number(list.len() as u64);
        for text in list {
            body.text(cut(text));
        }
    };
    texts(&mut body, &info.command);
    for n in [info.started, info.start.0, info.wall.0, info.delay.0, info.capacity] {
        body.number(n);
    }
    body.number(info.full.into());
    let (how, n) = match info.end {
        None => (0, 0),
        Some(End::Exit(status)) => (1, status),
        Some(End::Signal(signal)) => (2, signal),
        Some(End::Running) => (3, 0),
    };
    body.number(how);
    body.number(super::bytes::zigzag(n.into()));
    body.optional(info.kernel_cpu.map(|n| n.0));
    body.number(info.own_cpu.0);
    body.text(cut(&info.writer));
    body.text(cut(&info.machine));
    texts(&mut body, &info.remarks);
    body
}

/// Reads a chunk from [`write_info`]. Later versions may append fields.
pub(crate) fn read_about(mut source: Source<'_>) -> Result<RecordingInfo, Malformed> {
    let texts = |source: &mut Source<'_>| -> Result<Vec<String>, Malformed> {
        let mut list = Vec::new();
        for _ in 0..source.count("texts")? {
            list.push(source.text()?.to_owned());
        }
        Ok(list)
    };
    let mut info = RecordingInfo { command: texts(&mut source)?, ..RecordingInfo::default() };
    info.started = source.number()?;
    info.start = Nanos(source.number()?);
    info.wall = Nanos(source.number()?);
    info.delay = Nanos(source.number()?);
    info.capacity = source.number()?;
    info.full = source.number()? != 0;
    let how = source.number()?;
    let n = i32::try_from(source.signed()?).map_err(|_| source.malformed("an impossible exit status"))?;
    info.end = match how {
        0 => None,
        1 => Some(End::Exit(n)),
        2 => Some(End::Signal(n)),
        3 => Some(End::Running),
        _ => return Err(source.malformed(format!("kind of end {how}"))),
    };
    info.kernel_cpu = source.optional()?.map(Nanos);
    info.own_cpu = Nanos(source.number()?);
    info.writer = source.text()?.to_owned();
    info.machine = source.text()?.to_owned();
    info.remarks = texts(&mut source)?;
    Ok(info)
}

/// Adds the row of a process.
pub(crate) fn write_process(body: &mut Body, texts: &mut TextWriter, index: usize, process: &Process) {
    body.number(index as u64);
    body.number(process.pid.into());
    body.number(process.parent.into());
    body.number(texts.id(&process.exe));
    body.number(process.start.0);
    body.optional(process.end.map(|n| n.0));
    body.number(process.forked.into());
    let arguments = cut_list(&process.arguments);
    body.number(arguments.len() as u64);
    for argument in arguments {
        body.number(texts.id(argument));
        body.weight += super::bytes::weight_of_text(cut(argument).len());
    }
    body.number(process.counters.len().min(MAX_COUNTERS) as u64);
    for (label, n) in process.counters.iter().take(MAX_COUNTERS) {
        body.number(texts.id(label));
        body.number(*n);
        body.weight += super::bytes::weight_of_text(cut(label).len());
    }
    body.weight += 2;
}

/// Reads rows of processes.
pub(crate) fn read_processes(
    mut source: Source<'_>,
    texts: &[Arc<str>],
    processes: &mut Vec<Process>,
) -> Result<(), Malformed> {
    while source.remaining() > 0 {
        source.spend(2)?;
        let index = source.number()?;
        let mut process = Process {
            pid: source.number32()?,
            parent: source.number32()?,
            exe: text_at(&mut source, texts)?,
            start: Nanos(source.number()?),
            end: source.optional()?.map(Nanos),
            forked: source.number()? != 0,
            ..Process::default()
        };
        for _ in 0..source.count("arguments")? {
            process.arguments.push(copied_text(&mut source, texts)?);
        }
        for _ in 0..source.count("counters")? {
            let label = copied_text(&mut source, texts)?;
            process.counters.insert(label, source.number()?);
        }
        put(&source, processes, index, process, "process")?;
    }
    Ok(())
}

/// Adds the row of a thread.
pub(crate) fn write_thread(body: &mut Body, texts: &mut TextWriter, index: usize, thread: &Thread) {
    body.number(index as u64);
    body.number(thread.process.0.into());
    body.number(thread.tid.into());
    body.number(texts.id(&thread.name));
    body.number(thread.start.0);
    body.optional(thread.end.map(|n| n.0));
    body.number(thread.cpu.0);
    body.number(thread.blocked_signal.into());
    body.weight += 1;
}

/// Reads rows of threads.
pub(crate) fn read_threads(
    mut source: Source<'_>,
    texts: &[Arc<str>],
    processes: usize,
    threads: &mut Vec<Thread>,
) -> Result<(), Malformed> {
    while source.remaining() > 0 {
        source.spend(1)?;
        let index = source.number()?;
        let thread = Thread {
            process: process_at(&mut source, processes, "thread")?,
            tid: source.number32()?,
            name: text_at(&mut source, texts)?,
            start: Nanos(source.number()?),
            end: source.optional()?.map(Nanos),
            cpu: Nanos(source.number()?),
            blocked_signal: source.number()? != 0,
        };
        put(&source, threads, index, thread, "thread")?;
    }
    Ok(())
}

/// Reads the index of a process, which must be less than `processes`. `what` is named in errors.
pub(crate) fn process_at(
    source: &mut Source<'_>,
    processes: usize,
    what: &str,
) -> Result<ProcessIndex, Malformed> {
    let process = source.number32()?;
    if process as usize >= processes {
        return Err(source.malformed(format!("a {what} of process {process} of {processes}")));
    }
    Ok(ProcessIndex(process))
}

/// Replaces the entry with this index, or adds it if it is the next one.
pub(crate) fn put<T>(
    source: &Source<'_>,
    to: &mut Vec<T>,
    index: u64,
    value: T,
    what: &str,
) -> Result<(), Malformed> {
    match usize::try_from(index) {
        Ok(index) if index < to.len() => to[index] = value,
        Ok(index) if index == to.len() => to.push(value),
        _ => return Err(source.malformed(format!("{what} {index} where there are {}", to.len()))),
    }
    Ok(())
}

/// Adds the row of a module.
pub(crate) fn write_module(body: &mut Body, texts: &mut TextWriter, module: &Module) {
    body.number(texts.id(&module.path));
    // Build ids have 8 to 64 bytes. Longer ones are omitted.
    body.bytes(if module.build_id.len() <= 4096 { &module.build_id } else { &[] });
    body.weight += 1;
}

/// Reads rows of modules.
pub(crate) fn read_modules(
    mut source: Source<'_>,
    texts: &[Arc<str>],
    modules: &mut Vec<Module>,
) -> Result<(), Malformed> {
    expect_first(&mut source, modules.len() as u64, "modules")?;
    while source.remaining() > 0 {
        source.spend(1)?;
        let path = text_at(&mut source, texts)?;
        modules.push(Module { path, build_id: source.bytes()?.into() });
    }
    Ok(())
}

/// Calls `emit` with chunks of the locations from number `first` on.
pub(crate) fn write_locations<E>(
    locations: &[Location],
    first: usize,
    mut emit: impl FnMut(Body) -> Result<(), E>,
) -> Result<(), E> {
    let mut columns = Columns::<2>::starting_at(first as u64);
    let mut offset = 0u64;
    for location in &locations[first..] {
        columns.number(0, location.module.map_or(0, |m| u64::from(m.0) + 1));
        columns.signed(1, location.offset.wrapping_sub(offset) as i64);
        offset = location.offset;
        if columns.end_row() {
            columns.take().into_iter().try_for_each(&mut emit)?;
            offset = 0;
        }
    }
    columns.take().into_iter().try_for_each(emit)
}

/// Reads a chunk of locations.
pub(crate) fn read_locations(mut source: Source<'_>, recording: &mut Recording) -> Result<(), Malformed> {
    let first = recording.stacks.locations().len();
    let (rows, [mut modules, mut offsets]) = split::<2>(&mut source, first as u64, "locations")?;
    let mut offset = 0u64;
    for row in 0..rows {
        let module = match modules.number()? {
            0 => None,
            n if n <= recording.modules.len() as u64 => Some(ModuleIndex((n - 1) as u32)),
            n => return Err(modules.malformed(format!("module {} of {}", n - 1, recording.modules.len()))),
        };
        offset = offset.wrapping_add(offsets.signed()? as u64);
        let id = next_id(&offsets, first, row)?;
        if recording.stacks.intern_location(Location { module, offset }) != LocationId(id) {
            return Err(offsets.malformed(format!("location {id} repeats an earlier one")));
        }
    }
    modules.end()?;
    offsets.end()
}

/// Calls `emit` with chunks of the stack nodes from number `first` on. Number 0 is the node with id 1.
pub(crate) fn write_nodes<E>(
    nodes: &[(StackId, LocationId)],
    first: usize,
    mut emit: impl FnMut(Body) -> Result<(), E>,
) -> Result<(), E> {
    let mut columns = Columns::<2>::starting_at(first as u64);
    let mut before = 0i64;
    for (index, (caller, location)) in nodes.iter().enumerate().skip(first) {
        // A node comes after its caller, usually directly.
        columns.number(0, index as u64 - u64::from(caller.0));
        columns.signed(1, i64::from(location.0) - before);
        before = location.0.into();
        if columns.end_row() {
            columns.take().into_iter().try_for_each(&mut emit)?;
            before = 0;
        }
    }
    columns.take().into_iter().try_for_each(emit)
}

/// Reads a chunk of stack nodes.
pub(crate) fn read_nodes(mut source: Source<'_>, recording: &mut Recording) -> Result<(), Malformed> {
    let first = recording.stacks.nodes().len();
    let known = recording.stacks.locations().len();
    let (rows, [mut callers, mut locations]) = split::<2>(&mut source, first as u64, "stack nodes")?;
    let mut location = 0i64;
    for row in 0..rows {
        let index = next_id(&callers, first, row)?;
        let back = callers.number()?;
        let Some(caller) = u64::from(index).checked_sub(back) else {
            return Err(
                callers.malformed(format!("stack node {} called from {back} nodes before it", index + 1))
            );
        };
        location = location.wrapping_add(locations.signed()?);
        if !(0..known as i64).contains(&location) {
            return Err(locations.malformed(format!("location {location} of {known}")));
        }
        let node = recording.stacks.extend(StackId(caller as u32), LocationId(location as u32));
        if node != StackId(index + 1) {
            return Err(locations.malformed(format!("stack node {} repeats an earlier one", index + 1)));
        }
    }
    callers.end()?;
    locations.end()
}

/// The number of a row. Ids have 32 bits, and the last one is reserved.
fn next_id(source: &Source<'_>, first: usize, row: usize) -> Result<u32, Malformed> {
    match u32::try_from(first + row) {
        Ok(id) if id < u32::MAX => Ok(id),
        _ => Err(source.malformed("more rows than ids")),
    }
}
