//! Which frames of a thread say what the word is that it waits for.
//!
//! Many functions wait for words: condition variables, semaphores, one's own locks. So the innermost frame that is not part of the
//! wait itself decides, by its name.

use crate::glibc_names::plain;
use stackglass_process_view::modules::is_glibc;
use stackglass_profile::Frame;
use stackglass_profile::frame::file_name;
use stackglass_profile::runtimes::BLOCKING_FUNCTIONS;
use stackglass_profile::thread_waits::LockKind;

/// Most frames between the system call and the function that locks.
const MOST_INNER: usize = 16;
/// Functions of glibc that wait for a word, without underscores before their names.
const WAITS: [&str; 13] = [
    "syscall",
    "futex_wait",
    "futex_wait_simple",
    "futex_clocklock64",
    "futex_lock_pi64",
    "futex_abstimed_wait64",
    "futex_abstimed_wait_common",
    "futex_abstimed_wait_common64",
    "futex_abstimed_wait_cancelable64",
    "lll_lock_wait",
    "lll_clocklock_wait",
    "lll_mutex_lock_optimized",
    "internal_syscall_cancel",
];
/// Its functions that wait for a mutex.
const MUTEXES: [&str; 7] = [
    "pthread_mutex_lock",
    "pthread_mutex_lock_full",
    "pthread_mutex_cond_lock",
    "pthread_mutex_cond_lock_full",
    "pthread_mutex_timedlock",
    "pthread_mutex_clocklock",
    "pthread_mutex_clocklock_common",
];
/// For a rwlock.
const RWLOCKS: [&str; 8] = [
    "pthread_rwlock_rdlock",
    "pthread_rwlock_rdlock_full64",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_wrlock_full64",
    "pthread_rwlock_timedrdlock",
    "pthread_rwlock_timedwrlock",
    "pthread_rwlock_clockrdlock",
    "pthread_rwlock_clockwrlock",
];
/// For the end of a thread.
const JOINS: [&str; 4] =
    ["pthread_join", "pthread_clockjoin_ex", "pthread_timedjoin_np", "pthread_clockjoin_np"];
/// What Rust's libraries call between these and the system call.
const INNER: [&str; 4] = ["parking_lot_core::", "std::thread::local::", "core::", "<parking_lot_core::"];
/// Libraries that call these functions for the program.
const CALLERS: [&str; 8] =
    ["std::", "core::", "alloc::", "<std::", "<core::", "<alloc::", "parking_lot", "lock_api::"];
/// Files of C++'s standard library for locks.
const FILES: [&str; 4] = ["gthr-default.h", "std_mutex.h", "mutex", "thread.cc"];

/// What a word belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waited {
    /// A mutex of glibc.
    Mutex,
    /// A rwlock of glibc.
    RwLock,
    /// A thread of glibc.
    Join,
    /// A lock of Rust, whose guard tells who has it.
    Guarded {
        /// Its kind.
        kind: LockKind,
        /// The word is one of the thread.
        is_parked: bool,
        /// Bytes from the word of the lock's state to that one.
        behind: u64,
    },
}

/// What a thread with these frames waits for, innermost first.
pub(super) fn waited(stack: &[Frame]) -> Option<Waited> {
    stack.iter().take(MOST_INNER).find_map(decides).flatten()
}

/// The innermost frame outside of the libraries that lock.
pub(super) fn caller(stack: &[Frame]) -> Option<&Frame> {
    stack.iter().find(|frame| {
        let name = plain(&frame.func);
        let is_library = CALLERS.iter().any(|begin| frame.func.starts_with(begin))
            || FILES.contains(&file_name(&frame.file))
            || name.starts_with("gthread_");
        !is_wait(frame) && !is_library && function(name).is_none() && !matches!(name, "flock" | "fcntl")
    })
}

/// Whether a frame says what is waited for, and what that is.
fn decides(frame: &Frame) -> Option<Option<Waited>> {
    if is_wait(frame) { None } else { Some(function(plain(&frame.func))) }
}

/// Whether a frame only waits. A library without symbols has functions without names.
fn is_wait(frame: &Frame) -> bool {
    let is_nameless = frame.func.is_empty() || frame.start_as_name().is_some();
    let module = file_name(&frame.module);
    let is_of_library = is_glibc(module) || module.starts_with("libpthread");
    is_nameless && is_of_library
        || WAITS.contains(&plain(&frame.func))
        || INNER.iter().any(|begin| frame.func.starts_with(begin))
        || frame.func.starts_with("std::sys::") && frame.func.ends_with("::futex::futex_wait")
}

