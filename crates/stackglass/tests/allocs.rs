//! The allocator of the crate in a program whose allocations are known: counts are exact, and the program is unharmed.
//!
//! One process, one recording: the tests take turns. Each counts with marked sizes, since the test runner allocates as well.
#![allow(unsafe_code, reason = "fork, and an allocator for tests")]

use stackglass::allocs::{self, Options, Sampling, Stats};
use stackglass::model::{AllocationCounts, AllocationGroup};
use stackglass::{Format, Recording, Report};
use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();

static TURN: Mutex<()> = Mutex::new(());

fn fresh() -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    allocs::stop();
    allocs::clear();
    turn
}

/// What was allocated by functions whose name ends so.
fn of_function(recording: &Recording, function: &str) -> AllocationCounts {
    let mut counts = AllocationCounts::default();
    for group in &recording.allocations.groups {
        if functions(recording, group).iter().any(|name| name.ends_with(function)) {
            counts.add(&group.counts);
        }
    }
    counts
}

fn functions(recording: &Recording, group: &AllocationGroup) -> Vec<String> {
    let locations = recording.stacks.walk(group.stack);
    let frames = locations.flat_map(|location| recording.symbols.frames_of(location));
    frames.map(|frame| frame.func.to_string()).collect()
}

#[inline(never)]
#[allow(clippy::vec_box, reason = "the boxes are what is counted")]
fn boxes_of_24(count: usize) -> Vec<Box<[u64; 3]>> {
    let mut all = Vec::with_capacity(count);
    for n in 0..count as u64 {
        all.push(black_box(Box::new([n; 3])));
    }
    black_box(all)
}

#[inline(never)]
fn grows_to_1000() -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in 0..1000u32 {
        bytes.push(n as u8);
    }
    black_box(bytes)
}

#[inline(never)]
fn zeroed_and_aligned() {
    let zeroed = black_box(vec![0u8; 5000]);
    assert!(zeroed.iter().all(|byte| *byte == 0));
    #[repr(align(256))]
    struct Aligned(#[allow(dead_code)] [u8; 512]);
    let aligned = black_box(Box::new(Aligned([1; 512])));
    assert_eq!((&raw const *aligned).addr() % 256, 0);
}

#[test]
fn every_allocation_is_counted_to_the_byte() {
    let _turn = fresh();
    let kept = allocs::profile!(sample_rate = 1.0, {
        drop(grows_to_1000());
        zeroed_and_aligned();
        boxes_of_24(1000)
    });
    let recording = allocs::recording();
    let boxes = of_function(&recording, "boxes_of_24");
    assert_eq!((boxes.count, boxes.bytes), (1001, 24_000 + 8000));
    assert_eq!((boxes.live_count(), boxes.live_bytes()), (1001, 32_000));
    assert_eq!((boxes.peak_count, boxes.peak_bytes), (1001, 32_000));
    // 8, 16, ... 1024: each growth is an allocation, and the end of the smaller block.
    let grown = of_function(&recording, "grows_to_1000");
    assert_eq!((grown.count, grown.bytes, grown.live_count()), (8, 2040, 0));
    let others = of_function(&recording, "zeroed_and_aligned");
    assert_eq!((others.count, others.bytes, others.live_count()), (2, 5512, 0));
    assert_eq!(others.temporary_count, 1, "only the box was freed before another allocation");
    // What is freed later is followed, on whatever thread.
    std::thread::spawn(move || drop(kept)).join().unwrap();
    let boxes = of_function(&allocs::recording(), "boxes_of_24");
    assert_eq!((boxes.count, boxes.live_count(), boxes.live_bytes()), (1001, 0, 0));
    assert_eq!((boxes.peak_count, boxes.peak_bytes), (1001, 32_000));
    allocs::clear();
    assert!(allocs::recording().allocations.groups.is_empty());
}

#[test]
fn single_allocations_have_size_stack_thread_and_time() {
    let _turn = fresh();
    let kept = allocs::profile!(sample_rate = 1.0, boxes_of_24(500));
    let results = allocs::fetch();
    let named = |alloc: &&allocs::Alloc| alloc.stacktrace.iter().any(|f| f.func.ends_with("boxes_of_24"));
    let mut ours: Vec<_> = results.allocs.iter().filter(named).collect();
    assert_eq!((ours.len(), results.lost), (501, 0));
    let bytes: u64 = ours.iter().map(|alloc| alloc.size).sum();
    assert_eq!(bytes, 500 * 24 + 4000);
    assert!(ours.windows(2).all(|two| two[0].timestamp <= two[1].timestamp));
    let vector = ours.remove(0);
    assert_eq!((vector.size, vector.address), (4000, kept.as_ptr().addr() as u64));
    for (alloc, block) in ours.iter().zip(&kept) {
        assert_eq!((alloc.size, alloc.address), (24, (&raw const **block).addr() as u64));
    }
    // SAFETY: no arguments.
    let own = unsafe { libc::gettid() } as u32;
    assert!(ours.iter().all(|alloc| alloc.thread == own));
    let now = std::time::Duration::from_secs(1).as_nanos() as u64;
    assert!(ours[499].timestamp - ours[0].timestamp < now);
    // Frames of the allocator are left out.
    let inner = &ours[0].stacktrace[0];
    assert!(!inner.func.contains("recorded") && *inner.krate != *"stackglass_heap", "{inner:?}");
    eprintln!("{}", ours[0]);
    assert!(ours[0].type_name.contains("u64; 3"), "{}", ours[0].type_name);
}

#[test]
fn all_threads_are_recorded_also_later_ones() {
    let _turn = fresh();
    allocs::start(1.0).unwrap();
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| boxes_of_24(2000))).collect();
    let kept: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    allocs::stop();
    let recording = allocs::recording();
    let boxes = of_function(&recording, "boxes_of_24");
    assert_eq!((boxes.count, boxes.bytes), (4 * 2001, 4 * 2000 * 32));
    let ours = recording.allocations.groups.iter().filter(|group| {
        group.counts.bytes == 48_000
            && functions(&recording, group).iter().any(|f| f.ends_with("boxes_of_24"))
    });
    let threads: std::collections::BTreeSet<u32> = ours.map(|group| group.thread.0).collect();
    assert_eq!(threads.len(), 4);
    drop(kept);
    assert_eq!(of_function(&allocs::recording(), "boxes_of_24").live_count(), 0);
}

