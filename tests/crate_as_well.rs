//! A program that links the crate and runs under the command has one sampler and one recorder of allocations, the command's.
//!
//! This file is its own host: called without `host`, it runs itself under `record`. A host must be a plain program, so this
//! test has no harness and handles nextest's arguments itself.

use std::hint::black_box;
use std::time::Duration;
use whole_programs::{Record, allocations_below};
use workloads::clock::thread_cpu;

#[global_allocator]
static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();

const NAME: &str = "a_program_that_links_the_crate_as_well";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if has("host") {
        host();
    } else if has("allocating") {
        allocating_host();
    } else if has("--list") {
        if !has("--ignored") {
            println!("{NAME}: test");
        }
    } else {
        test();
        test_of_allocations();
        println!("{NAME}: ok");
    }
}

#[inline(never)]
fn profiled_work() -> u64 {
    let end = thread_cpu() + Duration::from_millis(500);
    let mut x = 1u64;
    while thread_cpu() < end {
        for i in 0..20_000 {
            x = black_box(x.wrapping_mul(31) ^ i);
        }
    }
    x
}

fn host() {
    let answer = stackglass::profile!(profiled_work());
    println!("{}", if answer == 0 { "nothing" } else { "worked" });
}

fn test() {
    let me = std::env::current_exe().expect("a test knows its own path");
    let name = me.file_name().expect("a program has a name").to_string_lossy().into_owned();
    let outcome = Record::new(&me).args(["host"]).run();
    outcome.program_did("worked\n", 0);
    let seen = outcome.seen(&name);
    seen.is_true(100).has_share("profiled_work", 0.9, 1.0);
    // One sampler starts the only other thread. Its timers take a stack once in a delay of 1 ms at most, and once in 3 ms (RARE in
    // sampler/signals/timers.rs), wherever the ticks are: 1.0 for each ms on average. Two samplers take twice as many.
    let recording = outcome.recording();
    assert_eq!((recording.processes.len(), recording.threads.len()), (1, 1), "{:#?}", recording.threads);
    let cpu = recording.info.kernel_cpu.expect("the kernel counts CPU time").0 / 1_000_000;
    assert!(seen.hits <= cpu + cpu / 3 + 2, "{} stacks in {cpu} ms: two samplers", seen.hits);
}

#[inline(never)]
#[expect(clippy::vec_box, reason = "each number is an allocation")]
fn allocates() -> Vec<Box<u64>> {
    (0..1000).map(|n| black_box(Box::new(n))).collect()
}

#[inline(never)]
#[expect(clippy::vec_box, reason = "each number is an allocation")]
fn set_up() -> Vec<Box<u16>> {
    (0..1000).map(|n| black_box(Box::new(n))).collect()
}

fn allocating_host() {
    drop(black_box(set_up()));
    stackglass::clear_malloc_data().expect("the command answers");
    let kept = stackglass::allocs::profile!(sample_rate = 1.0, allocates());
    println!("{} {}", kept.len(), stackglass::allocs::fetch().allocs.len());
}

/// The command's recorder counts each allocation once; that of the crate leaves it to the command.
fn test_of_allocations() {
    let me = std::env::current_exe().expect("a test knows its own path");
    let outcome = Record::new(&me).flag("--allocs").args(["allocating"]).run();
    outcome.program_did("1000 0\n", 0);
    let recording = outcome.recording();
    // The compiler may make two calls of one in a loop: what counts is the function.
    let boxes = |function: &str| {
        let counts = allocations_below(&recording, &format!("crate_as_well::{function}::{{closure}}"));
        (counts.count, counts.bytes)
    };
    assert_eq!(boxes("allocates"), (1000, 8000));
    assert_eq!(boxes("set_up"), (0, 0), "they were cleared");
    let counts = recording.allocations.groups.iter().map(|group| group.counts);
    let large: Vec<_> = counts.filter(|counts| counts.bytes >= 2000 && counts.count == 1).collect();
    assert_eq!(large.iter().map(|counts| counts.bytes).collect::<Vec<_>>(), [8000], "one vector");
    // Without it, the crate records.
    let outcome = Record::new(&me).args(["allocating"]).run();
    outcome.program_did("1000 1001\n", 0);
}
