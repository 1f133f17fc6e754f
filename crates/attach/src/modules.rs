//! The modules of another process: from `/proc/PID/maps` and the ELF headers in its memory.

use super::module_reader::ModuleReader;
use super::stream::EventWriter;
use foldhash::HashSet;
use object::{Endianness, Object, ObjectSection};
use stackglass_procfs::Status;
use stackglass_procfs::maps::Line;
use stackglass_procfs::process;
use stackglass_unwind::memory::read_file;
use stackglass_unwind::modules::{OwnedModuleList, ProgramHeader};
use stackglass_unwind::{Module, ModuleList, RuleTable};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Programs with a fixed address are linked below this address.
const LINKED_BELOW: u64 = 1 << 32;

/// The modules as of the last refresh.
pub struct Modules {
    pid: u32,
    list: OwnedModuleList,
    /// The mapped files from which the list was made.
    found: Vec<Found>,
    /// Unwind rules that were computed already.
    pub table: RuleTable,
    pushed: HashSet<u32>,
}

/// A file that is mapped from its beginning. Without a path: code that was generated at run time.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Found {
    base: u64,
    /// End of the last adjacent mapping of the same file.
    end: u64,
    path: Vec<u8>,
    /// Set for code of a file that is mapped a second time elsewhere (node does that with its builtins).
    bias: Option<u64>,
    /// The file was renamed or deleted.
    deleted: bool,
}

impl Found {
    /// The module, read from the memory of process `pid`.
    fn module(&self, pid: u32) -> Option<Module> {
        /// PT_LOAD; PF_R and PF_X.
        const CODE: (u32, u32) = (1, 5);
        let (kind, flags) = CODE;
        if self.path.is_empty() || self.bias.is_some() {
            let bias = self.bias.unwrap_or(0);
            let (address, size) = (self.base.wrapping_sub(bias), self.end - self.base);
            let code = ProgramHeader { kind, flags, address, size };
            return Module::from_program_headers(bias, std::iter::once(code), |_, _| 0);
        }
        let module = Module::from_image(self.base, |at, into| read_file(pid as i32, at, into))?;
        if module.range().start != self.base {
            return None;
        }
        // Statically linked programs have unwind rules, but no table of them.
        if module.eh_frame_hdr().is_empty()
            && let Some(section) = eh_frame_in_file(pid, &self.path)
        {
            let at = section.start.wrapping_add(module.bias())..section.end.wrapping_add(module.bias());
            return Some(module.with_eh_frame(at));
        }
        Some(module)
    }
}

impl Modules {
    /// An empty list; `None` if there is no memory.
    pub fn new(pid: u32) -> Option<Modules> {
        let list = OwnedModuleList::new()?;
        Some(Modules { pid, list, found: Vec::new(), table: RuleTable::new(), pushed: HashSet::default() })
    }

    /// From now on, mappings are read from the files of this thread. Rules could not be read while the one before was ending.
    pub fn read_through(&mut self, tid: u32) {
        self.pid = tid;
        self.clear_table();
    }

    fn clear_table(&mut self) {
        self.table = RuleTable::new();
        self.table.reserve();
    }

    /// The list for the walker.
    pub fn list(&self) -> &ModuleList {
        &self.list
    }

    /// Reads the mappings and emits the changes. Returns whether there were any.
    pub fn refresh(&mut self, reader: &mut ModuleReader, events: &mut EventWriter, now: u64) -> bool {
        let Ok(maps) = fs::read(format!("/proc/{}/maps", self.pid)) else { return false };
        self.set_found(find(&maps), reader, events, now)
    }

    /// Reads the modules of these files, unless they are those of the list. Returns whether the list is new.
    fn set_found(
        &mut self,
        found: Vec<Found>,
        reader: &mut ModuleReader,
        events: &mut EventWriter,
        now: u64,
    ) -> bool {
        if found == self.found || found.is_empty() {
            return false;
        }
        let Some(mut list) = OwnedModuleList::new() else { return false };
        reader.clear();
        for file in &found {
            let Some(module) = file.module(self.pid) else { continue };
            list.push(module, &self.path_from_here(file));
        }
        // A main thread that ends before the others has no memory from then on: modules are missing that are still mapped.
        if !Status::read(self.pid).is_some_and(|status| status.has_memory) {
            return false;
        }
        list.finish((self.list.generation() != 0).then_some(&*self.list));
        if list.generation() != self.list.generation() {
            self.clear_table();
        }
        self.list = list;
        self.found = found;
        self.push_changes(events, now);
        true
    }

