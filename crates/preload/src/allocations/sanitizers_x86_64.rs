//! Which sanitizers are in the process, by symbols of their libraries.
//!
//! The symbols are weak: the loader fills in their addresses, or null, when it loads this library. A search by dlsym(3) would
//! allocate its error message in the program, where each sanitizer is missing.

use core::arch::asm;

/// The address of a weak symbol, or 0.
macro_rules! address {
    ($name:literal) => {{
        let address: usize;
        // SAFETY: reads a word that the loader has filled in.
        unsafe {
            asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(nostack, preserves_flags, readonly),
            );
        }
        address
    }};
}

/// Whether there is a sanitizer that does not work with a library before its own.
pub(super) fn bears_no_library() -> bool {
    let all = [
        address!("__tsan_init"),
        address!("__msan_init"),
        address!("__hwasan_init"),
        address!("__dfsan_init"),
        address!("__lsan_init"),
    ];
    all.iter().any(|address| *address != 0)
}

/// Whether there is AddressSanitizer.
pub(super) fn has_address_sanitizer() -> bool {
    address!("__asan_init") != 0
}
