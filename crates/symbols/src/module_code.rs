//! The code of a module: its functions one by one, and the names of what they call.

use crate::block_flow::{Callees, Function, Target};
use crate::dispatch;
use foldhash::HashMap;
use stackglass_debug_info::elf::Elf;
use stackglass_debug_info::locate::Files;
use stackglass_profile::ModuleIndex;
use std::cell::OnceCell;

/// The code of a module.
pub(crate) struct ModuleCode<'data> {
    pub files: &'data Files,
    elf: Elf<'data>,
    /// Read when the first name is asked for.
    callees: OnceCell<Callees<'data>>,
}

impl<'data> ModuleCode<'data> {
    fn new(files: &'data Files) -> Option<ModuleCode<'data>> {
        let elf = Elf::parse(files.program.as_ref()?).ok()?;
        Some(ModuleCode { files, elf, callees: OnceCell::new() })
    }

    /// The code of all modules that can be read.
    pub fn all(files: &'data [(ModuleIndex, Files)]) -> HashMap<ModuleIndex, ModuleCode<'data>> {
        files.iter().filter_map(|(module, files)| Some((*module, ModuleCode::new(files)?))).collect()
    }

    /// The symbol of what a call reaches.
    pub fn name(&self, target: Target) -> Option<&'data str> {
        self.callees.get_or_init(|| Callees::from_files(self.files)).name(&self.elf, target)
    }

    /// The function around an address, unless it is larger than so many bytes.
    pub fn function_around(&self, address: u64, largest: u64) -> Option<Function> {
        let range = dispatch::functions_around(&self.elf, &[address]).pop()??;
        if range.end - range.start > largest {
            return None;
        }
        let bytes = self.elf.bytes_at(range.start)?.get(..(range.end - range.start) as usize)?;
        Some(Function::decode(bytes, range.start))
    }
}
