//! `.jlprof`: what is read can be written and reads the same, also as a recording.

use super::memory::bounded;
use stackglass_files::jlprof::{read_from, write_to};
use stackglass_files::recording_of;

/// The bytes are the file.
pub fn check(bytes: &[u8]) {
    let allowed = 64 * bytes.len() + (64 << 10);
    let Ok(samples) = bounded(allowed, || read_from(bytes)) else { return };
    let words = samples.data.words();
    let mut written = Vec::new();
    write_to(&mut written, words.len() as u64, words.iter().copied(), &samples.dictionary)
        .expect("memory takes what it is given");
    let again = read_from(&written[..]).expect("what was written is read");
    assert_eq!(again.data.words(), words);
    assert_eq!(again.dictionary.addresses(), samples.dictionary.addresses());
    let allowed = 256 * bytes.len() + (1 << 20);
    let _ = bounded(allowed, || recording_of(&samples.data, &samples.dictionary));
}
