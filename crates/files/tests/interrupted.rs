//! Recorders that do not reach their end: killed at any moment, or with a disk that is full.
//!
//! This program runs itself as the recorder: it grows a recording by a fixed rule, and says on
//! stdout what was flushed. Each sample has one hit, so that the hits in the file tell how far
//! the rule had gone, and the rest is compared with the rule.

#[path = "support/mod.rs"]
mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use stackglass_files::{Completeness, GlassWriter, WriteError, read};
use stackglass_profile::Recording;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;
use support::*;

/// Samples between two flushes.
const FLUSH_EVERY: u64 = 50;

/// Bytes the recorder's disk has in the test of the full one.
const DISK: u64 = 60_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "record", path] => record_until_killed(Path::new(path)),
        [_, "record-on-full-disk", path] => record_on_full_disk(Path::new(path)),
        _ => libtest_mimic::run(
            &Arguments::from_args(),
            vec![
                Trial::test("killed_at_random_moments", killed_at_random_moments),
                Trial::test("a_full_disk_loses_nothing_that_was_written", full_disk),
            ],
        )
        .exit_code(),
    }
}

/// The rule: what happens at sample `n`.
fn grow(recording: &mut Recording, n: u64) {
    if n == 0 {
        let arguments = vec!["prog".into()];
        apply(
            recording,
            &Step::Process { pid: 1, exe: "/bin/prog".into(), arguments, start: 0, forked: false },
        );
    }
    if n.is_multiple_of(1000) && n / 1000 < 8 {
        apply(recording, &Step::Thread { process: 0, tid: n as u32, name: format!("worker {n}"), start: n });
        apply(recording, &Step::Module { path: format!("/lib/{n}.so"), build_id: vec![n as u8; 20] });
    }
    let mix = (n / 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let sample = Step::Sample {
        stack: vec![(0, mix % 5000), (0, mix % 400), (9, mix % 20)],
        thread: (mix % 8) as usize,
        task: 0,
        tick: n * 1_000_000,
        state: (mix % 2 + 1) as u8,
        cut: None,
        hits: 1,
        time: 1_000_000 + mix % 1000,
    };
    // Every third makes a new entry; the others are merged into the last.
    apply(recording, &sample);
}

fn grown(samples: u64) -> Recording {
    let mut recording = beginning("prog");
    (0..samples).for_each(|n| grow(&mut recording, n));
    recording
}

fn say(what: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}").and_then(|()| out.flush()).expect("the test reads what the recorder says");
}

fn record_until_killed(path: &Path) -> ExitCode {
    let mut recording = beginning("prog");
    let mut writer = GlassWriter::create(path, &recording.info).expect("the recording can be made");
    for n in 0.. {
        grow(&mut recording, n);
        if n % FLUSH_EVERY == 0 {
            writer.append(&recording).expect("the disk is not full");
            say(n + 1);
        }
    }
    ExitCode::FAILURE
}

/// A recorder that does not outlive its test, however that ends.
struct Recorder(Child);

impl Drop for Recorder {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(how: &str, path: &Path) -> Recorder {
    // Beyond its limit on file sizes a program gets a signal first; a full disk sends none.
    let child = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; exec "$0" "$1" "$2""#])
        .arg(std::env::current_exe().expect("this program has a path"))
        .arg(how)
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    Recorder(child.expect("sh starts this program"))
}

/// Compares a file with the rule; returns how many samples it holds.
fn check(path: &Path, flushed: u64) -> u64 {
    let (read, completeness) = read(path).expect("it is readable");
    assert!(matches!(completeness, Completeness::Incomplete { .. }), "{completeness}");
    let hits = read.samples.iter().map(|s| u64::from(s.hits)).sum();
    assert!(hits >= flushed, "{flushed} samples were flushed, {hits} are there");
    let right = grown(hits);
    assert_eq!(read.samples, right.samples);
    assert_eq!(read.stacks.nodes()[..right.stacks.nodes().len()], right.stacks.nodes()[..]);
    assert_eq!(read.info, stackglass_profile::RecordingInfo { wall: read.info.wall, ..right.info });
    hits
}

fn killed_at_random_moments() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut random = RandomState::new().hash_one(0);
    let mut lengths = Vec::new();
    for round in 0..100 {
        let path = folder.path().join(format!("{round}.glass"));
        let mut child = start("record", &path);
        let mut said = BufReader::new(child.0.stdout.take().expect("piped"));
        let mut line = String::new();
        said.read_line(&mut line)?;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // The recorder blocks when nobody reads what it says, hence a separate reader.
        let reader = std::thread::spawn(move || {
            let mut rest = String::new();
            said.read_to_string(&mut rest).map(|_| rest)
        });
        std::thread::sleep(Duration::from_micros(random >> 32 & 0x3fff));
        drop(child);
        line.push_str(&reader.join().expect("the reader does not panic")?);
        let whole = &line[..line.rfind('\n').map_or(0, |at| at + 1)];
        let flushed = whole.lines().last().expect("one line at least").parse()?;
        lengths.push(check(&path, flushed));
        std::fs::remove_file(&path)?;
    }
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 20, "killed at different moments: {lengths:?}");
    Ok(())
}

/// Records until the disk is full, says so, waits for it to be cleared, goes on, and finishes.
fn record_on_full_disk(path: &Path) -> ExitCode {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit =
        |current| setrlimit(Resource::Fsize, Rlimit { current, maximum }).expect("limits can be lowered");
    limit(Some(DISK));
    let mut recording = beginning("prog");
    let mut writer = GlassWriter::create(path, &recording.info).expect("the recording can be made");
    let mut full = 0;
    for n in 0..10_000 {
        grow(&mut recording, n);
        if n % FLUSH_EVERY != 0 {
            continue;
        }
        match writer.append(&recording) {
            Ok(()) if full < 3 => say(n + 1),
            Ok(()) => {}
            Err(WriteError::Write { kept, .. }) if kept != writer.bytes() => say("a wrong size"),
            // Three times in vain, then there is room again.
            Err(error) => {
                full += 1;
                say(format_args!("full: {error}"));
                let mut line = String::new();
                std::io::stdin().read_line(&mut line).expect("the test answers");
                if full == 3 {
                    limit(maximum);
                }
            }
        }
    }
    writer.finish(&recording).expect("there is room again");
    ExitCode::SUCCESS
}

fn full_disk() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("x.glass");
    let mut child = start("record-on-full-disk", &path);
    let mut answer = child.0.stdin.take().expect("piped");
    let (mut flushed, mut full) = (0, 0);
    for line in BufReader::new(child.0.stdout.take().expect("piped")).lines() {
        let line = line?;
        match line.strip_prefix("full: ") {
            None => flushed = line.parse()?,
            Some(error) => {
                full += 1;
                assert!(error.contains("stay readable; raise the limit (ulimit -f)"), "{error}");
                let size = path.metadata()?.len();
                assert!(size <= DISK && size > DISK / 2, "{size}");
                assert!(
                    error.contains(&format!("its first {size} bytes are kept")),
                    "{error} but has {size}"
                );
                assert_eq!(check(&path, flushed), flushed);
                answer.write_all(b"go on\n")?;
            }
        }
    }
    assert!(child.0.wait()?.success());
    assert_eq!(full, 3);
    let (whole, completeness) = read(&path)?;
    assert!(completeness.is_complete(), "{completeness}");
    assert_same(&whole, &grown(10_000));
    Ok(())
}
