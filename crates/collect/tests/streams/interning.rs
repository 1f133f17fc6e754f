//! Known events become the samples, threads and modules they describe, and nothing else.

use crate::support::{Guest, name};
use stackglass_collect::EventTranslator;
use stackglass_collect::launch::drain::Drain;
use stackglass_profile::{
    Cut, Location, ModuleIndex, Nanos, Recorder, Recording, RecordingInfo, State, ThreadNumber,
};
use stackglass_wire::{Event, ModuleId, State as Wire, ThreadId};

fn sample<'a>(thread: u32, at: u64, frames: &'a [u64]) -> Event<'a> {
    Event::Sample {
        thread: ThreadId(thread),
        at,
        time: 10,
        task: 0,
        state: Wire::Awake,
        cut: 0,
        hits: 1,
        frames,
    }
}

fn load(module: u32, low: u64, bias: u64, path: u8) -> Event<'static> {
    let text: &'static [u64] =
        Box::leak(Box::new([u64::from_le_bytes([0xab, 0xcd, b'/', path, 0, 0, 0, 0])]));
    let high = low + 0x1000;
    Event::ModuleLoad { module: ModuleId(module), at: 1, bias, low, high, text, build_id_len: 2, path_len: 2 }
}

fn start(thread: u32) -> Event<'static> {
    Event::ThreadStart { thread: ThreadId(thread), tid: 100 + thread, at: 5, name: name("worker") }
}

