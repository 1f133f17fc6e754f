//! One ELF file that programs run from: its program headers, and its bytes by address.
//!
//! Unwind rules are read from the file, not from the memory of a process, which may have ended before its samples are
//! walked. All processes that run from one file share what was read of it. Files are read by pread(2) and never mapped,
//! because a mapped file that is truncated raises SIGBUS.

use super::file_copy::FileCopy;
use super::system::{OpenedFile, System};
use object::{Endianness, Object, ObjectSection};
use stackglass_procfs::PageCache;
use stackglass_unwind::modules::ProgramHeader;
use stackglass_unwind::{Module, RuleTable};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Alignment of mappings.
const PAGE: u64 = 4096;
/// Cached pages of one file: 64 MiB.
const MOST_PAGES: usize = 16 << 10;
/// Program headers that are read; real files have about a dozen.
const MOST_HEADERS: usize = 64;
const PT_LOAD: u32 = 1;

/// An open file.
pub(super) struct ElfFile {
    bytes: Bytes,
    opened: OpenedFile,
    loads: Vec<Load>,
    headers: Vec<ProgramHeader>,
    /// `.eh_frame`, if no table points to it (statically linked programs).
    eh_frame: Option<Range<u64>>,
    pages: PageCache,
    /// Unwind rules that were found, by the file's addresses.
    pub rules: RuleTable,
    /// The file's inode number, 0 for none.
    pub inode: u64,
    /// The number of its device.
    device: u64,
}

enum Bytes {
    File(File),
    Copy(FileCopy),
    Memory(Vec<u8>),
}

impl Bytes {
    fn file(&self) -> Option<&File> {
        match self {
            Bytes::File(file) => Some(file),
            Bytes::Copy(copy) => Some(copy.file()),
            Bytes::Memory(_) => None,
        }
    }
}

/// A loadable segment.
struct Load {
    address: u64,
    offset: u64,
    file_size: u64,
    executable: bool,
}

impl ElfFile {
    /// Opens a file. `None` if it cannot be read or is no 64-bit ELF file.
    pub(super) fn open(system: &System, path: &Path) -> Option<ElfFile> {
        // Never a device or a pipe, because opening one may have effects or block.
        let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        let file = File::open(path).ok()?;
        ElfFile::read(Bytes::File(file), system.opened_file(), (meta.ino(), meta.dev()))
    }

    /// Closes the file and reads its copy from here on, if there may be one. `path` is where it was found.
    pub(super) fn close(&mut self, path: &Path) {
        if let Some(copy) = self.file().and_then(|file| FileCopy::from_file(file, path)) {
            self.bytes = Bytes::Copy(copy);
        }
    }

    /// The file, or its copy; `None` for the kernel's own library.
    pub(super) fn file(&self) -> Option<&File> {
        self.bytes.file()
    }

    /// Whether a path names another file by now, or none.
    pub(super) fn has_lost(&self, path: &Path) -> bool {
        let is_same = |now: std::fs::Metadata| now.ino() == self.inode && now.dev() == self.device;
        !std::fs::metadata(path).is_ok_and(is_same)
    }

    /// The kernel's own library (vdso), which is the same in each process.
    pub(super) fn vdso(system: &System) -> Option<ElfFile> {
        const LEN: usize = 8192;
        // SAFETY: no pointers.
        let at = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
        let mut bytes = vec![0; LEN];
        let n = stackglass_unwind::memory::read_own(at, &mut bytes);
        bytes.truncate(n);
        ElfFile::read(Bytes::Memory(bytes), system.opened_file(), (0, 0))
    }

    /// A file of a trace, which no file system has.
    #[cfg(test)]
    pub(super) fn from_trace(opened: OpenedFile) -> Option<ElfFile> {
        ElfFile::read(Bytes::Memory(Vec::new()), opened, (0, 0))
    }

    /// The file in the trace that is being written.
    #[cfg(test)]
    pub(super) fn opened(&self) -> &OpenedFile {
        &self.opened
    }

    fn read(bytes: Bytes, opened: OpenedFile, (inode, device): (u64, u64)) -> Option<ElfFile> {
        let mut file = ElfFile {
            bytes,
            opened,
            loads: Vec::new(),
            headers: Vec::new(),
            eh_frame: None,
            pages: PageCache::new(MOST_PAGES),
            rules: RuleTable::new(),
            inode,
            device,
        };
        let mut elf = [0u8; 64];
        if file.read_offset(0, &mut elf) != elf.len() || !elf.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let table = u64::from_le_bytes(elf[32..40].try_into().ok()?);
        let size = u16::from_le_bytes([elf[54], elf[55]]);
        let count = usize::from(u16::from_le_bytes([elf[56], elf[57]])).min(MOST_HEADERS);
        if size != 56 {
            return None;
        }
        for i in 0..count {
            let mut bytes = [0u8; 56];
            if file.read_offset(table.checked_add(i as u64 * 56)?, &mut bytes) != bytes.len() {
                return None;
            }
            let u32_at =
                |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
            let header =
                ProgramHeader { kind: u32_at(0), flags: u32_at(4), address: u64_at(16), size: u64_at(40) };
            if header.kind == PT_LOAD {
                let executable = header.flags & 1 != 0;
                let (address, offset, file_size) = (header.address, u64_at(8), u64_at(32));
                file.loads.push(Load { address, offset, file_size, executable });
            }
            file.headers.push(header);
        }
        Some(file)
    }

