//! Counts of allocations in a scope, for tests and benchmarks.

use stackglass_heap::{LeftOut, MOST_SCOPES, ProcessScope, ThreadScope, probe};

#[doc(inline)]
pub use stackglass_heap::StatsCounts;

/// What was allocated in a scope: by the calling thread, or by the whole process. The counts are exact.
///
/// The allocator must be [`Alloc`](crate::Alloc). Nothing else is needed: no stack is walked, and a counted allocation costs a few
/// nanoseconds more. Scopes may nest and overlap. Scopes of a thread count this thread only, so tests that run in parallel do not
/// disturb each other.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();
///
/// use stackglass::allocs::Stats;
///
/// fn main() {
///     let stats = Stats::thread();
///     let words: Vec<String> = ["one", "two"].iter().map(|word| word.to_string()).collect();
///     assert_eq!(stats.get().blocks, 3); // the vector and two strings
///     stats.assert_max_bytes(64);
///     drop(words);
///     stats.assert_all_freed();
/// }
/// ```
#[derive(Debug)]
pub struct Stats {
    scope: Scope,
}

#[derive(Debug)]
enum Scope {
    Thread(ThreadScope),
    Process(ProcessScope),
}

impl Stats {
    /// Begins a scope of the calling thread.
    ///
    /// # Panics
    /// If the program's allocator is not [`Alloc`](crate::Alloc), or with more than 16 scopes of this thread at a time.
    #[track_caller]
    pub fn thread() -> Stats {
        check_allocator();
        match ThreadScope::begin() {
            Some(scope) => Stats { scope: Scope::Thread(scope) },
            None => panic!("a thread has at most {MOST_SCOPES} scopes of allocs::Stats at a time"),
        }
    }

    /// Begins a scope of all threads. Their counts are shared, so this costs more than [`Stats::thread`] in a program whose threads
    /// allocate at the same time.
    ///
    /// # Panics
    /// If the program's allocator is not [`Alloc`](crate::Alloc), or with more than 16 scopes of the process at a time.
    #[track_caller]
    pub fn process() -> Stats {
        check_allocator();
        match ProcessScope::begin() {
            Some(scope) => Stats { scope: Scope::Process(scope) },
            None => panic!("a process has at most {MOST_SCOPES} scopes of allocs::Stats at a time"),
        }
    }

    /// The counts since the begin of the scope.
    pub fn get(&self) -> StatsCounts {
        match &self.scope {
            Scope::Thread(scope) => scope.counts(),
            Scope::Process(scope) => scope.counts(),
        }
    }

    /// # Panics
    /// If more blocks than these were allocated.
    #[track_caller]
    pub fn assert_max_blocks(&self, most: u64) {
        let counts = self.get();
        assert!(counts.blocks <= most, "more than {most} blocks were allocated: {counts}");
    }

    /// # Panics
    /// If more bytes than these were allocated.
    #[track_caller]
    pub fn assert_max_bytes(&self, most: u64) {
        let counts = self.get();
        assert!(counts.bytes <= most, "more than {most} bytes were allocated: {counts}");
    }

    /// # Panics
    /// If more bytes than these were alive at a time.
    #[track_caller]
    pub fn assert_max_peak_bytes(&self, most: u64) {
        let counts = self.get();
        assert!(counts.peak_bytes <= most, "more than {most} bytes were alive at a time: {counts}");
    }

    /// # Panics
    /// If more was allocated than freed.
    #[track_caller]
    pub fn assert_all_freed(&self) {
        let counts = self.get();
        assert!(
            counts.live_blocks <= 0 && counts.live_bytes <= 0,
            "not everything that was allocated was freed: {counts}"
        );
    }
}

#[track_caller]
fn check_allocator() {
    let _left_out = LeftOut::new();
    assert!(probe().is_some(), "allocs::Stats: {}", super::StartError::OtherAllocator);
}

/// What a closure allocates on the calling thread, and its value.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();
/// # fn main() {
/// let (text, counts) = stackglass::allocs::measure(|| "a".repeat(100));
/// assert_eq!((counts.blocks, counts.bytes, counts.live_blocks), (1, 100, 1), "{text}");
/// # }
/// ```
///
/// # Panics
/// As [`Stats::thread`].
#[track_caller]
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, StatsCounts) {
    let stats = Stats::thread();
    let value = work();
    let counts = stats.get();
    (value, counts)
}
