//! The program and the libraries of the process, from the ELF headers in its memory.

use crate::core_image::{CoreImage, Mapping};
use stackglass_unwind::Module;
use stackglass_unwind::modules::OwnedModuleList;
use std::ops::Range;

/// Largest number of modules.
const MOST: usize = 1 << 14;
/// `PT_TLS` (System V gABI): the module's part of thread-local storage.
const PT_TLS: u32 = 7;
/// Size of an ELF header and of a program header.
const ELF_HEADER: u64 = 64;
const PROGRAM_HEADER: usize = 56;
/// The kernel's library, which has the clocks.
const VDSO: &str = "[vdso]";

/// A program or library.
pub struct LoadedModule {
    /// Its path in the process.
    pub path: String,
    /// Its identity, addresses and unwind rules.
    pub module: Module,
    /// Addresses of its writable memory.
    pub data: Vec<Range<u64>>,
    /// Its thread-local storage, if it has some.
    pub thread_local: Option<ThreadLocal>,
}

/// Size and alignment of a module's thread-local storage, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadLocal {
    /// Size.
    pub size: u64,
    /// Alignment.
    pub alignment: u64,
}

impl LoadedModule {
    /// Address in memory minus address in the file.
    pub fn bias(&self) -> u64 {
        self.module.bias()
    }

    /// The last part of its path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// Whether a file name is that of glibc: `libc.so.6`, or `libc-2.31.so`.
pub fn is_glibc(name: &str) -> bool {
    name.starts_with("libc.so") || name.starts_with("libc-2")
}

/// All modules, the main program first. `executable` is the path of the program.
pub fn find(image: &CoreImage, executable: &str) -> Vec<LoadedModule> {
    let mut found = Vec::new();
    let mut index = 0;
    while index < image.mappings.len() && found.len() < MOST {
        let first = &image.mappings[index];
        // The kernel's library is in no file. Shared memory is no module, nor is a device; to read it may add pages to the process.
        let is_start = (first.inode != 0 && first.offset == 0 || first.path == VDSO)
            && first.readable
            && !(first.shared && first.writable);
        let read = |at, into: &mut [u8]| image.memory.read(at, into);
        let module = if is_start { Module::from_image(first.range.start, read) } else { None };
        index += 1;
        let Some(module) = module.filter(|module| module.range().start == first.range.start) else {
            continue;
        };
        let end = module.range().end.next_multiple_of(4096);
        let behind = image.mappings[index..].iter().take_while(|mapping| mapping.range.start < end);
        let data = behind
            .filter(|mapping| is_data(mapping))
            .map(|mapping| mapping.range.start..mapping.range.end.min(end));
        found.push(LoadedModule {
            path: first.path.clone(),
            data: joined(data),
            thread_local: thread_local(image, first.range.start),
            module,
        });
    }
    if let Some(main) = found.iter().position(|module| module.path == executable) {
        found[..=main].rotate_right(1);
    }
    found
}

/// Joins ranges that touch. The last page of data and the zeroed memory behind it may be two mappings, and a variable may lie
/// in both.
fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

fn is_data(mapping: &Mapping) -> bool {
    mapping.readable && !mapping.executable && !mapping.shared && !mapping.path.starts_with('[')
}

fn thread_local(image: &CoreImage, base: u64) -> Option<ThreadLocal> {
    let mut header = [0; ELF_HEADER as usize];
    if image.memory.read(base, &mut header) != header.len() {
        return None;
    }
    let word = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let table = base.checked_add(word(&header, 32))?;
    let count = u16::from_le_bytes([header[56], header[57]]).min(64);
    (0..u64::from(count)).find_map(|number| {
        let mut bytes = [0; PROGRAM_HEADER];
        let at = table.checked_add(number * PROGRAM_HEADER as u64)?;
        if image.memory.read(at, &mut bytes) != bytes.len() || bytes[..4] != PT_TLS.to_le_bytes() {
            return None;
        }
        let alignment = word(&bytes, 48).clamp(1, 1 << 20);
        Some(ThreadLocal { size: word(&bytes, 40), alignment })
            .filter(|found| found.size < 1 << 32 && alignment.is_power_of_two())
    })
}

/// A list for walking stacks; `None` without memory.
pub(crate) fn unwind_list(modules: &[LoadedModule]) -> Option<OwnedModuleList> {
    let mut list = OwnedModuleList::new()?;
    for module in modules {
        list.push(module.module, module.path.as_bytes());
    }
    list.finish(None);
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        assert_eq!(joined([1..3, 3..6, 7..9].into_iter()), [1..6, 7..9]);
        assert_eq!(joined(std::iter::empty()), []);
    }
}
