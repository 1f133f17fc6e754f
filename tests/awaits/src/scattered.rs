//! Many tasks, each on pages of its own: memory that stays lies between them, as in a server whose requests have large buffers.

use crate::shapes;

/// Starts them, with as many KiB after each.
pub fn start_tasks(count: u64, kib: u64) {
    let mut buffers: Vec<Vec<u8>> = Vec::new();
    for _ in 0..count {
        shapes::many(1);
        // Only its first byte is written.
        let mut buffer = Vec::with_capacity(kib as usize * 1024);
        buffer.push(1);
        buffers.push(buffer);
    }
    std::mem::forget(buffers);
}
