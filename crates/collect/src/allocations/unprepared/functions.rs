//! The functions of a process's allocator: in which file they are, and where a breakpoint costs least.

use super::UnpreparedError;
use object::{Object, ObjectSegment, ObjectSymbol};
use stackglass_procfs::maps::{self, Mapping};
use std::fs;
use std::path::PathBuf;

/// What a function of an allocator does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Function {
    /// `malloc(size)`.
    Malloc,
    /// `calloc(count, size)`.
    Calloc,
    /// `realloc(block, size)`.
    Realloc,
    /// `aligned_alloc(alignment, size)` and `memalign`.
    Aligned,
    /// `posix_memalign(&block, alignment, size)`.
    PosixMemalign,
    /// `free(block)`.
    Free,
}

/// C++ operators only where the allocator itself has them: those of the C++ library call `malloc`.
const NAMES: [(&str, Function); 19] = [
    ("malloc", Function::Malloc),
    ("calloc", Function::Calloc),
    ("realloc", Function::Realloc),
    ("aligned_alloc", Function::Aligned),
    ("memalign", Function::Aligned),
    ("posix_memalign", Function::PosixMemalign),
    ("free", Function::Free),
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
    pub(super) fn size(self, [first, second, third]: [u64; 3]) -> u64 {
        match self {
            Function::Malloc => first,
            Function::Calloc => first.saturating_mul(second),
            Function::Realloc | Function::Aligned => second,
            Function::PosixMemalign => third,
            Function::Free => 0,
        }
    }
}

/// A function in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub function: Function,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Bytes from there to the breakpoint at its entry.
    pub skip: u64,
    /// Address of that breakpoint in the process.
    pub address: u64,
}

/// The allocator of a process.
#[derive(Debug)]
pub(super) struct Allocator {
    /// The kernel's link to its file.
    pub file: PathBuf,
    pub places: Vec<Place>,
}

/// Finds the allocator of process `pid`: that of the C library, or the only other one that takes its place.
pub(super) fn find(pid: u32) -> Result<Allocator, UnpreparedError> {
    let mappings = maps::read(pid).map_err(|_| UnpreparedError::Gone(pid))?;
    let (mut library, mut other): (_, Option<(Allocator, &str)>) = (None, None);
    for mapping in mappings.iter().filter(|mapping| mapping.executable && mapping.inode != 0) {
        let name = mapping.path.rsplit('/').next().unwrap_or_default();
        // The dynamic linker of older systems has one for itself.
        if name.starts_with("ld-linux") {
            continue;
        }
        let (start, end) = (mapping.range.start, mapping.range.end);
        let file = PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}"));
        let Some(places) = places(&file, mapping) else { continue };
        let found = Allocator { file, places };
        if ["libc.so", "libc-", "libc.musl", "ld-musl"].iter().any(|start| name.starts_with(start)) {
            library = Some(found);
        } else if let Some((_, before)) = &other {
            let files = format!("{before} and {}", mapping.path);
            return Err(UnpreparedError::TwoAllocators { pid, files });
        } else {
            other = Some((found, &mapping.path));
        }
    }
    other.map(|(allocator, _)| allocator).or(library).ok_or(UnpreparedError::NoLibrary(pid))
}

/// The functions that a file exports, if it has `malloc` and `free`. Two names of one function are one.
fn places(link: &PathBuf, mapping: &Mapping) -> Option<Vec<Place>> {
    let bytes = fs::read(link).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let mut places: Vec<Place> = Vec::new();
    for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
        let Some((_, function)) = NAMES.iter().find(|(name, _)| symbol.name() == Ok(*name)) else { continue };
        let segment = file.segments().find(|segment| {
            (segment.address()..segment.address().saturating_add(segment.size())).contains(&symbol.address())
        })?;
        let offset = symbol.address() - segment.address() + segment.file_range().0;
        // Not the part of the file that this mapping has.
        let from_start = offset
            .checked_sub(mapping.offset)
            .filter(|from| *from < mapping.range.end - mapping.range.start)?;
        if places.iter().any(|place| place.offset == offset) {
            continue;
        }
        let code = bytes.get(usize::try_from(offset).ok()?..)?;
        let skip = cheap_breakpoint(&code[..code.len().min(32)]) as u64;
        let address = mapping.range.start + from_start + skip;
        places.push(Place { function: *function, offset, skip, address });
    }
    // The C++ library has operators alone.
    let has =
        |name: &str| file.dynamic_symbols().any(|symbol| symbol.is_definition() && symbol.name() == Ok(name));
    (has("malloc") && has("free")).then_some(places)
}

/// Where the breakpoint of an entry costs least: at the first instruction that the kernel carries out itself (`push`, a jump), if only
/// instructions stand before it that change neither arguments nor the stack. Else the kernel executes a copy of the instruction in single
/// step, which takes 25 µs on a virtual machine, instead of 1 µs.
///
/// Source: arch/x86/kernel/uprobes.c, `branch_setup_xol_ops` and `push_setup_xol_ops`.
fn cheap_breakpoint(code: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match code[at.min(code.len())..] {
            // push of a register.
            [0x50..=0x57, ..] | [0x41, 0x50..=0x57, ..] => return at,
            // jmp, conditional jumps.
            [0xeb | 0xe9 | 0x70..=0x7f, ..] | [0x0f, 0x80..=0x8f, ..] => return at,
            // endbr64.
            [0xf3, 0x0f, 0x1e, 0xfa, ..] => at += 4,
            // test of a register with itself.
            [0x48, 0x85, 0xc0 | 0xc9 | 0xd2 | 0xdb | 0xed | 0xf6 | 0xff, ..] => at += 3,
            _ => return 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breakpoints_are_where_the_kernel_needs_no_single_step() {
        assert_eq!(cheap_breakpoint(&[0x41, 0x54, 0x55, 0x53]), 0, "push r12");
        assert_eq!(cheap_breakpoint(&[0x48, 0x85, 0xff, 0x0f, 0x84, 0, 0, 0, 0]), 3, "test rdi, rdi; je");
        assert_eq!(cheap_breakpoint(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55]), 4, "endbr64; push rbp");
        assert_eq!(cheap_breakpoint(&[0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8]), 0, "mov rax, rdi");
        assert_eq!(cheap_breakpoint(&[0x48, 0x85]), 0);
        assert_eq!(cheap_breakpoint(&[]), 0);
    }

    #[test]
    fn sizes_are_those_that_are_asked_for() {
        assert_eq!(Function::Malloc.size([5, 0, 0]), 5);
        assert_eq!(Function::Calloc.size([5, 3, 0]), 15);
        assert_eq!(Function::Calloc.size([u64::MAX, 3, 0]), u64::MAX);
        assert_eq!(Function::Realloc.size([0x1000, 7, 0]), 7);
        assert_eq!(Function::Aligned.size([64, 7, 0]), 7);
        assert_eq!(Function::PosixMemalign.size([0x1000, 64, 7]), 7);
    }

    #[test]
    fn the_functions_of_the_own_c_library_are_found() {
        let allocator = find(std::process::id()).unwrap();
        for function in
            [Function::Calloc, Function::Realloc, Function::Aligned, Function::PosixMemalign, Function::Free]
        {
            assert!(allocator.places.iter().any(|place| place.function == function), "{function:?}");
        }
        let malloc = allocator.places.iter().find(|place| place.function == Function::Malloc).unwrap();
        let own = (libc::malloc as *const ()).addr() as u64;
        assert_eq!(malloc.address - malloc.skip, own);
    }
}