#[test]
fn records_add_up_until_they_are_cleared() {
    let _turn = fresh();
    for _ in 0..3 {
        allocs::profile!(sample_rate = 1.0, drop(boxes_of_24(10)));
        drop(boxes_of_24(10));
    }
    assert_eq!(of_function(&allocs::recording(), "boxes_of_24").count, 33);
    assert_eq!(of_function(&allocs::recording(), "boxes_of_24").live_count(), 0);
    allocs::profile!(sample_rate = 0.0, drop(boxes_of_24(10)));
    allocs::profile!(sample_rate = -1.0, drop(boxes_of_24(10)));
    allocs::profile!(sample_rate = f64::NAN, drop(boxes_of_24(10)));
    assert_eq!(of_function(&allocs::recording(), "boxes_of_24").count, 33);
    allocs::profile!(sample_rate = 7.0, drop(boxes_of_24(10)));
    assert_eq!(of_function(&allocs::recording(), "boxes_of_24").count, 44);
    allocs::start(1.0).unwrap();
    drop(boxes_of_24(10));
    let first = allocs::recording().allocations.processes[0].clone();
    allocs::clear();
    assert!(allocs::is_running());
    drop(boxes_of_24(20));
    allocs::stop();
    assert!(!allocs::is_running());
    assert_eq!(of_function(&allocs::recording(), "boxes_of_24").count, 21);
    let second = allocs::recording().allocations.processes[0].clone();
    assert!(second.begin > first.end && second.end > second.begin, "{first:?} {second:?}");
    assert_eq!(allocs::recording().allocations.processes[0].end, second.end);
    let sizes: Vec<_> = allocs::fetch().allocs.iter().map(|alloc| alloc.size).filter(|s| *s == 24).collect();
    assert_eq!(sizes.len(), 20);
}

#[test]
fn a_part_is_recorded_by_chance() {
    let _turn = fresh();
    drop(allocs::profile!(boxes_of_24(100_000)));
    let counts = of_function(&allocs::recording(), "boxes_of_24");
    // 5 standard deviations of a binomial distribution.
    assert!(counts.count.abs_diff(10_000) < 475, "{}", counts.count);
    assert_eq!(counts.live_count(), 0);
    // Estimates from samples by bytes.
    drop(allocs::profile!(sampling = Sampling::Bytes(1000), boxes_of_24(100_000)));
    let counts = of_function(&allocs::recording(), "boxes_of_24");
    assert!(counts.bytes.abs_diff(3_200_000) < 5 * 57_000, "{}", counts.bytes);
}

#[test]
fn a_panic_ends_the_recording() {
    let _turn = fresh();
    let result = std::panic::catch_unwind(|| {
        allocs::profile!(sample_rate = 1.0, {
            let _backtrace = std::backtrace::Backtrace::force_capture().to_string();
            assert!(black_box(false), "on purpose");
        })
    });
    assert!(result.is_err() && !allocs::is_running());
    fn early() -> Option<u8> {
        let text: Option<String> = None;
        allocs::profile!(sample_rate = 1.0, Some(text?.as_bytes()[0]))
    }
    assert_eq!(early(), None);
    assert!(!allocs::is_running());
    assert_eq!(allocs::profile!(6 * 7), 42);
}

