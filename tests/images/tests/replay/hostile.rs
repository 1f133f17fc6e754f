//! Stored images with single words that are wrong, and without the end of their memory: readers return.
//!
//! Each change comes from a seed, so that a failure comes again. Time is bounded by the reads of memory, whatever the clock says.

use super::graph::Graph;
use super::programs::{CPP, Program, RUST, TASKS};
use stackglass_awaits::Process;
use stackglass_heapgraph::blocks::glibc;
use stackglass_heapgraph::graph::{Built, Input, build};
use stackglass_heapgraph::other_memory::other_memory;
use stackglass_heapgraph::roots;
use stackglass_heapgraph::typing::{Evidence, infer};
use stackglass_layouts::{Layouts, Local, Wanted};
use stackglass_process_view::core_image::CoreImage;
use stackglass_process_view::modules::LoadedModule;
use stackglass_process_view::{ProcessView, Threads};
use stackglass_profile::heap_graph::AllocationStacks;
use stackglass_symbols::Options;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use stored_images::{Opened, PAGE, Pages};

/// Images with a wrong word, and images that are cut, of each program.
const WRONG: u64 = 200;
const CUT: u64 = 40;
/// How many times as many reads as of the right image are enough for each.
const MORE_READS: u64 = 4;

/// Numbers that look random (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Memory with one wrong word, instead of one that is not 0.
fn with_wrong_word(pages: &Pages, seed: u64) -> Pages {
    let addresses: Vec<u64> = pages.addresses().collect();
    let place = |random: u64| {
        let page = addresses[(mixed(random) % addresses.len() as u64) as usize];
        page + mixed(random + 1) % PAGE as u64 / 8 * 8
    };
    let mut random = mixed(seed);
    let mut address = place(random);
    while pages.word(address) == 0 {
        random = mixed(random);
        address = place(random);
    }
    let word = pages.word(address);
    let wrong = match mixed(random + 2) % 8 {
        0 => 0,
        1 => u64::MAX,
        // A pointer to itself, or to its surroundings.
        2 => address,
        3 => address & !127,
        4 => mixed(random + 3),
        5 => word ^ 1 << (mixed(random + 3) % 64),
        6 => word.wrapping_add(8),
        // Some other word.
        _ => pages.word(place(random + 4)),
    };
    pages.with_word(address, wrong)
}

/// Reads all variants of an image by `read`, and checks how much they read. Debug information is read once: no word of it differs.
fn all_variants<T>(
    program: &Program,
    known: impl Fn(&CoreImage) -> T,
    read: impl Fn(&T, &Opened, &CoreImage),
) {
    let opened = Opened::read(program.image);
    let known = known(&opened.image());
    let right = opened.pages.cut_at(u64::MAX);
    read(&known, &opened, &opened.with_memory(right.clone()));
    assert!(right.reads() > 0);
    let addresses: Vec<u64> = opened.pages.addresses().collect();
    let variants = (0..WRONG).map(|seed| (seed, with_wrong_word(&opened.pages, seed)));
    let cuts = (0..CUT).map(|seed| {
        let page = addresses[(mixed(seed) % addresses.len() as u64) as usize];
        (WRONG + seed, opened.pages.cut_at(page + mixed(seed + 1) % PAGE as u64))
    });
    let mut most = 0;
    let mut failed = Vec::new();
    for (seed, memory) in variants.chain(cuts) {
        let image = opened.with_memory(memory.clone());
        if catch_unwind(AssertUnwindSafe(|| read(&known, &opened, &image))).is_err() {
            failed.push(seed);
        }
        most = most.max(memory.reads());
    }
    assert!(failed.is_empty(), "{}: with seeds {failed:?}", program.image);
    let bound = right.reads() * MORE_READS;
    eprintln!("{}: {} reads, {most} of the worst variant", program.image, right.reads());
    assert!(most <= bound, "{}: {most} reads, {bound} are enough", program.image);
}

/// What is known of a process before its blocks and tasks are read.
struct Known {
    modules: Vec<LoadedModule>,
    layouts: Layouts,
    locals: Vec<Vec<Vec<Local>>>,
}

