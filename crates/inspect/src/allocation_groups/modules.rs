//! The modules of a process, from its tables of allocations.

use stackglass_profile::address_space::{AddressSpace, MappedRange};
use stackglass_profile::{Module, ModuleIndex, Recorder};
use stackglass_wire::heap::{self, HeapTables, MODULE_WORDS};
use stackglass_wire::{Event, text_byte};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

/// Longest path and build id of a module.
const LONGEST_PATH: usize = 4096;
const LONGEST_BUILD_ID: usize = 64;

/// The modules of a process, generation by generation.
pub(super) struct Modules {
    /// The modules from a generation on, in order.
    spaces: Vec<(u32, AddressSpace)>,
    /// Path of the first module, which is the program.
    pub(super) program: Arc<str>,
}

/// Most generations of modules that are distinguished.
const MOST_GENERATIONS: usize = 4096;

impl Modules {
    pub(super) fn read(tables: &HeapTables, recorder: &mut Recorder) -> Modules {
        let used = (tables.page().module_words.load(Acquire) as usize).min(MODULE_WORDS);
        let words: Vec<u64> = (0..used).map(|index| tables.module_word(index).load(Relaxed)).collect();
        let mut modules = Modules { spaces: vec![(0, AddressSpace::default())], program: "".into() };
        heap::module_events(&words, |event| modules.apply(event, recorder));
        modules
    }

    fn apply(&mut self, event: &Event<'_>, recorder: &mut Recorder) {
        match *event {
            Event::ModuleLoad { module, at, bias, low, high, text, build_id_len, path_len } => {
                let (id, path) = (build_id_len as usize, path_len as usize);
                let bytes = |from: usize, n: usize| (from..from + n).map(|i| text_byte(text, i));
                let path: Vec<u8> = bytes(id, path.min(LONGEST_PATH)).collect();
                let build_id: Vec<u8> = bytes(0, id.min(LONGEST_BUILD_ID)).collect();
                let path: Arc<str> = String::from_utf8_lossy(&path).into();
                if self.program.is_empty() {
                    self.program = path.clone();
                }
                if let Some(index) = module_of(Module { path, build_id: build_id.into() }, recorder) {
                    self.space_of(at).load(module.0, index, MappedRange { low, high, bias });
                }
            }
            Event::ModuleUnload { module, at } => self.space_of(at).unload(module.0),
            _ => {}
        }
    }

    /// The modules of a generation, which begin as those of the one before.
    fn space_of(&mut self, generation: u64) -> &mut AddressSpace {
        let generation = u32::try_from(generation).unwrap_or(u32::MAX);
        if self.spaces.last().is_none_or(|(last, _)| *last < generation)
            && self.spaces.len() < MOST_GENERATIONS
        {
            let before = self.spaces.last().map(|(_, space)| space.clone()).unwrap_or_default();
            self.spaces.push((generation, before));
        }
        let last = self.spaces.len() - 1;
        &mut self.spaces[last].1
    }

    pub(super) fn at(&self, generation: u32) -> &AddressSpace {
        let behind = self.spaces.partition_point(|(begin, _)| *begin <= generation);
        &self.spaces[behind.saturating_sub(1)].1
    }
}

/// The index of a module. The loader and the kernel may name the same file by different paths.
fn module_of(module: Module, recorder: &mut Recorder) -> Option<ModuleIndex> {
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let same = |other: &Module| {
        !module.build_id.is_empty()
            && other.build_id == module.build_id
            && name(&other.path) == name(&module.path)
    };
    match recorder.recording().modules.iter().position(same) {
        Some(index) => Some(ModuleIndex(index as u32)),
        None => recorder.add_module(module),
    }
}
