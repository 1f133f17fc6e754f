//! Functions without symbols, as in stripped files, are named by their start: `libz.so.1+0x2a40`.
//!
//! The start comes from the unwind table. It is an address in the file, so names are equal in all runs. In a program, two
//! more functions are known: the entry point, and the `main` that it passes to the C library. Code that the unwind table
//! does not cover has no name, since its functions cannot be distinguished.

use crate::unwind_table;
use foldhash::HashMap;
use stackglass_debug_info::elf::Elf;
use stackglass_profile::Frame;
use stackglass_profile::recording::Module;
use std::ops::Range;
use std::sync::Arc;

/// A function without a symbol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Unnamed {
    /// Its start, an address in the file.
    pub start: u64,
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Role {
    /// The entry point. Linkers name it `_start` by default.
    Entry,
    /// The function that the entry point passes to `__libc_start_main`.
    Main,
    Other,
}

/// The function at each of the sorted `addresses`.
pub(crate) fn functions(elf: &Elf<'_>, addresses: &[u64]) -> Vec<Option<Unnamed>> {
    let entry = elf.entry();
    let main = entry.and_then(|entry| main_of(entry, elf.bytes_at(entry)?));
    let role = |start: u64| match Some(start) {
        at if at == entry => Role::Entry,
        at if at == main => Role::Main,
        _ => Role::Other,
    };
    let ranges = unwind_table::functions(elf, addresses).into_iter();
    ranges.map(|range| range.map(|Range { start, .. }| Unnamed { start, role: role(start) })).collect()
}

/// The address of `main` that the entry point at `at` passes on.
///
/// Only glibc's `_start` is supported (sysdeps/x86_64/start.S).
fn main_of(at: u64, code: &[u8]) -> Option<u64> {
    const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    // xor ebp, ebp; mov r9, rdx; pop rsi; mov rdx, rsp; and rsp, -16; push rax; push rsp
    const BEGINNING: &[u8] =
        &[0x31, 0xed, 0x49, 0x89, 0xd1, 0x5e, 0x48, 0x89, 0xe2, 0x48, 0x83, 0xe4, 0xf0, 0x50, 0x54];
    let mut rest = code.strip_prefix(ENDBR64).unwrap_or(code).strip_prefix(BEGINNING)?;
    let mut main = None;
    loop {
        let (opcode, after) = match rest {
            // xor r8d, r8d and xor ecx, ecx: since glibc 2.34, nothing is called before and after main.
            [0x45, 0x31, 0xc0, after @ ..] | [0x31, 0xc9, after @ ..] => {
                rest = after;
                continue;
            }
            [0xff, 0x15, ..] | [0xe8, ..] | [0x67, 0xe8, ..] => return main,
            _ => rest.split_at_checked(3)?,
        };
        let (number, after) = after.split_first_chunk::<4>()?;
        let number = i64::from(i32::from_le_bytes(*number));
        let here = at.checked_add((code.len() - after.len()) as u64)?;
        match opcode {
            // lea rdi, [rip + number]
            [0x48, 0x8d, 0x3d] => main = here.checked_add_signed(number),
            // mov rdi, number
            [0x48, 0xc7, 0xc7] => main = u64::try_from(number).ok(),
            // The same for r8 and rcx.
            [0x4c, 0x8d, 0x05] | [0x49, 0xc7, 0xc0] | [0x48, 0x8d, 0x0d] | [0x48, 0xc7, 0xc1] => {}
            _ => return None,
        }
        rest = after;
    }
}

/// Names of a module's functions.
pub(crate) struct Names {
    module: Arc<str>,
    known: HashMap<Unnamed, Arc<str>>,
}

impl Names {
    /// `module` is the name of the file, see [`distinct_name`].
    pub fn new(module: &str) -> Names {
        Names { module: Arc::from(module), known: HashMap::default() }
    }

    /// The name of a function.
    pub fn of(&mut self, function: Unnamed) -> Arc<str> {
        let Names { module, known } = self;
        let name = known.entry(function).or_insert_with(|| match function.role {
            Role::Entry => "_start".into(),
            Role::Main => "main".into(),
            Role::Other => Frame::name_by_start(module, function.start),
        });
        name.clone()
    }
}

/// The file name of a module, with as many folders as distinguish it from modules of the same name.
pub(crate) fn distinct_name<'m>(module: &'m Module, all: &[Module]) -> &'m str {
    let others: Vec<&str> =
        all.iter().map(|other| &*other.path).filter(|path| *path != &*module.path).collect();
    let is_of = |path: &str, name: &str| {
        path.strip_suffix(name).is_some_and(|folders| folders.is_empty() || folders.ends_with('/'))
    };
    let starts = module.path.rmatch_indices('/').map(|(at, _)| &module.path[at + 1..]);
    let mut names = starts.filter(|name| !name.is_empty());
    names.find(|name| !others.iter().any(|other| is_of(other, name))).unwrap_or(&module.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGINNING: [u8; 15] =
        [0x31, 0xed, 0x49, 0x89, 0xd1, 0x5e, 0x48, 0x89, 0xe2, 0x48, 0x83, 0xe4, 0xf0, 0x50, 0x54];

    #[test]
    fn main_is_what_the_entry_point_passes_on() {
        let code = |rest: &[u8]| [&BEGINNING[..], rest].concat();
        let new = [0x45, 0x31, 0xc0, 0x31, 0xc9, 0x48, 0x8d, 0x3d, 0xe5, 0, 0, 0, 0xff, 0x15, 1, 2, 3, 4];
        assert_eq!(main_of(0x1000, &code(&new)), Some(0x1000 + 15 + 12 + 0xe5));
        let marked = [&[0xf3, 0x0f, 0x1e, 0xfa], &code(&new)[..]].concat();
        assert_eq!(main_of(0x1000, &marked), Some(0x1004 + 15 + 12 + 0xe5));
        let fixed = [0x48, 0xc7, 0xc7, 0x10, 0x20, 0x40, 0, 0x67, 0xe8, 0, 0, 0, 0];
        assert_eq!(main_of(0x401000, &code(&fixed)), Some(0x402010));
        let old = [
            &[0x49, 0xc7, 0xc0, 1, 0, 0, 0][..],
            &[0x48, 0xc7, 0xc1, 2, 0, 0, 0],
            &[0x48, 0xc7, 0xc7, 3, 0, 0, 0, 0xe8],
        ];
        assert_eq!(main_of(0, &code(&old.concat())), Some(3));
        for cut in 0..marked.len() - 4 {
            assert_eq!(main_of(0x1000, &marked[..cut]), None, "{cut}");
        }
        for other in [&[0x90; 40][..], &[], &[0x48, 0x8d, 0x3d, 0, 0, 0, 0, 0x90, 0x90, 0x90, 0, 0, 0, 0]] {
            assert_eq!(main_of(u64::MAX, &code(other)), None);
        }
    }

    #[test]
    fn files_of_one_name_are_told_apart() {
        let all: Vec<Module> = ["/a/b/core.so", "/c/b/core.so", "/x/b/ocore.so", "/y/other.so", "[vdso]"]
            .map(|path| Module { path: path.into(), build_id: [].into() })
            .into();
        let names: Vec<&str> = all.iter().map(|module| distinct_name(module, &all)).collect();
        assert_eq!(names, ["a/b/core.so", "c/b/core.so", "ocore.so", "other.so", "[vdso]"]);
        let lone = Module { path: "program".into(), build_id: [].into() };
        assert_eq!(distinct_name(&lone, &all), "program");
    }
}