#[test]
fn reports_show_bytes() {
    let _turn = fresh();
    let mut text = Vec::new();
    let written = allocs::write(&Report::new(), &mut text).unwrap();
    assert_eq!(written.warnings, [allocs::NO_ALLOCATIONS]);
    let kept = allocs::profile!(sample_rate = 1.0, boxes_of_24(1000));
    // The test runner's own thread may allocate at the same time.
    let recording = allocs::recording();
    let mut groups = recording.allocations.groups.iter();
    let own = groups.find(|group| group.counts.bytes == 24_000).expect("the boxes are recorded").thread;
    for report in [Report::new(), Report::new().format(Format::Flat)] {
        let report = report.threads(u64::from(own.0));
        let mut text = Vec::new();
        assert!(allocs::write(&report, &mut text).unwrap().warnings.is_empty());
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("boxes_of_24") && text.contains("32000"), "{text}");
        assert!(text.contains("Total snapshots: 1001") && text.contains("Total bytes: 32000"), "{text}");
    }
    drop(kept);
}

#[test]
fn records_are_small_and_bounded() {
    let _turn = fresh();
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).unwrap();
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let work = || {
        let mut map: std::collections::BTreeMap<String, Vec<usize>> = Default::default();
        for (n, word) in words.iter().enumerate().cycle().take(200_000) {
            map.entry(word.clone()).or_default().push(n);
        }
        map.into_values().collect::<Vec<_>>().concat().len()
    };
    allocs::start(1.0).unwrap();
    assert_eq!(work(), 200_000);
    allocs::stop();
    let results = allocs::fetch();
    let each = results.bytes as f64 / results.allocs.len() as f64;
    eprintln!("{} records of {each:.1} bytes", results.allocs.len());
    assert!(results.allocs.len() > 200_000 && each <= 12.0, "{each}");
    allocs::clear();

    allocs::start(Options { record_bytes: 64 << 10, ..Options::from(1.0) }).unwrap();
    drop(boxes_of_24(100_000));
    allocs::stop();
    let results = allocs::fetch();
    assert!(
        results.allocs.len() > 5000 && results.lost > 50_000,
        "{} {}",
        results.allocs.len(),
        results.lost
    );
    assert_eq!(of_function(&allocs::recording(), "boxes_of_24").count, 100_001);
}

#[test]
fn a_forked_child_lives_on() {
    let _turn = fresh();
    allocs::start(1.0).unwrap();
    let before = boxes_of_24(100);
    // SAFETY: the child allocates, which a child of a program with threads may with glibc, and leaves.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            drop(before);
            drop(boxes_of_24(1000));
            let recorded = allocs::profile!(sample_rate = 1.0, boxes_of_24(50));
            let counts = of_function(&allocs::recording(), "boxes_of_24");
            drop(recorded);
            let later = of_function(&allocs::recording(), "boxes_of_24");
            libc::_exit(if (counts.count, counts.live_count(), later.live_count()) == (51, 51, 0) {
                7
            } else {
                1
            });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        status
    };
    allocs::stop();
    assert_eq!(libc::WEXITSTATUS(status), 7, "{status}");
    assert_eq!(of_function(&allocs::recording(), "boxes_of_24").live_count(), 101);
    drop(before);
    assert_eq!(of_function(&allocs::recording(), "boxes_of_24").live_count(), 0);
}

#[test]
fn destructors_of_threads_may_allocate() {
    struct Last(Vec<u8>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.extend_from_slice(&[1; 3000]);
            let _ = Stats::thread().get();
            drop(boxes_of_24(3));
        }
    }
    thread_local! {
        static LAST: std::cell::RefCell<Last> = const { std::cell::RefCell::new(Last(Vec::new())) };
    }
    let _turn = fresh();
    allocs::start(1.0).unwrap();
    for _ in 0..20 {
        std::thread::spawn(|| LAST.with(|last| last.borrow_mut().0.push(1))).join().unwrap();
    }
    allocs::stop();
    let counts = of_function(&allocs::recording(), "boxes_of_24");
    assert_eq!((counts.count, counts.live_count()), (80, 0));
}

