//! What a recording says besides its samples is read without them, by the index.

use crate::support::*;
use proptest::prelude::*;
use stackglass_files::{Completeness, GlassReader, GlassWriter, read, read_tables};
use std::fs;

proptest! {
    #[test]
    fn all_but_the_samples(steps in steps(), seed: u64, damage: Option<prop::sample::Index>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.glass");
        let mut recording = beginning("prog");
        let mut writer = GlassWriter::create(&path, &recording.info).unwrap();
        grow(&mut writer, &mut recording, &steps);
        end(&mut recording, seed);
        writer.finish(&recording).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        if let Some(damage) = damage {
            let at = damage.index(bytes.len() - 16) + 16;
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
        }
        let (tables, completeness, totals) = read_tables(&path, |_, _| {}).unwrap();
        let (mut whole, its_completeness) = read(&path).unwrap();
        // Damage in a chunk of samples, or behind the end, goes unseen by one of the two.
        if its_completeness.is_complete() || !completeness.is_complete() {
            prop_assert_eq!(completeness, its_completeness);
            prop_assert!(tables.samples.is_empty());
            let mut reader = GlassReader::open(&path).unwrap();
            while reader.step(&mut |_| {}).unwrap() {}
            prop_assert_eq!(totals, reader.counted());
            whole.samples.clear();
            assert_same(&tables, &whole);
        }
    }
}

#[test]
fn samples_are_not_even_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.glass");
    let mut recording = beginning("prog");
    apply(
        &mut recording,
        &Step::Process { pid: 1, exe: "x".into(), arguments: vec![], start: 0, forked: false },
    );
    apply(&mut recording, &Step::Thread { process: 0, tid: 1, name: "t".into(), start: 0 });
    for n in 0..1000 {
        let stack = vec![(9, n % 10)];
        let (task, tick, state, cut, hits, time) = (0, n, 1, None, 1, n * n % 77);
        apply(&mut recording, &Step::Sample { stack, thread: 0, task, tick, state, cut, hits, time });
    }
    let totals = stackglass_files::write(&path, &recording).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let samples = bytes.windows(4).position(|tag| tag == b"SAMP").unwrap();
    bytes[samples + 20..samples + 60].fill(0xaa);
    fs::write(&path, &bytes).unwrap();
    assert!(!read(&path).unwrap().1.is_complete());
    let (tables, completeness, counted) = read_tables(&path, |_, _| panic!("there is an index")).unwrap();
    assert_eq!(completeness, Completeness::Complete(totals));
    assert_eq!((totals.rows, totals.hits), (1000, 1000));
    assert_eq!((counted.rows, counted.hits, counted.time), (totals.rows, totals.hits, totals.time));
    assert_eq!(tables.stacks.nodes(), recording.stacks.nodes());
}

#[test]
fn what_has_no_end_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.glass");
    let mut recording = beginning("prog");
    let mut writer = GlassWriter::create(&path, &recording.info).unwrap();
    let process = Step::Process { pid: 1, exe: "x".into(), arguments: vec![], start: 0, forked: false };
    apply(&mut recording, &process);
    apply(&mut recording, &Step::Thread { process: 0, tid: 1, name: "t".into(), start: 0 });
    for n in 0..100 {
        let stack = vec![(9, n % 10)];
        let (task, tick, state, cut, hits, time) = (0, n, 1, None, 2, 7);
        apply(&mut recording, &Step::Sample { stack, thread: 0, task, tick, state, cut, hits, time });
    }
    writer.append(&recording).unwrap();
    let mut told = 0;
    let (tables, completeness, totals) = read_tables(&path, |at, of| {
        assert!(told < at && at <= of);
        told = at;
    })
    .unwrap();
    assert_eq!(completeness, Completeness::Incomplete { at: told });
    assert_eq!((totals.rows, totals.hits, totals.time), (100, 200, 700));
    assert_eq!((tables.samples.len(), tables.threads.len()), (0, 1));
}
