//! The stream of events in the memory of this process, in the format of a sampler inside a program. The sampling
//! thread writes it, the recording thread reads it.

use stackglass_procfs::{Status, process};
use stackglass_sampling::{SampleSink, Stack};
use stackglass_unwind::Module;
use stackglass_wire::stream::Writer;
use stackglass_wire::{
    CONTROL_BYTES, ControlPage, Counter, Event, ImageFlags, ModuleId, ProcessState, STREAM_BYTES, State,
    TEXT_BYTES, ThreadId, stream,
};
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// The stream of one image of a process: a control page and a ring. Copies refer to the same stream.
#[derive(Clone, Copy)]
pub struct Stream {
    control: &'static ControlPage,
    ring: &'static [AtomicU64],
}

impl Stream {
    /// A stream for the current image of process `pid`. Its memory is never freed: there is one stream for each exec
    /// of a sampled process.
    pub fn new(pid: u32, start: u64) -> Stream {
        const BYTES: usize = CONTROL_BYTES + STREAM_BYTES;
        const LAYOUT: Layout = match Layout::from_size_align(BYTES, 4096) {
            Ok(layout) => layout,
            Err(_) => unreachable!(),
        };
        // SAFETY: the size is not zero. The memory is new and zeroed, and is accessed only through the atomics of the
        // view, for which its layout is made.
        let view = unsafe {
            let at = alloc_zeroed(LAYOUT);
            if at.is_null() {
                handle_alloc_error(LAYOUT);
            }
            stream::view(at, BYTES, STREAM_BYTES / 8)
        };
        // The sizes are constants that fit.
        let Some((control, ring)) = view else { unreachable!("a page and a ring of a power of two") };
        let status = Status::read(pid).unwrap_or_default();
        control.pid.store(pid, Relaxed);
        control.ppid.store(status.parent, Relaxed);
        control.start_ns.store(start, Relaxed);
        control.stream_words.store(ring.len() as u64, Relaxed);
        control.image.store(ImageFlags::SLEEP_LOOK | ImageFlags::VM_READ, Relaxed);
        let living = process::living_thread(pid).unwrap_or(pid);
        let exe = process::executable(living);
        ControlPage::set_text(&control.exe, &control.exe_len, exe.as_os_str().as_bytes());
        let line = process::command_line(living);
        ControlPage::set_text(&control.cmdline, &control.cmdline_len, &line[..line.len().min(TEXT_BYTES)]);
        control.state.store(ProcessState::Running as u32, Release);
        control.publish();
        Stream { control, ring }
    }

    /// Whether the process ended before anything of it was read.
    pub fn was_never_there(&self) -> bool {
        let nameless =
            [&self.control.exe_len, &self.control.cmdline_len].iter().all(|len| len.load(Relaxed) == 0);
        nameless && self.control.process_state() == ProcessState::Stopped
    }

    /// The control page: facts about the image, and counters.
    pub fn control(&self) -> &'static ControlPage {
        self.control
    }

    /// The ring of events.
    pub fn ring(&self) -> &'static [AtomicU64] {
        self.ring
    }

    /// The writing end, for the sampling thread.
    pub(crate) fn events(&self) -> EventWriter {
        EventWriter { writer: Writer::new(self.control, self.ring), control: self.control }
    }
}

/// The writing end.
pub(crate) struct EventWriter {
    writer: Writer<'static>,
    control: &'static ControlPage,
}

impl EventWriter {
    /// Increments a counter.
    pub fn count(&self, what: Counter) {
        self.control.counters.add(what, 1);
    }

    /// Writes an event. Returns false if there was no room.
    pub fn push(&mut self, event: &Event<'_>) -> bool {
        self.writer.push(event)
    }

    /// The sink for one thread's samples.
    pub fn of(&mut self, thread: ThreadId) -> ThreadEvents<'_> {
        ThreadEvents { events: self, thread }
    }

    /// A module was mapped.
    pub(super) fn module_load(&mut self, module: &Module, build_id: &[u8], path: &[u8], at: u64) -> bool {
        let bytes: Vec<u8> = build_id.iter().chain(path).copied().collect();
        let words: Vec<u64> = bytes
            .chunks(8)
            .map(|chunk| chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
            .collect();
        let range = module.range();
        self.count(Counter::Modules);
        self.push(&Event::ModuleLoad {
            module: ModuleId(module.id()),
            at,
            bias: module.bias(),
            low: range.start,
            high: range.end,
            text: &words,
            build_id_len: build_id.len() as u32,
            path_len: path.len() as u32,
        })
    }

    /// A module was unmapped.
    pub(super) fn module_unload(&mut self, id: u32, at: u64) -> bool {
        self.push(&Event::ModuleUnload { module: ModuleId(id), at })
    }

    /// A tick has begun at `now`.
    pub fn tick(&self, now: u64) {
        self.count(Counter::Ticks);
        self.control.last_tick_ns.store(now, Release);
    }

    /// Ends the stream. The image was last seen at `at`.
    pub fn close(&self, at: u64, own_cpu: u64) {
        self.control.last_tick_ns.store(at, Release);
        self.control.sampler_cpu_ns.store(own_cpu, Relaxed);
        self.control.state.store(ProcessState::Stopped as u32, Release);
    }
}

/// The events of one thread.
pub(crate) struct ThreadEvents<'a> {
    events: &'a mut EventWriter,
    thread: ThreadId,
}

impl SampleSink for ThreadEvents<'_> {
    fn push_sample(&mut self, at: u64, time: u64, state: State, stack: Stack<'_>, hits: u32) -> bool {
        let Stack { frames, cut, task } = stack;
        if cut != 0 {
            self.events.count(Counter::Cut);
        }
        let thread = self.thread;
        self.events.push(&Event::Sample { thread, at, time, task, state, cut, hits, frames })
    }

    fn push_repeat(&mut self, at: u64, time: u64, state: State) -> bool {
        self.events.push(&Event::Repeat { thread: self.thread, at, time, state })
    }
}