    /// The bias of a mapping of this file's code. `None` if the file has no code at this offset.
    pub(super) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let holds = |load: &&Load| {
            let from = load.offset & !(PAGE - 1);
            load.executable && from <= offset && offset < load.offset.saturating_add(load.file_size)
        };
        let load = self.loads.iter().find(holds)?;
        let address = load.address.wrapping_add(offset).wrapping_sub(load.offset);
        Some(start.wrapping_sub(address))
    }

    /// This file as a module with this bias.
    pub(super) fn module(&self, bias: u64) -> Option<Module> {
        let read = |at: u64, into: &mut [u8]| self.read_address(at.wrapping_sub(bias), into);
        let module = Module::from_program_headers(bias, self.headers.iter().copied(), read)?;
        match &self.eh_frame {
            Some(at) if module.eh_frame_hdr().is_empty() => {
                Some(module.with_eh_frame(at.start.wrapping_add(bias)..at.end.wrapping_add(bias)))
            }
            _ => Some(module),
        }
    }

    /// Searches `.eh_frame` among the sections, if the program headers do not name it.
    pub(super) fn find_eh_frame(&mut self) {
        /// `PT_GNU_EH_FRAME`.
        const TABLE: u32 = 0x6474_e550;
        if !self.headers.iter().any(|header| header.kind == TABLE) {
            self.eh_frame = self.opened.eh_frame(|| self.eh_frame_section());
        }
    }

    fn eh_frame_section(&self) -> Option<Range<u64>> {
        let file = self.file()?;
        let data = object::ReadCache::new(file.try_clone().ok()?);
        let elf = object::read::elf::ElfFile64::<Endianness, _>::parse(&data).ok()?;
        let section = elf.section_by_name(".eh_frame")?;
        Some(section.address()..section.address().checked_add(section.size())?)
    }

    /// Copies the file's bytes from `address` on. Returns the number of bytes copied.
    pub(super) fn read_address(&self, address: u64, into: &mut [u8]) -> usize {
        let Some((load, from)) = self.loads.iter().find_map(|load| {
            let from = address.checked_sub(load.address).filter(|from| *from < load.file_size)?;
            Some((load, from))
        }) else {
            return 0;
        };
        let n = into.len().min((load.file_size - from).min(usize::MAX as u64) as usize);
        match load.offset.checked_add(from) {
            Some(offset) => self.read_offset(offset, &mut into[..n]),
            None => 0,
        }
    }

    fn read_offset(&self, offset: u64, into: &mut [u8]) -> usize {
        self.opened.read(offset, into, |offset, into| self.read_bytes(offset, into))
    }

    fn read_bytes(&self, offset: u64, into: &mut [u8]) -> usize {
        let file = match &self.bytes {
            Bytes::Memory(bytes) => {
                let Some(from) = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)) else {
                    return 0;
                };
                let n = from.len().min(into.len());
                into[..n].copy_from_slice(&from[..n]);
                return n;
            }
            Bytes::File(file) => file,
            Bytes::Copy(copy) => copy.file(),
        };
        self.pages.read(offset, into, |at, page| file.read_at(page, at).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_describes_itself_as_the_memory_of_its_process_does() {
        let file = ElfFile::open(&System::default(), &std::env::current_exe().unwrap()).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.contains("r-xp")).unwrap();
        let mut fields = line.split_ascii_whitespace();
        let (start, _) = fields.next().unwrap().split_once('-').unwrap();
        let offset = u64::from_str_radix(fields.nth(1).unwrap(), 16).unwrap();
        let bias = file.bias(u64::from_str_radix(start, 16).unwrap(), offset).unwrap();
        let module = file.module(bias).unwrap();
        let me = (a_file_describes_itself_as_the_memory_of_its_process_does as *const ()).addr() as u64;
        assert!(module.is_executable(me) && !module.eh_frame_hdr().is_empty());
        let (mut theirs, mut ours) = ([0; 64], [1; 64]);
        assert_eq!(file.read_address(me - bias, &mut theirs), 64);
        assert_eq!(stackglass_unwind::memory::read_own(me, &mut ours), 64);
        assert_eq!(theirs, ours);
        assert_eq!(file.bias(0x1000, u64::MAX), None);
        assert_eq!(file.read_address(u64::MAX, &mut ours), 0);
    }

    #[test]
    fn what_is_no_program_is_none() {
        let system = System::default();
        for path in ["/etc/passwd", "/dev/zero", "/no/such/file"] {
            assert!(ElfFile::open(&system, Path::new(path)).is_none());
        }
        let vdso = ElfFile::vdso(&system).unwrap();
        assert!(!vdso.module(0).unwrap().eh_frame_hdr().is_empty());
    }
}
