//! Looks for names in an ELF file: what a program is linked with decides how it is sampled.

use object::{Object, ObjectSection};
use std::fs::File;
use std::io::Read;

/// Whether a section of a 64-bit ELF file contains one of these names. False for any other file.
pub fn section_contains(mut file: File, section: &str, names: &[&[u8]]) -> bool {
    let mut start = [0; 4];
    if file.read_exact(&mut start).is_err() || start != *b"\x7fELF" {
        return false;
    }
    let data = object::ReadCache::new(file);
    let Ok(elf) = object::read::elf::ElfFile64::<object::Endianness, _>::parse(&data) else { return false };
    let Some(section) = elf.section_by_name(section) else { return false };
    section.data().is_ok_and(|bytes| names.iter().any(|name| contains(bytes, name)))
}

/// Whether `name` occurs in `bytes`.
pub fn contains(bytes: &[u8], name: &[u8]) -> bool {
    let Some(first) = name.first() else { return true };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|b| b == first) {
        if rest[at..].starts_with(name) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_wherever_it_lies() {
        assert!(contains(b"xxstackglaxstackglass", b"stackglass"));
        assert!(!contains(b"stackglas", b"stackglass") && !contains(b"", b"s"));
    }

    #[test]
    fn names_of_a_program_are_found() {
        let open = |path| File::open(path).unwrap();
        assert!(section_contains(open("/bin/sh"), ".dynstr", &[b"nowhere", b"libc.so"]));
        assert!(!section_contains(open("/bin/sh"), ".dynstr", &[b"nowhere"]));
        assert!(!section_contains(open("/etc/passwd"), ".dynstr", &[b"root"]));
    }
}
