//! What is known of the registers of a thread that sleeps in a system call and is not stopped.
//!
//! The kernel tells its program counter and stack pointer. Its thread pointer is found in memory: the word there is its own
//! address (x86-64 psABI), and the structure of the thread, which begins there, holds its kernel id.

use super::Mapping;
use super::memory::ProcessMemory;
use stackglass_proc_text::SleepPlace;
use stackglass_procfs::maps;
use stackglass_procfs::status::namespace_pids;

/// Value of a register that is not known.
pub(super) const UNKNOWN: u64 = u64::MAX;
/// Places in `struct user_regs_struct`.
pub(super) const PC: usize = 16;
pub(super) const SP: usize = 19;
const THREAD_POINTER: usize = 21;
/// Where the structure of a thread has its id: that of glibc, and of musl.
const TIDS: [usize; 2] = [0x2d0, 0x30];
/// Bytes at the end of a stack that are searched: the structure of the thread and its thread-local storage.
const END: u64 = 64 << 10;
/// Of larger mappings, only so many bytes at the end are searched for the structure of the main thread. It is made when the program
/// starts, and the kernel joins what is mapped later below it.
const LARGEST: u64 = 1 << 20;

/// The registers of a sleeping thread: those that are not known are `u64::MAX`.
pub(super) fn registers(place: SleepPlace) -> [u64; 27] {
    let mut registers = [UNKNOWN; 27];
    (registers[PC], registers[SP]) = (place.pc, place.sp);
    registers
}

/// These registers, and the thread pointer if it is found.
pub(super) fn with_thread_pointer(
    mut registers: [u64; 27],
    tid: u32,
    mappings: &[Mapping],
    memory: &ProcessMemory,
) -> [u64; 27] {
    if let Some(pointer) = thread_pointer(tid, registers[SP], mappings, memory) {
        registers[THREAD_POINTER] = pointer;
    }
    registers
}

fn thread_pointer(tid: u32, sp: u64, mappings: &[Mapping], memory: &ProcessMemory) -> Option<u64> {
    let inner = namespace_pids(tid).last().copied().unwrap_or(tid);
    let search = |mapping: &Mapping| {
        let (start, end) = (mapping.range.start, mapping.range.end);
        find(inner, start.max(end.saturating_sub(END.max(TIDS[0] as u64))), end, memory)
    };
    // Behind the stack, in the same mapping.
    if let Some(pointer) = maps::at(mappings, sp).filter(|stack| stack.path != "[stack]").and_then(search) {
        return Some(pointer);
    }
    let is_private =
        |mapping: &&Mapping| mapping.writable && mapping.readable && !mapping.shared && mapping.inode == 0;
    let is_small = |mapping: &&Mapping| mapping.range.end - mapping.range.start <= LARGEST;
    // The loader's memory is above most other mappings.
    let small = mappings.iter().rev().filter(is_private).filter(is_small);
    let large = mappings.iter().rev().filter(is_private).filter(|mapping| !is_small(mapping));
    small.chain(large).find_map(|mapping| {
        let end = mapping.range.end;
        find(inner, mapping.range.start.max(end.saturating_sub(LARGEST)), end, memory)
    })
}

/// A word that is its own address, with the id of the thread behind it.
fn find(tid: u32, start: u64, end: u64, memory: &ProcessMemory) -> Option<u64> {
    let mut bytes = vec![0; (end - start) as usize];
    let read = memory.read(start, &mut bytes);
    let words = bytes[..read].chunks_exact(8).enumerate();
    let mut own = words.filter_map(|(number, word)| {
        let at = start + number as u64 * 8;
        (word == at.to_le_bytes()).then_some((number * 8, at))
    });
    let has_id = |offset: usize| {
        TIDS.iter().any(|place| {
            bytes[..read].get(offset + place..offset + place + 4) == Some(&tid.to_le_bytes()[..])
        })
    };
    own.find(|(offset, _)| has_id(*offset)).map(|(_, at)| at)
}
