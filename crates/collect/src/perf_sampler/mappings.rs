//! The code mappings of one process, as the kernel reports them, and the walk of its stacks.
//!
//! Mappings are reported one by one, most of them at the start of a program. The walker's list of modules is made from them
//! when a stack is walked. A forked child begins with its parent's mappings.

use super::elf_file::ElfFile;
use super::files::Files;
use super::system::System;
use crate::recording::EventTranslator;
use foldhash::{HashMap, HashSet};
use stackglass_perf::records::Mmap;
use stackglass_profile::Recorder;
use stackglass_profile::address_space::MappedRange;
use stackglass_unwind::modules::{OwnedModuleList, ProgramHeader};
use stackglass_unwind::{Module, ModuleMemory, Registers, RuleTable, Scratch, StackMemory, Walk, Walker};
use stackglass_wire::ModuleId;
use std::cell::RefCell;
use std::rc::Rc;

/// Most code mappings of one process. Further ones are ignored.
const MOST: usize = 1 << 14;
/// PT_LOAD; PF_R and PF_X.
const CODE: (u32, u32) = (1, 5);

/// The code mappings of one process.
#[derive(Default)]
pub(super) struct Mappings {
    /// Sorted by address, never overlapping.
    mapped: Vec<Mapping>,
    module_set: Option<ModuleSet>,
    /// `module_set` is older than `mapped`.
    changed: bool,
    /// The recording does not have all of `module_set`.
    unrecorded: bool,
    /// Modules that the recording has.
    recorded: HashSet<u32>,
}

/// A mapping of code.
#[derive(Clone)]
struct Mapping {
    start: u64,
    end: u64,
    /// `None` for code made at run time, and if the file cannot be read.
    file: Option<Rc<ElfFile>>,
    /// An address minus the corresponding address of the file.
    bias: u64,
    /// Empty for code made at run time.
    path: Rc<[u8]>,
}

/// The walker's list of modules, made from the mappings.
struct ModuleSet {
    list: OwnedModuleList,
    sources: Sources,
}

/// Reads code and unwind rules from files, and from the process for code made at run time.
struct Sources {
    system: System,
    pid: u32,
    /// By the first address of the module.
    files: Vec<(u64, Rc<ElfFile>, u64)>,
    /// Code made at run time, by address: what was read last, for the last samples of a process that has ended.
    made: RefCell<HashMap<u64, MadeCode>>,
}

/// The bytes of a small piece of code.
#[derive(Clone, Copy)]
struct MadeCode {
    bytes: [u8; LONGEST_PIECE],
    len: usize,
}

/// Larger pieces of code made at run time are not kept. The walker reads smaller ones.
const LONGEST_PIECE: usize = 32;
/// Most pieces kept for a process.
const MOST_PIECES: usize = 1 << 14;

impl Sources {
    /// The file of a module, and its bias.
    fn file(&self, module: &Module) -> Option<(&ElfFile, u64)> {
        let start = module.range().start;
        let index = self.files.binary_search_by_key(&start, |(start, ..)| *start).ok()?;
        let (_, file, bias) = &self.files[index];
        Some((file, *bias))
    }

    /// Reads code of no file from the process, or as it was read before.
    fn read_made(&self, address: u64, into: &mut [u8]) -> usize {
        let read = self.system.read_memory(self.pid, address, into);
        let wanted = into.len();
        let Ok(mut made) = self.made.try_borrow_mut() else { return read };
        if read > 0 {
            if wanted <= LONGEST_PIECE && (made.len() < MOST_PIECES || made.contains_key(&address)) {
                let known = made.entry(address).or_insert(MadeCode { bytes: [0; LONGEST_PIECE], len: 0 });
                known.bytes[..read].copy_from_slice(&into[..read]);
                known.len = known.len.max(read);
            }
            return read;
        }
        let Some(known) = made.get(&address) else { return 0 };
        let len = known.len.min(wanted);
        into[..len].copy_from_slice(&known.bytes[..len]);
        len
    }
}

