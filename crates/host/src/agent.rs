//! The preload library in this process, found by the symbols that it exports.

use core::ffi::{CStr, c_void};

/// The address of a symbol of the preload library. `None` if the library is not in this process.
pub(crate) fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a name that ends with a zero byte.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Whether the preload library of this version is in this process. `symbol` is one of its functions that give the version of the contract:
/// [`AGENT_SYMBOL`](stackglass_wire::AGENT_SYMBOL) if it samples, [`ALLOCATIONS_SYMBOL`](stackglass_wire::ALLOCATIONS_SYMBOL) if it records
/// allocations.
///
/// ```
/// assert!(!stackglass_host::agent::is_here(stackglass_wire::AGENT_SYMBOL), "this program runs alone");
/// ```
pub fn is_here(symbol: &CStr) -> bool {
    let Some(agent) = self::symbol(symbol) else { return false };
    // SAFETY: the symbols named above are functions of this type.
    let agent: extern "C" fn() -> u32 = unsafe { core::mem::transmute(agent) };
    agent() == stackglass_wire::VERSION
}
