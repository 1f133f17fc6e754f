//! Names from ELF symbol tables, for addresses that debug information does not name.
//!
//! No map of all symbols is built, since the addresses are few and sorted. Each symbol is stored at the first address at or
//! after its start; then one pass over the addresses finds the nearest symbol of each.

use foldhash::HashMap;
use object::LittleEndian;
use object::elf::{self, FileHeader64, Sym64};
use object::read::elf::{Sym, SymbolTable};
use stackglass_debug_info::elf::{Elf, Table};

const LITTLE: LittleEndian = LittleEndian;

/// A name from a symbol table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol<'data> {
    pub name: &'data [u8],
    /// Its start, if the symbol has no size.
    pub label: Option<u64>,
}

/// The function symbol of each of the sorted `addresses`.
pub(crate) fn names<'data>(elf: &Elf<'data>, table: Table, addresses: &[u64]) -> Vec<Option<Symbol<'data>>> {
    let Some(symbols) = elf.symbols(table) else {
        return vec![None; addresses.len()];
    };
    // Symbols with a size take precedence over labels, which have a start only.
    let mut sized: Vec<Option<&Sym64<LittleEndian>>> = vec![None; addresses.len()];
    let mut labels = sized.clone();
    for symbol in symbols.iter() {
        if symbol.st_shndx.get(LITTLE) == elf::SHN_UNDEF {
            continue;
        }
        let size = symbol.st_size(LITTLE);
        let slots = match symbol.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC if size > 0 => &mut sized,
            elf::STT_FUNC | elf::STT_GNU_IFUNC | elf::STT_NOTYPE => &mut labels,
            _ => continue,
        };
        let start = symbol.st_value(LITTLE);
        let first = addresses.partition_point(|address| *address < start);
        let Some(address) = addresses.get(first) else { continue };
        if size > 0 && *address - start >= size {
            continue;
        }
        let slot = &mut slots[first];
        if slot.is_none_or(|known| better(&symbols, symbol, known)) {
            *slot = Some(symbol);
        }
    }
    let (mut function, mut label) = (None, None);
    let mut found = Vec::with_capacity(addresses.len());
    for (index, address) in addresses.iter().enumerate() {
        function = sized[index].or(function);
        label = labels[index].or(label);
        let covering = function.filter(|symbol| *address - symbol.st_value(LITTLE) < symbol.st_size(LITTLE));
        let symbol = covering.or_else(|| {
            let label = label?;
            let size = label.st_size(LITTLE);
            let inside = if size > 0 {
                *address - label.st_value(LITTLE) < size
            } else {
                elf.section_of(label)?.contains(address)
            };
            inside.then_some(label)
        });
        found.push(symbol.and_then(|symbol| {
            let label = (symbol.st_size(LITTLE) == 0).then(|| symbol.st_value(LITTLE));
            Some(Symbol { name: name_of(&symbols, symbol)?, label })
        }));
    }
    found
}

/// All names of the functions at each of the sorted `addresses`: those that start where its symbol starts. Compilers and
/// linkers give identical functions one code with several names.
pub(crate) fn all_names<'data>(elf: &Elf<'data>, table: Table, addresses: &[u64]) -> Vec<Vec<&'data [u8]>> {
    let mut found = vec![Vec::new(); addresses.len()];
    let Some(symbols) = elf.symbols(table) else { return found };
    let functions = || {
        symbols.iter().filter(|symbol| {
            symbol.st_type() == elf::STT_FUNC
                && symbol.st_size(LITTLE) > 0
                && symbol.st_shndx.get(LITTLE) != elf::SHN_UNDEF
        })
    };
    // The nearest start before each address.
    let mut starts = vec![0; addresses.len()];
    let mut ends = vec![0; addresses.len()];
    for symbol in functions() {
        let start = symbol.st_value(LITTLE);
        let first = addresses.partition_point(|address| *address < start);
        if first < addresses.len() && starts[first] <= start {
            (starts[first], ends[first]) = (start, start.saturating_add(symbol.st_size(LITTLE)));
        }
    }
    let (mut start, mut end) = (0, 0);
    let mut by_start: HashMap<u64, Vec<usize>> = HashMap::default();
    for (index, address) in addresses.iter().enumerate() {
        if starts[index] > 0 {
            (start, end) = (starts[index], ends[index]);
        }
        if *address < end {
            by_start.entry(start).or_default().push(index);
        }
    }
    for symbol in functions() {
        let Some(indices) = by_start.get(&symbol.st_value(LITTLE)) else { continue };
        let Some(name) = name_of(&symbols, symbol) else { continue };
        if found[indices[0]].len() < MOST_NAMES {
            indices.iter().for_each(|index| found[*index].push(name));
        }
    }
    found
}

/// Most names of one function that are read; two are enough to know that it has several.
const MOST_NAMES: usize = 16;

type Symbols<'data> = SymbolTable<'data, FileHeader64<LittleEndian>>;

/// The name, without the version that `.symtab` adds (`memcpy@@GLIBC_2.14`).
fn name_of<'data>(symbols: &Symbols<'data>, symbol: &Sym64<LittleEndian>) -> Option<&'data [u8]> {
    let name = symbols.symbol_name(LITTLE, symbol).ok()?;
    let end = name.iter().position(|byte| *byte == b'@').filter(|at| *at > 0).unwrap_or(name.len());
    (!name.is_empty()).then_some(&name[..end])
}

/// Whether a symbol names an address better than another symbol before it: by a later start, else by the more readable
/// name.
fn better(symbols: &Symbols<'_>, new: &Sym64<LittleEndian>, known: &Sym64<LittleEndian>) -> bool {
    let rank = |symbol: &Sym64<LittleEndian>| {
        let name = name_of(symbols, symbol).unwrap_or_default();
        let underscores = name.iter().take_while(|byte| **byte == b'_').count();
        let mangled = name.starts_with(b"_Z") || name.starts_with(b"_R");
        let local = symbol.st_bind() == elf::STB_LOCAL;
        (name.is_empty(), if mangled { 0 } else { underscores }, local, name.len())
    };
    match new.st_value(LITTLE).cmp(&known.st_value(LITTLE)) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => rank(new)
            .cmp(&rank(known))
            .then_with(|| name_of(symbols, new).cmp(&name_of(symbols, known)))
            .is_lt(),
    }
}
