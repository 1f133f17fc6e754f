//! Whether the async tasks of a program can be read from outside: its file has the types of its async functions, and tokio or the
//! crate `stackglass`, which can name tasks of any executor.
//!
//! Types are in debug information, which is only searched for their names here. Reading it takes much longer.

use crate::linked_crate::links_the_crate;
use object::{Object, ObjectSection, ReadCache};
use stackglass_layouts::{may_describe_named_tasks, may_describe_tasks};
use stackglass_procfs::elf_names;
use stackglass_profile::Module;
use stackglass_symbols::Options;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The namespace of tokio in debug information. Strings may share their ends.
const TOKIO: &[u8] = b"tokio\0";
/// A function that each program with tasks of tokio has, as symbols name it.
const RUNTIME: &[u8] = b"5tokio7runtime4task";

/// Why a profile of a program that uses tokio is one of threads.
pub(super) const WITHOUT_TYPES: &str = "its debug information has no types of async functions, so this is a profile of threads: \
    `debug = 2` in the Cargo profile of its own crate shows in which line tasks wait";

/// What a program's file says of async tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskTypes {
    /// Tasks of tokio, or tasks that it can name, and their types.
    Known,
    /// It uses tokio, but has no types.
    Missing,
    /// It has neither symbols nor debug information, so what it uses cannot be seen.
    Stripped,
    /// It does not use tokio, as far as can be seen, and has no types of named tasks.
    NoTokio,
}

impl TaskTypes {
    /// Searches a file.
    pub fn from_program(program: &Path) -> TaskTypes {
        find(program).unwrap_or(TaskTypes::NoTokio)
    }

    /// Why a profile by wall time is one of threads; `None` if tasks can be read.
    pub fn lack(self) -> Option<&'static str> {
        match self {
            TaskTypes::Known => None,
            TaskTypes::Missing => Some(WITHOUT_TYPES),
            TaskTypes::Stripped => {
                Some("it is stripped, so its tasks cannot be seen from outside: this is a profile of threads")
            }
            TaskTypes::NoTokio => Some("no tasks of tokio are in it, so this is a profile of threads"),
        }
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
    let module = Module { path: program.display().to_string().into(), build_id: [].into() };
    let options = Options::default();
    let is_known = may_describe_tasks(&module, &options)
        || links_the_crate(program) && may_describe_named_tasks(&module, &options);
    if is_known {
        return Some(TaskTypes::Known);
    }
    let has = |section: &str, name: &[u8]| {
        let bytes = elf.section_by_name(section).and_then(|section| section.uncompressed_data().ok());
        bytes.is_some_and(|bytes| elf_names::contains(&bytes, name))
    };
    if has(".strtab", RUNTIME) || has(".debug_str", TOKIO) {
        return Some(TaskTypes::Missing);
    }
    let has_any = [".symtab", ".debug_info"].iter().any(|name| elf.section_by_name(name).is_some());
    Some(if has_any { TaskTypes::NoTokio } else { TaskTypes::Stripped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_have_no_tasks() {
        let own = std::env::current_exe().unwrap();
        assert!(matches!(
            TaskTypes::from_program(&own),
            TaskTypes::NoTokio | TaskTypes::Missing | TaskTypes::Known
        ));
        assert_eq!(TaskTypes::from_program(Path::new("/bin/sh")), TaskTypes::Stripped);
        assert_eq!(TaskTypes::from_program(Path::new("/etc/passwd")), TaskTypes::NoTokio);
        assert_eq!(TaskTypes::from_program(Path::new("/nowhere")), TaskTypes::NoTokio);
    }
}
