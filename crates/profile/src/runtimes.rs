//! Names of async runtimes and their libraries, as debug information and symbols have them. All rules about them read them here.
//!
//! Paths of types end without their arguments: [`is_generic`] compares them. Constants that end in `::` are modules or crates.
//! Private types and fields may change with each version, so [`tokio::VERSIONS`] says which ones are known.

use crate::thread_waits::LockKind;

/// The runtime of which tasks are read.
///
/// Sources: `tokio/src/runtime/task/`, `tokio/src/sync/`, `tokio/src/task/`.
pub mod tokio {
    /// Versions of which tasks are read. `cargo xtask test tokio-versions --full` builds and reads 1.43 and each minor version from 1.47 on.
    pub const VERSIONS: &str = "1.43 to 1.54";

    /// The crate.
    pub const CRATE: &str = "tokio::";
    /// All that runs tasks.
    pub const RUNTIME: &str = "tokio::runtime::";
    /// Tasks, seen from a runtime.
    pub const RUNTIME_TASK: &str = "tokio::runtime::task::";
    /// Functions of `spawn_blocking`.
    pub const BLOCKING: &str = "tokio::runtime::blocking::";
    /// Schedulers, and the functions that their workers run.
    pub const SCHEDULER: &str = "tokio::runtime::scheduler::";
    /// Wrappers of atomics and cells.
    pub const LOOM: &str = "tokio::loom::";
    /// Internal lists and wakers.
    pub const UTIL: &str = "tokio::util::";

    /// The block of a task.
    pub const CELL: &str = "tokio::runtime::task::core::Cell";
    /// Its first part.
    pub const HEADER: &str = "tokio::runtime::task::core::Header";
    /// The functions of a task.
    pub const VTABLE: &str = "tokio::runtime::task::raw::Vtable";
    /// What `spawn` returns.
    pub const JOIN_HANDLE: &str = "tokio::runtime::task::join::JoinHandle";
    /// The future of a function of `spawn_blocking`.
    pub const BLOCKING_TASK: &str = "tokio::runtime::blocking::task::BlockingTask";
    /// The scheduler of such functions.
    pub const BLOCKING_SCHEDULE: &str = "tokio::runtime::blocking::schedule::BlockingSchedule";
    /// The block of a pool of threads for such functions.
    pub const BLOCKING_POOL_BLOCK: &str = "alloc::sync::ArcInner<tokio::runtime::blocking::pool::Inner>";
    /// A function in its queue.
    pub const BLOCKING_POOL_TASK: &str = "tokio::runtime::blocking::pool::Task";
    /// What tasks of a `LocalSet` share.
    pub const LOCAL_SHARED: &str = "tokio::task::local::Shared";
    /// In the name of a function that polls tasks: the begin of the type of its runtime or set.
    pub const SCHEDULED: &str = "alloc::sync::Arc<tokio::";
    /// `JoinSet`, and the functions that await the next end in it.
    pub const JOIN_SET_MODULE: &str = "tokio::task::join_set::";
    /// A set of tasks.
    pub const JOIN_SET: &str = "tokio::task::join_set::JoinSet";
    /// A future with a budget.
    pub const COOP: &str = "tokio::task::coop::Coop";

    /// Locks and channels.
    pub const SYNC: &str = "tokio::sync::";
    /// The functions of `Mutex`.
    pub const MUTEX_MODULE: &str = "tokio::sync::mutex::";
    /// The functions of `RwLock`.
    pub const RWLOCK_MODULE: &str = "tokio::sync::rwlock::";
    /// The functions of `mpsc` channels.
    pub const MPSC_MODULE: &str = "tokio::sync::mpsc::";
    /// A lock.
    pub const MUTEX: &str = "tokio::sync::mutex::Mutex";
    /// What locks, semaphores and bounded channels have inside.
    pub const SEMAPHORE: &str = "tokio::sync::batch_semaphore::Semaphore";
    /// The future that waits for permits of it.
    pub const ACQUIRE: &str = "tokio::sync::batch_semaphore::Acquire";
    /// The future that waits for a `Notify`.
    pub const NOTIFIED: &str = "tokio::sync::notify::Notified";
    /// The future that waits for the value of a `oneshot` channel.
    pub const ONESHOT_RECEIVER: &str = "tokio::sync::oneshot::Receiver";
    /// The other end of such a channel.
    pub const ONESHOT_SENDER: &str = "tokio::sync::oneshot::Sender";
    /// The begin of a block that holds a lock.
    pub const SHARED_SYNC: &str = "alloc::sync::ArcInner<tokio::sync::";

