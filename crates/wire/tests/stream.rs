//! The stream passes events unchanged, loses whole events only, and survives garbage.
#![allow(unsafe_code, reason = "views memory as a stream")]
use stackglass_wire::stream::{ReadError, Reader, Writer};
use stackglass_wire::*;
use std::sync::atomic::{AtomicU64, Ordering::*};

fn memory(words: usize) -> (Vec<AtomicU64>, usize) {
    ((0..CONTROL_BYTES / 8 + words + 8).map(|_| AtomicU64::new(0)).collect(), words)
}

fn with<R>(words: usize, f: impl FnOnce(&ControlPage, &[AtomicU64]) -> R) -> R {
    let (memory, words) = memory(words);
    let base = memory.as_ptr() as *mut u8;
    let skip = base.align_offset(64);
    // SAFETY: `memory` outlives the call, is made of atomics and has room for `skip` (< 64) more bytes.
    let (control, ring) = unsafe { stream::view(base.add(skip), memory.len() * 8 - skip, words) }.unwrap();
    f(control, ring)
}

fn all<'a>(frames: &'a [u64], text: &'a [u64]) -> Vec<Event<'a>> {
    let thread = ThreadId(3);
    let name = *b"worker\0\0\0\0\0\0\0\0\0\0";
    vec![
        Event::ThreadStart { thread, tid: 77, at: 1, name },
        Event::ThreadRename { thread, at: 2, name },
        Event::ModuleLoad {
            module: ModuleId(1),
            at: 3,
            bias: 0x1000,
            low: 0x1000,
            high: 0x2000,
            text,
            build_id_len: 3,
            path_len: 5,
        },
        Event::Sample { thread, at: 4, time: 5, task: 6, state: State::Awake, cut: 7, hits: 1, frames },
        Event::TaskStart { thread, at: 7, task: u64::MAX, line: 12, text, name_len: 3, file_len: 4 },
        Event::Sample { thread, at: 8, time: 5, task: 6, state: State::Task, cut: 0, hits: 2, frames },
        Event::Repeat { thread, at: 8, time: 9, state: State::Asleep },
        Event::ModuleUnload { module: ModuleId(1), at: 10 },
        Event::ThreadEnd { thread, at: 11, cpu: 12, flags: 1 },
    ]
}

#[test]
fn every_event_comes_out_as_it_went_in() {
    with(1024, |control, ring| {
        let (mut w, mut r) = (Writer::new(control, ring), Reader::new(control, ring));
        let frames: Vec<u64> = (0..200).collect();
        // Many rounds, so that events wrap around the end of the ring at every offset.
        for _ in 0..500 {
            for event in all(&frames, &[0x0706_0504_0302_0100]) {
                assert!(w.push(&event));
                assert_eq!(r.read().unwrap(), Some(event));
            }
        }
        assert_eq!(r.read().unwrap(), None);
    });
}

#[test]
fn a_full_stream_loses_whole_events_and_counts_them() {
    with(256, |control, ring| {
        let (mut w, mut r) = (Writer::new(control, ring), Reader::new(control, ring));
        let frames = [1u64; 60];
        let sample = Event::Sample {
            thread: ThreadId(1),
            at: 0,
            time: 0,
            task: 0,
            state: State::Awake,
            cut: 0,
            hits: 1,
            frames: &frames,
        };
        let pushed = (0..10).filter(|_| w.push(&sample)).count();
        assert_eq!(pushed, 256 / 65);
        assert_eq!(control.counters.get(Counter::StreamFull), 10 - pushed as u64);
        let mut read = 0;
        while let Some(event) = r.read().unwrap() {
            assert_eq!(event, sample);
            read += 1;
        }
        assert_eq!(read, pushed);
        assert!(w.push(&sample));
    });
}

#[test]
fn garbage_never_panics_or_loops() {
    let mut x = 88172645463325252u64;
    let mut random = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    for round in 0..2000u64 {
        with(256, |control, ring| {
            for word in ring {
                let r = random();
                // Half of the words look like plausible heads.
                let plausible = (r & 7) | (r >> 8 & 63) << 8 | (r >> 20 & 3) << 32;
                word.store(if r >> 63 == 1 { r } else { plausible }, Relaxed);
            }
            control.head.store(if round % 3 == 0 { random() } else { random() % 256 }, Relaxed);
            let mut reader = Reader::new(control, ring);
            let mut steps = 0;
            loop {
                steps += 1;
                assert!(steps < 1000, "the reader must come to an end");
                match reader.read() {
                    Ok(None) | Err(ReadError::Broken) => break,
                    Ok(Some(_)) | Err(ReadError::Event(_)) => {}
                }
            }
        });
    }
}

#[test]
fn a_view_checks_sizes() {
    let (memory, _) = memory(256);
    let base = memory.as_ptr() as *mut u8;
    let base = base.wrapping_add(base.align_offset(64));
    // SAFETY: as above; each of these must be refused before anything is read.
    unsafe {
        assert!(stream::view(base, CONTROL_BYTES + 255 * 8, 256).is_none());
        assert!(stream::view(base, CONTROL_BYTES + 256 * 8, 255).is_none());
        assert!(stream::view(base, usize::MAX, usize::MAX / 4).is_none());
        assert!(stream::view(base.wrapping_add(8), CONTROL_BYTES + 256 * 8, 256).is_none());
    }
}
