//! A program that parses text into tables, with known allocations.

use super::Maker;
use stackglass_profile::{
    AllocatingProcess, AllocationCounts, AllocationGroup, AllocationKind, AllocationSampling, MemoryPoint,
    Nanos, ProcessIndex, Recording, SizeClass, State, ThreadNumber,
};

const FILE: &str = "/home/me/demo/src";
const ALLOC: &str = "/rustc/0/library/alloc";
const SERDE: &str = "/home/me/.cargo/registry/src/index.crates.io-0/serde_json-1.0.140/src";

/// Counts of `count` blocks of `size` bytes, of which some were freed, were temporary, and were alive at the peak.
pub fn counts(count: u64, size: u64, freed: u64, temporary: u64, peak: u64) -> AllocationCounts {
    AllocationCounts {
        count,
        bytes: count * size,
        freed_count: freed,
        freed_bytes: freed * size,
        temporary_count: temporary,
        peak_count: peak,
        peak_bytes: peak * size,
        ..AllocationCounts::default()
    }
}

impl Maker {
    /// Adds allocations at a stack, with their type if it is known.
    pub fn allocations(
        &mut self,
        thread: ThreadNumber,
        stack: &str,
        allocated: Option<&str>,
        size: u64,
        counts: AllocationCounts,
    ) {
        let stack = self.stack(stack);
        if let Some(name) = allocated {
            self.recording.symbols.set_allocated_type(stack, name.into());
        }
        let process = self.recording.thread(thread).map_or(ProcessIndex(0), |thread| thread.process);
        self.recording.allocations.groups.push(AllocationGroup {
            stack,
            thread,
            process,
            task: 0,
            kind: AllocationKind::Block,
            size_class: SizeClass::from_size(size),
            counts,
        });
    }

    /// Marks a process as recorded from 0 to 2 seconds, with a peak at 1.2 s.
    pub fn records_allocations(&mut self, process: ProcessIndex, sampling: AllocationSampling) {
        let ms = 1_000_000;
        let point = |n: u64| {
            let live = if n <= 60 { n * n * 8_745 } else { (100 - n) * 780_000 };
            MemoryPoint {
                clock: Nanos((1000 + n * 20) * ms),
                live_bytes: live,
                resident_bytes: 4_000_000 + n.min(60).pow(2) * 11_000,
            }
        };
        self.recording.info.start = Nanos(1000 * ms);
        self.recording.allocations.processes.push(AllocatingProcess {
            process,
            begin: Nanos(1000 * ms),
            end: Nanos(3000 * ms),
            sampling,
            peak_at: Nanos(2200 * ms),
            lost: 0,
            without_stack: 0,
            memory: (0..=100).map(point).collect(),
        });
    }
}

/// A Rust program: two threads, 12 types, one of them unknown, one stack with recursion.
pub fn allocating(sampling: AllocationSampling) -> Recording {
    let mut maker = Maker::new(&["target/release/demo", "big.json"]);
    let process = maker.process("/home/me/demo/target/release/demo", &["target/release/demo", "big.json"]);
    let main = maker.thread(process, "demo");
    let worker = maker.thread(process, "worker");
    maker.records_allocations(process, sampling);
    let start = format!(
        "c libc.so.6! __libc_start_call_main > c main > std::rt::lang_start /rustc/0/library/std/src/rt.rs:205 > demo::main {FILE}/main.rs:12"
    );
    let parse = format!(
        "{start} > serde_json::de::from_str {SERDE}/de.rs:2730 > serde_json::de::parse_value {SERDE}/de.rs:900"
    );
    let grow = format!(
        "alloc::raw_vec::RawVec::grow_one {ALLOC}/src/raw_vec.rs:300 > + alloc::alloc::alloc {ALLOC}/src/alloc.rs:90"
    );
    let mut add = |thread, stack: String, allocated: Option<&str>, size, counts| {
        maker.allocations(thread, &stack, allocated, size, counts);
    };
    add(
        main,
        format!("{parse} > {grow}"),
        Some("serde_json::Value"),
        320,
        counts(60_000, 320, 40_000, 15_000, 20_000),
    );
    add(
        main,
        format!("{parse} > serde_json::de::parse_value {SERDE}/de.rs:900 > {grow}"),
        Some("serde_json::Value"),
        64,
        counts(200_000, 64, 200_000, 0, 180_000),
    );
    add(
        main,
        format!("{start} > demo::load::read_scene {FILE}/load.rs:31 > {grow}"),
        Some("[u8]"),
        9_000_000,
        counts(1, 9_000_000, 1, 0, 1),
    );
    add(
        main,
        format!(
            "{start} > demo::load::names {FILE}/load.rs:48 > alloc::string::String::clone {ALLOC}/src/string.rs:1 > + alloc::alloc::alloc {ALLOC}/src/alloc.rs:90"
        ),
        Some("[u8]"),
        24,
        counts(140_000, 24, 140_000, 130_000, 5_000),
    );
    add(
        worker,
        format!(
            "c libc.so.6! start_thread > demo::pool::Pool::run {FILE}/pool.rs:41 > demo::index::Index::insert {FILE}/index.rs:17 > hashbrown::raw::RawTable::reserve_rehash /rust/deps/hashbrown-0.16.0/src/raw.rs:20 > + alloc::alloc::alloc {ALLOC}/src/alloc.rs:90"
        ),
        Some(
            "HashMap<(String, demo::index::Position), alloc::sync::Arc<demo::index::Entry<String>>, foldhash::fast::RandomState> table",
        ),
        4096,
        counts(2_000, 4_096, 1_990, 7, 900),
    );
    add(
        worker,
        format!(
            "c libc.so.6! start_thread > demo::pool::Pool::run {FILE}/pool.rs:41 > c libpng16.so.16! png_create_info > c libc.so.6! strdup > c libc.so.6! malloc"
        ),
        None,
        40,
        counts(3_000, 40, 2_000, 0, 1_000),
    );
    for (index, name) in [
        "Rc<Node>",
        "BTreeMap<u32, String> leaf",
        "Box<dyn Error>",
        "Arc<str>",
        "VecDeque<Job>",
        "Box<[u64]>",
        "String",
    ]
    .into_iter()
    .enumerate()
    {
        let (line, size) = (60 + index, 16 * (index as u64 + 1));
        let stack = format!(
            "{start} > demo::tree::grow {FILE}/tree.rs:{line} > + alloc::boxed::Box::new {ALLOC}/src/boxed.rs:200"
        );
        add(main, stack, Some(name), size, counts(100 * size, size, 50 * size, size, 20 * size));
    }
    let mapping =
        maker.stack(&format!("{start} > demo::arena::reserve {FILE}/arena.rs:9 > c libc.so.6! mmap"));
    maker.recording.allocations.groups.push(AllocationGroup {
        stack: mapping,
        thread: main,
        process,
        task: 0,
        kind: AllocationKind::Mapping,
        size_class: SizeClass::from_size(1 << 30),
        counts: counts(2, 1 << 30, 1, 0, 2),
    });
    let leaked =
        maker.recording.allocations.groups.iter_mut().find(|group| group.counts.live_count() > 0).unwrap();
    (leaked.counts.kept_count, leaked.counts.kept_bytes) = (19_000, 19_000 * 320);
    let idle = maker.stack(&start);
    maker.sample(main, idle, State::Awake, 1500);
    maker.recording.info.wall = Nanos(2_000_000_000);
    maker.recording
}
