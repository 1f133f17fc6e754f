//! What is asked of the code that drops a value, and the answer.
//!
//! All drops of a process together may take so many instructions: a process is as hostile as it likes.

use crate::code::Code;
use crate::drop_stop::DropStop;
use crate::dropped::Dropped;
use crate::run::Run;
use foldhash::HashSet;
use stackglass_layouts::{KnownFunction, Layouts};
use stackglass_process_view::modules::LoadedModule;
use stackglass_process_view::pages::Pages;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// Most instructions for one task, and for all tasks.
const MOST_OF_TASK: u32 = 400_000;
pub(crate) const MOST: u32 = 4_000_000;
/// For one landing pad, and for those of all frames.
const MOST_OF_LANDING_PAD: u32 = 50_000;
const MOST_OF_FRAMES: u32 = 1_000_000;
/// Bytes of a semaphore.
pub(crate) const SEMAPHORE_SIZE: u64 = 40;

/// Interprets the code that drops tasks.
pub struct Drops<'a> {
    pub(crate) code: Code<'a>,
    /// Both functions that give permits back exist, so neither is inlined everywhere.
    pub(crate) has_both: bool,
    pub(crate) left: Cell<u32>,
    pub(crate) thread_local: Option<u64>,
    pub(crate) stops: RefCell<Vec<DropStop>>,
}

/// A change of memory before the code is interpreted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patch {
    /// Address of the first byte that changes.
    pub address: u64,
    /// Number of bytes: up to 16.
    pub size: usize,
    /// Their new value, little-endian.
    pub value: u128,
}

/// Changes of memory.
pub type Patches = Vec<Patch>;

/// What is asked for.
#[derive(Default)]
pub struct Watched {
    /// Addresses of semaphores.
    pub semaphores: BTreeSet<u64>,
    /// Addresses of words.
    pub words: HashSet<u64>,
}

impl<'a> Drops<'a> {
    /// The code of these modules, of which a process has the memory.
    pub fn new(pages: &'a Pages<'a>, layouts: &Layouts, modules: &[LoadedModule]) -> Drops<'a> {
        let code = Code::new(pages, layouts, modules, KnownFunction::Release);
        let registers = pages.image().threads.iter().find_map(|thread| thread.registers);
        Drops {
            has_both: code.has_both(),
            code,
            left: Cell::new(MOST),
            stops: RefCell::default(),
            thread_local: registers.map(|registers| registers.fs_base()),
        }
    }

    /// The code of these modules that drops what frames of threads have.
    pub fn of_frames(pages: &'a Pages<'a>, layouts: &Layouts, modules: &[LoadedModule]) -> Drops<'a> {
        let code = Code::new(pages, layouts, modules, KnownFunction::Resume);
        // Each thread has its own thread-local storage.
        Drops {
            has_both: true,
            code,
            left: Cell::new(MOST_OF_FRAMES),
            stops: RefCell::default(),
            thread_local: None,
        }
    }

    /// What a function does that drops the value at an address.
    pub fn of(&self, function: u64, value: u64, watched: &Watched) -> Dropped {
        self.of_changed(function, value, watched, &[])
    }

    /// The same, if memory were changed before.
    pub fn of_changed(&self, function: u64, value: u64, watched: &Watched, patches: &[Patch]) -> Dropped {
        let begin = MOST_OF_TASK.min(self.left.get());
        let mut run = Run::new(&self.code, &self.stops, self.thread_local, &watched.words, begin, value);
        let stored = patches
            .iter()
            .try_for_each(|patch| run.machine.store(patch.address, patch.size, Some(patch.value)));
        match stored {
            Ok(()) => run.all(function),
            Err(_) => run.found.is_whole = false,
        }
        self.left.set(self.left.get() - (begin - run.left));
        if !self.has_both {
            let semaphore = |(address, _): (u64, Option<u64>)| {
                let before = watched.semaphores.range(..=address).next_back()?;
                (address - before < SEMAPHORE_SIZE).then_some(*before)
            };
            run.found.touched = run.machine.written().filter_map(semaphore).collect();
        }
        run.read_words();
        run.found
    }

    /// What the landing pad of a frame does, which drops all that is live in it. The frame has these registers, by DWARF's numbers.
    pub fn of_landing_pad(&self, pad: u64, registers: &[Option<u64>; 17], words: &HashSet<u64>) -> Dropped {
        let begin = MOST_OF_LANDING_PAD.min(self.left.get());
        let mut run = Run::new(&self.code, &self.stops, None, words, begin, pad);
        run.landing_pad(pad, registers);
        self.left.set(self.left.get() - (begin - run.left));
        run.read_words();
        run.found
    }

    /// Where the code could not be followed so far.
    pub fn stops(&self) -> Vec<DropStop> {
        self.stops.take()
    }
}