    /// What wakes those that wait for a `Notify`.
    pub const NOTIFY: &str = "tokio::sync::notify::Notify";
    /// What waits for several tasks to arrive.
    pub const BARRIER: &str = "tokio::sync::barrier::Barrier";
    /// The function that waits at it.
    pub const BARRIER_WAIT: &str = "tokio::sync::barrier::Barrier::wait";
    /// Functions that wait for a message of a channel, by their receiver.
    pub const RECEIVE: [&str; 5] = [
        "tokio::sync::mpsc::bounded::Receiver::recv",
        "tokio::sync::mpsc::bounded::Receiver::recv_many",
        "tokio::sync::mpsc::unbounded::UnboundedReceiver::recv",
        "tokio::sync::mpsc::unbounded::UnboundedReceiver::recv_many",
        "tokio::sync::broadcast::Receiver::recv",
    ];
    /// Functions that wait for a new value of a `watch` channel.
    pub const WATCH: [&str; 2] =
        ["tokio::sync::watch::Receiver::changed", "tokio::sync::watch::Receiver::wait_for"];

    /// A timer.
    pub const SLEEP: &str = "tokio::time::sleep::Sleep";
    /// A moment.
    pub const INSTANT: &str = "tokio::time::instant::Instant";
    /// `timeout`.
    pub const TIMEOUT_MODULE: &str = "tokio::time::timeout::";
    /// Its future.
    pub const TIMEOUT: &str = "tokio::time::timeout::Timeout";
    /// A branch of `join!`.
    pub const MAYBE_DONE: &str = "tokio::future::maybe_done::MaybeDone";
    /// The next element of a stream.
    pub const STREAM_NEXT: &str = "tokio_stream::stream_ext::next::Next";
}

/// The crate `tower`.
///
/// Sources: `tower/src/util/`, `tower/src/limit/` of 0.5; `hyper-util/src/service/` of 0.1.
pub mod tower {
    /// Futures that wait for a service to be ready, and then for its response.
    pub const ONESHOTS: [&str; 2] =
        ["tower::util::oneshot::Oneshot", "hyper_util::service::oneshot::Oneshot"];
    /// A service that waits for a permit.
    pub const CONCURRENCY_LIMIT: &str = "tower::limit::concurrency::service::ConcurrencyLimit";
}

/// The crate `futures` and its parts.
///
/// Sources: `futures-util/src/future/`, `futures-util/src/stream/` of 0.3.
pub mod futures {
    /// The crate with its combinators.
    pub const UTIL: &str = "futures_util::";
    /// Its module of futures.
    pub const FUTURE: &str = "futures_util::future::";
    /// Its module of streams.
    pub const STREAM: &str = "futures_util::stream::";
    /// A branch of `join!`.
    pub const MAYBE_DONE: &str = "futures_util::future::maybe_done::MaybeDone";
    /// A branch of `try_join!`.
    pub const TRY_MAYBE_DONE: &str = "futures_util::future::try_maybe_done::TryMaybeDone";
    /// The module of `join_all`.
    pub const JOIN_ALL_MODULE: &str = "futures_util::future::join_all::";
    /// The module of `try_join_all`.
    pub const TRY_JOIN_ALL_MODULE: &str = "futures_util::future::try_join_all::";
    /// One of two futures.
    pub const EITHER: &str = "futures_util::future::either::Either";
    /// A future that several tasks await.
    pub const SHARED: &str = "futures_util::future::future::shared::Shared";
    /// The next element of a stream.
    pub const NEXT: &str = "futures_util::stream::stream::next::Next";
    /// All elements of a stream.
    pub const COLLECT: &str = "futures_util::stream::stream::collect::Collect";
    /// The module of futures whose results come in order.
    pub const ORDERED_MODULE: &str = "futures_util::stream::futures_ordered::";
    /// The module of futures whose results come in any order.
    pub const UNORDERED_MODULE: &str = "futures_util::stream::futures_unordered::";
    /// Such a set of futures.
    pub const UNORDERED: &str = "futures_util::stream::futures_unordered::FuturesUnordered";
}

