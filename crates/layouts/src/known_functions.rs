//! Functions whose effect is known without reading their code: those that give permits of tokio's locks back, those that free
//! memory, those that copy it, and those that close sockets.
//!
//! Symbols name them. Functions of other modules are named by the slots that the dynamic linker fills with their addresses.

use foldhash::HashMap;
use stackglass_debug_info::functions;
use stackglass_debug_info::locate::Files;
use stackglass_debug_info::naming::name_of_symbol;
use stackglass_profile::runtimes::{BLOCKING_CHANNELS, BLOCKING_RECEIVE, BLOCKING_SEND};
use std::ops::Range;
use std::sync::Arc;

/// What a function does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KnownFunction {
    /// Gives permits of a semaphore of tokio back: its address, and the number of permits.
    Release,
    /// Closes a semaphore of tokio, as the end of a channel's receiver does.
    Close,
    /// Frees memory.
    Free,
    /// Copies memory: to, from, bytes.
    Copy,
    /// Fills memory with a byte: to, byte, bytes.
    Fill,
    /// Asks the kernel something about a descriptor, changes no memory of the program, and returns 0 unless it fails.
    Descriptor,
    /// Writes to a descriptor: descriptor, address, bytes.
    Write,
    /// Makes a system call: its number, and its arguments.
    SystemCall,
    /// Waits for a lock of std or parking_lot: its address.
    Lock,
    /// Gives a mutex of parking_lot back, and wakes others: its address.
    UnlockMutex,
    /// Gives a `RwLock` of parking_lot back that was locked for writing, and wakes others: its address.
    UnlockWritten,
    /// Wakes others, as nobody reads a `RwLock` of parking_lot any more: its address.
    UnlockRead,
    /// Unwinds the caller of a function whose landing pad has dropped all, or takes what `catch_unwind` has caught.
    Resume,
    /// Ends the process, or unwinds the stack.
    NoReturn,
}

/// Functions of C and C++ that do not return.
const NO_RETURN: [&str; 12] = [
    "abort",
    "exit",
    "_exit",
    "__assert_fail",
    "__stack_chk_fail",
    "_ZSt9terminatev",
    "__clang_call_terminate",
    "__cxa_call_terminate",
    "__cxa_throw",
    "__cxa_rethrow",
    "_Unwind_RaiseException",
    "__cxa_end_cleanup",
];
/// The function of std that takes what `catch_unwind` has caught, by parts of its symbols (`std/src/panicking.rs`).
const CATCHES: [&str; 2] = ["9panicking3try7cleanup", "9panicking12catch_unwind7cleanup"];
/// Functions of parking_lot that wait for locks, or give locks back for which others wait, by parts of their symbols.
const PARKING_LOT: [(&str, KnownFunction); 7] = [
    ("8RawMutex9lock_slow", KnownFunction::Lock),
    ("9RawRwLock11lock_common", KnownFunction::Lock),
    ("9RawRwLock16lock_shared_slow", KnownFunction::Lock),
    ("9RawRwLock19lock_exclusive_slow", KnownFunction::Lock),
    ("8RawMutex11unlock_slow", KnownFunction::UnlockMutex),
    ("9RawRwLock21unlock_exclusive_slow", KnownFunction::UnlockWritten),
    ("9RawRwLock18unlock_shared_slow", KnownFunction::UnlockRead),
];

/// The known functions of a module.
#[derive(Clone, Debug, Default)]
pub struct KnownFunctions {
    /// By their address in the file.
    pub functions: HashMap<u64, KnownFunction>,
    /// By the address in the file of a slot that leads to them.
    pub slots: HashMap<u64, KnownFunction>,
    /// Addresses in the file of the functions in which `block_on` of tokio waits.
    pub parks: Vec<Range<u64>>,
    /// Addresses in the file of the functions of `std::sync` in which a thread waits for a mutex (true), or for a `RwLock`.
    pub contended: Vec<(Range<u64>, bool)>,
    /// Addresses in the file of the functions in which a thread waits for a message of a channel (true), or for room in it.
    pub channels: Vec<(Range<u64>, bool)>,
    /// Functions that poll tasks of tokio: address in the file, and name with type arguments, which only the newer mangling of Rust
    /// (v0) has.
    pub polls: Vec<(u64, Option<Arc<str>>)>,
    /// A panic unwinds the stack, as it does unless the program was built to abort.
    pub unwinds: bool,
    /// Some of its symbols are those of Rust.
    pub has_rust_symbols: bool,
}

/// Finds those of a module.
pub(super) fn find(files: &Files) -> KnownFunctions {
    let mut found = KnownFunctions::default();
    for (addresses, name) in functions::defined(files) {
        if let Some(function) = function(name) {
            found.functions.insert(addresses.start, function);
        } else if name.contains("5tokio7runtime4park") && is_park(name) {
            found.parks.push(addresses);
        } else if let Some(is_mutex) = is_contended(name) {
            found.functions.insert(addresses.start, KnownFunction::Lock);
            found.contended.push((addresses, is_mutex));
        } else if let Some(receives) = is_channel_wait(name) {
            found.channels.push((addresses, receives));
        } else if name.contains("5tokio7runtime4task3raw4poll") {
            let with_types = name_of_symbol(name).spec.filter(|_| name.starts_with("_R"));
            found.polls.push((addresses.start, with_types));
        }
        found.unwinds |= name.contains("12panic_unwind");
        found.has_rust_symbols |= name.starts_with("_R") || name.starts_with("_ZN") && name.contains("17h");
    }
    let slots = functions::slots(files);
    found.slots.extend(slots.filter_map(|(slot, name)| Some((slot, function(name)?))));
    found
}

