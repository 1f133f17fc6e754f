//! Which memory outside of modules and heaps is a root.

#[path = "support/words.rs"]
mod words;

use stackglass_heapgraph::blocks::{Blocks, SiteId};
use stackglass_heapgraph::other_memory::other_memory;
use stackglass_process_view::core_image::{Mapping, Thread, ThreadRegisters};
use std::ops::Range;
use words::{image, mapping};

fn thread(stack_pointer: u64, structure: u64) -> Thread {
    let mut registers = [0; 27];
    // As in `user_regs_struct`.
    registers[19] = stack_pointer;
    registers[21] = structure;
    Thread { tid: 1, name: "t".into(), registers: Some(ThreadRegisters(registers)) }
}

const STACK: Range<u64> = 0x20_0000..0x22_0000;

fn ranges(
    mapped: &[Mapping],
    threads: Vec<Thread>,
    words: &[(u64, u64)],
    blocks: &Blocks,
) -> Vec<Range<u64>> {
    let image = image(mapped, threads, words);
    let heap = 0x90_0000..0x91_0000;
    let roots = other_memory(&image, blocks, &[heap], &[]).roots;
    roots.into_iter().map(|root| root.range).collect()
}

fn stack() -> [Mapping; 2] {
    [mapping(STACK.start - 0x1000..STACK.start, false), mapping(STACK, true)]
}

#[test]
fn what_lies_below_a_stack_pointer_is_no_root() {
    let structure = STACK.end - 0x900;
    let in_use = 0x21_8000..STACK.end;
    assert_eq!(ranges(&stack(), vec![thread(0x21_8080, structure)], &[], &Blocks::default()), [in_use]);
    // A coroutine runs elsewhere: all of this stack may be in use.
    let elsewhere = vec![thread(0x70_0000, structure)];
    assert_eq!(ranges(&stack(), elsewhere, &[], &Blocks::default()), [STACK]);
    // Two stacks without a guard between them are one mapping.
    let middle = 0x21_0000;
    let two = vec![thread(0x21_8080, structure), thread(0x20_8080, middle - 0x900)];
    let rest = [0x20_8000..middle - 0x900, 0x21_8000..STACK.end];
    assert_eq!(ranges(&stack(), two, &[], &Blocks::default()), rest);
}

#[test]
fn stacks_of_ended_threads_are_no_roots() {
    let structure = STACK.end - 0x940;
    let words = [(structure, structure), (structure + 16, structure)];
    // The next thread gets the vector of its thread-local variables.
    let vector = structure + 8..structure + 16;
    assert_eq!(ranges(&stack(), Vec::new(), &words, &Blocks::default()), [vector]);
    // One pointer to itself proves nothing, nor does a structure without a guard below the mapping.
    assert_eq!(ranges(&stack(), Vec::new(), &words[..1], &Blocks::default()), [STACK]);
    assert_eq!(ranges(&stack()[1..], Vec::new(), &words, &Blocks::default()), [STACK]);
    // The thread may run, if its registers are unknown.
    let unknown = vec![Thread { registers: None, ..thread(0, 0) }];
    assert_eq!(ranges(&stack(), unknown, &words, &Blocks::default()), [STACK]);
}

#[test]
fn heaps_of_other_allocators_are_no_roots() {
    let heap = 0x40_0000..0x41_0000;
    let mut blocks = Blocks::default();
    blocks.push(0x40_4010, 100, SiteId(0));
    assert_eq!(ranges(&[mapping(heap.clone(), true)], Vec::new(), &[], &blocks), []);
    // A block of the C library with a mapping of its own, joined with its neighbours.
    let size = [(0x40_4008, 0x1000 | 2)];
    let rest = [0x40_0000..0x40_4000, 0x40_5000..0x41_0000];
    assert_eq!(ranges(&[mapping(heap, true)], Vec::new(), &size, &blocks), rest);
}
