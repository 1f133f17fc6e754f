//! The preload library in this process, found by the symbols that it exports.

use core::ffi::c_void;

/// Longest name of a symbol, with its zero byte.
const LONGEST: usize = 64;

/// The address of a symbol of the preload library. `None` if the library is not in this process.
///
/// # Panics
/// If the name has 64 bytes or more.
pub(crate) fn symbol(name: &str) -> Option<*mut c_void> {
    let mut text = [0u8; LONGEST];
    assert!(name.len() < LONGEST, "room for a zero byte");
    text[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: `text` ends with a zero byte, by the assertion.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, text.as_ptr().cast()) };
    (!found.is_null()).then_some(found)
}

/// Whether the preload library of this version is in this process. `symbol` is one of its functions that give the version of the contract:
/// [`AGENT_SYMBOL`](stackglass_wire::AGENT_SYMBOL) if it samples, [`ALLOCATIONS_SYMBOL`](stackglass_wire::ALLOCATIONS_SYMBOL) if it records
/// allocations.
///
/// ```
/// assert!(!stackglass_host::agent::is_here(stackglass_wire::AGENT_SYMBOL), "this program runs alone");
/// ```
///
/// # Panics
/// If the name has 64 bytes or more.
pub fn is_here(symbol: &str) -> bool {
    let Some(agent) = self::symbol(symbol) else { return false };
    // SAFETY: the symbols named above are functions of this type.
    let agent: extern "C" fn() -> u32 = unsafe { core::mem::transmute(agent) };
    agent() == stackglass_wire::VERSION
}
