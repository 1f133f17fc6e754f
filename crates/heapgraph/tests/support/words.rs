//! Memory of single words, and mappings without files.

use stackglass_process_view::core_image::{CoreImage, Mapping, Memory, Thread};
use std::collections::BTreeMap;
use std::ops::Range;

/// Words by address, at multiples of 8. All others are 0.
struct Words(BTreeMap<u64, u64>);

impl Memory for Words {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        for (index, byte) in into.iter_mut().enumerate() {
            let at = address + index as u64;
            let word = self.0.get(&(at & !7)).copied().unwrap_or(0);
            *byte = word.to_le_bytes()[(at & 7) as usize];
        }
        into.len()
    }
}

/// Private memory that can be read and written, or cannot be accessed.
pub fn mapping(range: Range<u64>, accessible: bool) -> Mapping {
    Mapping {
        range,
        readable: accessible,
        writable: accessible,
        executable: false,
        shared: false,
        offset: 0,
        inode: 0,
        path: String::new(),
    }
}

/// A process with these words in its memory.
pub fn image(mappings: &[Mapping], threads: Vec<Thread>, words: &[(u64, u64)]) -> CoreImage {
    let memory = Box::new(Words(words.iter().copied().collect()));
    CoreImage { pid: 1, executable: String::new(), mappings: mappings.to_vec(), threads, memory }
}
