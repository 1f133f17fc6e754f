//! The global offset table: slots that the dynamic linker fills once with the addresses of functions.
//!
//! The slots come from its sections; in a file without sections, from the relocations of the dynamic linker. (Sections are
//! more complete: in static programs, slots may be filled otherwise.) Tables of function pointers and vtables are not
//! included.

use object::LittleEndian;
use object::elf::{self, Rela64};
use stackglass_debug_info::elf::Elf;
use std::ops::Range;

const LITTLE: LittleEndian = LittleEndian;

/// The slots of one file.
pub(super) struct Slots {
    sections: Vec<Range<u64>>,
    /// Sorted; used only without such sections.
    relocated: Vec<u64>,
}

impl Slots {
    pub fn from_elf(elf: &Elf<'_>) -> Slots {
        let sections: Vec<_> =
            [".got", ".got.plt"].iter().filter_map(|name| elf.addresses_of(name)).collect();
        let relocated = if sections.is_empty() { relocated(elf) } else { Vec::new() };
        Slots { sections, relocated }
    }

    pub fn contains(&self, address: u64) -> bool {
        self.sections.iter().any(|section| section.contains(&address))
            || self.relocated.binary_search(&address).is_ok()
    }
}

/// Addresses with a relocation of the kind that is used for such slots.
fn relocated(elf: &Elf<'_>) -> Vec<u64> {
    let binds = |relocation: &&Rela64<LittleEndian>| {
        let kind = relocation.r_type(LITTLE, false);
        kind == elf::R_X86_64_GLOB_DAT || kind == elf::R_X86_64_JUMP_SLOT
    };
    let mut found: Vec<u64> =
        elf.relocations().filter(binds).map(|relocation| relocation.r_offset.get(LITTLE)).collect();
    found.sort_unstable();
    found
}
