//! Where the code of an executable leads: direct calls, and calls through slots that hold addresses of the executable.

use foldhash::{HashMap, HashSet};
use iced_x86::{Decoder, DecoderOptions, FlowControl, OpKind, Register};
use object::LittleEndian;
use object::elf::{self, DT_JMPREL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, Rela64};
use object::pod;
use object::read::elf::Sym;
use stackglass_debug_info::elf::{Elf, Table};
use std::ops::Range;

const LITTLE: LittleEndian = LittleEndian;
/// Most functions that a search follows.
const MOST_FUNCTIONS: usize = 2048;
/// Most bytes of one function.
const LARGEST: u64 = 64 << 10;

/// Functions and slots of an executable.
pub(super) struct Code<'data, 'elf> {
    elf: &'elf Elf<'data>,
    /// Sizes of functions by their starts.
    sizes: HashMap<u64, u64>,
    /// What the dynamic linker puts into slots.
    slots: HashMap<u64, Target>,
}

/// Where a call leads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Target {
    /// An address in the executable.
    Inside(u64),
    /// A function of another library.
    Import(String),
    /// Only the running program knows.
    Unknown,
}

impl<'data, 'elf> Code<'data, 'elf> {
    pub fn from_elf(elf: &'elf Elf<'data>) -> Code<'data, 'elf> {
        let mut sizes = HashMap::default();
        for symbols in [Table::Full, Table::Dynamic].into_iter().filter_map(|table| elf.symbols(table)) {
            for symbol in symbols.iter().filter(|symbol| symbol.st_type() == elf::STT_FUNC) {
                if symbol.st_shndx.get(LITTLE) != elf::SHN_UNDEF && symbol.st_size(LITTLE) > 0 {
                    sizes.insert(symbol.st_value(LITTLE), symbol.st_size(LITTLE));
                }
            }
        }
        Code { elf, sizes, slots: slots(elf) }
    }

    /// The addresses of the function that begins at an address.
    pub fn function(&self, start: u64) -> Option<Range<u64>> {
        let size = *self.sizes.get(&start)?;
        (size <= LARGEST).then_some(start..start.checked_add(size)?)
    }

    /// The bytes of a function.
    pub fn bytes(&self, function: &Range<u64>) -> Option<&'data [u8]> {
        self.elf.bytes_at(function.start)?.get(..usize::try_from(function.end - function.start).ok()?)
    }

    /// Where the calls of a function lead, and its jumps out of it. `None` if it cannot be decoded.
    fn targets(&self, function: &Range<u64>) -> Option<Vec<Target>> {
        let mut targets = Vec::new();
        let decoder = Decoder::with_ip(64, self.bytes(function)?, function.start, DecoderOptions::NONE);
        for instruction in decoder {
            match instruction.flow_control() {
                _ if instruction.is_invalid() => return None,
                FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                    let to = instruction.near_branch_target();
                    if !function.contains(&to) {
                        targets.push(Target::Inside(to));
                    }
                }
                FlowControl::IndirectCall | FlowControl::IndirectBranch => {
                    let is_slot = instruction.op0_kind() == OpKind::Memory
                        && instruction.memory_base() == Register::RIP;
                    let slot =
                        is_slot.then(|| self.slots.get(&instruction.ip_rel_memory_address())).flatten();
                    targets.push(slot.cloned().unwrap_or(Target::Unknown));
                }
                _ => {}
            }
        }
        Some(targets)
    }

    /// The target of an entry of the procedure linkage table, which has no symbol: a jump through a slot.
    fn stub(&self, start: u64) -> Option<Target> {
        let bytes = self.elf.bytes_at(start)?;
        let decoder = Decoder::with_ip(64, bytes.get(..16)?, start, DecoderOptions::NONE);
        for instruction in decoder.into_iter().take(3) {
            if instruction.flow_control() == FlowControl::IndirectBranch
                && instruction.memory_base() == Register::RIP
            {
                return self.slots.get(&instruction.ip_rel_memory_address()).cloned();
            }
        }
        None
    }
}

/// Whether no call that begins at `start` can reach an allocation function of another library. False if a call leads to an
/// unknown place before one is found.
pub(super) fn never_reaches_malloc(code: &Code<'_, '_>, start: u64) -> bool {
    let mut seen = HashSet::default();
    let mut open = vec![start];
    while let Some(next) = open.pop() {
        if !seen.insert(next) {
            continue;
        }
        if seen.len() > MOST_FUNCTIONS {
            return false;
        }
        let targets = match code.function(next) {
            Some(function) => code.targets(&function),
            None => code.stub(next).map(|target| vec![target]),
        };
        let Some(targets) = targets else { return false };
        for target in targets {
            match target {
                Target::Inside(to) => open.push(to),
                Target::Import(name) if allocates(&name) => return false,
                Target::Import(_) => {}
                Target::Unknown => return false,
            }
        }
    }
    true
}

/// Whether a function of the C library allocates, or may lead to any function.
fn allocates(name: &str) -> bool {
    let exact = [
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "posix_memalign",
        "aligned_alloc",
        "memalign",
        "valloc",
        "pvalloc",
        "_Znwm",
        "_Znam",
        "dlsym",
        "dlvsym",
    ];
    exact.contains(&name)
}

fn slots(elf: &Elf<'_>) -> HashMap<u64, Target> {
    let dynamic = elf.dynamic();
    let value = |tag| Some(dynamic.iter().find(|entry| entry.d_tag.get(LITTLE) == tag)?.d_val.get(LITTLE));
    let symbols = elf.symbols(Table::Dynamic);
    let mut found = HashMap::default();
    for (start, size) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
        let (Some(start), Some(size)) = (value(start), value(size)) else { continue };
        let Some(bytes) = elf.bytes_at(start) else { continue };
        let count = usize::try_from(size).unwrap_or(0).min(bytes.len()) / size_of::<Rela64<LittleEndian>>();
        let Ok((table, _)) = pod::slice_from_bytes::<Rela64<LittleEndian>>(bytes, count) else { continue };
        for relocation in table {
            let kind = relocation.r_type(LITTLE, false);
            let target = match kind {
                elf::R_X86_64_RELATIVE => Target::Inside(relocation.r_addend.get(LITTLE) as u64),
                elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_64 => {
                    let index = relocation.r_sym(LITTLE, false) as usize;
                    let symbol = symbols.as_ref().and_then(|all| all.symbol(object::SymbolIndex(index)).ok());
                    let Some((symbol, all)) = symbol.zip(symbols.as_ref()) else { continue };
                    match all.symbol_name(LITTLE, symbol) {
                        _ if symbol.st_shndx.get(LITTLE) != elf::SHN_UNDEF => {
                            Target::Inside(symbol.st_value(LITTLE))
                        }
                        Ok(name) => Target::Import(String::from_utf8_lossy(name).into_owned()),
                        Err(_) => continue,
                    }
                }
                _ => continue,
            };
            found.insert(relocation.r_offset.get(LITTLE), target);
        }
    }
    found
}
