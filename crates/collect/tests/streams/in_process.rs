//! The crate's way: a stream in this process, read on demand and by a thread.

use crate::support::{DAMAGED, Guest, LOST, MALFORMED, name};
use stackglass_collect::in_process::Collector;
use stackglass_procfs::clock;
use stackglass_profile::RecordingInfo;
use stackglass_wire::{Event, State, ThreadId};

fn sample(at: u64, frames: &[u64]) -> Event<'_> {
    Event::Sample { thread: ThreadId(1), at, time: 10, task: 0, state: State::Awake, cut: 0, hits: 1, frames }
}

fn guest() -> &'static Guest {
    let guest: &'static Guest = Box::leak(Box::new(Guest::new(1)));
    guest.push(Event::ThreadStart { thread: ThreadId(1), tid: 1, at: 0, name: name("main") });
    guest
}

#[test]
fn samples_arrive_on_demand_and_are_forgotten_on_demand() {
    let guest = guest();
    let (control, ring) = guest.view();
    let collector = Collector::new(control, ring, RecordingInfo::default(), None);
    guest.push(sample(1, &[0x10, 0x20]));
    assert_eq!(collector.snapshot().samples.len(), 1);
    guest.push(sample(2, &[0x30]));
    collector.clear();
    let recording = collector.snapshot();
    assert_eq!((recording.samples.len(), recording.threads.len()), (0, 1));
    guest.push(sample(3, &[0x10, 0x20]));
    let recording = collector.snapshot();
    assert_eq!(recording.samples.len(), 1);
    assert_eq!(recording.stacks.walk(recording.samples[0].stack).count(), 2);
}

/// The sampler assigns the time of a sleep when it is over, and is late on a busy machine.
#[test]
fn time_before_samples_were_forgotten_is_not_counted() {
    let guest = guest();
    let (control, ring) = guest.view();
    let collector = Collector::new(control, ring, RecordingInfo::default(), None);
    let second = 1_000_000_000;
    let sleep = |at, time| Event::Sample {
        thread: ThreadId(1),
        at,
        time,
        task: 0,
        state: State::Asleep,
        cut: 0,
        hits: 1,
        frames: &[0x10],
    };
    guest.push(sleep(clock::monotonic(), second));
    let before = clock::monotonic();
    collector.clear();
    let after = clock::monotonic();
    guest.push(sleep(after + second, 3 * second));
    guest.push(Event::Repeat {
        thread: ThreadId(1),
        at: after + 2 * second,
        time: second,
        state: State::Asleep,
    });
    let time: u64 = collector.snapshot().samples.iter().map(|sample| sample.time.0).sum();
    assert!((2 * second..=2 * second + (after - before)).contains(&time), "{time}");
}

#[test]
fn a_full_recording_says_so_and_goes_on_with_more_room() {
    let guest = guest();
    let (control, ring) = guest.view();
    let info = RecordingInfo { capacity: 500, ..RecordingInfo::default() };
    let collector = Collector::new(control, ring, info, None);
    for i in 0..200 {
        guest.push(sample(i, &[i * 8]));
    }
    assert!(collector.drain());
    assert!(collector.snapshot().info.full);
    collector.with(|recorder| recorder.set_capacity(0));
    assert!(!collector.drain(), "room again");
}

#[test]
fn a_malformed_event_and_a_damaged_stream_are_remarked() {
    let guest = guest();
    let (control, ring) = guest.view();
    let collector = Collector::new(control, ring, RecordingInfo::default(), None);
    guest.push(sample(1, &[0x10]));
    guest.push_malformed();
    guest.push(sample(2, &[0x20]));
    let recording = collector.snapshot();
    assert_eq!(recording.samples.len(), 2, "the events around it are read");
    assert_eq!(recording.info.remarks, [MALFORMED]);
    guest.damage();
    guest.lose();
    let recording = collector.snapshot();
    assert_eq!(recording.samples.len(), 2);
    assert_eq!(recording.info.remarks, [MALFORMED, DAMAGED, LOST]);
}
