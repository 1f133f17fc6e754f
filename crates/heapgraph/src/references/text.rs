//! The contents of text. Only for snapshots that may hold contents of the program.

use stackglass_layouts::BlockType;

/// Size of the counters before the text of an `Rc<str>`.
const COUNTERS: u64 = 16;
/// Longest text in a name, in bytes.
const LONGEST: u64 = 200;

/// Where the text begins in a block.
pub fn start_of_text(contains: BlockType) -> u64 {
    match contains {
        BlockType::CountedElements(_) | BlockType::SharedElements(_) => COUNTERS,
        _ => 0,
    }
}

/// How many bytes of a text a name shows.
pub fn shown_bytes(length: u64) -> usize {
    length.min(LONGEST) as usize
}

/// A text of `length` bytes that begins with `bytes`, with `…` if it is cut. `None` if this is no UTF-8.
pub fn text(length: u64, bytes: &[u8]) -> Option<String> {
    let is_cut = length > bytes.len() as u64;
    match std::str::from_utf8(bytes) {
        Ok(text) if !is_cut => Some(text.to_owned()),
        Ok(text) => Some(format!("{text}…")),
        // The cut is inside of a character.
        Err(error) if is_cut && error.error_len().is_none() => {
            let text = std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?;
            Some(format!("{text}…"))
        }
        Err(_) => None,
    }
}
