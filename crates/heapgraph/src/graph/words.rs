//! Memory as words: any of them may be a pointer.

/// The aligned words of memory that begins at a multiple of 8.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()))
}
