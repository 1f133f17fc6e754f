//! Finds the roots of a process: variables of modules and threads, frames of stacks, registers.
//!
//! Memory of modules between variables is a root as well: compilers and linkers put data there that has no name. See also
//! [`other_memory`](crate::other_memory).

use crate::root::{Root, RootKind};
use stackglass_layouts::{Layouts, Local, Variable};
use stackglass_process_view::core_image::CoreImage;
use stackglass_process_view::modules::{LoadedModule, is_glibc};
use stackglass_process_view::stacks::{RED_ZONE, StackFrame};
use stackglass_process_view::threads::{ThreadStack, thread_local_bytes};
use stackglass_profile::heap_graph::UNREAD_REGISTERS;
use std::ops::Range;

/// Bytes of the C library's own structure of a thread, behind the thread pointer (glibc: `struct pthread`).
const THREAD_STRUCTURE: u64 = 0x1000;

/// The writable data of all modules, by variable.
pub fn statics(modules: &[LoadedModule], layouts: &Layouts) -> Vec<Root> {
    let mut roots = Vec::new();
    for (index, module) in modules.iter().enumerate() {
        if is_own(module.name()) {
            continue;
        }
        let part = |range: &Range<u64>| Part {
            kind: RootKind::Static,
            owner: module.name(),
            range: range.clone(),
            bias: module.bias(),
            rest: "(other data)",
            // The C library's allocator has addresses of freed memory in its data.
            interior: !is_glibc(module.name()),
        };
        for range in &module.data {
            add_variables(&part(range), &layouts.module(index).statics, &mut roots);
        }
    }
    roots
}

/// The thread-local storage of all threads. Variables of the main program have names.
pub fn thread_locals(image: &CoreImage, modules: &[LoadedModule], layouts: &Layouts) -> Vec<Root> {
    let mut roots = Vec::new();
    let local_bytes = thread_local_bytes(modules);
    for thread in &image.threads {
        let Some(base) = thread.registers.map(|registers| registers.fs_base()) else { continue };
        let Some(mapping) = image.mapping(base).filter(|mapping| mapping.writable) else { continue };
        let start = base.saturating_sub(local_bytes).max(mapping.range.start);
        let owner = thread_name(thread.tid, &thread.name);
        // The main program's part ends at the thread pointer (ELF Handling for Thread-Local Storage, variant II).
        let main = modules.first().and_then(|module| module.thread_local);
        let own = main.map_or(0, |local| local.size.next_multiple_of(local.alignment)).min(base - start);
        let part = |range: Range<u64>, bias| Part {
            kind: RootKind::ThreadLocal,
            owner: &owner,
            range,
            bias,
            rest: "(other thread locals)",
            interior: true,
        };
        add_variables(&part(start..base - own, 0), &[], &mut roots);
        if own > 0 {
            let variables = &layouts.module(0).thread_locals;
            add_variables(&part(base - own..base, base - own), variables, &mut roots);
        }
        let structure = base..base.saturating_add(THREAD_STRUCTURE).min(mapping.range.end);
        roots.push(part(structure, 0).root("(thread structure)", None));
    }
    roots
}

struct Part<'a> {
    kind: RootKind,
    owner: &'a str,
    range: Range<u64>,
    /// Address of a variable in memory minus its address in the file.
    bias: u64,
    rest: &'static str,
    interior: bool,
}

impl Part<'_> {
    fn root(&self, name: &str, range: Option<(Range<u64>, &Variable)>) -> Root {
        let type_id = range.as_ref().and_then(|(_, variable)| variable.type_id);
        let range = range.map_or(self.range.clone(), |(range, _)| range);
        Root { type_id, interior: self.interior, ..Root::new(self.kind, self.owner, name, range) }
    }
}

/// Adds a root for each variable in a part of memory, and for what lies between them.
fn add_variables(part: &Part<'_>, variables: &[Variable], roots: &mut Vec<Root>) {
    let mut at = part.range.start;
    let first = variables.partition_point(|variable| variable.address.wrapping_add(part.bias) < at);
    for variable in variables.get(first..).unwrap_or_default() {
        let start = variable.address.wrapping_add(part.bias);
        let Some(end) = start.checked_add(variable.size).filter(|end| *end <= part.range.end) else { break };
        // Pointers lie at multiples of 8. Variables may have several names.
        if start < at || variable.size < 8 {
            continue;
        }
        if start >= at + 8 {
            roots.push(Root { range: at..start, ..part.root(part.rest, None) });
        }
        roots.push(part.root(&variable.name, Some((start..end, variable))));
        at = end.next_multiple_of(8);
    }
    if at < part.range.end {
        roots.push(Root { range: at..part.range.end, ..part.root(part.rest, None) });
    }
}

/// The frames of a thread, outermost first, with their names, and its registers.
///
/// `locals` are those of each frame; `may_be_filling` is as in [`Root`].
pub fn stack(
    image: &CoreImage,
    thread: &ThreadStack,
    frames: &[StackFrame],
    names: &[String],
    locals: &[Vec<Local>],
    may_be_filling: bool,
) -> Vec<Root> {
    let about = &image.threads[thread.index];
    let owner = thread_name(about.tid, &about.name);
    let root =
        |kind, name: &str, range| Root { may_be_filling, ..Root::new(kind, owner.clone(), name, range) };
    let named = frames.iter().zip(names).zip(locals).rev();
    let of_frame = |((frame, name), locals): ((&StackFrame, &String), &Vec<Local>)| Root {
        locals: locals.clone(),
        ..root(RootKind::Stack, name, frame.range.clone())
    };
    let mut roots: Vec<Root> = named.map(of_frame).collect();
    if frames.is_empty() {
        let range = thread.registers.rsp().saturating_sub(RED_ZONE)..thread.end;
        roots.push(root(RootKind::Stack, "(stack)", range));
    }
    let mut registers = root(RootKind::Register, "registers", 0..0);
    // The stack pointer is no root, and neither are flags and segments.
    const NAMES: [(&str, usize); 15] = [
        ("r15", 0),
        ("r14", 1),
        ("r13", 2),
        ("r12", 3),
        ("rbp", 4),
        ("rbx", 5),
        ("r11", 6),
        ("r10", 7),
        ("r9", 8),
        ("r8", 9),
        ("rax", 10),
        ("rcx", 11),
        ("rdx", 12),
        ("rsi", 13),
        ("rdi", 14),
    ];
    registers.registers = NAMES.iter().map(|(name, place)| (*name, thread.registers.0[*place])).collect();
    if thread.registers.are_of_sleeper() {
        UNREAD_REGISTERS.clone_into(&mut registers.name);
    }
    roots.push(registers);
    roots
}

/// A thread as reports name it.
pub fn thread_name(tid: u32, name: &str) -> String {
    format!("thread {tid} {name}")
}

/// The library that records allocations.
fn is_own(module: &str) -> bool {
    module.starts_with("libstackglass")
}