/// Whether this is a method `park` of `CachedParkThread` or of its `Inner`, either of which may be inlined.
fn is_park(symbol: &str) -> bool {
    ["16CachedParkThread4park", "5Inner4park"].iter().any(|method| symbol.contains(method))
}

/// Whether a function of `std/src/sys/sync/` waits for a mutex, or for a `RwLock`.
fn is_contended(symbol: &str) -> Option<bool> {
    let is = |method: &str| symbol.contains("5futex") && symbol.contains(method);
    match () {
        () if is("5Mutex14lock_contended") => Some(true),
        () if is("6RwLock14read_contended") || is("6RwLock15write_contended") => Some(false),
        () => None,
    }
}

/// Whether a function waits for a message of a channel of threads, or for room in it.
fn is_channel_wait(symbol: &str) -> Option<bool> {
    const PARTS: [&str; 4] = ["17crossbeam_channel", "4sync4mpsc", "4sync4mpmc", "5flume"];
    if !PARTS.iter().any(|part| symbol.contains(part)) {
        return None;
    }
    let name = name_of_symbol(symbol).func;
    let (_, method) = name.rsplit_once("::")?;
    match () {
        () if !BLOCKING_CHANNELS.iter().any(|begin| name.starts_with(begin)) => None,
        () if BLOCKING_RECEIVE.contains(&method) => Some(true),
        () if BLOCKING_SEND.contains(&method) => Some(false),
        () => None,
    }
}

/// What the function with a symbol does, in both manglings of Rust and in C.
fn function(symbol: &str) -> Option<KnownFunction> {
    match symbol {
        "free" => return Some(KnownFunction::Free),
        "memcpy" | "memmove" => return Some(KnownFunction::Copy),
        "memset" => return Some(KnownFunction::Fill),
        "write" => return Some(KnownFunction::Write),
        "syscall" => return Some(KnownFunction::SystemCall),
        "close" | "epoll_ctl" | "fcntl" | "fcntl64" | "shutdown" => return Some(KnownFunction::Descriptor),
        "_Unwind_Resume" => return Some(KnownFunction::Resume),
        symbol if NO_RETURN.contains(&symbol) => return Some(KnownFunction::NoReturn),
        _ => {}
    }
    if !symbol.starts_with("_ZN") && !symbol.starts_with("_R") {
        return None;
    }
    if ["14___rust_dealloc", "13___rdl_dealloc", "12___rg_dealloc"].iter().any(|name| symbol.contains(name)) {
        return Some(KnownFunction::Free);
    }
    if CATCHES.iter().any(|name| symbol.contains(name)) {
        return Some(KnownFunction::Resume);
    }
    if symbol.contains("4core9panicking") {
        return Some(KnownFunction::NoReturn);
    }
    if let Some((_, function)) = PARKING_LOT.iter().find(|(name, _)| symbol.contains(name))
        && symbol.contains("11parking_lot")
    {
        return Some(*function);
    }
    let method = symbol.split_once("5tokio4sync15batch_semaphore")?.1.split_once("9Semaphore")?.1;
    let is = |name: &str| method.starts_with(name);
    match () {
        () if is("7release") || is("18add_permits_locked") => Some(KnownFunction::Release),
        () if is("5close") => Some(KnownFunction::Close),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_in_both_manglings() {
        let release = "_ZN5tokio4sync15batch_semaphore9Semaphore7release17h0123456789abcdefE";
        assert_eq!(function(release), Some(KnownFunction::Release));
        let of_v0 =
            "_RNvMs0_NtNtCs4fqI2P2rA04_5tokio4sync15batch_semaphoreNtB5_9Semaphore18add_permits_locked";
        assert_eq!(function(of_v0), Some(KnownFunction::Release));
        assert_eq!(function("_RNvCsb9Q_7___rustc14___rust_dealloc"), Some(KnownFunction::Free));
        assert_eq!(function("_ZN5tokio4sync15batch_semaphore9Semaphore11try_acquire17hE"), None);
        assert_eq!(function("epoll_ctl"), Some(KnownFunction::Descriptor));
        assert_eq!(function("release"), None);
        let unlocks = "_ZN11parking_lot9raw_mutex8RawMutex11unlock_slow17h0123456789abcdefE";
        assert_eq!(function(unlocks), Some(KnownFunction::UnlockMutex));
        let aborts = "_RNvNtCs6jJ9bTlH8aF_4core9panicking19panic_cannot_unwind";
        assert_eq!(
            ["_Unwind_Resume", aborts].map(function),
            [KnownFunction::Resume, KnownFunction::NoReturn].map(Some)
        );
        let receives = "_ZN17crossbeam_channel7flavors4list16Channel$LT$T$GT$4recv17h0123456789abcdefE";
        let sends = "_ZN3std4sync4mpmc5array16Channel$LT$T$GT$4send17h0123456789abcdefE";
        let other = "_ZN17crossbeam_channel7channel17Receiver$LT$T$GT$8try_recv17h0123456789abcdefE";
        assert_eq!([receives, sends, other].map(is_channel_wait), [Some(true), Some(false), None]);
        let contended = "_ZN3std3sys4sync5mutex5futex5Mutex14lock_contended17h0123456789abcdefE";
        assert_eq!([contended, "lock_contended"].map(is_contended), [Some(true), None]);
    }
}
