//! What unwinding would do in the frames of a process.

use crate::modules::LoadedModule;
use crate::pages::Pages;
use stackglass_unwind::{CallSites, Module, ModuleMemory, call_site};
use std::cell::RefCell;
use std::collections::HashMap;

/// Most places that are kept.
const MOST: usize = 1 << 16;

/// Finds the landing pads of calls. Many threads are in the same ones.
pub struct LandingPads<'a> {
    pages: &'a Pages<'a>,
    modules: &'a [LoadedModule],
    known: RefCell<HashMap<u64, Option<CallSites>>>,
}

impl<'a> LandingPads<'a> {
    /// Those of the modules of a process.
    pub fn new(pages: &'a Pages<'a>, modules: &'a [LoadedModule]) -> LandingPads<'a> {
        LandingPads { pages, modules, known: RefCell::default() }
    }

    /// The entry with the call in which a frame with this lookup address is. `None` if it is in no call.
    pub fn of(&self, lookup: u64) -> Option<CallSites> {
        if let Some(known) = self.known.borrow().get(&lookup) {
            return known.clone();
        }
        let found = self.find(lookup);
        let mut known = self.known.borrow_mut();
        if known.len() < MOST {
            known.insert(lookup, found.clone());
        }
        found
    }

    /// The entry with the first instruction of a function.
    pub fn of_function(&self, address: u64) -> Option<CallSites> {
        let module = self.modules.iter().find(|module| module.module.is_executable(address))?;
        Some(CallSites::of(&PageReader(self.pages), &module.module, address))
    }

    fn find(&self, lookup: u64) -> Option<CallSites> {
        let module = self.modules.iter().find(|module| module.module.is_executable(lookup))?;
        // A signal interrupts functions anywhere: the table speaks of calls only.
        let back = lookup.checked_add(1)?;
        let mut bytes = [0; call_site::LONGEST];
        self.pages.read(back.checked_sub(bytes.len() as u64)?, &mut bytes)?;
        call_site::before(&bytes, back, |to| module.module.is_executable(to))?;
        Some(CallSites::of(&PageReader(self.pages), &module.module, lookup))
    }
}

struct PageReader<'a>(&'a Pages<'a>);

impl ModuleMemory for PageReader<'_> {
    fn read(&self, _: &Module, address: u64, into: &mut [u8]) -> usize {
        // One byte: the last ones of a mapping.
        for count in [into.len(), 1] {
            if into.get_mut(..count).is_some_and(|into| self.0.read(address, into).is_some()) {
                return count;
            }
        }
        0
    }
}