/// Senders of channels.
///
/// Sources: `tokio/src/sync/`, flume 0.11 and 0.12, async-channel 2, crossbeam-channel 0.5, `std/src/sync/mpsc.rs`.
pub const CHANNEL_SENDERS: [&str; 10] = [
    "tokio::sync::mpsc::bounded::Sender",
    "tokio::sync::mpsc::unbounded::UnboundedSender",
    "tokio::sync::oneshot::Sender",
    "tokio::sync::watch::Sender",
    "tokio::sync::broadcast::Sender",
    "flume::Sender",
    "async_channel::Sender",
    "crossbeam_channel::channel::Sender",
    "std::sync::mpsc::Sender",
    "std::sync::mpsc::SyncSender",
];

/// Receivers of these channels.
pub const CHANNEL_RECEIVERS: [&str; 9] = [
    "tokio::sync::mpsc::bounded::Receiver",
    "tokio::sync::mpsc::unbounded::UnboundedReceiver",
    "tokio::sync::oneshot::Receiver",
    "tokio::sync::watch::Receiver",
    "tokio::sync::broadcast::Receiver",
    "flume::Receiver",
    "async_channel::Receiver",
    "crossbeam_channel::channel::Receiver",
    "std::sync::mpsc::Receiver",
];

/// Channels in which threads wait, by the begins of the paths of their functions.
pub const BLOCKING_CHANNELS: [&str; 4] =
    ["crossbeam_channel::", "std::sync::mpsc::", "std::sync::mpmc::", "flume::"];
/// What both ends of such a channel share, by the ends of paths.
pub const SHARED_BY_ENDS: [&str; 2] = ["::Channel", "::Shared"];
/// Their methods that wait for a message.
pub const BLOCKING_RECEIVE: [&str; 4] = ["recv", "recv_timeout", "recv_deadline", "recv_sync"];
/// Their methods that wait for room.
pub const BLOCKING_SEND: [&str; 4] = ["send", "send_timeout", "send_deadline", "send_sync"];

/// Futures that wait for a message of a channel.
pub const RECEIVING: [&str; 2] = ["flume::async::RecvFut", "async_channel::Recv"];
/// Futures that wait for room in a channel.
pub const SENDING: [&str; 2] = ["flume::async::SendFut", "async_channel::Send"];

/// Locks of other libraries whose futures and guards are known: path of the lock, of the future, begin of the path of guards.
///
/// Sources: async-lock 3, futures-util 0.3.
pub const OTHER_MUTEXES: [(&str, &str, &str); 2] = [
    ("async_lock::mutex::Mutex", "async_lock::mutex::Lock", "async_lock::mutex::MutexGuard"),
    (
        "futures_util::lock::mutex::Mutex",
        "futures_util::lock::mutex::MutexLockFuture",
        "futures_util::lock::mutex::MutexGuard",
    ),
];

/// Guards of locks that block the thread, by the begins of their paths: whether of a mutex, and the fields that lead from the guard to
/// the lock, and within that to the word of its state.
///
/// Sources: `std/src/sync/poison/`, `std/src/sync/` before 1.85; lock_api 0.4.
pub const BLOCKING_GUARDS: [(&str, bool, &str, &[&str]); 9] = [
    ("std::sync::poison::mutex::MutexGuard<", true, "lock", &["inner", "futex"]),
    ("std::sync::poison::rwlock::RwLockReadGuard<", false, "inner_lock", &[]),
    ("std::sync::poison::rwlock::RwLockWriteGuard<", false, "lock", &["inner"]),
    ("std::sync::mutex::MutexGuard<", true, "lock", &["inner", "futex"]),
    ("std::sync::rwlock::RwLockReadGuard<", false, "inner_lock", &[]),
    ("std::sync::rwlock::RwLockWriteGuard<", false, "lock", &["inner"]),
    ("lock_api::mutex::MutexGuard<", true, "mutex", &["raw"]),
    ("lock_api::rwlock::RwLockReadGuard<", false, "rwlock", &["raw"]),
    ("lock_api::rwlock::RwLockWriteGuard<", false, "rwlock", &["raw"]),
];

