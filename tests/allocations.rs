//! Recorded allocations are exact: they agree to the byte and the block with a library that counts in the simplest way
//! (`hosts/counting.c`), on programs with known numbers and on real ones.

use stackglass_profile::{AllocationCounts, AllocationKind, Recording};
use std::path::{Path, PathBuf};
use whole_programs::{Language, Outcome, Record, allocations_below, host_with};

/// The C compiler must not remove allocations, nor warn of those that fail on purpose.
const FLAGS: [&str; 4] =
    ["-fno-builtin", "-Wno-use-after-free", "-Wno-infinite-recursion", "-Wno-alloc-size-larger-than"];

fn program() -> PathBuf {
    host_with("allocs", Language::C, &FLAGS)
}

fn counting_library() -> PathBuf {
    host_with("counting", Language::C, &["-shared", "-fPIC"])
}

/// Sums of the counting library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sums {
    count: u64,
    bytes: u64,
    freed_count: u64,
    freed_bytes: u64,
    temporary_count: u64,
}

struct Counted {
    sums: Sums,
    peak: u64,
}

fn counted(folder: &Path, pid: u32) -> Counted {
    let file = folder.join(format!("counts.{pid}"));
    let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let word = |index: usize| {
        u64::from_ne_bytes(bytes[index * 8..][..8].try_into().expect("a slice of eight bytes"))
    };
    assert_eq!(word(7), 0, "blocks that the counting library did not know were freed");
    let sums = Sums {
        count: word(0),
        bytes: word(1),
        freed_count: word(2),
        freed_bytes: word(3),
        temporary_count: word(4),
    };
    Counted { sums, peak: word(6) }
}

fn sums(counts: &AllocationCounts) -> Sums {
    Sums {
        count: counts.count,
        bytes: counts.bytes,
        freed_count: counts.freed_count,
        freed_bytes: counts.freed_bytes,
        temporary_count: counts.temporary_count,
    }
}

fn blocks(recording: &Recording) -> AllocationCounts {
    recording.allocations.total(AllocationKind::Block)
}

/// Records a program while the counting library counts as well.
fn counted_run(program: impl AsRef<Path>, arguments: &[&str]) -> (Outcome, Recording, Counted) {
    let run = Record::new(program.as_ref()).args(arguments).flag("--allocs").flag("--quiet");
    let folder = run.folder().to_path_buf();
    let run = run.variable("COUNTS", folder.join("counts")).variable("LD_PRELOAD", counting_library());
    let outcome = run.run();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    let recording = outcome.recording();
    let [process] = &recording.allocations.processes[..] else {
        panic!("one process allocates: {:?}", recording.allocations.processes)
    };
    assert_eq!((process.lost, process.without_stack), (0, 0));
    let pid = recording.processes[process.process.0 as usize].pid;
    let counted = counted(&folder, pid);
    (outcome, recording, counted)
}

/// Both must agree. The peak may differ by one per cent, or by 4 KiB.
#[track_caller]
fn agrees(program: impl AsRef<Path>, arguments: &[&str]) -> AllocationCounts {
    let (_, recording, counted) = counted_run(program, arguments);
    let total = blocks(&recording);
    assert_eq!(sums(&total), counted.sums, "the recording, and the counting library");
    // What threads do at the same instant has no order: each counts it in its own.
    let most = (counted.peak / 100).max(4096);
    let off = total.peak_bytes.abs_diff(counted.peak);
    assert!(off <= most, "peak of {} bytes, {} recorded", counted.peak, total.peak_bytes);
    total
}

/// A program alone with the recorder, whose allocations below a function are known.
#[track_caller]
fn known(how: &str, function: &str) -> Sums {
    let outcome = Record::new(program()).args([how]).flag("--allocs").flag("--quiet").run();
    outcome.program_did("", 0);
    sums(&allocations_below(&outcome.recording(), function))
}

#[test]
fn every_entry_point_is_counted_once() {
    let sizes = [100, 200, 300, 400, 500, 60, 128, 112, 600, 10, 600, 0];
    let (count, bytes) = (sizes.len() as u64 * 100, sizes.iter().sum::<u64>() * 100);
    let known = known("entries", "every_entry");
    // Freed before the next allocation: 200, 300 (by a reallocation to zero bytes: no), 500, 112, 10, 600 and 0.
    let expected =
        Sums { count, bytes, freed_count: count, freed_bytes: bytes, temporary_count: known.temporary_count };
    assert_eq!(known, expected);
    assert_eq!(known.temporary_count, 600);
    agrees(program(), &["entries"]);
}

#[test]
fn temporary_blocks_are_those_freed_before_the_next_allocation() {
    let known = known("temporary", "temporary_blocks");
    let bytes = 1000 * (40 + 48 + 56 + 5000 + 64);
    let expected = Sums {
        count: 5000,
        bytes,
        freed_count: 5000,
        freed_bytes: bytes,
        // The block of 40 bytes, and the one of 64: the free of the one of 5000 in between is no allocation.
        temporary_count: 2000,
    };
    assert_eq!(known, expected);
    agrees(program(), &["temporary"]);
}

