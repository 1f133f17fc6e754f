//! Folded stacks: stacks that are read can be written, and read again as the same.

use super::memory::bounded;
use stackglass_files::folded::{read_from, write_to};

/// The bytes are the file.
pub fn check(bytes: &[u8]) {
    // Counts beyond 32 bits take more samples, whose number is bounded for all files.
    let allowed = 512 * bytes.len() + (64 << 10) + (16 << 20);
    let Ok(recording) = bounded(allowed, || read_from(bytes)) else { return };
    let write = |recording| {
        let mut out = Vec::new();
        write_to(&mut out, recording).expect("memory takes what it is given");
        out
    };
    let once = write(&recording);
    let again = read_from(&once[..]).expect("what was written is read");
    assert_eq!(write(&again), once);
}
