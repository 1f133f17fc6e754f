//! The files that programs run from, each opened once for all processes that map it.
//!
//! A mapping names its file by the path that its process sees. That path may be in another root folder or mount namespace, or
//! name another file by now. So a file is used only if it has the build id that the kernel reported with the mapping, or
//! the inode number if it has no build id.

use super::elf_file::ElfFile;
use super::system::System;
use foldhash::HashMap;
use stackglass_perf::records::Mmap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Name of the kernel's own library among the mappings.
const VDSO: &[u8] = b"[vdso]";
/// The kernel's suffix for a file that was deleted.
const DELETED: &[u8] = b" (deleted)";
/// Most files in the table. When it is full it is cleared; files in use stay open.
const MOST: usize = 1 << 14;
/// Candidates that are links of the kernel: the last ones.
const LINKS: usize = 2;

/// A file of a mapping.
#[derive(Clone)]
pub(super) struct Found {
    /// `None` if it cannot be read.
    pub file: Option<Rc<ElfFile>>,
    /// A path that finds it from this process, or its own name if only a link of the kernel finds it.
    pub path: Rc<[u8]>,
}

/// The table of files.
#[derive(Default)]
pub(super) struct Files {
    system: System,
    known: HashMap<Key, Found>,
}

/// A file's path as its process sees it, and its build id and inode number as the kernel reports them.
type Key = (Box<[u8]>, Box<[u8]>, u64);

impl Files {
    /// Files of this system.
    pub(super) fn new(system: System) -> Files {
        Files { system, known: HashMap::default() }
    }

    /// The file that process `pid` has mapped.
    pub(super) fn lookup(&mut self, pid: u32, map: &Mmap<'_>) -> Found {
        let key: Key = (map.path.into(), map.build_id.into(), map.inode);
        if let Some(found) = self.known.get(&key) {
            return found.clone();
        }
        let found = self.find(pid, map);
        if self.known.len() >= MOST {
            self.known.clear();
        }
        self.known.insert(key, found.clone());
        found
    }

    #[cfg(not(test))]
    fn find(&self, pid: u32, map: &Mmap<'_>) -> Found {
        find(&self.system, pid, map)
    }

    #[cfg(test)]
    fn find(&self, pid: u32, map: &Mmap<'_>) -> Found {
        let live = || find(&self.system, pid, map);
        match self.system.traced() {
            Some(traced) => super::replay::find_file(traced, map, live),
            None => live(),
        }
    }
}

/// Files that were deleted or replaced after they were found are kept for their names.
impl Drop for Files {
    fn drop(&mut self) {
        for found in self.known.values() {
            let path = Path::new(OsStr::from_bytes(&found.path));
            if let Some(file) = found.file.as_ref().filter(|file| file.has_lost(path)) {
                register(&found.path, file);
            }
        }
    }
}

/// Keeps a file open until names are read.
fn register(path: &[u8], file: &ElfFile) {
    if let (Ok(name), Some(file)) =
        (std::str::from_utf8(path), file.file().and_then(|file| file.try_clone().ok()))
    {
        stackglass_symbols::register_open_file(name, file);
    }
}

fn find(system: &System, pid: u32, map: &Mmap<'_>) -> Found {
    if map.path == VDSO {
        return Found { file: ElfFile::vdso(system).map(Rc::new), path: VDSO.into() };
    }
    let path = map.path.strip_suffix(DELETED).unwrap_or(map.path);
    let deleted = path.len() != map.path.len();
    let candidates = candidates(pid, path, map);
    for (index, candidate) in candidates.iter().enumerate().skip(usize::from(deleted)) {
        let Some(mut file) = ElfFile::open(system, candidate).filter(|file| is_same(file, map)) else {
            continue;
        };
        file.close(candidate);
        file.find_eh_frame();
        // The kernel's links end with the process, and are no names.
        let is_link = index >= candidates.len() - LINKS;
        if is_link {
            register(path, &file);
        }
        let path = if is_link { path.into() } else { candidate.as_os_str().as_bytes().into() };
        return Found { file: Some(Rc::new(file)), path };
    }
    Found { file: None, path: path.into() }
}

/// Paths that may find the file, best first: its own name, its name in the root folder of its process, and the kernel's
/// links, which also find deleted files.
fn candidates(pid: u32, path: &[u8], map: &Mmap<'_>) -> Vec<PathBuf> {
    let own = PathBuf::from(OsStr::from_bytes(path));
    let mut all = vec![own.clone()];
    let inside = path.strip_prefix(b"/").unwrap_or(path);
    // If the root folder has a name in this process, that name is valid after the other process has ended.
    if let Ok(root) = std::fs::read_link(format!("/proc/{pid}/root"))
        && root != Path::new("/")
    {
        all.push(root.join(OsStr::from_bytes(inside)));
    }
    all.push(PathBuf::from(format!("/proc/{pid}/root")).join(OsStr::from_bytes(inside)));
    all.push(format!("/proc/{pid}/map_files/{:x}-{:x}", map.start, map.start + map.len).into());
    all.push(format!("/proc/{pid}/exe").into());
    all
}

fn is_same(file: &ElfFile, map: &Mmap<'_>) -> bool {
    match map.build_id {
        [] => map.inode == 0 || file.inode == map.inode,
        id => file.module(0).is_some_and(|module| module.build_id() == id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_file_that_was_mapped_is_taken() {
        let exe = std::env::current_exe().unwrap();
        let path = exe.as_os_str().as_bytes();
        let file = ElfFile::open(&System::default(), &exe).unwrap();
        let id = file.module(0).unwrap().build_id().to_vec();
        let me = std::process::id();
        let lookup = |build_id: &[u8], inode: u64, path: &[u8]| {
            let map = Mmap { start: 0x1000, len: 0x1000, offset: 0, build_id, inode, path };
            let found = Files::default().lookup(me, &map);
            (found.file.is_some(), found.path.to_vec())
        };
        assert_eq!(lookup(&[], file.inode, path), (true, path.to_vec()));
        assert_eq!(lookup(&[], file.inode + 1, path), (false, path.to_vec()));
        if !id.is_empty() {
            assert_eq!(lookup(&id, 0, path), (true, path.to_vec()));
        }
        assert_eq!(lookup(&[1, 2, 3], 0, path), (false, path.to_vec()));
        let deleted = [path, DELETED].concat();
        assert!(lookup(&[], file.inode, &deleted).0);
        assert!(
            [path.to_vec(), [b"/proc/", me.to_string().as_bytes(), b"/root", path].concat()]
                .contains(&lookup(&[], file.inode, &deleted).1)
        );
        assert_eq!(lookup(&[], 0, b"[vdso]"), (true, VDSO.to_vec()));
    }
}
