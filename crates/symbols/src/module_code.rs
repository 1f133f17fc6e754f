//! The code of a module: its functions one by one, and the names of what they call.

use crate::block_flow::{Callees, Function, Target};
use crate::dispatch;
use foldhash::HashMap;
use stackglass_debug_info::elf::Elf;
use stackglass_debug_info::functions;
use stackglass_debug_info::locate::Files;
use stackglass_profile::ModuleIndex;
use std::cell::OnceCell;
use std::ops::Range;

/// The code of a module.
pub(crate) struct ModuleCode<'data> {
    pub files: &'data Files,
    elf: Elf<'data>,
    /// Read when the first name is asked for.
    callees: OnceCell<Callees<'data>>,
    /// Read when the first variable is asked for.
    variables: OnceCell<Vec<(Range<u64>, &'data str)>>,
}

impl<'data> ModuleCode<'data> {
    fn new(files: &'data Files) -> Option<ModuleCode<'data>> {
        let elf = Elf::parse(files.program.as_ref()?).ok()?;
        Some(ModuleCode { files, elf, callees: OnceCell::new(), variables: OnceCell::new() })
    }

    /// The code of all modules that can be read.
    pub fn all(files: &'data [(ModuleIndex, Files)]) -> HashMap<ModuleIndex, ModuleCode<'data>> {
        files.iter().filter_map(|(module, files)| Some((*module, ModuleCode::new(files)?))).collect()
    }

    /// The symbol of what a call reaches.
    pub fn name(&self, target: Target) -> Option<&'data str> {
        self.callees.get_or_init(|| Callees::from_files(self.files)).name(&self.elf, target)
    }

    /// The symbol of what the dynamic linker stores the address of at an address of the file.
    pub fn slot(&self, address: u64) -> Option<&'data str> {
        self.name(Target::Slot(address))
    }

    /// The static variable around an address: where it begins, and its symbol.
    pub fn variable(&self, address: u64) -> Option<(u64, &'data str)> {
        let variables = self.variables.get_or_init(|| {
            let all = self.files.symbols().into_iter().flat_map(functions::defined_in);
            let mut variables: Vec<(Range<u64>, &str)> =
                all.filter(|defined| !defined.is_function).map(|one| (one.addresses, one.name)).collect();
            variables.sort_unstable_by_key(|(addresses, _)| addresses.start);
            variables
        });
        let behind = variables.partition_point(|(addresses, _)| addresses.start <= address);
        let (addresses, name) = variables.get(behind.checked_sub(1)?)?;
        addresses.contains(&address).then_some((addresses.start, *name))
    }

    /// The jumps in the code that may lead to other functions, and bytes that look the same: where they are, and where they lead.
    pub fn jumps(&self) -> impl Iterator<Item = (u64, Target)> {
        let parts = self.elf.code_bytes().into_iter();
        parts.flat_map(|(start, bytes)| {
            let windows = bytes.windows(6).enumerate();
            windows.filter_map(move |(at, window)| {
                let address = start + at as u64;
                let to = |length: usize| {
                    let distance = i32::from_le_bytes(window[length - 4..length].try_into().ok()?);
                    (address + length as u64).checked_add_signed(i64::from(distance))
                };
                match window {
                    [0xe9, ..] => Some((address, Target::Function(to(5)?))),
                    [0xff, 0x25, ..] => Some((address, Target::Slot(to(6)?))),
                    _ => None,
                }
            })
        })
    }

    /// Where the function around an address lies.
    pub fn range_around(&self, address: u64) -> Option<Range<u64>> {
        dispatch::functions_around(&self.elf, &[address]).pop()?
    }

    /// The function around an address, unless it is larger than so many bytes.
    pub fn function_around(&self, address: u64, largest: u64) -> Option<Function> {
        let range = self.range_around(address)?;
        if range.end - range.start > largest {
            return None;
        }
        let bytes = self.elf.bytes_at(range.start)?.get(..(range.end - range.start) as usize)?;
        Some(Function::decode(bytes, range.start, |address| self.elf.bytes_at(address)))
    }
}