impl Mappings {
    /// The mappings of a forked child.
    pub(super) fn forked(&self) -> Mappings {
        Mappings { mapped: self.mapped.clone(), changed: true, ..Mappings::default() }
    }

    /// Adds a mapping, which replaces older ones at its addresses.
    pub(super) fn insert(&mut self, pid: u32, map: &Mmap<'_>, files: &mut Files) {
        let end = map.start.saturating_add(map.len);
        if map.start >= end {
            return;
        }
        self.changed = true;
        self.remove(map.start, end);
        if self.mapped.len() >= MOST {
            return;
        }
        // Code made at run time is in no file, or in a file that exists only in memory.
        let in_memory = [&b"//anon"[..], b"/memfd:", b"/dev/zero", b"/anon_hugepage", b"[anon"];
        let is_file = map.path.first() == Some(&b'/') && !in_memory.iter().any(|p| map.path.starts_with(p));
        let mapping = if is_file || map.path == b"[vdso]" {
            let found = files.lookup(pid, map);
            let bias = found.file.as_ref().and_then(|file| file.bias(map.start, map.offset));
            let file = found.file.filter(|_| bias.is_some());
            let bias = bias.unwrap_or(map.start.wrapping_sub(map.offset));
            Mapping { start: map.start, end, file, bias, path: found.path }
        } else {
            Mapping { start: map.start, end, file: None, bias: 0, path: Rc::from(&b""[..]) }
        };
        let at = self.mapped.partition_point(|other| other.start < mapping.start);
        self.mapped.insert(at, mapping);
    }

    /// Whether a mapping holds an address.
    pub(super) fn holds(&self, address: u64) -> bool {
        let behind = self.mapped.partition_point(|map| map.start <= address);
        behind.checked_sub(1).is_some_and(|i| address < self.mapped[i].end)
    }

    fn remove(&mut self, start: u64, end: u64) {
        let mut cut = Vec::new();
        self.mapped.retain(|old| {
            if old.end <= start || end <= old.start {
                return true;
            }
            if old.start < start {
                cut.push(Mapping { end: start, ..old.clone() });
            }
            if end < old.end {
                cut.push(Mapping { start: end, ..old.clone() });
            }
            false
        });
        self.mapped.extend(cut);
        self.mapped.sort_by_key(|map| map.start);
    }

    /// Walks a stack of process `pid` into `frames`. `None` without memory.
    pub(super) fn walk(
        &mut self,
        process: (&System, u32),
        registers: &Registers,
        stack: &mut impl StackMemory,
        scratch: &mut Scratch,
        frames: &mut [u64],
    ) -> Option<Walk> {
        self.refresh(process)?;
        let module_set = self.module_set.as_ref()?;
        let mut walker =
            Walker { modules: &module_set.list, table: None, memory: &module_set.sources, scratch };
        Some(walker.walk(registers, stack, frames))
    }

    /// Makes the list again if mappings have changed.
    fn refresh(&mut self, (system, pid): (&System, u32)) -> Option<()> {
        if self.module_set.is_some() && !self.changed {
            return Some(());
        }
        let mut list = OwnedModuleList::new()?;
        let mut sources =
            Sources { system: system.clone(), pid, files: Vec::new(), made: RefCell::default() };
        if let Some(ModuleSet { sources: old, .. }) = &self.module_set {
            sources.made = RefCell::new(old.made.take());
        }
        let mut files_seen: HashSet<(*const ElfFile, u64)> = HashSet::default();
        let mut index = 0;
        while let Some(map) = self.mapped.get(index) {
            index += 1;
            let Some(file) = &map.file else {
                // Adjacent mappings are one module.
                let mut end = map.end;
                while let Some(next) = self
                    .mapped
                    .get(index)
                    .filter(|next| next.start == end && next.file.is_none() && next.path == map.path)
                {
                    end = next.end;
                    index += 1;
                }
                let header = ProgramHeader {
                    kind: CODE.0,
                    flags: CODE.1,
                    address: map.start.wrapping_sub(map.bias),
                    size: end - map.start,
                };
                if let Some(module) =
                    Module::from_program_headers(map.bias, std::iter::once(header), |_, _| 0)
                {
                    list.push(module, &map.path);
                }
                continue;
            };
            if !files_seen.insert((Rc::as_ptr(file), map.bias)) {
                continue;
            }
            let Some(module) = file.module(map.bias) else { continue };
            file.rules.reserve();
            sources.files.push((module.range().start, file.clone(), map.bias));
            list.push(module, &map.path);
        }
        list.finish(self.module_set.as_ref().map(|set| &*set.list));
        sources.files.sort_by_key(|(start, ..)| *start);
        self.module_set = Some(ModuleSet { list, sources });
        (self.changed, self.unrecorded) = (false, true);
        Some(())
    }