/// Takes up events as they are.
fn take(capacity: u64, events: &[Event<'_>]) -> Recorder {
    let guest = Guest::new(7);
    let mut recorder = Recorder::new(RecordingInfo { capacity, ..RecordingInfo::default() });
    let mut translator = EventTranslator::new(guest.view().0, &mut recorder).unwrap();
    for event in events {
        translator.apply(event, &mut recorder);
    }
    recorder
}

fn stack_of(recording: &Recording, sample: usize) -> Vec<(Option<u32>, u64)> {
    let stacks = &recording.stacks;
    let place = |id| {
        let Location { module, offset } = stacks.location(id);
        (module.map(|ModuleIndex(index)| index), offset)
    };
    stacks.walk(recording.samples[sample].stack).map(place).collect()
}

#[test]
fn addresses_become_places_in_the_modules_mapped_at_that_moment() {
    let recorder = take(
        0,
        &[
            load(1, 0x1000, 0x1000, b'a'),
            start(1),
            sample(1, 10, &[0x1010, 0x1020, 0x9999]),
            Event::ModuleUnload { module: ModuleId(1), at: 11 },
            load(2, 0x1000, 0x800, b'b'),
            sample(1, 12, &[0x1010, 0x1020, 0x9999]),
        ],
    );
    let recording = recorder.recording();
    assert_eq!(stack_of(recording, 0), [(Some(0), 0x10), (Some(0), 0x20), (None, 0x9999)]);
    assert_eq!(stack_of(recording, 1), [(Some(1), 0x810), (Some(1), 0x820), (None, 0x9999)]);
    assert_eq!(&*recording.modules[0].path, "/a");
    assert_eq!(*recording.modules[0].build_id, [0xab, 0xcd]);
    assert_eq!(recording.processes[0].arguments, ["guest", "--fast"]);
    assert_eq!(&*recording.processes[0].exe, "/opt/bin/guest");
}

/// An observation that comes late, soon after samples were forgotten, finds that the thread ran and waited: most of that is of before.
#[test]
fn no_thread_has_more_time_than_has_passed_since_samples_were_forgotten() {
    const MS: u64 = 1_000_000;
    let guest = Guest::new(7);
    let mut recorder = Recorder::new(RecordingInfo::default());
    let mut translator = EventTranslator::new(guest.view().0, &mut recorder).unwrap();
    for event in [start(1), sample(1, 10, &[0x10])] {
        translator.apply(&event, &mut recorder);
    }
    let earlier = stackglass_procfs::clock::monotonic();
    let before = recorder.clear_samples();
    translator.forget_stacks(&before, &mut recorder);
    let now = stackglass_procfs::clock::monotonic();
    let repeat = |at, time, state| Event::Repeat { thread: ThreadId(1), at: now + at, time, state };
    let events = [
        repeat(34 * MS, 28 * MS, Wire::Waiting),
        repeat(34 * MS, 28 * MS, Wire::Awake),
        repeat(36 * MS, 2 * MS, Wire::Awake),
        repeat(900 * MS, 864 * MS, Wire::Asleep),
    ];
    let mut sums = Vec::new();
    for event in events {
        translator.apply(&event, &mut recorder);
        sums.push(recorder.recording().samples.iter().map(|sample| sample.time.0).sum::<u64>());
    }
    for (sum, passed) in sums.iter().zip([28, 34, 36, 900]) {
        let least = passed * MS;
        assert!((least..=least + now - earlier).contains(sum), "{sums:?}");
    }
}

#[test]
fn repeats_stand_for_the_threads_own_last_stack() {
    let repeat = |thread, at, state| Event::Repeat { thread: ThreadId(thread), at, time: 5, state };
    let recorder = take(
        0,
        &[
            start(1),
            start(2),
            sample(1, 10, &[0x10]),
            sample(2, 10, &[0x20]),
            repeat(1, 11, Wire::Awake),
            repeat(2, 11, Wire::Asleep),
            repeat(2, 12, Wire::Asleep),
        ],
    );
    let recording = recorder.recording();
    let rows: Vec<_> =
        recording.samples.iter().map(|s| (s.thread.0, s.state, s.hits, s.time.0, s.clock.0)).collect();
    // Run-length within each thread, although the two take turns.
    assert_eq!(
        rows,
        [(1, State::Awake, 1, 15, 11), (2, State::Awake, 1, 10, 10), (2, State::Asleep, 0, 10, 12)]
    );
    assert_eq!(stack_of(recording, 2), [(None, 0x20)]);
    assert_eq!(recording.threads[0].cpu, Nanos(15));
    assert_eq!(recording.threads[1].cpu, Nanos(10));
    assert_eq!(recorder.totals().hits, 2);
    assert_eq!(recorder.totals().asleep, 10);
}

#[test]
fn written_samples_do_not_grow_any_more() {
    let guest = Guest::new(7);
    let mut recorder = Recorder::new(RecordingInfo::default());
    let mut translator = EventTranslator::new(guest.view().0, &mut recorder).unwrap();
    translator.apply(&start(1), &mut recorder);
    translator.apply(&sample(1, 10, &[0x10]), &mut recorder);
    recorder.settle();
    translator.apply(&sample(1, 20, &[0x10]), &mut recorder);
    translator.apply(&sample(1, 30, &[0x10]), &mut recorder);
    let rows: Vec<_> = recorder.recording().samples.iter().map(|s| (s.hits, s.time.0, s.clock.0)).collect();
    assert_eq!(rows, [(1, 10, 10), (2, 20, 30)]);
}

#[test]
fn states_tasks_and_cuts_keep_samples_apart() {
    let with = |task, state, cut| Event::Sample {
        thread: ThreadId(1),
        at: 10,
        time: 1,
        task,
        state,
        cut,
        hits: 1,
        frames: &[0x10],
    };
    let recorder = take(
        0,
        &[
            start(1),
            with(0, Wire::Awake, 0),
            with(0, Wire::Asleep, 0),
            with(9, Wire::Asleep, 0),
            with(9, Wire::Asleep, 3),
            with(9, Wire::Asleep, 3),
        ],
    );
    let rows: Vec<_> =
        recorder.recording().samples.iter().map(|s| (s.task, s.state, s.cut, s.hits)).collect();
    let asleep = State::Asleep;
    assert_eq!(
        rows,
        [
            (0, State::Awake, None, 1),
            (0, asleep, None, 1),
            (9, asleep, None, 1),
            (9, asleep, Some(Cut(3)), 2)
        ]
    );
}

#[test]
fn the_bound_holds_and_ends_everything() {
    let guest = Guest::new(7);
    let mut recorder = Recorder::new(RecordingInfo { capacity: 10_000, ..RecordingInfo::default() });
    let mut translator = EventTranslator::new(guest.view().0, &mut recorder).unwrap();
    for i in 0..100_000u64 {
        let frames = [i * 64, i * 32, 5];
        translator.apply(&start(i as u32 % 5000 + 1), &mut recorder);
        translator.apply(&load(i as u32 + 1, i << 20, 0, (i % 200) as u8), &mut recorder);
        translator.apply(&sample(i as u32 % 5000 + 1, i, &frames), &mut recorder);
    }
    assert!(recorder.is_full() && recorder.recording().info.full);
    // One event may go over it, by its own size.
    assert!(recorder.words() < 10_100, "{}", recorder.words());
    assert!(recorder.recording().samples.len() > 100);
}

#[test]
fn a_thread_that_was_not_announced_is_taken_up_all_the_same() {
    let recorder = take(
        0,
        &[
            sample(4, 10, &[0x10]),
            start(4),
            Event::ThreadRename { thread: ThreadId(4), at: 11, name: name("renamed") },
            Event::ThreadEnd { thread: ThreadId(4), at: 12, cpu: 10, flags: 1 },
        ],
    );
    let thread = recorder.recording().thread(ThreadNumber(1)).unwrap();
    assert_eq!((thread.tid, &*thread.name, thread.end), (104, "renamed", Some(Nanos(12))));
    assert!(thread.blocked_signal);
    assert_eq!(recorder.totals().threads, 0);
}

#[test]
fn files_of_dead_processes_are_read_to_their_end_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    // No process has the largest id the kernel could give, plus some.
    let guest = Guest::new(0x7fff_fff0);
    guest.push(start(1));
    guest.push(sample(1, 1500, &[0x10, 0x20]));
    let path = guest.write(folder.path());
    let mut recorder = Recorder::new(RecordingInfo::default());
    let mut drain = Drain::new(folder.path());
    drain.read(&mut recorder);
    assert_eq!(drain.processes(), 1);
    // The first observation sees a tick, the second one sees none and asks whether the process lives.
    drain.settle(&mut recorder);
    drain.settle(&mut recorder);
    assert_eq!(drain.processes(), 0);
    assert!(!path.exists());
    let recording = recorder.recording();
    assert_eq!(recording.samples.len(), 1);
    assert_eq!(recording.processes[0].end, Some(Nanos(2000)));
    assert_eq!(recording.threads[0].end, Some(Nanos(2000)));
}

#[test]
fn an_exec_ends_the_earlier_image_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let me = std::process::id();
    let (first, second) = (Guest::new(me), Guest::new(me));
    second.view().0.start_ns.store(5000, std::sync::atomic::Ordering::Relaxed);
    first.push(start(1));
    second.push(start(1));
    first.write(folder.path());
    second.write(folder.path());
    let mut recorder = Recorder::new(RecordingInfo::default());
    let mut drain = Drain::new(folder.path());
    drain.read(&mut recorder);
    drain.settle(&mut recorder);
    assert_eq!(drain.processes(), 1);
    let processes = &recorder.recording().processes;
    assert_eq!(processes.iter().map(|p| p.start.0).collect::<Vec<_>>(), [1000, 5000]);
    assert_eq!(processes.iter().map(|p| p.end).collect::<Vec<_>>(), [Some(Nanos(2000)), None]);
    assert_eq!(recorder.recording().threads.len(), 2, "numbered over all processes");
}