    /// The path by which this process finds a file of the other one, for symbols. The file may have been replaced,
    /// and the other process may live in a container.
    fn path_from_here(&self, file: &Found) -> Vec<u8> {
        if !file.path.starts_with(b"/") {
            return file.path.clone();
        }
        let pid = self.pid;
        if file.deleted && process::executable(pid).as_os_str().as_bytes() == file.path {
            return format!("/proc/{pid}/exe").into_bytes();
        }
        let world = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        let theirs = world(&pid.to_string());
        if theirs.is_some() && theirs != world("self") {
            return [format!("/proc/{pid}/root").as_bytes(), &file.path].concat();
        }
        file.path.clone()
    }

    fn push_changes(&mut self, events: &mut EventWriter, now: u64) {
        let now_there: HashSet<u32> = self.list.iter().map(Module::id).collect();
        self.pushed.retain(|id| now_there.contains(id) || !events.module_unload(*id, now));
        for module in self.list.iter() {
            // Code without a file is located by its address alone.
            let path = self.list.path(module);
            let named = |other: &&Module| self.list.path(other) == path && !other.build_id().is_empty();
            let build_id = self.list.iter().find(named).map_or(&[][..], Module::build_id);
            if !path.is_empty()
                && !self.pushed.contains(&module.id())
                && events.module_load(module, build_id, path, now)
            {
                self.pushed.insert(module.id());
            }
        }
    }
}

/// Address of `.eh_frame` according to the file of a module, without the bias.
fn eh_frame_in_file(pid: u32, path: &[u8]) -> Option<Range<u64>> {
    let path = Path::new(OsStr::from_bytes(path));
    // The process may see another file at that path than this process.
    let file = match process::executable(pid) == path {
        true => File::open(format!("/proc/{pid}/exe")).ok(),
        false => None,
    };
    let inside = PathBuf::from(format!("/proc/{pid}/root")).join(path.strip_prefix("/").ok()?);
    let file = file.or_else(|| File::open(inside).ok())?;
    let data = object::ReadCache::new(file);
    let elf = object::read::elf::ElfFile64::<Endianness, _>::parse(&data).ok()?;
    let section = elf.section_by_name(".eh_frame")?;
    Some(section.address()..section.address().checked_add(section.size())?)
}

