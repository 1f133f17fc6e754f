//! The functions of a process's allocators: in which files they are, and where their breakpoints are.
//!
//! A process may have several: that of the C library, and one that is part of its executable or of another library. All of them are
//! recorded. Which one serves a call is known when it is called.

use super::UnpreparedError;
use crate::allocations::functions::{MALLOC, action};
use stackglass_procfs::maps::{self, Mapping};
use stackglass_procfs::process;
use stackglass_symbols::{
    FunctionEntry, LinkedAllocator, cheap_breakpoint, function_entries, linked_allocator,
    rust_allocator_function,
};
use stackglass_wire::takeover::Action;
use std::path::{Path, PathBuf};

/// What a function of an allocator does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Function {
    /// `malloc(size)`, and whatever has the size first.
    Malloc,
    /// `calloc(count, size)`.
    Calloc,
    /// `realloc(block, size)`.
    Realloc,
    /// `__rust_realloc(block, old size, alignment, size)`.
    RustRealloc,
    /// `aligned_alloc(alignment, size)` and `memalign`.
    Aligned,
    /// `posix_memalign(&block, alignment, size)`.
    PosixMemalign,
    /// `free(block)`.
    Free,
}

/// C++ operators only where the allocator itself has them: those of the C++ library call `malloc`.
const OPERATORS: [(&str, Function); 12] = [
    ("_Znwm", Function::Malloc),
    ("_Znam", Function::Malloc),
    ("_ZnwmRKSt9nothrow_t", Function::Malloc),
    ("_ZnamRKSt9nothrow_t", Function::Malloc),
    ("_ZnwmSt11align_val_t", Function::Malloc),
    ("_ZnamSt11align_val_t", Function::Malloc),
    ("_ZdlPv", Function::Free),
    ("_ZdaPv", Function::Free),
    ("_ZdlPvm", Function::Free),
    ("_ZdaPvm", Function::Free),
    ("_ZdlPvSt11align_val_t", Function::Free),
    ("_ZdlPvmSt11align_val_t", Function::Free),
];

impl Function {
    /// The size of the block that a call with these arguments allocates.
    pub(super) fn size(self, [first, second, third, fourth]: [u64; 4]) -> u64 {
        match self {
            Function::Malloc => first,
            Function::Calloc => first.saturating_mul(second),
            Function::Realloc | Function::Aligned => second,
            Function::PosixMemalign => third,
            Function::RustRealloc => fourth,
            Function::Free => 0,
        }
    }

    /// The block that a call with these arguments replaces, 0 for none.
    pub(super) fn replaced(self, arguments: [u64; 4]) -> u64 {
        if matches!(self, Function::Realloc | Function::RustRealloc) { arguments[0] } else { 0 }
    }

    /// The numbers of the arguments that are read.
    fn arguments(self) -> &'static [usize] {
        match self {
            Function::Malloc | Function::Free => &[0],
            Function::Calloc | Function::Realloc => &[0, 1],
            Function::RustRealloc => &[0, 3],
            Function::Aligned => &[1],
            Function::PosixMemalign => &[2],
        }
    }

    fn from_action(action: Action) -> Function {
        match action {
            Action::Allocate => Function::Malloc,
            Action::AllocateArray => Function::Calloc,
            Action::AllocateAligned => Function::Aligned,
            Action::AllocateAt => Function::PosixMemalign,
            Action::Reallocate => Function::Realloc,
            Action::Free | Action::FreeSized => Function::Free,
        }
    }

    /// The function of an allocator with this symbol.
    fn from_symbol(symbol: &str, allocator: &LinkedAllocator) -> Option<Function> {
        if let Some(action) = action(symbol, allocator) {
            return Some(Function::from_action(action));
        }
        let operator = OPERATORS.iter().find(|(name, _)| allocator.replaces_malloc && *name == symbol);
        operator.map(|(_, function)| *function)
    }

    /// The function through which Rust code allocates with this symbol.
    fn from_rust_symbol(symbol: &str) -> Option<Function> {
        Some(match rust_allocator_function(symbol)? {
            "__rust_dealloc" => Function::Free,
            "__rust_realloc" => Function::RustRealloc,
            _ => Function::Malloc,
        })
    }
}

/// A function in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub function: Function,
    /// Its symbol.
    pub name: String,
    /// The kernel's link to the file.
    pub file: PathBuf,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Bytes from there to the breakpoint at its entry.
    pub skip: u64,
    /// The breakpoint takes much longer than others.
    pub is_slow: bool,
    /// Address of that breakpoint in the process.
    pub address: u64,
}

