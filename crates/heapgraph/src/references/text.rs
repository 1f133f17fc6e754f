//! The contents of text. Only for snapshots that may hold contents of the program.

use super::Extent;
use stackglass_symbols::layouts::BlockType;

/// Size of the counters before the text of an `Rc<str>`.
const COUNTERS: usize = 16;

/// The text in a block, if a [`Reference`](super::Reference) says that it holds text: the bytes that its owner says are
/// initialized, as far as they are UTF-8. `None` if the block has fewer bytes, or none of them is text.
pub fn text(contains: BlockType, extent: Extent, bytes: &[u8]) -> Option<&str> {
    let start = if matches!(contains, BlockType::CountedElements(_) | BlockType::SharedElements(_)) {
        COUNTERS
    } else {
        0
    };
    let length = usize::try_from(extent.elements?).ok()?;
    let bytes = bytes.get(start..start.checked_add(length)?)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.valid_up_to() == 0 => None,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok(),
    }
}
