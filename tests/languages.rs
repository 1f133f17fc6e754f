//! Programs in Rust, C++, Python and node. (The other tests use C.)

use stackglass_report::call_tree::StateFilter;
use stackglass_report::{HotKey, HotRow, HotTable, Selection};
use whole_programs::{Language, Record, host};

#[test]
fn rust() {
    let outcome = Record::new(host("plain", Language::Rust)).run();
    outcome.program_did("20 panics caught\n", 11);
    outcome.seen("plain").is_true(600).has_share("rust_work", 0.9, 1.0).has_share("panicking_work", 0.1, 0.4);
}

#[test]
fn cpp() {
    let outcome = Record::new(host("objects", Language::Cpp)).run();
    outcome.program_did("all caught\ndestroyed\n", 9);
    outcome.seen("objects").is_true(500).has_share("sell", 0.9, 1.0);
    // The map's code is inlined; its headers are no lines of the program.
    let mut recording = outcome.recording();
    Selection::new(StateFilter::Awake).keep_in(&mut recording);
    let lines = HotTable::new(recording, HotKey::Line, StateFilter::Awake);
    let has_time = |part: &str| lines.rows.iter().any(|row: &HotRow| row.own > 0 && row.name.contains(part));
    assert!(has_time("/hosts/objects.cpp:") && !has_time("/c++/"), "{:?}", lines.rows);
}

const PYTHON: &str = "
import subprocess, sys, threading
def work(n):
    x = 1
    for i in range(n):
        x = (x * 31 + i) % 1000003
    return x
threads = [threading.Thread(target=work, args=(1500000,)) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
child = subprocess.run([sys.executable, '-c', 'print(sum(range(3000000)))'], capture_output=True, text=True)
print(work(1000), child.stdout.strip(), child.stderr.strip())
sys.exit(13)
";

#[test]
fn python() {
    let alone =
        std::process::Command::new("python3").args(["-c", PYTHON]).output().expect("python3 is there");
    let outcome = Record::new("python3").args(["-c", PYTHON]).run();
    outcome.program_did(&String::from_utf8_lossy(&alone.stdout), 13);
    let recording = outcome.recording();
    let pythons: Vec<_> =
        recording.processes.iter().filter(|process| process.exe.contains("python")).collect();
    assert!(pythons.len() >= 2, "the child is followed: {pythons:#?}");
    let hits: u64 = recording.samples.iter().map(|sample| u64::from(sample.hits)).sum();
    assert!(hits > 100, "{hits} hits");
}

#[test]
fn functions_of_an_interpreter_have_names_and_callers() {
    let outcome = Record::new(host("trampoline", Language::C)).run();
    outcome.program_did("done\n", 0);
    let recording = outcome.recording();
    let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", recording.processes[0].pid));
    let mut folded = Vec::new();
    stackglass_files::folded::write_to(&mut folded, &recording).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    let (mut all, mut complete) = (0.0, 0.0);
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let count: f64 = count.parse().unwrap();
        all += count;
        let whole =
            stack.contains(";main;outer;") && stack.contains("interpreted") && stack.contains(";work");
        complete += if whole { count } else { 0.0 };
    }
    assert!(complete > 0.9 * all, "{complete} of {all}:\n{folded}");
}

const NODE: &str = "
const { Worker, isMainThread } = require('worker_threads');
function work(n) { let x = 1; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }
const w = new Worker(`let x = 1; for (let i = 0; i < 3e7; i++) x = (x * 31 + i) % 1000003;
  require('worker_threads').parentPort.postMessage(x)`, { eval: true });
w.on('message', m => console.log('worker', m));
w.on('exit', () => { console.log(work(3e7), 'done'); process.exit(14); });
";

#[test]
fn node() {
    let alone = std::process::Command::new("node").args(["-e", NODE]).output().expect("node is there");
    let outcome = Record::new("node").args(["-e", NODE]).run();
    outcome.program_did(&String::from_utf8_lossy(&alone.stdout), 14);
    let recording = outcome.recording();
    let hits: u64 = recording.samples.iter().map(|sample| u64::from(sample.hits)).sum();
    assert!(hits > 100, "{hits} hits");
    outcome.print();
}

/// The loader of another C library gets the preload library by the environment, and must not refuse the program.
#[test]
#[ignore = "long: needs musl-gcc (Debian: musl-tools)"]
fn a_child_linked_to_musl_runs_as_it_does_alone() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("ends");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/hosts/ends.c");
    let built = std::process::Command::new("musl-gcc").args(["-O1", "-o"]).arg(&program).arg(source).status();
    assert!(built.is_ok_and(|status| status.success()), "musl-gcc: apt-get install musl-tools");
    let script = format!("{} return && echo well", program.display());
    Record::new("sh").args(["-c", &script]).run().program_did("working\nwell\n", 0);
}