#[test]
fn stop_returns_when_no_thread_records() {
    let _turn = fresh();
    let go_on = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while go_on.load(std::sync::atomic::Ordering::Relaxed) {
                    drop(boxes_of_24(50));
                }
            });
        }
        for round in 0..200 {
            allocs::start(if round % 2 == 0 { 1.0 } else { 0.3 }).unwrap();
            std::thread::yield_now();
            allocs::stop();
            let count = of_tables();
            std::thread::yield_now();
            assert_eq!(of_tables(), count);
            if round % 10 == 9 {
                allocs::clear();
                assert_eq!(of_tables(), 0);
            }
        }
        go_on.store(false, std::sync::atomic::Ordering::Relaxed);
    });
}

/// Number of recorded allocations, without names.
fn of_tables() -> u64 {
    let tables = stackglass_heap::tables().unwrap();
    let counters = tables.page().counters().load(std::sync::atomic::Ordering::Acquire);
    (1..counters).map(|n| tables.counter(n).count.load(std::sync::atomic::Ordering::Acquire)).sum()
}

#[test]
fn scopes_count_exactly() {
    let outer = Stats::thread();
    let kept = boxes_of_24(10);
    let inner = Stats::thread();
    drop(grows_to_1000());
    let counts = inner.get();
    assert_eq!((counts.blocks, counts.bytes, counts.live_blocks, counts.live_bytes), (8, 2040, 0, 0));
    assert_eq!(counts.peak_bytes, 1024);
    inner.assert_max_blocks(8);
    inner.assert_max_bytes(2040);
    inner.assert_max_peak_bytes(1024);
    inner.assert_all_freed();
    std::thread::spawn(|| drop(boxes_of_24(1000))).join().unwrap();
    drop(inner);
    let counts = outer.get();
    assert!(counts.blocks >= 11 + 8 && counts.bytes < 10_000, "{counts}: another thread does not count");
    let before = outer.get().live_bytes;
    drop(kept);
    assert_eq!(outer.get().live_bytes, before - 320);
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| outer.assert_max_bytes(10)));
    let message = *failed.unwrap_err().downcast::<String>().unwrap();
    assert!(message.starts_with("more than 10 bytes were allocated: "), "{message}");

    let (_, counts) = allocs::measure(|| Box::new([1u8; 100]));
    assert_eq!((counts.blocks, counts.bytes, counts.live_blocks, counts.peak_bytes), (1, 100, 1, 100));
}

#[test]
fn scopes_of_the_process_count_all_threads() {
    let _turn = fresh();
    let stats = Stats::process();
    let kept = std::thread::spawn(|| boxes_of_24(100_000)).join().unwrap();
    let counts = stats.get();
    assert!(counts.blocks >= 100_001 && counts.bytes >= 3_200_000, "{counts}");
    assert!(counts.peak_bytes >= 3_200_000, "{counts}");
    let live = counts.live_bytes;
    drop(kept);
    // Other tests run meanwhile.
    assert!(stats.get().live_bytes <= live - 2_000_000);
}

/// Blocks of 8 bytes and more, as close together as their sizes allow.
struct Bump;

static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
static SMALLEST: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(usize::MAX);
static mut MEMORY: [u64; 1 << 16] = [0; 1 << 16];

// SAFETY: blocks do not overlap and are never used again.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        use std::sync::atomic::Ordering::Relaxed;
        SMALLEST.fetch_min(layout.size(), Relaxed);
        let bytes = layout.size().next_multiple_of(8) + layout.align();
        let begin = (&raw mut MEMORY).addr() + NEXT.fetch_add(bytes.next_multiple_of(8), Relaxed);
        (begin.next_multiple_of(layout.align())) as *mut u8
    }

    unsafe fn dealloc(&self, _: *mut u8, layout: Layout) {
        assert!(layout.size() >= 16);
    }
}

#[test]
fn small_requests_to_other_allocators_are_rounded_up() {
    let around = stackglass::Alloc::new(Bump);
    // SAFETY: blocks are used as their layouts say.
    unsafe {
        for (size, align) in [(1, 1), (8, 8), (15, 2), (16, 16), (1000, 64), (3, 64)] {
            let layout = Layout::from_size_align(size, align).unwrap();
            let block = around.alloc(layout);
            assert!(!block.is_null() && block.addr().is_multiple_of(align));
            block.write_bytes(7, size);
            let larger = around.realloc(block, layout, size + 9);
            assert_eq!(*larger, 7);
            let layout = Layout::from_size_align(size + 9, align).unwrap();
            let smaller = around.realloc(larger, layout, 1);
            assert_eq!(*smaller, 7);
            around.dealloc(smaller, Layout::from_size_align(1, align).unwrap());
            let zeroed = around.alloc_zeroed(layout);
            assert!((0..layout.size()).all(|n| *zeroed.add(n) == 0));
            around.dealloc(zeroed, layout);
        }
    }
    assert_eq!(SMALLEST.load(std::sync::atomic::Ordering::Relaxed), 16);
}
