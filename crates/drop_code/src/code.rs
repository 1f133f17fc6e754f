//! The code that is followed: its modules, and the functions of which it is known what they do.
//!
//! A known function is not interpreted, whether it is called by its address or through a slot of the linker's table. Code outside
//! of these modules cannot be followed.

use crate::machine::{Step, Stop};
use foldhash::{HashMap, HashMapExt};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use stackglass_layouts::{KnownFunction, Layouts};
use stackglass_process_view::modules::LoadedModule;
use stackglass_process_view::pages::Pages;
use std::cell::RefCell;
use std::ops::Range;

/// Most instructions that are kept.
const MOST_DECODED: usize = 1 << 18;

/// The code of a process.
pub(crate) struct Code<'a> {
    pub pages: &'a Pages<'a>,
    pub functions: HashMap<u64, KnownFunction>,
    pub slots: HashMap<u64, KnownFunction>,
    /// Modules whose code is interpreted.
    pub modules: Vec<Range<u64>>,
    pub decoded: RefCell<HashMap<u64, Instruction>>,
}

impl<'a> Code<'a> {
    /// That of modules with a function without which it is not known what they do.
    pub fn new(
        pages: &'a Pages<'a>,
        layouts: &Layouts,
        modules: &[LoadedModule],
        needed: KnownFunction,
    ) -> Code<'a> {
        let (mut functions, mut slots) = (HashMap::new(), HashMap::new());
        let mut ranges = Vec::new();
        for (number, module) in modules.iter().enumerate() {
            let Some(known) = layouts.known_functions(number) else { continue };
            let place = |(address, function): (&u64, &KnownFunction)| {
                (address.wrapping_add(module.bias()), *function)
            };
            functions.extend(known.functions.iter().map(place));
            for (slot, function) in known.slots.iter().map(place) {
                slots.insert(slot, function);
                // Code may load the address from the slot before.
                functions.extend(pages.word(slot).filter(|target| *target != 0).map(|to| (to, function)));
            }
            let mut all = known.functions.values().chain(known.slots.values());
            if all.any(|function| *function == needed) {
                ranges.push(module.module.range());
            }
        }
        Code { pages, functions, slots, modules: ranges, decoded: RefCell::default() }
    }

    /// Both functions that give permits back exist, so neither is inlined everywhere.
    pub fn has_both(&self) -> bool {
        let is_release = |function: &&KnownFunction| **function == KnownFunction::Release;
        self.functions.values().filter(is_release).count() >= 2
    }

    /// The instruction at an address.
    pub fn decoded(&self, address: u64) -> Step<Instruction> {
        if let Some(known) = self.decoded.borrow().get(&address) {
            return Ok(*known);
        }
        if !self.modules.iter().any(|module| module.contains(&address)) {
            return Err(Stop);
        }
        let mut bytes = [0; 15];
        // The last instruction of a mapping may be shorter.
        let count = (1..=15).rev().find(|count| self.pages.read(address, &mut bytes[..*count]).is_some());
        let mut decoder = Decoder::with_ip(64, &bytes[..count.ok_or(Stop)?], address, DecoderOptions::NONE);
        let code = decoder.decode();
        let mut decoded = self.decoded.borrow_mut();
        if decoded.len() < MOST_DECODED {
            decoded.insert(address, code);
        }
        if code.is_invalid() { Err(Stop) } else { Ok(code) }
    }
}
