//! What a terminal has received, and what it shows.
//!
//! `top` draws only cells that changed. A word that shares letters with what stood there before arrives in parts, so words are
//! looked for on the screen, not in the bytes.

use super::text;
use std::num::NonZeroU16;

/// Lines of a test's terminal.
pub const ROWS: NonZeroU16 = NonZeroU16::new(40).unwrap();
/// Its width.
pub const COLUMNS: NonZeroU16 = NonZeroU16::new(100).unwrap();

/// Bytes that a program has written, and the screen that they made.
pub struct Received {
    bytes: Vec<u8>,
    emulator: vt100::Parser,
}

impl Received {
    /// An empty screen.
    pub fn new() -> Received {
        Received { bytes: Vec::new(), emulator: vt100::Parser::new(ROWS, COLUMNS, 0) }
    }

    /// The next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.emulator.process(bytes);
    }

    /// All bytes as text.
    pub fn text(&self) -> String {
        text(&self.bytes)
    }

    /// The lines of the screen.
    pub fn screen(&self) -> String {
        self.emulator.screen().contents()
    }
}
