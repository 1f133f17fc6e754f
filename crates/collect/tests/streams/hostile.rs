//! Whatever a program writes into its file, the launcher neither panics nor grows beyond its bound.

use crate::support::{DAMAGED, Guest, LOST, MALFORMED, WORDS};
use proptest::prelude::*;
use stackglass_collect::launch::drain::Drain;
use stackglass_profile::{Recorder, RecordingInfo};
use std::path::Path;
use std::sync::atomic::Ordering::*;

/// Reads a session folder as the launcher does, and looks at what came of it.
fn drain(folder: &Path) -> Recorder {
    let mut recorder = Recorder::new(RecordingInfo { capacity: 20_000, ..RecordingInfo::default() });
    let mut drain = Drain::new(folder);
    for _ in 0..3 {
        drain.read(&mut recorder);
        drain.settle(&mut recorder);
    }
    drain.close(&mut recorder);
    check(&recorder);
    recorder
}

/// Everything points to something that is there, and the bound held.
fn check(recorder: &Recorder) {
    let recording = recorder.recording();
    // One event of the largest size may go over the bound.
    assert!(recorder.words() < 20_000 + 3 * 4200, "{} words", recorder.words());
    assert!(recording.info.remarks.len() <= 64);
    for sample in &recording.samples {
        assert!(recording.thread(sample.thread).is_some());
        for location in recording.stacks.walk(sample.stack) {
            let module = recording.stacks.location(location).module;
            assert!(module.is_none_or(|module| (module.0 as usize) < recording.modules.len()));
        }
    }
    for thread in &recording.threads {
        assert!((thread.process.0 as usize) < recording.processes.len());
    }
}

/// Words of which many look like the heads of events.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0..9u64, 0..40u64, 0..4u64).prop_map(|(kind, len, number)| kind | len << 8 | number << 32),
        0..4096u64,
        Just(u64::MAX),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_streams_are_survived(
        words in prop::collection::vec(word(), 1..WORDS),
        head in prop_oneof![Just(None), any::<u64>().prop_map(Some), (0..WORDS as u64 * 2).prop_map(Some)],
        state in any::<u32>(),
        texts in any::<[u32; 2]>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let guest = Guest::new(std::process::id());
        let (control, ring) = guest.view();
        for (cell, word) in ring.iter().zip(&words) {
            cell.store(*word, Relaxed);
        }
        control.head.store(head.unwrap_or(words.len() as u64), Relaxed);
        control.state.store(state, Relaxed);
        control.exe_len.store(texts[0], Relaxed);
        control.cmdline_len.store(texts[1], Relaxed);
        guest.write(folder.path());
        drain(folder.path());
    }

    #[test]
    fn random_files_are_survived(
        bytes in prop::collection::vec(any::<u8>(), 0..20_000),
        ready in any::<bool>(),
        stream_words in prop_oneof![any::<u64>(), 0..4096u64],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let guest = Guest::new(1);
        guest.view().0.stream_words.store(stream_words, Relaxed);
        let path = guest.write(folder.path());
        let mut file = std::fs::read(&path).unwrap();
        // Half of them keep a ready head and have a random rest, or a random end.
        let keep = if ready { 24 } else { 0 };
        file.truncate(bytes.len());
        let from = keep.min(file.len());
        file[from..].copy_from_slice(&bytes[from..]);
        std::fs::write(&path, &file).unwrap();
        drain(folder.path());
    }
}

#[test]
fn a_stream_that_is_truncated_while_it_is_read_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let guest = Guest::new(std::process::id());
    let path = guest.write(folder.path());
    let mut recorder = Recorder::new(RecordingInfo::default());
    let mut drain = Drain::new(folder.path());
    drain.read(&mut recorder);
    assert_eq!(drain.processes(), 1);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    drain.read(&mut recorder);
    drain.settle(&mut recorder);
    drain.read(&mut recorder);
    drain.close(&mut recorder);
    check(&recorder);
    assert_eq!(recorder.recording().processes.len(), 1);
}

#[test]
fn what_is_no_file_of_ours_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let target = Guest::new(1).write(elsewhere.path());
    std::os::unix::fs::symlink(&target, folder.path().join("p-1-1")).unwrap();
    std::fs::create_dir(folder.path().join("p-2-2")).unwrap();
    let fifo = folder.path().join("p-3-3");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Whoever may write to the folder could else have us write to another file of ours.
    std::fs::hard_link(&target, folder.path().join("p-4-4")).unwrap();
    let recorder = drain(folder.path());
    assert_eq!(recorder.recording().processes.len(), 0);
    let remarks = &recorder.recording().info.remarks;
    assert!(!remarks.is_empty() && remarks.iter().all(|line| line.contains("was not read")), "{remarks:?}");
    assert!(target.exists());
}

#[test]
fn root_reads_files_of_other_users() {
    let folder = tempfile::tempdir().unwrap();
    let path = Guest::new(std::process::id()).write(folder.path());
    if std::os::unix::fs::chown(&path, Some(65534), Some(65534)).is_err() {
        eprintln!("only root can give files away: nothing is tested");
        return;
    }
    assert_eq!(drain(folder.path()).recording().processes.len(), 1);
}

#[test]
fn an_endless_writer_does_not_keep_the_reader() {
    let folder = tempfile::tempdir().unwrap();
    let guest = Guest::new(std::process::id());
    let path = guest.write(folder.path());
    let mut recorder = Recorder::new(RecordingInfo { capacity: 20_000, ..RecordingInfo::default() });
    let mut drain = Drain::new(folder.path());
    drain.read(&mut recorder);
    // A program that says again and again that its whole stream is full.
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::os::unix::fs::FileExt;
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            let at = std::mem::offset_of!(stackglass_wire::ControlPage, head) as u64;
            let mut head = 0u64;
            while !stop.load(Relaxed) {
                head += WORDS as u64 / 2;
                file.write_all_at(&head.to_ne_bytes(), at).unwrap();
            }
        });
        for _ in 0..100 {
            drain.read(&mut recorder);
        }
        stop.store(true, Relaxed);
    });
    check(&recorder);
}

#[test]
fn a_malformed_event_and_a_damaged_stream_are_remarked() {
    for (spoil, remark) in
        [(Guest::push_malformed as fn(&Guest), MALFORMED), (Guest::damage, DAMAGED), (Guest::lose, LOST)]
    {
        let folder = tempfile::tempdir().unwrap();
        let guest = Guest::new(1);
        spoil(&guest);
        guest.write(folder.path());
        assert_eq!(drain(folder.path()).recording().info.remarks, [remark]);
    }
}