#[test]
fn what_is_never_freed_is_alive_at_the_end() {
    let total = agrees(program(), &["leaked"]);
    assert_eq!((total.live_count(), total.live_bytes()), (200, 200_000));
}

#[test]
fn the_peak_is_the_highest_moment() {
    let (_, recording, counted) = counted_run(program(), &["peak"]);
    let total = blocks(&recording);
    assert_eq!(sums(&total), counted.sums);
    let (peak, count) = (64 << 20, 8192);
    assert!(total.peak_bytes.abs_diff(peak) <= peak / 100, "{} of {peak} bytes", total.peak_bytes);
    assert!(total.peak_count.abs_diff(count) <= count / 100, "{} of {count} blocks", total.peak_count);
    assert_eq!(total.peak_bytes, total.peak_count * 8192, "they are the blocks of that moment");
}

#[test]
fn the_peak_of_many_threads() {
    agrees(program(), &["peak-threads"]);
}

#[test]
fn blocks_that_other_threads_free() {
    let total = agrees(program(), &["exchange", "250000"]);
    assert!(total.count > 1_000_000);
    assert!(total.live_count() < 10, "{} are alive", total.live_count());
}

/// A hundred times as many.
#[test]
#[ignore = "long: takes a minute"]
fn a_hundred_million_blocks_on_four_threads() {
    let outcome =
        Record::new(program()).args(["exchange", "25000000"]).flag("--allocs").flag("--no-time").run();
    let recording = outcome.recording();
    let total = allocations_below(&recording, "exchange");
    assert_eq!((total.count, total.freed_count), (100_000_000, 100_000_000));
    assert_eq!(total.bytes, total.freed_bytes);
    assert_eq!(recording.allocations.processes[0].lost, 0);
}

#[test]
fn short_and_live_threads() {
    agrees(program(), &["short-threads", "2000"]);
    agrees(program(), &["live-threads", "1000"]);
}

/// With a probability, each allocation is drawn by itself, also the first of each thread.
#[test]
fn each_allocation_has_the_same_chance() {
    for (arguments, function, n) in [
        (["short-threads", "4000"], "one_block", 4000.0),
        (["to-nothing", "100000"], "to_nothing", 100_000.0),
    ] {
        for rate in [0.5, 0.1, 0.01] {
            let outcome = Record::new(program()).args(arguments).flag(format!("--allocs={rate}")).run();
            let counts = allocations_below(&outcome.recording(), function);
            // Each recorded one counts as 1 / rate.
            let error = f64::sqrt(n * (1.0 - rate) / rate);
            let off = (counts.count as f64 - n) / error;
            assert!(off.abs() < 5.0, "{function} at {rate}: {} for {n}", counts.count);
            assert_eq!(counts.count, counts.freed_count);
        }
    }
}

#[test]
fn handlers_destructors_and_jumps() {
    for how in ["handlers", "jumping-handlers", "destructors", "longjmp", "fibres", "deep", "errno"] {
        agrees(program(), &[how]);
    }
}

/// Real programs that every machine has. Their allocations before the library's constructor are counted as well.
#[test]
fn real_programs_of_every_machine() {
    let words = "/etc/services";
    let words = if Path::new(words).exists() { words } else { "/etc/passwd" };
    agrees("/usr/bin/sort", &["--parallel=2", words]);
    agrees("/bin/grep", &["-c", "a", words]);
    agrees("/bin/sed", &["s/a/b/g", words]);
    agrees("/bin/ls", &["-l", "/usr/bin"]);
}

/// Programs that a machine may lack. At least two of them must exist.
#[test]
fn larger_real_programs() {
    let programs: [(&str, &[&str]); 5] = [
        ("/usr/bin/python3", &["-c", "import json; print(len(json.dumps(list(range(5000)))))"]),
        ("/usr/bin/perl", &["-e", "my %h; $h{$_ % 1000} .= $_ for 1..20000; print scalar(keys %h)"]),
        (
            "/usr/bin/sqlite3",
            &[":memory:", "create table t(a,b); insert into t values(1,2); select * from t;"],
        ),
        ("/usr/bin/git", &["--no-pager", "config", "--list", "--system"]),
        (
            "/usr/bin/mawk",
            &["BEGIN { for (i = 0; i < 20000; i++) n[i % 999] = n[i % 999] i; print length(n) }"],
        ),
    ];
    let here: Vec<_> = programs.iter().filter(|(program, _)| Path::new(program).exists()).collect();
    for (program, _) in programs.iter().filter(|(program, _)| !Path::new(program).exists()) {
        eprintln!("{program} is not installed");
    }
    assert!(here.len() >= 2, "this machine has too few programs");
    for (program, arguments) in here {
        eprintln!("{program}");
        agrees(program, arguments);
    }
}
