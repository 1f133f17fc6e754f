//! Long recordings: what reading one takes grows with its distinct stacks, not with its samples.

use crate::memory::peak;
use crate::support::*;
use stackglass_files::{Completeness, GlassWriter, read, read_merged, read_tables};
use std::path::Path;

const STACKS: u64 = 4000;

/// Writes `samples` samples of the same stacks, in rounds, as a recorder that keeps none of them; returns the
/// memory it took.
fn write(path: &Path, samples: u64, finish: bool) -> usize {
    let mut recording = beginning("prog");
    let process = Step::Process { pid: 1, exe: "x".into(), arguments: vec![], start: 0, forked: false };
    apply(&mut recording, &process);
    for tid in 0..3 {
        apply(&mut recording, &Step::Thread { process: 0, tid, name: "t".into(), start: 0 });
    }
    let mut writer = GlassWriter::create(path, &recording.info).unwrap();
    let grow = || {
        for n in 0..samples {
            let leaf = n * 2_654_435_761 % STACKS;
            let stack = vec![(9, leaf), (9, leaf / 50), (9, 0)];
            let (task, tick, state, cut, hits) = (0, 1000 * n, 1, None, 1);
            let time = 900_000 + n * n % 200_000;
            apply(&mut recording, &Step::Sample { stack, thread: 0, task, tick, state, cut, hits, time });
            if n % 10_000 == 9_999 {
                writer.append(&recording).unwrap();
                writer.forget_samples();
                recording.samples.clear();
            }
        }
        if finish {
            writer.finish(&recording).unwrap();
        } else {
            writer.append(&recording).unwrap();
        }
    };
    peak(grow).1
}

#[test]
fn memory_does_not_grow_with_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.glass");
    let mut before = None;
    for (samples, finish) in [(100_000, true), (1_000_000, true), (1_000_000, false)] {
        let writing = write(&path, samples, finish);
        let ((merged, completeness), merging) = peak(|| read_merged(&path, |_, _| {}).unwrap());
        let hits: u64 = merged.samples.iter().map(|s| u64::from(s.hits)).sum();
        assert_eq!((hits, merged.samples.len() as u64), (samples, STACKS));
        assert_eq!(completeness.is_complete(), finish);
        let ((_, _, totals), tables) = peak(|| read_tables(&path, |_, _| {}).unwrap());
        assert_eq!((totals.hits, totals.rows), (samples, samples));
        let ((whole, _), all) = peak(|| read(&path).unwrap());
        assert_eq!(whole.samples.len() as u64, samples);
        let size = path.metadata().unwrap().len();
        println!(
            "{samples} samples, {size} bytes: {writing} writing, {merging} merged, {tables} without, {all} all"
        );
        // One chunk, packed and unpacked, and the tables.
        assert!(merging < 5 << 20 && tables < 5 << 20, "{merging} {tables}");
        if let Some((writing_before, merging_before)) = before {
            assert!(merging < merging_before + (1 << 20), "{merging}, with fewer samples {merging_before}");
            assert!(writing < writing_before + (1 << 20), "{writing}, with fewer samples {writing_before}");
            assert!(all > 4 * merging, "else this proves nothing: {all} and {merging}");
        }
        before.get_or_insert((writing, merging));
    }
}

#[test]
fn samples_that_were_let_go_of_are_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (grown, pieces) = (folder.path().join("grown.glass"), folder.path().join("pieces.glass"));
    let mut recording = beginning("prog");
    let process = Step::Process { pid: 1, exe: "x".into(), arguments: vec![], start: 0, forked: false };
    apply(&mut recording, &process);
    apply(&mut recording, &Step::Thread { process: 0, tid: 1, name: "t".into(), start: 0 });
    let mut kept = recording.clone();
    let mut writer = GlassWriter::create(&pieces, &recording.info).unwrap();
    for n in 0..500 {
        // Runs of the same stack, of which some go over the moments at which something is let go of.
        let stack = vec![(9, n / 7)];
        let (task, tick, state, cut, hits, time) = (0, n, 1, None, 1, n * 3);
        let step = Step::Sample { stack, thread: 0, task, tick, state, cut, hits, time };
        apply(&mut recording, &step);
        apply(&mut kept, &step);
        if n % 11 == 0 {
            writer.append(&recording).unwrap();
        }
        if n % 33 == 0 {
            writer.forget_samples();
            recording.samples.clear();
        }
    }
    end(&mut recording, 3);
    end(&mut kept, 3);
    let totals = writer.finish(&recording).unwrap();
    stackglass_files::write(&grown, &kept).unwrap();
    let (read_back, completeness) = read(&pieces).unwrap();
    assert_eq!(completeness, Completeness::Complete(totals));
    assert_same(&read_back, &kept);
    assert_same(&read(&grown).unwrap().0, &kept);
}
