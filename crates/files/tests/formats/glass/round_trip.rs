//! A recording written in any number of steps is read back in full.

use crate::support::*;
use proptest::prelude::*;
use stackglass_files::{
    Completeness, GlassReader, GlassWriter, read, read_merged, read_merged_from, read_rows, read_rows_from,
    write,
};
use stackglass_profile::{Nanos, Recording, Sample, StackId, State, ThreadNumber};
use std::collections::HashMap;

proptest! {
    #[test]
    fn in_steps_or_at_once(steps in steps(), seed: u64) {
        let folder = tempfile::tempdir().unwrap();
        let grown = folder.path().join("grown.glass");
        let mut recording = beginning("prog");
        let mut writer = GlassWriter::create(&grown, &recording.info).unwrap();
        let flushed = grow(&mut writer, &mut recording, &steps);

        // Not finished: everything up to the last flush is there.
        let (unfinished, completeness) = read(&grown).unwrap();
        prop_assert_eq!(completeness, Completeness::Incomplete { at: writer.bytes() });
        assert_same_but_about_and_names(&unfinished, &flushed);

        end(&mut recording, seed);
        let totals = writer.finish(&recording).unwrap();
        let (back, completeness) = read(&grown).unwrap();
        prop_assert_eq!(completeness, Completeness::Complete(totals));
        assert_same(&back, &recording);

        let at_once = folder.path().join("at once.glass");
        write(&at_once, &recording).unwrap();
        let (back, completeness) = read(&at_once).unwrap();
        prop_assert!(completeness.is_complete());
        assert_same(&back, &recording);
    }

    #[test]
    fn merging_keeps_hits_and_time_of_every_stack(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("merged.glass");
        let mut recording = beginning("prog");
        let mut writer = GlassWriter::create(&path, &recording.info).unwrap();
        grow(&mut writer, &mut recording, &steps);
        writer.finish(&recording).unwrap();
        let sums = |samples: &[Sample]| {
            let mut sums = HashMap::new();
            for s in samples {
                let sum: &mut (u128, u128) = sums.entry(s.kind()).or_default();
                sum.0 += u128::from(s.hits);
                sum.1 += u128::from(s.time.0);
            }
            sums
        };
        let (merged, _) = read_merged(&path, |_, _| {}).unwrap();
        let (piped, _) = read_merged_from(std::fs::File::open(&path).unwrap()).unwrap();
        prop_assert_eq!(&piped.samples, &merged.samples);
        let merged_sums = sums(&merged.samples);
        prop_assert_eq!(&merged_sums, &sums(&recording.samples));
        // Each kind of sample once, where one can hold them.
        let fits = |(hits, time): &(u128, u128)| u32::try_from(*hits).is_ok() && u64::try_from(*time).is_ok();
        if merged_sums.values().all(fits) {
            prop_assert_eq!(merged_sums.len(), merged.samples.len());
        }
    }
}

#[test]
fn a_long_recording_takes_many_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.glass");
    let mut recording = beginning("prog");
    let process = Step::Process { pid: 1, exe: "prog".into(), arguments: vec![], start: 0, forked: false };
    apply(&mut recording, &process);
    for tid in 0..3 {
        apply(&mut recording, &Step::Thread { process: 0, tid, name: "t".into(), start: 0 });
    }
    let mut random = 1u64;
    for tick in 0..600_000u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let leaf = random >> 45;
        let sample = Step::Sample {
            stack: vec![(9, leaf), (9, leaf >> 4), (9, leaf >> 8)],
            thread: (tick % 3) as usize,
            task: 0,
            tick: tick * 1_000_000,
            state: 1,
            cut: None,
            hits: 1,
            time: random >> 44,
        };
        apply(&mut recording, &sample);
    }
    end(&mut recording, 1);
    write(&path, &recording).unwrap();
    let (back, completeness) = read(&path).unwrap();
    assert!(completeness.is_complete());
    assert_same(&back, &recording);

    let mut reader = GlassReader::open(&path).unwrap();
    let (mut steps, mut samples, mut before) = (0, 0usize, reader.position());
    while reader.step(&mut |_| samples += 1).unwrap() {
        steps += 1;
        assert!(reader.position() > before && reader.position() <= reader.length());
        before = reader.position();
    }
    assert_eq!(samples, recording.samples.len());
    assert!(steps > 10, "one chunk for everything would need memory for everything");
}

/// The errors of a wall-time profile come from single task snapshots.
#[test]
fn rows_of_snapshots_of_one_task_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshots.glass");
    let mut recording = beginning("prog");
    let process = Step::Process { pid: 1, exe: "prog".into(), arguments: vec![], start: 0, forked: false };
    apply(&mut recording, &process);
    apply(&mut recording, &Step::Thread { process: 0, tid: 1, name: "t".into(), start: 0 });
    for snapshot in 1..=3 {
        recording.samples.push(Sample {
            stack: StackId(0),
            thread: ThreadNumber(1),
            task: 7,
            clock: Nanos(snapshot),
            state: State::Task,
            cut: None,
            hits: 1,
            time: Nanos(10),
            spread: Nanos(0),
        });
    }
    end(&mut recording, 1);
    write(&path, &recording).unwrap();
    let file = || std::fs::File::open(&path).unwrap();
    let found = |read: Result<(Recording, Completeness), _>| read.unwrap().0.samples;
    assert_eq!(found(read_rows(&path)), recording.samples);
    assert_eq!(found(read_rows_from(file())), recording.samples);
    let whole = [Sample { clock: Nanos(3), hits: 3, time: Nanos(30), ..recording.samples[0] }];
    assert_eq!(found(read(&path)), whole);
}

#[test]
fn a_recording_that_is_not_the_same_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = beginning("prog");
    let mut writer = GlassWriter::create(folder.path().join("x.glass"), &recording.info).unwrap();
    let process = Step::Process { pid: 1, exe: "prog".into(), arguments: vec![], start: 0, forked: false };
    apply(&mut recording, &process);
    apply(&mut recording, &Step::Thread { process: 0, tid: 1, name: "t".into(), start: 0 });
    let sample = |hits| Step::Sample {
        stack: vec![(9, 7)],
        thread: 0,
        task: 0,
        tick: 1,
        state: 1,
        cut: None,
        hits,
        time: 1,
    };
    apply(&mut recording, &sample(2));
    writer.append(&recording).unwrap();
    let mut other = recording.clone();
    other.samples[0].hits = 1;
    let error = writer.append(&other).unwrap_err().to_string();
    assert!(error.contains("its samples are others"), "{error}");
    other.samples.clear();
    assert!(writer.append(&other).is_err());
    other.threads.clear();
    assert!(writer.append(&other).unwrap_err().to_string().contains("fewer threads"));
    // The right one still goes on.
    apply(&mut recording, &sample(3));
    let path = writer.path().to_owned();
    writer.finish(&recording).unwrap();
    assert_same(&read(path).unwrap().0, &recording);
}
