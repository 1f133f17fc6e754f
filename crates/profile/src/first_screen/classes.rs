//! What kind of code a frame is, which decides whether the first screen shows it.

use crate::Frame;
use crate::frame::file_name;

/// Kinds of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// The standard library of Rust.
    Std,
    /// The C library, the dynamic linker, the vdso.
    C,
    /// Everything else: what the reader wrote, or chose.
    Own,
}

/// Functions through which every program or thread runs before its own code, at the outer end of
/// a stack only.
const STARTS: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "std::rt::lang_start",
    "std::rt::lang_start_internal",
    "std::panicking::try",
    "std::panicking::catch_unwind",
    "std::panic::catch_unwind",
    "__rust_try",
    "std::sys::backtrace::__rust_begin_short_backtrace",
    "std::sys_common::backtrace::__rust_begin_short_backtrace",
    "core::ops::function::FnOnce::call_once",
    "core::ops::function::impls",
    "core::panic::unwind_safe",
    "alloc::boxed",
    "std::thread::Builder",
    "std::thread::lifecycle",
    "std::thread::spawnhook",
    "std::sys::thread",
    "std::sys::pal::unix::thread",
    "std::sys::unix::thread",
];

/// Files of the standard library that hold little else than such functions.
const START_FILES: &[&str] = &[
    "rt.rs",
    "panic.rs",
    "panicking.rs",
    "unwind_safe.rs",
    "lifecycle.rs",
    "function.rs",
    "boxed.rs",
    "backtrace.rs",
];

/// Modules of the C library and what comes with it.
const C_MODULES: &[&str] = &[
    "libc.so",
    "libc-",
    "libm.so",
    "libm-",
    "libpthread",
    "ld-linux",
    "ld-2",
    "ld-musl",
    "libgcc_s",
    "libdl",
    "librt",
    "[vdso]",
];

/// Crates that make up the standard library.
const STD_CRATES: &[&str] = &[
    "std",
    "core",
    "alloc",
    "compiler_builtins",
    "panic_unwind",
    "panic_abort",
    "std_detect",
    "core_arch",
    "hashbrown",
];

/// Whether a function may be one of those that only start a program or a thread. In a Rust program
/// the symbol `main` is such a function: it calls `lang_start`, which calls the `main` of main.rs.
pub(super) fn is_start(frame: &Frame, rust: bool) -> bool {
    // Versioned or suffixed names are the same function: `__libc_start_main_impl`, `…@GLIBC_2.34`.
    let plain = frame.func.split('@').next().unwrap_or("").trim_end_matches("_impl");
    let matches = |name: &&str| match plain.strip_prefix(*name) {
        Some("") => true,
        Some(rest) => name.contains("::") && (rest.starts_with("::") || rest.starts_with('{')),
        None => false,
    };
    // Debug information with line tables alone may leave only the last part of the path.
    let bare =
        !plain.contains("::") && is_std_file(&frame.file) && START_FILES.contains(&file_name(&frame.file));
    bare || STARTS.iter().any(matches) || (rust && plain == "main")
}

/// The kind of a frame.
pub(crate) fn class(frame: &Frame) -> Class {
    let module = file_name(&frame.module);
    if frame.foreign {
        return if C_MODULES.iter().any(|name| module.starts_with(name)) { Class::C } else { Class::Own };
    }
    let (first, rest) = frame.func.split_once("::").unwrap_or((&frame.func, ""));
    // A line of the standard library may be inlined where the debug information does not say so;
    // its file then stands beside the name of the reader's own function. Only a name without a
    // path is judged by its file.
    let of_std = if rest.is_empty() { is_std_file(&frame.file) } else { STD_CRATES.contains(&first) };
    if of_std { Class::Std } else { Class::Own }
}

/// Whether a source file is the standard library's, as recorded or as installed.
fn is_std_file(file: &str) -> bool {
    file.starts_with("/rustc/")
        || file.starts_with("/rust/deps/")
        || file.contains("/rustlib/src/rust/library/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(func: &str, module: &str, foreign: bool) -> Frame {
        let mut frame = Frame::unknown(0);
        (frame.func, frame.module, frame.foreign) = (func.into(), module.into(), foreign);
        frame
    }

    #[test]
    fn classes() {
        assert_eq!(class(&frame("demo::main", "demo", false)), Class::Own);
        assert_eq!(class(&frame("alloc::vec::Vec::push", "demo", false)), Class::Std);
        let mut odd = frame("demo::count", "demo", false);
        odd.file = "/rustc/0/library/core/src/option.rs".into();
        let mut bare = frame("unwrap", "demo", false);
        bare.file = odd.file.clone();
        assert_eq!(class(&bare), Class::Std);
        assert_eq!(class(&odd), Class::Own, "its code is partly the library's, its name is not");
        assert_eq!(class(&frame("malloc", "/lib/libc.so.6", true)), Class::C);
        assert_eq!(class(&frame("ZSTD_compress", "demo", true)), Class::Own);
    }

    #[test]
    fn starts() {
        for func in [
            "std::rt::lang_start::{closure}",
            "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            "alloc::boxed::Box::call_once",
            "__libc_start_main_impl",
            "__libc_start_main@@GLIBC_2.34",
        ] {
            assert!(is_start(&frame(func, "", false), false), "{func}");
        }
        for func in ["demo::main", "core::ops::function::FnOnce::call_once_else", "clone_box", "main"] {
            assert!(!is_start(&frame(func, "", false), false), "{func}");
        }
        let mut bare = frame("{closure}", "", false);
        bare.file = "/root/.rustup/x/lib/rustlib/src/rust/library/std/src/thread/lifecycle.rs".into();
        assert!(is_start(&bare, true));
        assert!(is_start(&frame("main", "", true), true), "a Rust program's main is only a shim");
    }
}
