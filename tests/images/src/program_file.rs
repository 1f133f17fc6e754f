//! Makes the file of a program smaller: code and unwind rules are read from memory, whose pages are stored.

use object::{Object, ObjectSection};

/// Sections whose bytes no reader takes from the file.
const LOADED: [&str; 4] = [".eh_frame", ".eh_frame_hdr", ".gcc_except_table", ".text"];

/// The file with zeros in the sections that are read from memory. All else stays where it is.
///
/// # Panics
/// If it is no ELF file.
pub fn without_code(mut file: Vec<u8>) -> Vec<u8> {
    let elf = object::File::parse(&file[..]).expect("a compiler wrote it");
    let sections = elf.sections().filter(|section| section.name().is_ok_and(|name| LOADED.contains(&name)));
    let ranges: Vec<(u64, u64)> = sections.filter_map(|section| section.file_range()).collect();
    for (start, size) in ranges {
        file[start as usize..(start + size) as usize].fill(0);
    }
    file
}
