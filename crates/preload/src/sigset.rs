//! Sets of signals as words with one bit for each of the first 64 signals.

/// The first 64 signals of a set.
pub(crate) fn mask_word(set: &libc::sigset_t) -> u64 {
    // SAFETY: a sigset_t is 128 bytes of bits, of which the kernel uses the first eight.
    unsafe { *(set as *const libc::sigset_t).cast::<u64>() }
}

/// The set of the signals in a word.
pub(crate) fn set_of(mask: u64) -> libc::sigset_t {
    // SAFETY: all zeros is the empty set; its first eight bytes are the first 64 signals.
    unsafe {
        let mut set: libc::sigset_t = core::mem::zeroed();
        *(&raw mut set).cast::<u64>() = mask;
        set
    }
}

/// The bit of a signal; zero for numbers beyond the word.
pub(crate) fn bit(number: i32) -> u64 {
    if (1..=64).contains(&number) { 1 << (number - 1) } else { 0 }
}
