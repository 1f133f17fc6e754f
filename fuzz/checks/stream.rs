//! The stream of a profiled program: for any contents, the reader ends and the recorder keeps its bound. The bytes are the
//! words of the ring.
#![allow(unsafe_code, reason = "views memory as a stream")]

use super::memory::bounded;
use stackglass_collect::EventTranslator;
use stackglass_profile::{Recorder, RecordingInfo};
use stackglass_wire::stream::{ReadError, Reader, view};
use stackglass_wire::{CONTROL_BYTES, ControlPage};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words of the ring.
const RING: usize = 1 << 10;

/// Most words in the recorder.
const BOUND: u64 = 1 << 16;

/// The first two bytes are the number of words ever written, by the program's account; the rest are its words.
pub fn check(bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_first_chunk::<2>() else { return };
    let length = CONTROL_BYTES + RING * 8;
    let memory: Vec<AtomicU64> = (0..length / 8 + 8).map(|_| AtomicU64::new(0)).collect();
    let base = memory.as_ptr().cast_mut().cast::<u8>();
    let base = base.wrapping_add(base.align_offset(64));
    // SAFETY: `memory` is made of atomics, has `length` bytes and 64 more to align in, and outlives both.
    let (control, ring): (&ControlPage, &[AtomicU64]) =
        unsafe { view(base, length, RING) }.expect("sizes and alignment are right");
    for (word, bytes) in ring.iter().zip(rest.chunks(8)) {
        let mut eight = [0; 8];
        eight[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_le_bytes(eight), Relaxed);
    }
    control.head.store(u16::from_le_bytes(*head).into(), Relaxed);

    // For any contents of the ring, and the words of the bound.
    bounded(64 * RING * 8 + (1 << 20), || read(control, ring));
}

fn read(control: &ControlPage, ring: &[AtomicU64]) {
    let mut recorder = Recorder::new(RecordingInfo { capacity: BOUND, ..RecordingInfo::default() });
    let Some(mut translator) = EventTranslator::new(control, &mut recorder) else { return };
    let mut reader = Reader::new(control, ring);
    let mut events = 0;
    loop {
        match reader.read() {
            Ok(Some(event)) => translator.apply(&event, &mut recorder),
            Err(ReadError::Event(_)) => {}
            Ok(None) | Err(ReadError::Broken) => break,
        }
        events += 1;
        assert!(events <= RING, "each event is a word at least");
    }
    translator.refresh(control, &mut recorder);
    // One event may exceed the bound, by its size.
    assert!(recorder.words() <= BOUND + 2 * RING as u64 + 64, "{} words", recorder.words());
    let recording = recorder.into_recording();
    let nodes = recording.stacks.nodes().len();
    assert!(
        recording.samples.iter().all(|s| s.stack.0 as usize <= nodes && recording.thread(s.thread).is_some())
    );
}