fn known(image: &CoreImage, wanted: Wanted) -> Known {
    let view = ProcessView::open(image);
    let frames = view.threads().frames;
    let (layouts, locals) = view.layouts_and_locals(&view.files(), &Options::default(), &frames, wanted);
    Known { modules: view.modules, layouts, locals }
}

/// Blocks do not overlap, and have no more bytes than there is memory.
fn read_heap(known: &Known, opened: &Opened, image: &CoreImage) {
    let Known { modules, layouts, locals } = known;
    let view = ProcessView::open(image);
    let Threads { stacks, frames, .. } = view.threads();
    let Ok(heap) = glibc::live_blocks(image) else { return };
    let mut blocks = heap.blocks;
    let (mut end, mut bytes) = (0, 0);
    for (address, size) in blocks.iter() {
        assert!(address >= end, "a block at {address:#x} begins before {end:#x}");
        end = address + size;
        bytes += size;
    }
    assert!(bytes <= opened.writable_bytes(), "{bytes} bytes");
    let mut all = roots::statics(modules, layouts);
    all.extend(roots::thread_locals(image, modules, layouts));
    for ((stack, frames), locals) in stacks.iter().zip(&frames).zip(locals) {
        let names = vec![String::new(); frames.len()];
        // Locals are those of the frames of the right image.
        if frames.len() == locals.len() {
            all.extend(roots::stack(image, stack, frames, &names, locals, false));
        }
    }
    let mut ranges: Vec<Range<u64>> = modules.iter().flat_map(|module| module.data.clone()).collect();
    ranges.extend(all.iter().map(|root| root.range.clone()).filter(|range| !range.is_empty()));
    all.extend(other_memory(image, &blocks, &glibc::heaps(image), &ranges).roots);
    let biases: Vec<u64> = modules.iter().map(LoadedModule::bias).collect();
    let evidence = Evidence { image, blocks: &blocks, sites: &[], layouts, biases: &biases, roots: &all };
    let typing = infer(evidence);
    let mut sites = Vec::new();
    typing.add_sites(layouts, &mut blocks, &mut sites);
    let stacks = AllocationStacks::default();
    let input = Input {
        image,
        blocks: &blocks,
        sites: &sites,
        stacks: &stacks,
        layouts,
        roots: &all,
        biases: &biases,
        with_texts: true,
        all_one: false,
    };
    let mut graph = Graph::default();
    let Ok(Built { totals, unreached }) = build(&input, &mut graph);
    assert_eq!((totals.blocks, totals.bytes), (blocks.len() as u64, bytes));
    assert!(totals.typed_bytes <= bytes && totals.typed_blocks <= totals.blocks);
    assert!(unreached.len() <= blocks.len());
    let first = graph.nodes.len() - blocks.len();
    let of_nodes = &graph.nodes[first..];
    assert_eq!(of_nodes.iter().map(|node| node.size).sum::<u64>(), bytes);
    assert!(of_nodes.iter().all(|node| node.unused <= node.size));
}

#[test]
fn damaged_heaps_of_cpp() {
    all_variants(&CPP, |image| known(image, Wanted::Types), read_heap);
}

#[test]
fn damaged_heaps_of_rust() {
    all_variants(&RUST, |image| known(image, Wanted::Types), read_heap);
}

#[test]
fn damaged_tasks() {
    all_variants(
        &TASKS,
        |image| known(image, Wanted::Coroutines),
        |known, _, image| {
            let Threads { frames, tids, .. } = ProcessView::open(image).threads();
            let same = frames.len() == known.locals.len()
                && frames.iter().zip(&known.locals).all(|(frames, locals)| frames.len() == locals.len());
            let dump = stackglass_awaits::tasks(&Process {
                image,
                modules: &known.modules,
                layouts: &known.layouts,
                locals: if same { &known.locals } else { &[] },
                tids: if same { &tids } else { &[] },
                wrapped: &[],
            });
            // There are seven, and the future of `block_on`.
            assert!(dump.tasks.len() <= 64, "{} tasks", dump.tasks.len());
        },
    );
}
