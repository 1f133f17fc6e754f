//! Whether the async tasks of a program can be read from outside: its file has the types of its async functions, and tokio.
//!
//! Types are in debug information, which is only searched for their names here. Reading it takes much longer.

use object::{Object, ObjectSection, ReadCache};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What debug information calls the types of async functions, blocks and closures.
const TYPES: [&[u8]; 3] = [b"{async_fn_env#", b"{async_block_env#", b"{async_closure_env#"];
/// The namespace of tokio in debug information. Strings may share their ends.
const TOKIO: &[u8] = b"tokio\0";
/// A function that each program with tasks of tokio has, as symbols name it.
const RUNTIME: &[u8] = b"5tokio7runtime4task";

/// What a program's file says of async tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TaskTypes {
    /// Tasks of tokio and their types.
    Known,
    /// It uses tokio, but has no types.
    Missing,
    /// It does not use tokio, as far as can be seen.
    NoTokio,
}

impl TaskTypes {
    /// Searches a file.
    pub(crate) fn of(program: &Path) -> TaskTypes {
        find(program).unwrap_or(TaskTypes::NoTokio)
    }
}

fn find(program: &Path) -> Option<TaskTypes> {
    let mut file = File::open(program).ok()?;
    let mut start = [0; 4];
    file.read_exact(&mut start).ok()?;
    if start != *b"\x7fELF" {
        return None;
    }
    let data = ReadCache::new(file);
    let elf = object::read::elf::ElfFile64::<object::Endianness, _>::parse(&data).ok()?;
    let has = |section: &str, names: &[&[u8]]| {
        let section = elf.section_by_name(section)?;
        let bytes = section.uncompressed_data().ok()?;
        Some(names.iter().any(|name| contains(&bytes, name)))
    };
    let text = |names: &[&[u8]]| has(".debug_str", names).unwrap_or(false);
    if text(&TYPES) && text(&[TOKIO]) {
        return Some(TaskTypes::Known);
    }
    let uses = has(".strtab", &[RUNTIME]).unwrap_or(false) || text(&[TOKIO]);
    Some(if uses { TaskTypes::Missing } else { TaskTypes::NoTokio })
}

/// Whether `name` occurs in `bytes`.
fn contains(bytes: &[u8], name: &[u8]) -> bool {
    stackglass_procfs::elf_names::contains(bytes, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_have_no_tasks() {
        assert_eq!(TaskTypes::of(Path::new("/bin/sh")), TaskTypes::NoTokio);
        assert_eq!(TaskTypes::of(Path::new("/etc/passwd")), TaskTypes::NoTokio);
        assert_eq!(TaskTypes::of(Path::new("/nowhere")), TaskTypes::NoTokio);
    }
}
