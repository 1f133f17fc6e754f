//! A file cut anywhere is read up to its last whole chunk; a damaged one up to the damage.

use crate::support::*;
use stackglass_files::{Completeness, GlassWriter, ReadError, read_from};
use stackglass_profile::{AllocationSampling, Recording};

/// A file and what was in it at every flush: (size, recording).
fn file() -> (Vec<u8>, Vec<(u64, Recording)>, Recording) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole.glass");
    let mut recording = beginning("prog");
    let mut writer = GlassWriter::create(&path, &recording.info).unwrap();
    let mut flushes = vec![(writer.bytes(), recording.clone())];
    let process = Step::Process {
        pid: 7,
        exe: "/bin/prog".into(),
        arguments: vec!["a".into()],
        start: 9,
        forked: false,
    };
    apply(&mut recording, &process);
    apply(&mut recording, &Step::Module { path: "/lib/a".into(), build_id: vec![1, 2, 3] });
    for round in 0..6u64 {
        apply(
            &mut recording,
            &Step::Thread { process: 0, tid: round as u32, name: "w".into(), start: round },
        );
        for tick in 0..20 {
            let sample = Step::Sample {
                stack: vec![(0, tick % 7 + round), (0, tick % 3), (1, 1)],
                thread: (tick % (round + 1)) as usize,
                task: tick % 2,
                tick: round * 1000 + tick,
                state: (tick % 3 + 1) as u8,
                cut: (tick == 5).then_some(2),
                hits: tick as u32,
                time: 1_000_000 + tick,
            };
            apply(&mut recording, &sample);
        }
        writer.append(&recording).unwrap();
        flushes.push((writer.bytes(), recording.clone()));
    }
    let (sampling, times, lost) = (AllocationSampling::Rate(0.25), [1, 2, 3], [4, 5]);
    apply(&mut recording, &Step::Allocating { process: 0, times, sampling, lost });
    for n in 0..20 {
        apply(&mut recording, &Step::Memory { which: 0, point: [n, 1000 * n, 1 << 20] });
        let (process, stack, thread, task) = (0, n as usize, 1, 0);
        let (mapping, class, counts) = (n == 7, 3, [n, 24 * n, 1, 24, 0, n / 2, 24 * (n / 2), 0, 0]);
        apply(&mut recording, &Step::Allocations { process, stack, thread, task, mapping, class, counts });
    }
    end(&mut recording, 6);
    writer.finish(&recording).unwrap();
    (std::fs::read(&path).unwrap(), flushes, recording)
}

#[test]
fn cut_at_every_byte() {
    let (bytes, flushes, whole) = file();
    assert!(matches!(read_from(&bytes[..0]), Err(ReadError::Empty { .. })));
    let trailer = 16;
    let mut ends = std::collections::BTreeSet::new();
    for cut in 1..bytes.len() {
        let (read, completeness) = read_from(&bytes[..cut]).unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
        if cut >= bytes.len() - trailer {
            assert!(completeness.is_complete(), "the end mark is whole at {cut}");
            assert_same(&read, &whole);
            continue;
        }
        let Completeness::Incomplete { at } = completeness else { panic!("cut at {cut}: {completeness}") };
        assert!(at <= cut as u64);
        ends.insert(at);
        // Everything of the last flush that is whole must be there, in an exact beginning of the rest.
        if let Some((_, flushed)) = flushes.iter().rev().find(|(size, _)| *size <= cut as u64) {
            assert!(read.samples.len() >= flushed.samples.len());
            assert!(read.threads.len() >= flushed.threads.len());
            assert_eq!(read.samples[..], whole.samples[..read.samples.len()]);
            assert_eq!(read.stacks.nodes()[..], whole.stacks.nodes()[..read.stacks.nodes().len()]);
            assert_eq!(read.info.command, whole.info.command);
        }
        if flushes.iter().any(|(size, _)| *size == cut as u64) {
            assert_eq!(at, cut as u64, "a flush ends with a whole chunk");
        }
    }
    assert!(ends.len() > 30, "the file has many chunks: {ends:?}");
    assert!(flushes.iter().all(|(size, _)| ends.contains(size)));
}

#[test]
fn every_changed_byte_is_noticed_and_located() {
    let (bytes, flushes, whole) = file();
    let first_chunk = 16;
    for at in 0..bytes.len() - 16 {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        match read_from(&damaged[..]) {
            Err(ReadError::NotGlass { .. }) => assert!(at < 8),
            Err(ReadError::Version { .. }) => assert!((8..12).contains(&at)),
            Err(e) => panic!("byte {at}: {e}"),
            // The word after the version is not looked at.
            Ok((_, completeness)) if (12..16).contains(&at) => assert!(completeness.is_complete()),
            Ok((read, Completeness::Damaged { at: place, .. } | Completeness::Incomplete { at: place })) => {
                assert!(place >= first_chunk && place <= at as u64, "byte {at}: said {place}");
                assert_eq!(read.samples[..], whole.samples[..read.samples.len()]);
                if let Some((_, flushed)) = flushes.iter().rev().find(|(size, _)| *size <= at as u64) {
                    assert!(read.samples.len() >= flushed.samples.len());
                }
            }
            Ok((_, Completeness::Complete(_))) => panic!("byte {at} was changed and nobody noticed"),
        }
    }
}

#[test]
fn unknown_chunks_are_passed_over() {
    let (bytes, flushes, whole) = file();
    let mut chunk = b"ZZZZ".to_vec();
    chunk.extend(u32::MAX.to_le_bytes());
    chunk.extend(1000u32.to_le_bytes());
    chunk.extend(5u32.to_le_bytes());
    let payload = b"what?";
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&chunk);
    hasher.update(payload);
    chunk.extend(hasher.finalize().to_le_bytes());
    chunk.extend(payload);
    let at = flushes[2].0 as usize;
    let longer = [&bytes[..at], &chunk, &bytes[at..]].concat();
    let (read, completeness) = read_from(&longer[..]).unwrap();
    assert!(completeness.is_complete(), "{completeness}");
    assert_same(&read, &whole);
}

#[test]
fn a_missing_chunk_is_noticed() {
    let (bytes, _, _) = file();
    let mut starts = vec![16];
    while let Some(size) = bytes.get(starts[starts.len() - 1] + 12..).and_then(|b| b.first_chunk::<4>()) {
        let next = starts[starts.len() - 1] + 20 + u32::from_le_bytes(*size) as usize;
        if next + 36 >= bytes.len() {
            break;
        }
        starts.push(next);
    }
    assert!(starts.len() > 30);
    for pair in starts.windows(2) {
        let tag = &bytes[pair[0]..pair[0] + 4];
        // A row that only replaces another, the description, and the index may be missed by nobody.
        if [&b"ABOU"[..], b"PROC", b"THRD", b"INDX", b"SYMB", b"DISP", b"PATH", b"NOTE", b"TYPE"]
            .contains(&tag)
        {
            continue;
        }
        let without = [&bytes[..pair[0]], &bytes[pair[1]..]].concat();
        let (_, completeness) = read_from(&without[..]).unwrap();
        let name = tag.escape_ascii();
        assert!(matches!(completeness, Completeness::Damaged { .. }), "without {name}: {completeness}");
    }
}
