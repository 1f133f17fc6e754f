//! Pushes an event for each module that is loaded or unloaded.

use crate::event_writer::EventWriter;
use stackglass_host::{UNWINDER, module_event};
use stackglass_unwind::{Module, ModuleList};
use stackglass_wire::{ControlPage, Counter, Event, MODULE_TEXT_WORDS, ModuleId, TEXT_BYTES};

/// Modules that the reader may know at a time.
const CAPACITY: usize = 4096;

/// The modules that the reader knows. All zeros is none.
pub struct LoadedModules {
    ids: [u32; CAPACITY],
    len: usize,
    is_incomplete: bool,
}

impl LoadedModules {
    /// Pushes what has changed. False if the modules cannot be listed.
    pub fn update(&mut self, control: &ControlPage, events: &mut EventWriter, now: u64) -> bool {
        match UNWINDER.refresh() {
            Ok(false) if self.len > 0 && !self.is_incomplete => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
        let Some(list) = UNWINDER.modules() else { return false };
        self.is_incomplete = false;
        let mut i = 0;
        while i < self.len {
            let id = self.ids[i];
            let gone = !list.iter().any(|m| m.id() == id);
            if gone && events.push(&Event::ModuleUnload { module: ModuleId(id), at: now }) {
                self.len -= 1;
                self.ids[i] = self.ids[self.len];
            } else {
                self.is_incomplete |= gone;
                i += 1;
            }
        }
        for module in list.iter() {
            if self.ids[..self.len].contains(&module.id()) {
                continue;
            }
            if self.len < CAPACITY && push_load(control, events, &list, module, now) {
                self.ids[self.len] = module.id();
                self.len += 1;
                control.counters.add(Counter::Modules, 1);
            } else {
                self.is_incomplete = true;
            }
        }
        true
    }
}

fn push_load(
    control: &ControlPage,
    events: &mut EventWriter,
    list: &ModuleList,
    module: &Module,
    now: u64,
) -> bool {
    let mut exe = [0u8; TEXT_BYTES];
    let path = match list.path(module) {
        // The loader gives the main program no name.
        b"" => ControlPage::text(&control.exe, &control.exe_len, &mut exe),
        path => path,
    };
    events.push(&module_event::loaded(module, path, now, &mut [0; MODULE_TEXT_WORDS]))
}
