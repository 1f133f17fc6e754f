//! Types and variables in debug information: for any entries, all types refer to types that were read, and memory is in
//! proportion.

use super::memory::bounded;
use stackglass_layouts::{Layouts, Shape, TypeId};
use stackglass_profile::recording::Module;
use stackglass_symbols::Options;

/// Bytes without any input.
const MEMORY: usize = 16 << 20;

/// The first four bytes are the sizes of the abbreviations and the strings, which follow; the rest are entries. Returns the number of
/// types.
pub fn check(bytes: &[u8]) -> usize {
    let Some((sizes, rest)) = bytes.split_first_chunk::<4>() else { return 0 };
    let size = |at: usize| usize::from(u16::from_le_bytes([sizes[at], sizes[at + 1]]));
    let (abbreviations, rest) = rest.split_at(size(0).min(rest.len()));
    let (strings, entries) = rest.split_at(size(2).min(rest.len()));
    let file = tempfile::NamedTempFile::new().unwrap();
    let sections = [(".debug_abbrev", abbreviations), (".debug_str", strings), (".debug_info", entries)];
    std::fs::write(file.path(), elf(&sections)).unwrap();
    let module = Module { path: file.path().to_str().unwrap().into(), build_id: [].into() };
    let options = Options { threads: Some(1), ..Options::default() };
    bounded(MEMORY + 1024 * bytes.len(), || check_layouts(&Layouts::read(&[module], &options)))
}

fn check_layouts(layouts: &Layouts) -> usize {
    let known = |id: TypeId| assert!((id.0 as usize) < layouts.len(), "{id:?} of {}", layouts.len());
    for id in 0..layouts.len() as u32 {
        let layout = layouts.get(TypeId(id));
        match &layout.shape {
            Shape::Plain | Shape::Pointer { target: None } => {}
            Shape::Pointer { target: Some(id) } | Shape::Array { element: id, .. } => known(*id),
            Shape::Struct(fields) | Shape::Union(fields) => {
                fields.iter().for_each(|field| known(field.type_id))
            }
            Shape::Enum { variants, .. } => {
                variants.iter().flat_map(|variant| &variant.fields).for_each(|field| known(field.type_id));
            }
        }
        layout.arguments.iter().for_each(|(_, id)| known(*id));
    }
    let data = layouts.module(0);
    data.statics.iter().chain(&data.thread_locals).filter_map(|variable| variable.type_id).for_each(known);
    data.vtables.iter().for_each(|vtable| known(vtable.type_id));
    layouts.len()
}

/// An ELF file with these sections.
fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut contents = vec![0; 64];
    let mut headers = vec![0; 64];
    let mut add = |name: &str, kind: u32, bytes: &[u8], names: &mut Vec<u8>| {
        let mut header = [0; 64];
        header[0..4].copy_from_slice(&(names.len() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&(contents.len() as u64).to_le_bytes());
        names.extend(name.bytes().chain([0]));
        let bytes = if kind == 3 { names.clone() } else { bytes.to_vec() };
        header[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        contents.extend(bytes);
        contents.resize(contents.len().next_multiple_of(8), 0);
        headers.extend(header);
    };
    for (name, bytes) in sections {
        add(name, 1, bytes, &mut names);
    }
    add(".shstrtab", 3, &[], &mut names);
    let count = (headers.len() / 64) as u16;
    contents[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0");
    contents[20] = 1;
    let start = contents.len() as u64;
    contents[40..48].copy_from_slice(&start.to_le_bytes());
    contents[52..54].copy_from_slice(&64_u16.to_le_bytes());
    contents[58..60].copy_from_slice(&64_u16.to_le_bytes());
    contents[60..62].copy_from_slice(&count.to_le_bytes());
    contents[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    contents.extend(headers);
    contents
}