    /// Adds modules that came or went to the recording.
    pub(super) fn announce(
        &mut self,
        process: (&System, u32),
        translator: &mut EventTranslator,
        recorder: &mut Recorder,
    ) {
        if self.refresh(process).is_none() {
            return;
        }
        self.unrecorded = false;
        let Some(ModuleSet { list, .. }) = &self.module_set else { return };
        let there: HashSet<u32> = list.iter().map(Module::id).collect();
        self.recorded.retain(|id| {
            let stays = there.contains(id);
            if !stays {
                translator.module_unload(ModuleId(*id));
            }
            stays
        });
        for module in list.iter() {
            let path = list.path(module);
            // Code in no file is named by its addresses.
            if !path.is_empty() && self.recorded.insert(module.id()) {
                let range = module.range();
                let mapped = MappedRange { low: range.start, high: range.end, bias: module.bias() };
                translator.module_load(ModuleId(module.id()), mapped, path, module.build_id(), recorder);
            }
        }
    }

    /// Whether the recording lacks a mapping.
    pub(super) fn is_unrecorded(&self) -> bool {
        self.unrecorded || self.changed || self.module_set.is_none()
    }
}

impl ModuleMemory for Sources {
    fn read(&self, module: &Module, address: u64, into: &mut [u8]) -> usize {
        match self.file(module) {
            Some((file, bias)) => file.read_address(address.wrapping_sub(bias), into),
            None => self.read_made(address, into),
        }
    }

    fn file_rules(&self, module: &Module) -> Option<(&RuleTable, u64)> {
        self.file(module).map(|(file, bias)| (&file.rules, bias))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anonymous(start: u64, len: u64) -> Mmap<'static> {
        Mmap { start, len, offset: 0, build_id: &[], inode: 0, path: b"//anon" }
    }

    #[test]
    fn a_new_mapping_takes_the_place_of_old_ones() {
        let (mut mappings, mut files) = (Mappings::default(), Files::default());
        mappings.insert(1, &anonymous(0x1000, 0x3000), &mut files);
        mappings.insert(1, &anonymous(0x2000, 0x1000), &mut files);
        let ranges: Vec<(u64, u64)> = mappings.mapped.iter().map(|m| (m.start, m.end)).collect();
        assert_eq!(ranges, [(0x1000, 0x2000), (0x2000, 0x3000), (0x3000, 0x4000)]);
        mappings.refresh((&System::default(), 1)).unwrap();
        assert_eq!(mappings.module_set.as_ref().unwrap().list.iter().count(), 1, "they touch");
        assert!(mappings.holds(0x3fff) && !mappings.holds(0x4000) && !mappings.holds(0xfff));
        mappings.insert(1, &anonymous(u64::MAX - 5, 100), &mut files);
        mappings.insert(1, &anonymous(5, 0), &mut files);
        assert_eq!(mappings.mapped.len(), 4);
        let child = mappings.forked();
        assert!(child.is_unrecorded() && child.holds(0x1000));
    }
}
