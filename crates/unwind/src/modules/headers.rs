//! From ELF program headers to a [`Module`]. The loader gives those of the own process; those of another process are
//! read from its memory. Source: System V gABI chapter 5, `elf(5)`.

use super::{BUILD_ID, Module, SEGMENTS, Segment, Span};
use libc::{Elf64_Ehdr, Elf64_Phdr, PF_R, PF_W, PF_X, PT_DYNAMIC, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE};
use std::mem::offset_of;

/// The part of a program header that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramHeader {
    /// `p_type`.
    pub kind: u32,
    /// `p_flags`.
    pub flags: u32,
    /// `p_vaddr`, without the bias.
    pub address: u64,
    /// `p_memsz`.
    pub size: u64,
}

/// Type of a note with a build id (`elf.h`).
const NT_GNU_BUILD_ID: u32 = 3;
/// Most headers read from another process; real files have about a dozen.
const HEADERS_LIMIT: u16 = 64;
/// Size of a program header.
const HEADER: usize = size_of::<Elf64_Phdr>();
/// Start of a 64-bit little-endian ELF file.
const ELF64_LITTLE_ENDIAN: &[u8] = b"\x7fELF\x02\x01";

impl Module {
    /// Describes a module. `read` copies bytes of the process's memory and returns how many; it is used for the build
    /// id and the entry only. `None` when the headers load nothing.
    pub fn from_program_headers(
        bias: u64,
        headers: impl Iterator<Item = ProgramHeader> + Clone,
        mut read: impl FnMut(u64, &mut [u8]) -> usize,
    ) -> Option<Module> {
        let mut module = EMPTY;
        module.bias = bias;
        module.start = u64::MAX;
        for header in headers.clone().filter(|h| h.kind == PT_LOAD) {
            let span = span(bias, header)?;
            module.start = module.start.min(span.start);
            module.end = module.end.max(span.end);
            if header.flags & PF_W == 0
                && let Some(place) = module.segments.get_mut(usize::from(module.segment_count))
            {
                *place = Segment {
                    span,
                    executable: header.flags & PF_X != 0,
                    readable: header.flags & PF_R != 0,
                };
                module.segment_count += 1;
            }
        }
        if module.start >= module.end {
            return None;
        }
        module.entry = entry(&module, &mut read).unwrap_or(0);
        for header in headers {
            let Some(span) = span(bias, header) else { continue };
            match header.kind {
                PT_GNU_EH_FRAME => {
                    if let Some(part) = module.readable_at(span.start) {
                        module.eh_frame_hdr = Span { start: span.start, end: span.end.min(part.end) };
                        module.unwind_data = Span { start: part.start, end: part.end };
                    }
                }
                PT_DYNAMIC => module.dynamic = span,
                PT_NOTE if module.build_id_len == 0 && module.readable_at(span.start).is_some() => {
                    find_build_id(&mut module, span, &mut read);
                }
                _ => {}
            }
        }
        Some(module)
    }

    /// Describes the module whose ELF header lies at `base` in some process's memory.
    pub fn from_image(base: u64, mut read: impl FnMut(u64, &mut [u8]) -> usize) -> Option<Module> {
        let mut elf = [0u8; size_of::<Elf64_Ehdr>()];
        if read(base, &mut elf) != elf.len() || !elf.starts_with(ELF64_LITTLE_ENDIAN) {
            return None;
        }
        let table = u64_at(&elf, offset_of!(Elf64_Ehdr, e_phoff))?;
        let size = u16_at(&elf, offset_of!(Elf64_Ehdr, e_phentsize))?;
        let count = u16_at(&elf, offset_of!(Elf64_Ehdr, e_phnum))?;
        if usize::from(size) != HEADER || count > HEADERS_LIMIT {
            return None;
        }
        let mut headers = [ProgramHeader { kind: 0, flags: 0, address: 0, size: 0 }; HEADERS_LIMIT as usize];
        let mut first_load = None;
        for (i, place) in headers.iter_mut().take(usize::from(count)).enumerate() {
            let mut bytes = [0u8; HEADER];
            let at = base.checked_add(table)?.checked_add((i * HEADER) as u64)?;
            if read(at, &mut bytes) != bytes.len() {
                return None;
            }
            *place = ProgramHeader {
                kind: u32_at(&bytes, offset_of!(Elf64_Phdr, p_type))?,
                flags: u32_at(&bytes, offset_of!(Elf64_Phdr, p_flags))?,
                address: u64_at(&bytes, offset_of!(Elf64_Phdr, p_vaddr))?,
                size: u64_at(&bytes, offset_of!(Elf64_Phdr, p_memsz))?,
            };
            if place.kind == PT_LOAD && first_load.is_none() {
                // The first segment contains the ELF header.
                first_load =
                    Some(place.address.wrapping_sub(u64_at(&bytes, offset_of!(Elf64_Phdr, p_offset))?));
            }
        }
        let bias = base.wrapping_sub(first_load?);
        Module::from_program_headers(bias, headers.iter().take(usize::from(count)).copied(), read)
    }
}

const EMPTY: Module = Module {
    id: 0,
    pinned: false,
    build_id_len: 0,
    segment_count: 0,
    path_len: 0,
    path_at: 0,
    bias: 0,
    start: 0,
    end: 0,
    entry: 0,
    eh_frame_hdr: Span::NONE,
    eh_frame: Span::NONE,
    unwind_data: Span::NONE,
    dynamic: Span::NONE,
    segments: [Segment { span: Span::NONE, executable: false, readable: false }; SEGMENTS],
    build_id: [0; BUILD_ID],
};

fn span(bias: u64, header: ProgramHeader) -> Option<Span> {
    let start = bias.wrapping_add(header.address);
    Some(Span { start, end: start.checked_add(header.size)? })
}

/// The entry point in the ELF header, if the header is loaded.
fn entry(module: &Module, read: &mut impl FnMut(u64, &mut [u8]) -> usize) -> Option<u64> {
    let mut elf = [0u8; size_of::<Elf64_Ehdr>()];
    let loaded = module.readable_at(module.start)?;
    if loaded.end - loaded.start < elf.len() as u64
        || read(module.start, &mut elf) != elf.len()
        || !elf.starts_with(ELF64_LITTLE_ENDIAN)
    {
        return None;
    }
    let entry = module.bias.wrapping_add(u64_at(&elf, offset_of!(Elf64_Ehdr, e_entry)).filter(|e| *e != 0)?);
    module.is_executable(entry).then_some(entry)
}

fn find_build_id(module: &mut Module, notes: Span, read: &mut impl FnMut(u64, &mut [u8]) -> usize) {
    let mut at = notes.start;
    // A note has at least 12 bytes of header, so the loop ends.
    while at.saturating_add(16) <= notes.end {
        let mut head = [0u8; 16];
        if read(at, &mut head) != head.len() {
            return;
        }
        let (Some(name), Some(content), Some(kind)) = (u32_at(&head, 0), u32_at(&head, 4), u32_at(&head, 8))
        else {
            return;
        };
        let padded = |n: u32| u64::from(n).next_multiple_of(4);
        let start = at.saturating_add(12 + padded(name));
        if kind == NT_GNU_BUILD_ID && name == 4 && head.ends_with(b"GNU\0") {
            let len = (content as usize).min(BUILD_ID);
            if let Some(place) = module.build_id.get_mut(..len)
                && start.saturating_add(len as u64) <= notes.end
                && read(start, place) == len
            {
                module.build_id_len = len as u8;
            }
            return;
        }
        at = start.saturating_add(padded(content));
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
