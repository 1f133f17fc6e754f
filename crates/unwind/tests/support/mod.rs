//! Shared by the tests: an ELF file as if loaded at its own addresses.
#![allow(dead_code, reason = "each test uses a part")]

use object::{Object, ObjectSection, ObjectSegment, SegmentFlags};
use stackglass_unwind::modules::ProgramHeader;
use stackglass_unwind::{Module, ModuleMemory};
use std::path::Path;

/// The loadable segments of a file, at bias 0.
pub struct FileImage {
    segments: Vec<(u64, Vec<u8>)>,
    pub module: Module,
    pub eh_frame: (u64, Vec<u8>),
}

impl FileImage {
    pub fn open(path: &Path) -> FileImage {
        let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = object::File::parse(&*bytes).unwrap();
        let segments: Vec<(u64, Vec<u8>)> =
            file.segments().map(|s| (s.address(), s.data().unwrap().to_vec())).collect();
        let mut headers: Vec<ProgramHeader> = file
            .segments()
            .map(|s| {
                let SegmentFlags::Elf { p_flags, .. } = s.flags() else { unreachable!() };
                ProgramHeader { kind: libc::PT_LOAD, flags: p_flags.0, address: s.address(), size: s.size() }
            })
            .collect();
        if let Some(section) = file.section_by_name(".eh_frame_hdr") {
            headers.push(ProgramHeader {
                kind: libc::PT_GNU_EH_FRAME,
                flags: libc::PF_R,
                address: section.address(),
                size: section.size(),
            });
        }
        let section = file.section_by_name(".eh_frame").expect("an .eh_frame");
        let eh_frame = (section.address(), section.data().unwrap().to_vec());
        let module = Module::from_program_headers(0, headers.into_iter(), |_, _| 0).unwrap();
        FileImage { segments, module, eh_frame }
    }

    /// Changes one byte, if the file has it, and returns the old value.
    pub fn set(&mut self, address: u64, value: u8) -> u8 {
        let place = self
            .segments
            .iter_mut()
            .find_map(|(start, bytes)| bytes.get_mut(usize::try_from(address.checked_sub(*start)?).ok()?));
        place.map_or(value, |place| std::mem::replace(place, value))
    }
}

impl ModuleMemory for FileImage {
    fn read(&self, _: &Module, address: u64, into: &mut [u8]) -> usize {
        for (start, bytes) in &self.segments {
            if let Some(from) = address.checked_sub(*start).filter(|f| *f < bytes.len() as u64) {
                let rest = &bytes[from as usize..];
                let len = rest.len().min(into.len());
                into[..len].copy_from_slice(&rest[..len]);
                return len;
            }
        }
        0
    }
}
