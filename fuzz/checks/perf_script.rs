//! The text of `perf script`: each sample is a hit, and the samples can be written and read as folded stacks.

use super::memory::bounded;
use stackglass_files::{folded, perf_script};

/// The bytes are the text.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = perf_script::is_likely(&text);
    // A frame of a few characters takes a location with a name, a module and a file.
    let allowed = 1024 * bytes.len() + (4 << 20);
    let Ok(recording) = bounded(allowed, || perf_script::read_from(bytes)) else { return };
    let hits: u64 = recording.samples.iter().map(|sample| u64::from(sample.hits)).sum();
    let lines = text.lines().count() as u64;
    assert!(hits > 0 && hits <= lines, "{hits} hits in {lines} lines");
    for sample in &recording.samples {
        let thread = recording.threads.get(sample.thread.0 as usize - 1).expect("a thread that is told");
        assert!((thread.process.0 as usize) < recording.processes.len());
        assert!(recording.stacks.walk(sample.stack).count() > 0, "a sample has frames");
    }
    let mut written = Vec::new();
    folded::write_to(&mut written, &recording).expect("memory takes what it is given");
    let again = folded::read_from(&written[..]).expect("what was written is read");
    assert_eq!(again.samples.iter().map(|sample| u64::from(sample.hits)).sum::<u64>(), hits);
}