/// Files whose beginning is mapped and of which some part is executable, and the vDSO.
fn find(maps: &[u8]) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut executable = HashSet::default();
    let mut regular: Vec<Line<'_>> = Vec::new();
    let mut stray: Vec<Line<'_>> = Vec::new();
    for line in maps.split(|b| *b == b'\n').filter_map(Line::parse) {
        let vdso = line.path == b"[vdso]";
        // Code that was generated at run time is in no file, or in a file that only stands for memory.
        let in_memory =
            [&b"/memfd:"[..], b"/dev/zero", b"/anon_hugepage"].iter().any(|p| line.path.starts_with(p));
        if !vdso && (in_memory || !line.path.starts_with(b"/")) {
            if line.executable && line.path != b"[vsyscall]" {
                match found.last_mut().filter(|last| last.path.is_empty() && last.end == line.range.start) {
                    Some(last) => last.end = line.range.end,
                    None => found.push(Found {
                        base: line.range.start,
                        end: line.range.end,
                        path: Vec::new(),
                        bias: None,
                        deleted: false,
                    }),
                }
            }
            continue;
        }
        if (line.offset == 0 || vdso)
            && found.last().is_none_or(|last| last.path != line.path || !line.executable)
        {
            found.push(Found {
                base: line.range.start,
                end: line.range.end,
                path: line.path.to_vec(),
                bias: None,
                deleted: false,
            });
        }
        // The mappings of one load of a file are adjacent, with at most zeroed data between them.
        match found.last_mut().filter(|last| last.path == line.path) {
            Some(last) => {
                last.end = line.range.end;
                if line.executable {
                    executable.insert(last.base);
                    regular.push(line);
                }
            }
            None if line.executable => stray.push(line),
            None => {}
        }
    }
    let again: Vec<Found> = stray
        .iter()
        .filter_map(|line| {
            let again = |other: &&Line<'_>| {
                other.path == line.path
                    && other.offset <= line.offset
                    && line.offset < other.offset + other.size()
            };
            let address =
                regular.iter().find(again).map(|other| other.range.start + (line.offset - other.offset))?;
            let program = found.iter().find(|file| (file.base..file.end).contains(&address))?;
            // Programs at the address for which they were linked have no bias.
            let linked = if program.base < LINKED_BELOW { 0 } else { program.base };
            let bias = line.range.start.wrapping_sub(address - linked);
            Some(Found {
                base: line.range.start,
                end: line.range.end,
                path: line.path.to_vec(),
                bias: Some(bias),
                deleted: false,
            })
        })
        .collect();
    found.extend(again);
    found.retain(|file| file.path.is_empty() || file.bias.is_some() || executable.contains(&file.base));
    for file in &mut found {
        if let Some(path) = file.path.strip_suffix(b" (deleted)") {
            (file.path, file.deleted) = (path.to_vec(), true);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_maps() {
        let maps = b"\
555555554000-555555555000 r--p 00000000 fe:00 77 /opt/a b/prog (deleted)
555555555000-555555556000 r-xp 00001000 fe:00 77 /opt/a b/prog (deleted)
555555557000-555555558000 rw-p 00003000 fe:00 77 /opt/a b/prog (deleted)
555555558000-555555579000 rw-p 00000000 00:00 0  [heap]
7ffff6000000-7ffff6001000 r-xp 00021000 fe:00 79 /lib/libc.so.6
7ffff7000000-7ffff7100000 r--p 00000000 fe:00 78 /usr/share/data
7ffff7dc0000-7ffff7de0000 r--p 00000000 fe:00 79 /lib/libc.so.6
7ffff7de0000-7ffff7f00000 r-xp 00020000 fe:00 79 /lib/libc.so.6
7ffff7f00000-7ffff7f01000 r-xp 00000000 00:00 0
7ffff7f01000-7ffff7f03000 rwxp 00000000 00:00 0  [anon:jit]
7ffff7f03000-7ffff7f04000 rw-p 00000000 00:00 0
7ffff7fc0000-7ffff7fc1000 r-xp 00000000 00:00 0  [vdso]
";
        let found = find(maps);
        let of =
            |base, end, path: &[u8]| Found { base, end, path: path.to_vec(), bias: None, deleted: false };
        let again = Found {
            bias: Some(0x7ffff6000000 - 0x21000),
            ..of(0x7ffff6000000, 0x7ffff6001000, b"/lib/libc.so.6")
        };
        assert_eq!(
            found,
            [
                Found { deleted: true, ..of(0x555555554000, 0x555555558000, b"/opt/a b/prog") },
                of(0x7ffff7dc0000, 0x7ffff7f00000, b"/lib/libc.so.6"),
                of(0x7ffff7f00000, 0x7ffff7f03000, b""),
                of(0x7ffff7fc0000, 0x7ffff7fc1000, b"[vdso]"),
                again,
            ]
        );
        assert!(find(b"nonsense\n\n-- r 0").is_empty());
    }

    #[test]
    fn own_modules_are_those_of_the_loader() {
        let maps = fs::read("/proc/self/maps").unwrap();
        let paths: Vec<String> =
            find(&maps).iter().map(|file| String::from_utf8_lossy(&file.path).into_owned()).collect();
        let exe = std::env::current_exe().unwrap();
        assert!(paths.contains(&exe.to_string_lossy().into_owned()), "{paths:?}");
        assert!(paths.iter().any(|path| path.contains("libc.so")), "{paths:?}");
    }

    /// The mappings were read before the thread ended, the modules after.
    #[test]
    fn modules_are_not_lost_with_the_thread_through_which_they_are_read() {
        let own = std::process::id();
        let mut ended = crate::ended_child::ended_child();
        let mut events = crate::stream::Stream::new(own, 0).events();
        let (mut modules, mut reader) = (Modules::new(own).unwrap(), ModuleReader::new(own));
        assert!(modules.refresh(&mut reader, &mut events, 0));
        let count = modules.list().iter().count();
        let fewer = modules.found[1..].to_vec();
        for (tid, is_new) in [(ended.id(), false), (own, true)] {
            modules.read_through(tid);
            reader.read_through(tid);
            assert_eq!(modules.set_found(fewer.clone(), &mut reader, &mut events, 0), is_new);
            assert_eq!(modules.list().iter().count(), count - usize::from(is_new));
        }
        ended.wait().unwrap();
    }
}
