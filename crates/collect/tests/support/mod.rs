//! A guest made of memory: a control page and a stream that tests fill as they like.
#![allow(unsafe_code, reason = "views memory as a stream")]
// Not every test uses all of it.
#![allow(dead_code)]

use stackglass_wire::stream::{self, Writer};
use stackglass_wire::{CONTROL_BYTES, ControlPage, Counter, Event, PROCESS_FILE_PREFIX, ProcessState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::*};

/// What is remarked on a malformed event, a damaged stream and lost samples of a guest with process id 1.
pub const MALFORMED: &str = "process 1 (guest) sent malformed events, which were skipped";
pub const DAMAGED: &str = "process 1 (guest) damaged its stream; its samples up to then are kept";
pub const LOST: &str =
    "process 1 (guest) was sampled faster than the samples could be read: some were lost; try a longer delay";

/// Words of a guest's stream.
pub const WORDS: usize = 1 << 12;

/// Memory laid out as a process file is.
pub struct Guest {
    memory: Vec<AtomicU64>,
    skip: usize,
}

impl Guest {
    /// One with a ready control page for a process `pid`.
    pub fn new(pid: u32) -> Guest {
        let memory: Vec<AtomicU64> = (0..CONTROL_BYTES / 8 + WORDS + 8).map(|_| AtomicU64::new(0)).collect();
        let skip = memory.as_ptr().cast::<u8>().align_offset(64) / 8;
        let guest = Guest { memory, skip };
        let control = guest.view().0;
        control.pid.store(pid, Relaxed);
        control.start_ns.store(1000, Relaxed);
        control.last_tick_ns.store(2000, Relaxed);
        control.stream_words.store(WORDS as u64, Relaxed);
        control.state.store(ProcessState::Running as u32, Relaxed);
        ControlPage::set_text(&control.exe, &control.exe_len, b"/opt/bin/guest");
        ControlPage::set_text(&control.cmdline, &control.cmdline_len, b"guest\0--fast\0");
        control.publish();
        guest
    }

    /// Its control page and its stream.
    pub fn view(&self) -> (&ControlPage, &[AtomicU64]) {
        let base = self.memory[self.skip..].as_ptr().cast::<u8>().cast_mut();
        let len = (self.memory.len() - self.skip) * 8;
        // SAFETY: `memory` lives as long as `self`, is made of atomics and begins at a multiple of 64.
        unsafe { stream::view(base, len, WORDS) }.expect("the memory is large enough")
    }

    /// Appends an event.
    pub fn push(&self, event: Event<'_>) {
        let (control, ring) = self.view();
        assert!(Writer::new(control, ring).push(&event), "the stream of a test is large enough");
    }

    /// Appends an event of a kind that does not exist.
    pub fn push_malformed(&self) {
        let (control, ring) = self.view();
        let head = control.head.load(Relaxed);
        // Kind 255, two words.
        ring[head as usize % WORDS].store(255 | 2 << 8, Relaxed);
        control.head.store(head + 2, Release);
    }

    /// Makes it say that more words are waiting than it can hold.
    pub fn damage(&self) {
        self.view().0.head.fetch_add(2 * WORDS as u64, Release);
    }

    /// Counts an event that was lost.
    pub fn lose(&self) {
        self.view().0.counters.add(Counter::StreamFull, 1);
    }

    /// Writes it as a process file.
    pub fn write(&self, folder: &Path) -> PathBuf {
        let (control, _) = self.view();
        let (pid, start) = (control.pid.load(Relaxed), control.start_ns.load(Relaxed));
        let path = folder.join(format!("{PROCESS_FILE_PREFIX}{pid}-{start}"));
        let words = &self.memory[self.skip..][..CONTROL_BYTES / 8 + WORDS];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
        std::fs::write(&path, bytes).expect("a file can be written");
        path
    }
}

/// A name as the kernel keeps it.
pub fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}
