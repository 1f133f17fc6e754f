//! Heap snapshots inside recordings.

use super::others::{V8, shown};
use stackglass_files::heapsnapshot::{add_to_recording, extract, read, read_stored, stored_snapshots};
use stackglass_files::{GlassWriter, read_tables, write};
use stackglass_profile::{Nanos, Process, Recording, RecordingInfo};
use std::fs;
use std::path::Path;

fn recording() -> Recording {
    let mut recording = Recording::default();
    recording.info.command = vec!["prog".into()];
    recording.processes = vec![Process { pid: 7, start: Nanos(5), ..Process::default() }];
    recording
}

/// Adds a snapshot with this text.
fn add(recording: &Path, text: &str, clock: u64) {
    let file = recording.with_extension("heapsnapshot");
    fs::write(&file, text).unwrap();
    add_to_recording(recording, &file, clock).unwrap();
    fs::remove_file(&file).unwrap();
}

#[test]
fn snapshots_are_kept_beside_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.glass");
    write(&path, &recording()).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.ends_with("x.glass: a recording without a heap snapshot"), "{error}");
    let second = V8.replace(",3,1,3,24", ",3,1,3,25");
    // More than one chunk.
    let spaces = " ".repeat(10 << 20);
    add(&path, &V8.replace("\"edges\"", &format!("{spaces}\"edges\"")), 17);
    add(&path, &second, 0);
    let stored = stored_snapshots(&path).unwrap();
    let sizes: Vec<_> = stored.iter().map(|stored| (stored.clock, stored.size)).collect();
    assert_eq!(sizes, [(17, (V8.len() + spaces.len()) as u64), (0, second.len() as u64)]);
    assert!(shown(&read_stored(&path, &stored[0]).unwrap())[1].contains(" 24 "));
    assert!(shown(&read(&path).unwrap())[1].contains(" 25 "));
    let out = folder.path().join("out.heapsnapshot");
    extract(&path, &stored[1], &out).unwrap();
    assert_eq!(fs::read_to_string(&out).unwrap(), second);

    // The recording itself reads as before.
    let (read, completeness) = stackglass_files::read(&path).unwrap();
    assert!(completeness.is_complete(), "{completeness}");
    assert_eq!(read.info, recording().info);
    assert_eq!(read.processes, recording().processes);
    let (tables, completeness, _) = read_tables(&path, |_, _| panic!("the index is not used")).unwrap();
    assert!(completeness.is_complete(), "{completeness}");
    assert_eq!(tables.processes, recording().processes);
    assert_eq!(folder.path().read_dir().unwrap().count(), 2, "no temporary file is left");
}

#[test]
fn wrong_files_are_refused_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (path, snapshot) = (folder.path().join("x.glass"), folder.path().join("x.heapsnapshot"));
    fs::write(&snapshot, V8).unwrap();
    let refused = |message: &str| {
        let before = fs::read(&path).unwrap();
        let error = add_to_recording(&path, &snapshot, 0).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
    };
    fs::write(&path, "no recording at all").unwrap();
    refused("x.glass: no recording");
    drop(GlassWriter::create(folder.path().join("y.glass"), &RecordingInfo::default()).unwrap());
    fs::rename(folder.path().join("y.glass"), &path).unwrap();
    refused("x.glass: an incomplete recording");
    write(&path, &recording()).unwrap();
    fs::write(&snapshot, "\x7fELF").unwrap();
    refused("x.heapsnapshot: no heap snapshot");

    // Damage inside a snapshot, and a missing end.
    add(&path, &V8.replace("\"edges\"", &format!("{}\"edges\"", " ".repeat(5 << 20))), 0);
    let good = fs::read(&path).unwrap();
    let chunk = good.windows(4).position(|tag| tag == b"HBYT").unwrap();
    let mut bad = good.clone();
    bad[chunk + 40] ^= 1;
    fs::write(&path, bad).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(
        error.contains(&format!("damaged at byte {chunk}: the checksum of chunk HBYT is wrong")),
        "{error}"
    );
    let second = chunk + 4 + good[chunk + 4..].windows(4).position(|tag| tag == b"HBYT").unwrap();
    fs::write(&path, &good[..second]).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("a heap snapshot lacks its last"), "{error}");
}