/// Finds the functions of all allocators of process `pid`.
pub(super) fn find(pid: u32) -> Result<Vec<Place>, UnpreparedError> {
    let mappings = maps::read(pid).map_err(|_| UnpreparedError::Gone(pid))?;
    let executable = format!("/proc/{pid}/exe");
    let mut places = Vec::new();
    for mapping in mappings.iter().filter(|mapping| mapping.executable && mapping.inode != 0) {
        let name = mapping.path.rsplit('/').next().unwrap_or_default();
        // The dynamic linker of older systems has one for itself.
        if name.starts_with("ld-linux") {
            continue;
        }
        let (start, end) = (mapping.range.start, mapping.range.end);
        let link = PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}"));
        let found = functions(&link, process::is_same_file(&executable, &link));
        places.extend(found.iter().filter_map(|(function, entry)| place(&link, mapping, *function, entry)));
    }
    match has_both(places.iter().map(|place| place.function)) {
        true => Ok(places),
        false => Err(UnpreparedError::NoAllocator(pid)),
    }
}

/// Whether there are functions that allocate and some that free.
fn has_both(functions: impl Iterator<Item = Function> + Clone) -> bool {
    functions.clone().any(|function| function == Function::Free)
        && functions.into_iter().any(|function| function != Function::Free)
}

/// The functions of the allocator that a file contains, each once.
fn functions(file: &Path, is_executable: bool) -> Vec<(Function, FunctionEntry)> {
    // A static program exports nothing.
    let Some(allocator) = linked_allocator(file).or_else(|| is_executable.then_some(UNEXPORTED)) else {
        return Vec::new();
    };
    let is_malloc = |name: &str| MALLOC.iter().any(|(known, _)| *known == name);
    let mut found = find_by(file, |name| Function::from_symbol(name, &allocator));
    // What a library does not export may be another one's.
    found.retain(|(_, entry)| is_executable || entry.is_exported || !is_malloc(&entry.name));
    if !has_both(found.iter().map(|(function, _)| *function)) && allocator.is_rust {
        found = find_by(file, Function::from_rust_symbol);
    }
    match has_both(found.iter().map(|(function, _)| *function)) {
        true => found,
        // The C++ library has operators alone.
        false => Vec::new(),
    }
}

/// What a program without an exported allocator may contain.
const UNEXPORTED: LinkedAllocator =
    LinkedAllocator { name: None, symbol: String::new(), replaces_malloc: true, is_rust: false };

fn find_by(file: &Path, function: impl Fn(&str) -> Option<Function>) -> Vec<(Function, FunctionEntry)> {
    let mut found: Vec<(Function, FunctionEntry)> = Vec::new();
    for entry in function_entries(file, &|name| function(name).is_some()) {
        let Some(function) = function(&entry.name) else { continue };
        if !found.iter().any(|(_, known)| known.offset == entry.offset) {
            found.push((function, entry));
        }
    }
    found
}

/// Where a function is in a process that has mapped its file so. `None` if it is in another part of the file.
fn place(link: &Path, mapping: &Mapping, function: Function, entry: &FunctionEntry) -> Option<Place> {
    let from_start = entry
        .offset
        .checked_sub(mapping.offset)
        .filter(|from| *from < mapping.range.end - mapping.range.start)?;
    let cheap = cheap_breakpoint(&entry.code, function.arguments());
    let skip = cheap.unwrap_or(0) as u64;
    Some(Place {
        function,
        name: entry.name.clone(),
        file: link.to_owned(),
        offset: entry.offset,
        skip,
        is_slow: cheap.is_none(),
        address: mapping.range.start + from_start + skip,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_that_are_asked_for() {
        assert_eq!(Function::RustRealloc.size([0x1000, 5, 8, 7]), 7);
        assert_eq!(Function::RustRealloc.replaced([0x1000, 5, 8, 7]), 0x1000);
        assert_eq!(Function::Malloc.replaced([0x1000, 0, 0, 0]), 0);
        assert_eq!(Function::Malloc.size([5, 0, 0, 0]), 5);
        assert_eq!(Function::Calloc.size([5, 3, 0, 0]), 15);
        assert_eq!(Function::Calloc.size([u64::MAX, 3, 0, 0]), u64::MAX);
        assert_eq!(Function::Realloc.size([0x1000, 7, 0, 0]), 7);
        assert_eq!(Function::Aligned.size([64, 7, 0, 0]), 7);
        assert_eq!(Function::PosixMemalign.size([0x1000, 64, 7, 0]), 7);
    }

    #[test]
    fn the_functions_of_the_own_c_library_are_found() {
        let places = find(std::process::id()).unwrap();
        for function in
            [Function::Calloc, Function::Realloc, Function::Aligned, Function::PosixMemalign, Function::Free]
        {
            assert!(places.iter().any(|place| place.function == function), "{function:?}");
        }
        let own = (libc::malloc as *const ()).addr() as u64;
        let malloc = places.iter().find(|place| place.address - place.skip == own).unwrap();
        assert_eq!(malloc.function, Function::Malloc);
    }
}
