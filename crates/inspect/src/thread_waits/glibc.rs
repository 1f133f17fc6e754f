//! Locks of glibc in memory, which know their owner (`sysdeps/x86/nptl/bits/struct_mutex.h`, `struct_rwlock.h`).
//!
//! musl's locks have other layouts, and other values in the words that threads wait for: those of its mutexes are ids of threads.

use super::calls::FutexWait;
use stackglass_process_view::core_image::CoreImage;

/// Words of `pthread_mutex_t`: `__lock`, `__count`, `__owner`, `__nusers`, `__kind`.
const MUTEX_WORDS: usize = 5;
const OWNER: usize = 2;
const KIND: usize = 4;
/// Value of `__lock` while others wait (`lowlevellock.h`).
const CONTENDED: u32 = 2;
/// Bits of `__kind` (`pthreadP.h`): the type, whether it is robust, whether it inherits priorities, whether processes share it, and
/// whether hardware may elide it.
const TYPE: u32 = 3;
const ROBUST: u32 = 16;
const INHERITS: u32 = 32;
const SHARED: u32 = 128;
const ELISION: u32 = 256 | 512;
/// Bits of a robust lock's word with its owner (futex(2)).
const TID: u32 = 0x3fff_ffff;
/// Words of `pthread_rwlock_t`: `__readers`, `__writers`, `__wrphase_futex`, `__writers_futex`, two of padding, `__cur_writer`,
/// `__shared`.
const RWLOCK_WORDS: usize = 8;
const PHASE: u64 = 8;
const WRITERS: u64 = 12;
const WRITER: usize = 6;
const IS_SHARED: usize = 7;

/// A lock, and its owner by the id in the process's own namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lock {
    pub address: u64,
    pub owner: Option<u32>,
}

/// The mutex for which a call of `pthread_mutex_lock` waits.
pub(super) fn mutex(image: &CoreImage, futex: &FutexWait) -> Option<Lock> {
    let words = words::<MUTEX_WORDS>(image, futex.address)?;
    let (lock, kind) = (words[0], words[KIND]);
    let owner = match (kind & !(TYPE | ELISION), futex.value) {
        (0, Some(CONTENDED)) => (lock == CONTENDED).then_some(words[OWNER]),
        (ROBUST, Some(value)) if value & TID == lock & TID => Some(lock & TID),
        (INHERITS, None) => Some(lock & TID),
        (kind, None) if kind == INHERITS | ROBUST => Some(lock & TID),
        // Its owner may be a thread of another process, with ids of its own.
        (kind, _) if kind & SHARED != 0 => None,
        _ => return None,
    };
    let owner = owner.filter(|owner| *owner != 0 && futex.is_private);
    Some(Lock { address: futex.address, owner })
}

/// The lock for which a call of `pthread_rwlock_rdlock` or `_wrlock` waits. Only writers are known.
pub(super) fn rwlock(image: &CoreImage, futex: &FutexWait) -> Option<Lock> {
    futex.value?;
    // Locks are aligned to 8 bytes.
    let offset = if futex.address.is_multiple_of(8) { PHASE } else { WRITERS };
    let address = futex.address.checked_sub(offset)?;
    let words = words::<RWLOCK_WORDS>(image, address)?;
    let is_own = words[IS_SHARED] == 0 && futex.is_private;
    Some(Lock { address, owner: Some(words[WRITER]).filter(|owner| *owner != 0 && is_own) })
}

/// The thread whose end a call of `pthread_join` waits for: the kernel clears this word then.
pub(super) fn joined(image: &CoreImage, futex: &FutexWait) -> Option<u32> {
    let [tid] = words(image, futex.address)?;
    (futex.value == Some(tid) && tid != 0).then_some(tid)
}

fn words<const N: usize>(image: &CoreImage, address: u64) -> Option<[u32; N]> {
    let mut bytes = vec![0; N * 4];
    let is_whole = image.memory.read(address, &mut bytes) == bytes.len();
    let word = |place: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[place * 4 + byte]));
    is_whole.then(|| std::array::from_fn(word))
}
