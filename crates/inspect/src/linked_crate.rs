//! Which programs link the crate `stackglass`: only they have tasks with names.

use stackglass_procfs::elf_names::section_contains;
use stackglass_wire::{AGENT_SYMBOL, TASKS_SYMBOL};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether a program links the crate `stackglass`, which contains the name of the preload library.
pub fn links_the_crate(program: &Path) -> bool {
    let Ok(file) = File::open(program) else { return false };
    // This command contains the name as well, together with the library.
    let same = |other: std::fs::Metadata| {
        file.metadata().is_ok_and(|meta| (meta.dev(), meta.ino()) == (other.dev(), other.ino()))
    };
    if std::fs::metadata("/proc/self/exe").is_ok_and(same) {
        return false;
    }
    section_contains(file, ".rodata", &[AGENT_SYMBOL.to_bytes(), TASKS_SYMBOL.to_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_do_not_link_the_crate() {
        assert!(!links_the_crate(Path::new("/bin/sh")) && !links_the_crate(Path::new("/etc/passwd")));
    }
}