fn function(name: &str) -> Option<Waited> {
    match name {
        name if MUTEXES.contains(&name) => Some(Waited::Mutex),
        name if RWLOCKS.contains(&name) => Some(Waited::RwLock),
        name if JOINS.contains(&name) => Some(Waited::Join),
        _ => guarded(name),
    }
}

fn guarded(name: &str) -> Option<Waited> {
    let (_, kind, is_parked) = BLOCKING_FUNCTIONS.iter().find(|(end, _, is_parked)| {
        name.ends_with(end) && name.starts_with(if *is_parked { "parking_lot::" } else { "std::sys" })
    })?;
    // Writers wait for the word `writer_notify` behind the state (`std/src/sys/sync/rwlock/futex.rs`).
    let behind = if name.ends_with("::write_contended") { 4 } else { 0 };
    Some(Waited::Guarded { kind: *kind, is_parked: *is_parked, behind })
}

/// Whether a function waits for a condition variable of Rust: it has given the lock back whose guard it was given.
pub(super) fn gives_back(frame: &Frame) -> bool {
    let is_of_rust = frame.func.starts_with("std::s") || frame.func.starts_with("parking_lot::");
    is_of_rust && frame.func.contains("::Condvar::wait")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str]) -> Vec<Frame> {
        let frame = |name: &&str| {
            let mut frame = Frame::unknown(0);
            (frame.func, frame.module) = ((*name).into(), "/lib/libc.so.6".into());
            frame
        };
        names.iter().map(frame).collect()
    }

    #[test]
    fn the_innermost_function_decides() {
        let of = |names: &[&str]| waited(&stack(names));
        let inner = ["futex_wait", "__GI___lll_lock_wait", "lll_mutex_lock_optimized"];
        assert_eq!(of(&[&inner[..], &["___pthread_mutex_lock", "main"]].concat()), Some(Waited::Mutex));
        // Without symbols, and by another version's name.
        assert_eq!(of(&["libc.so.6+0x8a1b0", "pthread_mutex_lock@@GLIBC_2.2.5"]), Some(Waited::Mutex));
        assert_eq!(of(&["__futex_abstimed_wait_common64", "__pthread_clockjoin_ex"]), Some(Waited::Join));
        // A condition variable, a lock within a library, and a lock of one's own.
        assert_eq!(of(&["__futex_abstimed_wait_common64", "__pthread_cond_wait_common"]), None);
        assert_eq!(of(&["__lll_lock_wait_private", "__GI___libc_malloc", "pthread_mutex_lock"]), None);
        assert_eq!(of(&["syscall", "my_lock", "pthread_mutex_lock"]), None);
        // After a condition variable, its mutex is locked again.
        assert_eq!(of(&["__lll_lock_wait", "__pthread_mutex_cond_lock"]), Some(Waited::Mutex));
    }

    #[test]
    fn locks_of_rust() {
        let of = |names: &[&str]| waited(&stack(names));
        let std = ["syscall", "std::sys::pal::unix::futex::futex_wait"];
        let contended = "std::sys::sync::mutex::futex::Mutex::lock_contended";
        let guarded = |is_parked| Some(Waited::Guarded { kind: LockKind::Mutex, is_parked, behind: 0 });
        assert_eq!(of(&[&std[..], &[contended, "app::f"]].concat()), guarded(false));
        let condvar = "std::sys::sync::condvar::futex::Condvar::wait_optional_timeout";
        assert_eq!(of(&[&std[..], &[condvar, contended]].concat()), None);
        let writer = "std::sys::sync::rwlock::futex::RwLock::write_contended";
        let behind = Some(Waited::Guarded { kind: LockKind::RwLock, is_parked: false, behind: 4 });
        assert_eq!(of(&[&std[..], &[writer]].concat()), behind);
        let parked = ["syscall", "parking_lot_core::parking_lot::park", "core::option::Option::map"];
        let slow = "parking_lot::raw_mutex::RawMutex::lock_slow";
        assert_eq!(of(&[&parked[..], &[slow]].concat()), guarded(true));
        let common = "parking_lot::raw_rwlock::RawRwLock::lock_common";
        let shared = Some(Waited::Guarded { kind: LockKind::RwLock, is_parked: true, behind: 0 });
        assert_eq!(of(&[&parked[..], &[common, "lock_api::rwlock::RwLock::read"]].concat()), shared);
        assert_eq!(of(&[&parked[..], &["parking_lot::condvar::Condvar::wait", slow]].concat()), None);
    }

    #[test]
    fn the_caller_is_the_programs_own() {
        let stack =
            stack(&["futex_wait", "__lll_lock_wait", "pthread_mutex_lock", "__gthread_mutex_lock", "work"]);
        assert_eq!(caller(&stack).map(|frame| &*frame.func), Some("work"));
    }
}
