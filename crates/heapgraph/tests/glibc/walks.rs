//! Every block, with its size, and no other.

use super::process::{Tools, source};
use super::support::{Process, build, run};
use stackglass_heapgraph::blocks::glibc::live_blocks;
use stackglass_procfs::clock::thread_cpu;
use std::process::Command;

#[test]
fn c_with_many_arenas() {
    let tools = Tools::build();
    let heap = tools.compare(Command::new(tools.c("many.c")).args(["7", "60000"]));
    let report = &heap.report;
    assert!(heap.blocks.len() > 50_000, "{}", heap.blocks.len());
    assert!(report.arenas > 4 && report.caches == 8 && report.fast_chunks > 0, "{report:#?}");
    assert_eq!(report.mapped.agree(), Some(true), "{report:#?}");
    assert!(report.is_complete() && report.remarks().is_empty(), "{report:#?}");
}

#[test]
fn c_with_one_thread() {
    let tools = Tools::build();
    let heap = tools.compare(Command::new(tools.c("many.c")).args(["0", "200000"]));
    assert!(heap.report.is_complete() && heap.report.caches == 1, "{:#?}", heap.report);
}

#[test]
fn settings_of_malloc() {
    with_settings(&["tcache_count=0", "arena_max=2", "mmap_threshold=4096", "mxfast=160"]);
}

#[test]
#[ignore = "long: six more runs"]
fn more_settings_of_malloc() {
    with_settings(&[
        "tcache_count=500",
        "tcache_max=4000",
        "mmap_max=0",
        "mxfast=0",
        "top_pad=0",
        "perturb=85",
    ]);
}

fn with_settings(settings: &[&str]) {
    let tools = Tools::build();
    let program = tools.c("many.c");
    for setting in settings {
        let mut command = Command::new(&program);
        let heap = tools
            .compare(command.args(["3", "20000"]).env("GLIBC_TUNABLES", format!("glibc.malloc.{setting}")));
        assert_eq!(heap.report.mapped.agree(), Some(true), "{setting}: {:#?}", heap.report);
        assert!(heap.report.is_complete(), "{setting}: {:#?}", heap.report);
    }
}

#[test]
fn main_heap_in_pieces() {
    let tools = Tools::build();
    let program = tools.c("pieces.c");
    for (how, pieces) in [("early", 3), ("sbrk", 3), ("blocked", 1)] {
        let heap = tools.compare(Command::new(&program).arg(how));
        assert!(heap.report.pieces >= pieces, "{how}: {:#?}", heap.report);
        assert!(heap.report.is_complete(), "{how}: {:#?}", heap.report);
    }
}

#[test]
fn rust_with_four_threads() {
    let tools = Tools::build();
    let program = build(tools.folder.path(), &source("known.rs"), "rustc", &["--edition=2024", "-O"]);
    let heap = tools.compare(&mut Command::new(program));
    assert!(heap.blocks.len() > 30_000 && heap.report.is_complete(), "{:#?}", heap.report);
}

#[test]
fn python_with_malloc() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let tools = Tools::build();
    let program = "import sys, time\nx = [{'a': str(n), 'b': [n] * (n % 50)} for n in range(20000)]\n\
                   print('ready')\nsys.stdout.flush()\ntime.sleep(1000)";
    // A version manager starts the interpreter by a script.
    let python = run(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]));
    let heap = tools.compare(Command::new(python.trim()).args(["-c", program]).env("PYTHONMALLOC", "malloc"));
    assert!(heap.blocks.len() > 80_000 && heap.report.is_complete(), "{:#?}", heap.report);
}

/// Time and memory. A build for tests is slower than a user's.
#[test]
fn a_million_blocks() {
    let tools = Tools::build();
    let process = Process::start(&mut Command::new(tools.c("million.c")), &tools.registers);
    process.stop();
    let image = process.image();
    let begin = thread_cpu();
    let (heap, peak) = super::memory::peak(|| live_blocks(&image).unwrap());
    // The walk runs on this thread. What other programs take of the machine does not count.
    let time = std::time::Duration::from_nanos(thread_cpu() - begin);
    let count = heap.blocks.len();
    eprintln!("{count} blocks in {time:?}, {:.1} bytes each", peak as f64 / count as f64);
    assert!(count >= 1_000_000 && heap.report.is_complete(), "{:#?}", heap.report);
    assert!(time < std::time::Duration::from_secs(2), "{time:?}");
    assert!(peak <= 24 * count + (8 << 20), "{peak} bytes for {count} blocks");
}

/// A thread has been stopped between the two heads that it writes for a split.
#[test]
fn chunk_that_is_being_split() {
    let tools = Tools::build();
    for (how, changing, gaps) in [("free", 1, 0), ("joined", 1, 0), ("used", 0, 1), ("damage", 0, 1)] {
        let process = Process::start(Command::new(tools.c("split.c")).arg(how), &tools.registers);
        process.stop();
        let heap = live_blocks(&process.image()).unwrap();
        let report = &heap.report;
        assert_eq!((report.changing, report.gap_count), (changing, gaps), "{how}: {report:#?}");
        // The chunks around it.
        let around: Vec<_> = heap.blocks.iter().filter(|(_, size)| *size == 7000).collect();
        assert_eq!(around.len(), 2, "{how}: {around:?}");
    }
}

#[test]
fn images_amid_allocations() {
    amid_allocations(6);
}

#[test]
#[ignore = "long: 40 images"]
fn many_images_amid_allocations() {
    amid_allocations(40);
}

/// Stopped amid `malloc` and `free` on all threads, so many times.
fn amid_allocations(images: u32) {
    let tools = Tools::build();
    let program = tools.c("many.c");
    let process = Process::start(Command::new(program).args(["4", "3000", "forever"]), &tools.registers);
    for _ in 0..images {
        process.stop();
        let heap = live_blocks(&process.image()).unwrap();
        let report = &heap.report;
        assert_eq!((report.gap_count, report.broken_lists, report.broken_arenas), (0, 0, 0), "{report:#?}");
        assert!(heap.blocks.addresses.is_sorted() && heap.blocks.len() > 1000);
        process.signal("-CONT");
        std::thread::sleep(std::time::Duration::from_millis(3));
    }
}

/// Linked without a dynamic linker, and its own recorder.
#[test]
fn static_program() {
    let tools = Tools::build();
    let recorder = source("recorder.c");
    let flags = ["-O2", "-pthread", "-static", "-Wl,--allow-multiple-definition", recorder.to_str().unwrap()];
    let program = build(tools.folder.path(), &source("many.c"), "gcc", &flags);
    let heap = tools.compare(Command::new(program).args(["3", "30000"]));
    assert!(heap.report.is_complete(), "{:#?}", heap.report);
}

#[test]
fn another_allocator_is_named() {
    let tools = Tools::build();
    let program = tools.c("own.c");
    let process = Process::start(&mut Command::new(&program), &tools.registers);
    process.stop();
    let error = live_blocks(&process.image()).unwrap_err();
    let program = program.canonicalize().unwrap();
    let expected = format!(
        "process {} has no blocks of glibc's malloc; it contains mimalloc ({})",
        process.pid(),
        program.display()
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
}
