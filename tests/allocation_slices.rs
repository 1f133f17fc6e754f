//! Allocations by slice of time, of a program whose phases are known in advance: through the command, also after SIGKILL.

use serde_json::Value;
use stackglass_profile::{AllocationCounts, AllocationGroup, Recording, TimeRange};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use whole_programs::{Language, Outcome, Record, host_with, stackglass};

/// A moment between phases: ms after the start of the recording, and how many blocks each site had allocated by then.
#[derive(Clone, Copy, Debug)]
struct Moment {
    ms: u64,
    first: u64,
    second: u64,
}

fn phases(end: &str) -> Record {
    let program = host_with("phases", Language::C, &["-fno-builtin"]);
    Record::new(program).args([end]).flag("--allocs").flag("--quiet")
}

fn moments(stdout: &str, recording: &Recording) -> Vec<Moment> {
    let start = recording.info.start.0 / 1_000_000;
    let moment = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        Moment { ms: numbers[0] - start, first: numbers[1], second: numbers[2] }
    };
    stdout.lines().map(moment).collect()
}

fn allocs(file: &Path, flags: &[&str]) -> std::process::Output {
    let mut command = Command::new(stackglass());
    command.arg("allocs").arg(file).args(flags).output().expect("the command can be started")
}

/// The rows by function, and the range that was counted, in ms.
fn rows(file: &Path, from: u64, to: u64) -> (BTreeMap<String, Value>, [u64; 2]) {
    let (from, to) = (format!("{from}ms"), format!("{to}ms"));
    let output = allocs(file, &["--by", "function", "--json", "--from", &from, "--to", &to]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows").iter();
    let rows = rows.map(|row| (row["function"].as_str().expect("a name").to_owned(), row.clone())).collect();
    let ms = |key: &str| json["range"][key].as_u64().expect("a time") / 1_000_000;
    (rows, [ms("from"), ms("to")])
}

fn number(rows: &BTreeMap<String, Value>, function: &str, key: &str) -> u64 {
    rows.get(function).map_or(0, |row| row[key].as_u64().expect("a number"))
}

/// What each of the phases that have ended allocated, and no other.
fn phases_are_apart(file: &Path, moments: &[Moment]) {
    for (index, pair) in moments.windows(2).enumerate() {
        let (rows, counted) = rows(file, pair[0].ms, pair[1].ms);
        let of = |function: &str, key: &str| number(&rows, function, key);
        let (first, second) = (pair[1].first - pair[0].first, pair[1].second - pair[0].second);
        assert!(first + second > 0 || index == 2, "{moments:?}");
        assert_eq!((of("first", "count"), of("first", "bytes")), (first, 100 * first), "phase {index}");
        assert_eq!((of("second", "count"), of("second", "bytes")), (second, 3000 * second), "phase {index}");
        // What the first phase keeps lives until the third.
        let kept = if index < 2 { pair[1].first.div_ceil(10) } else { 0 };
        assert_eq!(
            (of("first", "live_count"), of("first", "live_bytes")),
            (kept, 100 * kept),
            "phase {index}"
        );
        assert_eq!(of("second", "live_bytes"), 0);
        // Whole slices count: those at the ends may be a little longer or shorter.
        for (counted, asked) in counted.into_iter().zip([pair[0].ms, pair[1].ms]) {
            assert!(counted.abs_diff(asked) < 500, "{counted} ms for {asked} ms");
        }
    }
}

/// Counts that slices have as well, by key.
fn by_key(groups: &[AllocationGroup]) -> BTreeMap<String, AllocationCounts> {
    let mut sums: BTreeMap<String, AllocationCounts> = BTreeMap::new();
    for group in groups {
        let key = format!("{:?}", AllocationGroup { counts: AllocationCounts::default(), ..*group });
        let counts = AllocationCounts { peak_count: 0, peak_bytes: 0, ..group.counts };
        sums.entry(key).or_default().add(&counts);
    }
    sums
}

/// All slices together are what is counted without them, to the byte.
fn slices_are_whole(recording: &Recording) {
    let whole = &recording.allocations;
    assert!(!whole.slices.is_empty());
    let mut all = whole.clone();
    all.keep(TimeRange::default(), &recording.info).expect("it has slices");
    assert_eq!(by_key(&all.groups), by_key(&whole.groups));
}

fn checked(outcome: &Outcome) {
    let recording = outcome.recording();
    slices_are_whole(&recording);
    let moments = moments(&outcome.stdout, &recording);
    assert_eq!(moments.len(), 4, "{}", outcome.stdout);
    phases_are_apart(&outcome.file, &moments);
}

#[test]
fn each_phase_has_its_own_allocations() {
    let outcome = phases("returns").run();
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    checked(&outcome);
    let recording = outcome.recording();
    let slices = recording.allocations.slices.slices();
    assert!(slices.iter().all(|slice| slice.length().0 >= 50_000_000), "{slices:?}");
    assert!(slices.windows(2).all(|pair| pair[0].end == pair[1].begin));
    // The head of the text says what is counted.
    let output = allocs(&outcome.file, &["--from", "1s", "--to", "2500ms"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.lines().any(|line| line.contains("counted") && line.contains("slices of time")), "{text}");
}

#[test]
fn a_killed_program_keeps_its_slices() {
    let outcome = phases("killed").run();
    assert_eq!(outcome.code(), 128 + libc::SIGKILL);
    checked(&outcome);
}

/// What is stored at the end only is missing then; it is the sum of the slices.
#[test]
fn a_killed_recorder_leaves_the_slices_so_far() {
    let running = phases("waits").start();
    while running.stdout().lines().count() < 4 {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(2));
    running.signal(libc::SIGKILL);
    let outcome = running.wait();
    let (mut recording, completeness) = outcome.read();
    assert!(!completeness.is_complete());
    recording.allocations.sum_up_slices();
    slices_are_whole(&recording);
    let moments = moments(&outcome.stdout, &recording);
    phases_are_apart(&outcome.file, &moments);
    let output = allocs(&outcome.file, &["--by", "function", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let first = rows.iter().find(|row| row["function"] == "first").expect("it has allocated");
    assert_eq!(first["bytes"].as_u64(), Some(100 * moments[3].first));
}

#[test]
fn a_range_that_no_slice_has_is_refused() {
    let outcome = Record::new("true").flag("--allocs").flag("--quiet").run();
    let late = allocs(&outcome.file, &["--from", "100s"]);
    assert!(!late.status.success());
    let said = String::from_utf8_lossy(&late.stderr).into_owned();
    assert!(
        said.contains("no allocations were recorded in this range") || said.contains("it ends after"),
        "{said}"
    );
    let live = allocs(Path::new("--pid"), &["1", "--from", "1s"]);
    let said = String::from_utf8_lossy(&live.stderr).into_owned();
    assert!(!live.status.success() && said.contains("at the end only"), "{said}");
}
