//! The program and the libraries of a process that is not ours: from `/proc/PID/maps` and the ELF headers
//! in its memory.

use super::images::Images;
use super::stream::Outlet;
use object::{Endianness, Object, ObjectSection};
use stackglass_unwind::memory::read_process;
use stackglass_unwind::modules::OwnedModuleList;
use stackglass_unwind::{Module, ModuleList, RuleTable};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The modules as last read.
pub struct Modules {
    pid: u32,
    list: OwnedModuleList,
    /// What the list was made from.
    found: Vec<Found>,
    /// Rules already worked out.
    pub table: RuleTable,
    told: HashSet<u32>,
}

/// A file that is mapped from its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Found {
    base: u64,
    /// End of the last mapping of the same file that follows.
    end: u64,
    path: Vec<u8>,
}

impl Modules {
    /// Knows none yet; `None` when the kernel gives no memory.
    pub fn new(pid: u32) -> Option<Modules> {
        let list = OwnedModuleList::new()?;
        Some(Modules { pid, list, found: Vec::new(), table: RuleTable::new(), told: HashSet::new() })
    }

    /// The list for the walker.
    pub fn list(&self) -> &ModuleList {
        &self.list
    }

    /// Looks for changes and tells them. True when there were any.
    pub fn refresh(&mut self, images: &mut Images, outlet: &mut Outlet, now: u64) -> bool {
        let Ok(maps) = fs::read(format!("/proc/{}/maps", self.pid)) else { return false };
        let found = find(&maps);
        if found == self.found || found.is_empty() {
            return false;
        }
        let Some(mut list) = OwnedModuleList::new() else { return false };
        images.forget();
        let pid = self.pid as i32;
        for file in &found {
            let module = Module::from_image(file.base, |at, into| read_process(pid, at, into));
            let Some(mut module) = module.filter(|module| module.range().start == file.base) else {
                continue;
            };
            // Programs that are linked statically have no table of their rules, only the rules.
            if module.eh_frame_hdr().is_empty()
                && let Some(section) = eh_frame_in_file(self.pid, &file.path)
            {
                let at = section.start.wrapping_add(module.bias())..section.end.wrapping_add(module.bias());
                module = module.with_eh_frame(at);
            }
            list.push(module, &file.path);
        }
        list.finish((self.list.generation() != 0).then_some(&*self.list));
        if list.generation() != self.list.generation() {
            self.table = RuleTable::new();
            self.table.reserve();
        }
        self.list = list;
        self.found = found;
        self.tell(outlet, now);
        true
    }

    fn tell(&mut self, outlet: &mut Outlet, now: u64) {
        let now_there: HashSet<u32> = self.list.iter().map(Module::id).collect();
        self.told.retain(|id| now_there.contains(id) || !outlet.module_unload(*id, now));
        for module in self.list.iter() {
            if !self.told.contains(&module.id()) && outlet.module_load(module, self.list.path(module), now) {
                self.told.insert(module.id());
            }
        }
    }
}

/// Where the file of a module says that `.eh_frame` lies, without the bias.
fn eh_frame_in_file(pid: u32, path: &[u8]) -> Option<Range<u64>> {
    let path = Path::new(OsStr::from_bytes(path));
    // The process may see another file there than we do.
    let file = match super::process::executable(pid) == path {
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

/// Files of which the beginning is mapped and some part is executable, and the kernel's own library.
fn find(maps: &[u8]) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut executable = HashSet::new();
    for line in maps.split(|b| *b == b'\n').filter_map(Line::parse) {
        let vdso = line.path == b"[vdso]";
        if !vdso && !line.path.starts_with(b"/") {
            continue;
        }
        if (line.offset == 0 || vdso)
            && found.last().is_none_or(|last| last.path != line.path || !line.executable)
        {
            found.push(Found { base: line.start, end: line.end, path: line.path.to_vec() });
        }
        // Mappings of one loading of a file stand together, with room for zeroed data at most between them.
        if let Some(last) = found.last_mut().filter(|last| last.path == line.path) {
            last.end = line.end;
            if line.executable {
                executable.insert(last.base);
            }
        }
    }
    found.retain(|file| executable.contains(&file.base));
    for file in &mut found {
        if let Some(path) = file.path.strip_suffix(b" (deleted)") {
            file.path = path.to_vec();
        }
    }
    found
}

/// One line of `/proc/PID/maps`.
struct Line<'a> {
    start: u64,
    end: u64,
    executable: bool,
    offset: u64,
    path: &'a [u8],
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Option<Line<'a>> {
        let mut rest = line;
        let mut field = || {
            rest = rest.trim_ascii_start();
            let end = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
            let (field, behind) = rest.split_at(end);
            rest = behind;
            std::str::from_utf8(field).ok()
        };
        let (start, end) = field()?.split_once('-')?;
        let flags = field()?;
        let offset = field()?;
        field()?; // device
        field()?; // inode
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        Some(Line {
            start: hexadecimal(start)?,
            end: hexadecimal(end)?,
            executable: flags.as_bytes().get(2) == Some(&b'x'),
            offset: hexadecimal(offset)?,
            path: rest.trim_ascii(),
        })
    }
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
7ffff7000000-7ffff7100000 r--p 00000000 fe:00 78 /usr/share/data
7ffff7dc0000-7ffff7de0000 r--p 00000000 fe:00 79 /lib/libc.so.6
7ffff7de0000-7ffff7f00000 r-xp 00020000 fe:00 79 /lib/libc.so.6
7ffff7f00000-7ffff7f01000 r-xp 00000000 00:00 0
7ffff7fc0000-7ffff7fc1000 r-xp 00000000 00:00 0  [vdso]
";
        let found = find(maps);
        let of = |base, end, path: &[u8]| Found { base, end, path: path.to_vec() };
        assert_eq!(
            found,
            [
                of(0x555555554000, 0x555555558000, b"/opt/a b/prog"),
                of(0x7ffff7dc0000, 0x7ffff7f00000, b"/lib/libc.so.6"),
                of(0x7ffff7fc0000, 0x7ffff7fc1000, b"[vdso]"),
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
}