/// Functions of Rust that wait for a lock: of which kind, and whether the thread waits for a word of its own, in a queue of parking_lot.
///
/// Sources: `std/src/sys/sync/`; parking_lot 0.11 and 0.12.
pub const BLOCKING_FUNCTIONS: [(&str, LockKind, bool); 8] = [
    ("mutex::futex::Mutex::lock_contended", LockKind::Mutex, false),
    ("rwlock::futex::RwLock::read_contended", LockKind::RwLock, false),
    ("rwlock::futex::RwLock::write_contended", LockKind::RwLock, false),
    ("raw_mutex::RawMutex::lock_slow", LockKind::Mutex, true),
    ("raw_rwlock::RawRwLock::lock_common", LockKind::RwLock, true),
    ("raw_rwlock::RawRwLock::lock_shared_slow", LockKind::RwLock, true),
    ("raw_rwlock::RawRwLock::lock_exclusive_slow", LockKind::RwLock, true),
    ("raw_rwlock::RawRwLock::wait_for_readers", LockKind::RwLock, true),
];

/// Names of parking_lot.
pub mod parking_lot {
    /// What parking_lot has of each thread (`parking_lot_core/src/parking_lot.rs` of 0.8 and 0.9): the word that the thread waits for, and
    /// the address of the lock in whose queue it is.
    pub const THREAD_DATA: &str = "parking_lot_core::parking_lot::ThreadData";
    /// The fields that lead to the word.
    pub const WORD: [&str; 2] = ["parker", "futex"];
    /// The field with the address of the lock.
    pub const KEY: &str = "key";
}

/// A future with a span of the crate `tracing`.
pub const INSTRUMENTED: &str = "tracing::instrument::Instrumented";

/// Runtimes and servers whose own types await no futures of others.
pub const AWAIT_NO_OTHERS: [&str; 7] =
    ["tokio::", "tokio_stream::", "hyper::", "hyper_util::", "axum::", "h2::", "tower::"];

/// Futures that wait for several others: in an await stack, they are a frame.
pub const COMBINATIONS: [&str; 6] = [
    tokio::TIMEOUT_MODULE,
    "futures_util::future::join",
    "futures_util::future::try_join",
    "futures_util::future::select",
    "futures_util::future::try_select",
    "futures_util::stream::futures_",
];

/// Futures of a connection of `hyper` that handles no request while it waits.
pub const IDLE_CONNECTIONS: [&str; 4] = [
    "hyper_util::server::conn::auto::UpgradeableConnection",
    "hyper_util::server::conn::auto::Connection",
    "hyper::server::conn::http1::UpgradeableConnection",
    "hyper::server::conn::http1::Connection",
];

/// The future of a connection of `hyper` whose requests are tasks of their own.
pub const HTTP2_CONNECTION: &str = "hyper::server::conn::http2::Connection";

/// Crates whose functions and variables are hardly what a program's author looks for: standard libraries, runtimes, and what these use.
const LIBRARIES: &[&str] = &[
    "alloc",
    "async_executor",
    "async_io",
    "async_std",
    "axum",
    "core",
    "crossbeam_channel",
    "crossbeam_deque",
    "crossbeam_epoch",
    "crossbeam_utils",
    "futures_executor",
    "futures_util",
    "h2",
    "hyper",
    "hyper_util",
    "lazy_static",
    "mio",
    "once_cell",
    "parking_lot",
    "parking_lot_core",
    "polling",
    "rayon",
    "rayon_core",
    "regex_automata",
    "smol",
    "std",
    "thread_local",
    "tokio",
    "tower",
];

/// Whether a function or variable with this path belongs to a standard library, a runtime, or what these use.
///
/// ```
/// use stackglass_profile::runtimes::is_of_library;
///
/// assert!(is_of_library("tokio::runtime::context::CONTEXT"));
/// assert!(is_of_library("<core::iter::Map as Iterator>::next"));
/// assert!(!is_of_library("app::CACHE"));
/// ```
pub fn is_of_library(path: &str) -> bool {
    let first = path.trim_start_matches('<').split_once("::").map(|(first, _)| first);
    first.is_some_and(|first| LIBRARIES.contains(&first))
}

/// Whether a type with this name is the generic one at this path.
///
/// ```
/// use stackglass_profile::runtimes::{is_generic, tokio};
///
/// assert!(is_generic("tokio::sync::mutex::Mutex<u32>", tokio::MUTEX));
/// assert!(!is_generic("tokio::sync::mutex::MutexGuard<u32>", tokio::MUTEX));
/// ```
#[inline]
pub fn is_generic(name: &str, path: &str) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.starts_with('<'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_names_the_versions() {
        let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/async.md");
        let guide = std::fs::read_to_string(guide).expect("the guide is there");
        assert!(guide.contains(tokio::VERSIONS), "docs/guide/async.md names no tokio {}", tokio::VERSIONS);
    }
}
