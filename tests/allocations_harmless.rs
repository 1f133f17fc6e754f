//! A program whose allocations are recorded does what it does alone: allocations at unusual moments (`hosts/allocs.c`), and the
//! programs that recording of time is tested with. Output, messages and exit status must be equal.

use stackglass_profile::{AllocationKind, Recording};
use std::path::{Path, PathBuf};
use std::time::Duration;
use whole_programs::{Compare, Equal, Language, Outcome, Record, host, host_with};

const FLAGS: [&str; 4] =
    ["-fno-builtin", "-Wno-use-after-free", "-Wno-infinite-recursion", "-Wno-alloc-size-larger-than"];

fn program() -> PathBuf {
    host_with("allocs", Language::C, &FLAGS)
}

fn compare(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Compare {
    Compare::new(program).args(arguments).flag("--allocs")
}

fn count(recording: &Recording) -> u64 {
    recording.allocations.total(AllocationKind::Block).count
}

fn lost(recording: &Recording) -> u64 {
    recording.allocations.processes.iter().map(|process| process.lost).sum()
}

/// It runs as it does alone, its output is this, and at least so many blocks are recorded.
#[track_caller]
fn unharmed(arguments: &[&str], printed: &str, blocks: u64) -> Equal {
    let equal = compare(program(), arguments).is_equal();
    equal.did(printed, 0);
    let count = count(&equal.recording);
    assert!(count >= blocks, "{count} blocks");
    equal
}

macro_rules! unharmed {
    ($($name:ident: $how:expr => $printed:literal, $blocks:literal;)*) => { $(
        #[test]
        fn $name() {
            unharmed(&$how, $printed, $blocks);
        }
    )* }
}

unharmed! {
    every_entry_point: ["entries"] => "", 1200;
    errno_is_kept: ["errno"] => "", 12_000;
    handlers: ["handlers"] => "handled 400\n", 800;
    handlers_that_jump_out: ["jumping-handlers"] => "handled 400\n", 800;
    handlers_that_jump_out_of_the_recorder: ["jumping-out"] => "jumped out\n", 1000;
    destructors_of_threads: ["destructors"] => "", 1400;
    ten_thousand_short_threads: ["short-threads", "10000"] => "10000 threads\n", 10_000;
    a_thousand_threads: ["live-threads", "1000"] => "1000 threads at a time\n", 2000;
    a_hundred_thousand_frames: ["deep"] => "100000 deep\n", 100;
    fibres_on_stacks_that_come_and_go: ["fibres"] => "8000 switches\n", 12_000;
    stacks_without_an_end: ["endless"] => "1800 runs\n", 7200;
    jumps: ["longjmp"] => "jumped\n", 46_500;
    threads_that_are_canceled: ["cancel"] => "200 canceled\n", 200;
    the_end_of_memory: ["no-memory"] => "memory ended and came back\n", 100;
    settings_of_the_allocator: ["settings"] => "in use 720\n", 4;
    locked_memory: ["locked"] => "mlockall 0\nmunlockall 0\n", 64;
}

#[test]
fn children_of_every_kind() {
    let printed = "child 40\nchild 41\nchild 42\nvfork 0\nposix_spawn 5\nsystem 6\nexec 7\ngrandchild 8\n";
    let equal = unharmed(&["children"], printed, 10_000);
    let recorded = &equal.recording.allocations.processes;
    assert!(recorded.len() >= 4, "children have tables of their own: {}", recorded.len());
}

#[test]
fn children_of_a_program_with_threads() {
    unharmed(&["forks"], "200 children ended well\n", 200);
}

/// A thread in strict mode may make almost no system calls, and the recorder makes none for it. Its allocations are lost, and that
/// is said.
#[test]
fn a_thread_in_strict_mode() {
    let equal = unharmed(&["confined"], "strict thread lives\n", 1);
    assert_eq!(lost(&equal.recording), 10_000);
}

#[test]
fn a_program_that_closes_every_descriptor() {
    let equal = compare(program(), &["closed"]).is_equal();
    assert!(count(&equal.recording) >= 5000);
}

#[test]
fn libraries_at_the_same_address() {
    let [first, second] = ["first", "second"].map(library);
    let equal =
        compare(program(), &["libraries", &first.to_string_lossy(), &second.to_string_lossy()]).is_equal();
    equal.did("opened and closed\n", 0);
    for name in ["first_makes", "second_makes"] {
        let recording = &equal.recording;
        let groups = recording.allocations.groups.iter().filter(|group| {
            let mut locations = recording.stacks.walk(group.stack);
            locations.any(|at| recording.symbols.frames_of(at).any(|frame| &*frame.func == name))
        });
        let count: u64 = groups.map(|group| group.counts.count).sum();
        assert_eq!(count, 500, "{name}");
    }
}

fn library(name: &str) -> PathBuf {
    host_with("makes", Language::C, &["-shared", "-fPIC", &format!("-DNAME={name}")])
}

#[test]
fn an_allocation_needs_little_stack() {
    let first = library("first");
    unharmed(&["stack-use", &first.to_string_lossy()], "within 8 KiB\nwithin 8 KiB\n", 2);
}

#[test]
fn another_allocator() {
    let jemalloc = Path::new("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2");
    let others = if jemalloc.exists() { vec![None, Some(jemalloc)] } else { vec![None] };
    for other in others {
        let of =
            |how: &[&str]| compare(program(), how).variable("LD_PRELOAD", other.unwrap_or(Path::new("")));
        let equal = of(&["tiny"]).is_equal();
        let total = equal.recording.allocations.total(AllocationKind::Block);
        assert!(total.count >= 9000 && total.live_count() <= 2, "{total:?} with {other:?}");
        let equal = of(&["exchange", "50000"]).is_equal();
        let total = equal.recording.allocations.total(AllocationKind::Block);
        assert!(total.count >= 200_000 && total.live_count() <= 8, "{total:?} with {other:?}");
    }
    if !jemalloc.exists() {
        eprintln!("libjemalloc2 is not installed");
    }
}

/// Tables that are soon full: stacks and threads get lost, blocks do not, and all of it is said.
#[test]
fn full_tables() {
    let equal =
        compare(program(), &["short-threads", "2000"]).variable("STACKGLASS_TEST_TABLES", "tiny").is_equal();
    let recording = &equal.recording;
    assert_eq!(count(recording) + lost(recording), 2002, "{} lost", lost(recording));
    let script = "import json; x = json.loads(json.dumps([[i, str(i)] for i in range(3000)])); print(len(x))";
    let python = compare("/usr/bin/python3", &["-c", script]).variable("STACKGLASS_TEST_TABLES", "tiny");
    if Path::new("/usr/bin/python3").exists() {
        let equal = python.is_equal();
        assert!(equal.recording.allocations.processes[0].without_stack > 0);
    }
}

/// As on kernels that cannot be asked for single pages.
#[test]
fn small_tables_that_are_reserved_at_once() {
    let equal = compare(program(), &["entries"]).variable("STACKGLASS_TEST_TABLES", "small").is_equal();
    assert_eq!(count(&equal.recording), 1200);
}

fn outcome(flags: &[&str], arguments: &[&str]) -> Outcome {
    let run = Record::new(program()).args(arguments);
    flags.iter().fold(run, |run, flag| run.flag(flag)).run()
}

#[test]
fn blocks_from_before_the_recording() {
    let outcome = outcome(&["--allocs", "--delay-start=300ms"], &["older"]);
    outcome.program_did("ready\n", 0);
    let recording = outcome.recording();
    let total = recording.allocations.total(AllocationKind::Block);
    // 500 reallocations, 500 blocks of 50 bytes. Older blocks have no record, and their ends neither.
    assert_eq!((total.count, total.bytes), (1000, 500 * 200 + 500 * 50));
    assert_eq!(total.freed_count, 1000);
}

#[test]
fn rates_and_durations() {
    let count_of = |flag: &str| count(&outcome(&[flag, "--quiet"], &["exchange", "50000"]).recording());
    let tenth = count_of("--allocs=0.1");
    assert!((185_000..215_000).contains(&tenth), "an estimate of 200 000 by a tenth of them: {tenth}");
    let estimate = count_of("--allocs=64KiB");
    assert!((140_000..260_000).contains(&estimate), "an estimate of 200 000: {estimate}");
    let none = count_of("--allocs=0");
    assert_eq!(none, 0);

    let outcome = outcome(&["--allocs", "--no-time", "--duration=200ms"], &["older"]);
    outcome.program_did("ready\n", 0);
    let recording = outcome.recording();
    assert!(recording.samples.is_empty(), "no samples of time");
    assert!((1000..1010).contains(&count(&recording)), "only what was allocated in that time");
}

#[test]
fn without_children() {
    let outcome = outcome(&["--allocs", "--no-children"], &["children"]);
    assert_eq!(outcome.code(), 0);
    assert_eq!(outcome.recording().allocations.processes.len(), 1);
}

#[test]
fn a_killed_program_has_its_counts_until_then() {
    let running = Record::new("sh")
        .args(["-c", &format!("{} waits & sleep 0.5; kill -9 $!; wait", program().display())])
        .flag("--allocs")
        .start();
    let outcome = running.wait();
    let recording = outcome.recording();
    let total = recording.allocations.total(AllocationKind::Block);
    assert!(total.live_bytes() >= 1_000_000, "{total:?}");
}

#[test]
fn an_interrupted_recording_is_complete() {
    let running = Record::new(program()).args(["waits"]).flag("--allocs").start();
    while !running.stdout().contains("ready") {
        std::thread::sleep(Duration::from_millis(10));
    }
    running.signal(libc::SIGTERM);
    let outcome = running.wait();
    assert_eq!(outcome.code(), 128 + libc::SIGTERM);
    let total = outcome.recording().allocations.total(AllocationKind::Block);
    assert!(total.live_bytes() >= 1_000_000, "{total:?}");
}

/// The program goes on without its launcher.
#[test]
fn a_killed_launcher_harms_no_one() {
    let folder = whole_programs::Folder::new();
    let done = folder.path().join("done");
    let script = format!(
        "{} short-threads 3000 > /dev/null; sleep 0.3; {} entries; echo $? > {}",
        program().display(),
        program().display(),
        done.display()
    );
    let running = Record::new("sh").args(["-c", &script]).flag("--allocs").start();
    std::thread::sleep(Duration::from_millis(100));
    running.signal(libc::SIGKILL);
    // However long it takes: a program that never ends is a test that does not end, and has failed.
    let status = loop {
        match std::fs::read_to_string(&done).unwrap_or_default() {
            text if text.ends_with('\n') => break text,
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    assert_eq!(status, "0\n", "the program has not ended well");
}

#[test]
fn limits_on_files_and_memory() {
    for limit in
        ["ulimit -f 20000; exec \"$@\"", "ulimit -v 1000000; exec \"$@\"", "ulimit -n 4; exec \"$@\""]
    {
        let script = format!("exec sh -c '{limit}' sh {} entries", program().display());
        let equal = compare("sh", &["-c", &script]).is_equal();
        equal.did("", 0);
    }
}

/// The programs that recording of time is tested with.
#[test]
fn programs_of_the_other_tests() {
    let programs: [(&str, &[&str]); 14] = [
        ("leaving", &["alone"]),
        ("leaving", &["first"]),
        ("leaving", &["first-group"]),
        ("leaving", &["bare"]),
        ("leaving", &["child-raw"]),
        ("loading", &["300"]),
        ("kernel", &["tsync"]),
        ("kernel", &["strict"]),
        ("kernel", &["filter"]),
        ("kernel", &["newuser"]),
        ("fibres", &[]),
        ("borrowed", &["exec"]),
        ("borrowed", &["exit"]),
        ("single", &[]),
    ];
    for (name, arguments) in programs {
        eprintln!("{name} {arguments:?}");
        compare(host(name, Language::C), arguments).is_equal();
    }
}

#[test]
fn programs_that_use_signals_and_processes() {
    let programs: [(&str, &[&str]); 4] =
        [("signals", &["own"]), ("signals", &["alternate"]), ("processes", &[]), ("execs", &["30"])];
    for (name, arguments) in programs {
        eprintln!("{name} {arguments:?}");
        compare(host(name, Language::C), arguments).is_equal();
    }
}

/// The sanitizer's library must not mind that it is not the first one.
#[test]
fn a_program_with_a_sanitizer() {
    let program = host_with("ends", Language::C, &["-fsanitize=address"]);
    compare(program, &["exit"]).is_equal().did("working\n", 3);
}

/// The C library's allocator bears calls with a stack that is not aligned, and so does the recorder. Its stacks are whole.
#[test]
fn stacks_that_are_not_aligned() {
    let equal = compare(host("misaligned", Language::C), &[]).is_equal();
    equal.did("every entry, every misalignment\n", 0);
    let recording = &equal.recording;
    let mut whole = 0;
    for group in &recording.allocations.groups {
        let mut locations = recording.stacks.walk(group.stack);
        let starts = |name: &str| ["main", "first"].contains(&name);
        let is_whole = locations.any(|at| recording.symbols.frames_of(at).any(|frame| starts(&frame.func)));
        whole += if is_whole { group.counts.count } else { 0 };
    }
    // 100 rounds of 16 misalignments at 10 entries, and 41 stacks in each of 16 threads.
    assert!(whole >= 100 * 16 * 10 + 16 * 41, "{whole}");
}

/// Time is recorded where allocations cannot be, and one line says so.
#[test]
fn programs_without_recorded_allocations() {
    let fixed = host_with("allocs", Language::C, &["-static", FLAGS[0], FLAGS[1], FLAGS[2], FLAGS[3]]);
    // Optimised, its `free` is a single `ret`, too short for a jump to the recorder.
    let own = host_with("own_malloc", Language::C, &["-rdynamic", "-O2"]);
    let cases: [(&Path, &str, i32, &str); 2] =
        [(&fixed, "entries", 0, "is statically linked"), (&own, "", 0, "defines malloc itself")];
    for (program, how, code, why) in cases {
        let outcome = Record::new(program).args([how]).flag("--allocs").run();
        assert_eq!(outcome.code(), code, "{}", outcome.stderr);
        let lines = outcome.lines_about(why);
        let lines: Vec<_> = lines.into_iter().filter(|line| line.starts_with("stackglass: ")).collect();
        assert_eq!(lines.len(), 1, "one line about it: {}", outcome.stderr);
        assert!(lines[0].contains(why), "{}", outcome.stderr);
        let recording = outcome.recording();
        assert!(
            recording.info.remarks.iter().any(|remark| remark.contains(why)),
            "{:?}",
            recording.info.remarks
        );
    }
}
