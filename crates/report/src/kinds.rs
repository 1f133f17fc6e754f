//! The kind of code of a frame, by its name, file and module: the tables of rules for summaries and flame graphs.
//!
//! Calls through vtables and function pointers cannot be recognised by names, see
//! [`Symbols::dispatches`](stackglass_profile::Symbols::dispatches).

use crate::library_code::{is_library_code, is_package};
use stackglass_profile::Frame;
use stackglass_profile::frame::{file_name, is_rust_allocation};

/// Kinds of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// The standard library of Rust.
    Std,
    /// The C library, the dynamic linker, the vdso.
    C,
    /// Everything else: the program and its dependencies.
    Own,
}

/// Functions that run before a program's or thread's own code. They count at the outer end of a stack only.
const STARTS: &[&str] = &[
    "_start",
    "__libc_start_main",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "libc_start_main_stage2",
    // C++ threads, OpenMP and GLib.
    "execute_native_thread_routine",
    "std::thread::_State_impl",
    "std::thread::_Invoker",
    "std::__invoke",
    "std::__invoke_impl",
    "std::__1::__thread_proxy",
    "std::__1::__thread_execute",
    "gomp_thread_start",
    "__kmp_launch_worker",
    "__kmp_launch_thread",
    "__kmp_invoke_task_func",
    "__kmp_invoke_microtask",
    "g_thread_proxy",
    "g_thread_pool_thread_proxy",
    // Go.
    "_rt0_amd64_linux",
    "runtime.rt0_go.abi0",
    "runtime.goexit.abi0",
    "runtime.goexit",
    "runtime.main",
    "runtime.mstart",
    "runtime.mstart.abi0",
    "runtime.mstart0",
    "runtime.mstart1",
    "runtime.mcall",
    "std::rt::lang_start",
    "std::rt::lang_start_internal",
    "std::panicking::try",
    "std::panicking::catch_unwind",
    "std::panicking::do_call",
    "std::panic::catch_unwind",
    "__rust_try",
    "std::sys::backtrace::__rust_begin_short_backtrace",
    "std::sys_common::backtrace::__rust_begin_short_backtrace",
    "core::ops::function::FnOnce::call_once",
    "core::ops::function::FnMut::call_once",
    "core::ops::function::FnMut::call_mut",
    "core::ops::function::Fn::call_once",
    "core::ops::function::Fn::call_mut",
    "core::ops::function::Fn::call",
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

/// Files of the standard library that contain mostly such functions.
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

/// C functions that manage memory: those of the C standard, POSIX and glibc (malloc/malloc.c), and the operators of C++.
const MEMORY_FOREIGN: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "cfree",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "malloc_trim",
    "malloc_consolidate",
    "sysmalloc",
    "systrim",
    "sysmalloc_mmap",
    "unlink_chunk",
    "heap_trim",
    "grow_heap",
    "shrink_heap",
    "new_heap",
    "arena_get2",
    "ptmalloc_init",
    "alloc_perturb",
    "munmap_chunk",
    "mremap_chunk",
    "_int_malloc",
    "_int_free",
    "_int_free_chunk",
    "_int_free_merge_chunk",
    "_int_free_create_chunk",
    "_int_free_maybe_consolidate",
    "_int_realloc",
    "_int_memalign",
    "_mid_memalign",
    "tcache_init",
    "tcache_get",
    "tcache_put",
    "tcache_key_initialize",
    "checked_request2size",
    "operator new",
    "_Znwm",
    "_Znam",
    "_ZdlPv",
    "_ZdlPvm",
    "_ZdaPv",
    "_ZdaPvm",
    "operator new[]",
    "operator delete",
    "operator delete[]",
];

/// Name prefixes of linked allocators: jemalloc (also with tikv's prefix), mimalloc, tcmalloc, snmalloc, rpmalloc,
/// dlmalloc, scudo.
const MEMORY_PREFIXES: &[&str] = &[
    "je_",
    "_rjem_",
    "mi_malloc",
    "mi_zalloc",
    "mi_calloc",
    "mi_realloc",
    "mi_free",
    "mi_heap_",
    "mi_page_",
    "mi_segment",
    "mi_arena",
    "_mi_",
    "tc_malloc",
    "tc_free",
    "tc_new",
    "tc_delete",
    "tcmalloc::",
    "sn_rust_",
    "snmalloc::",
    "rpmalloc",
    "rpfree",
    "dlmalloc",
    "scudo::",
];

/// Allocators as shared libraries.
const MEMORY_MODULES: &[&str] =
    &["libjemalloc", "libmimalloc", "libtcmalloc", "libsnmalloc", "librpmalloc", "libhoard", "libscudo"];

/// Folders of allocator sources (`jemalloc`, `tikv-jemalloc-sys-0.6`, `mimalloc`). All functions in them manage memory,
/// even those with common names.
const MEMORY_FOLDERS: &[&str] = &["jemalloc", "mimalloc", "snmalloc", "gperftools", "rpmalloc", "scudo"];

/// Crates that pass Rust's allocations to such allocators.
const MEMORY_CRATES: &[&str] = &[
    "stackglass_heap",
    "tikv_jemallocator",
    "jemallocator",
    "mimalloc",
    "snmalloc_rs",
    "rpmalloc",
    "tcmalloc",
    "scudo_allocator",
];

/// Modules of Rust's allocation interface, and drop glue.
const MEMORY_RUST: &[&str] = &[
    "alloc::alloc",
    "std::alloc",
    "std::sys::alloc",
    "core::alloc",
    "core::ptr::drop_in_place",
    "core::ptr::drop_glue",
];

/// The name without prefixes and version suffixes that libraries add.
fn plain(func: &str) -> &str {
    let name = func.split('@').next().unwrap_or("");
    let name = name.strip_prefix("__GI_").unwrap_or(name);
    name.strip_prefix("__libc_").unwrap_or(name)
}

/// Whether a function manages memory: part of any known allocator, or drop glue.
pub fn is_memory(frame: &Frame) -> bool {
    let func = &*frame.func;
    let under = |name: &&str| {
        func.strip_prefix(*name).is_some_and(|rest| matches!(rest, "") || rest.starts_with("::"))
    };
    if is_rust_allocation(func) {
        return true;
    }
    if MEMORY_RUST.iter().any(under) {
        // Computing sizes allocates nothing.
        return !func.starts_with("core::alloc::layout");
    }
    if !frame.foreign {
        return MEMORY_CRATES.iter().any(under);
    }
    let name = plain(&frame.func);
    let module = file_name(&frame.module);
    MEMORY_FOREIGN.contains(&name)
        || MEMORY_FOREIGN.contains(&name.trim_start_matches('_'))
        || MEMORY_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || MEMORY_MODULES.iter().any(|name| module.starts_with(name))
        || is_allocators_source(&frame.file)
}

/// Whether a source file lies in an allocator's folder, including crates with a copy of it.
fn is_allocators_source(file: &str) -> bool {
    let Some((folders, _)) = file.rsplit_once('/') else { return false };
    folders.split('/').any(|folder| {
        let folder = folder.strip_prefix("tikv-").or_else(|| folder.strip_prefix("lib")).unwrap_or(folder);
        let rest = |name: &&str| folder.strip_prefix(*name);
        MEMORY_FOLDERS.iter().filter_map(rest).any(|rest| {
            let version = rest.strip_prefix("-sys").unwrap_or(rest);
            version.is_empty()
                || version.strip_prefix('-').is_some_and(|v| v.starts_with(|c: char| c.is_ascii_hexdigit()))
        })
    })
}

/// Modules of the C library and its companions.
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
    // Where newer compilers keep the symbols of the allocation interface.
    "__rustc",
];

/// Primitive types: their methods are named without a crate, such as `f64::sqrt`.
const PRIMITIVES: &[&str] = &[
    "bool", "char", "str", "slice", "array", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32",
    "u64", "u128", "usize", "f16", "f32", "f64", "f128",
];

/// Functions of CPython through which a Python function calls another one, or a function in C.
const PYTHON_LOOP: &[&str] = &[
    "_PyEval_EvalFrameDefault",
    "_PyEval_EvalFrame",
    "_PyEval_Vector",
    "_PyFunction_Vectorcall",
    "_PyObject_VectorcallTstate",
    "PyObject_Vectorcall",
    "py_trampoline_evaluator",
];

/// Whether a function belongs to the loop of Python's interpreter.
pub fn is_python_loop(func: &str) -> bool {
    PYTHON_LOOP.contains(&func)
}

/// Whether a function may only start a program or a thread. In a Rust program the symbol `main` does: it calls
/// `lang_start`, which calls the `main` of main.rs.
pub fn is_start(frame: &Frame, rust: bool) -> bool {
    // Versioned or suffixed names are the same function: `__libc_start_main_impl`, `…@GLIBC_2.34`.
    let plain = frame.func.split('@').next().unwrap_or("").trim_end_matches("_impl");
    // Functions of templates are named with the type that they return, and with arguments.
    let plain = match frame.foreign {
        true => plain.split(['<', '(']).next().and_then(|name| name.rsplit(' ').next()).unwrap_or(plain),
        false => plain,
    };
    let matches = |name: &&str| match plain.strip_prefix(*name) {
        Some("") => true,
        Some(rest) => name.contains("::") && (rest.starts_with("::") || rest.starts_with('{')),
        None => false,
    };
    // With line tables only, debug information may contain only the last part of the path.
    let bare =
        !plain.contains("::") && is_std_file(&frame.file) && START_FILES.contains(&file_name(&frame.file));
    // Zig has no name of its own for them: `start.callMain`.
    let of_zig = frame.foreign && frame.file.ends_with("/std/start.zig");
    bare || of_zig || STARTS.iter().any(matches) || (rust && plain == "main")
}

/// Whether a frame lies in a shared library.
pub fn is_library(frame: &Frame) -> bool {
    let module = file_name(&frame.module);
    module.ends_with(".so") || module.contains(".so.")
}

/// The kind of a frame.
pub fn class(frame: &Frame) -> Class {
    let module = file_name(&frame.module);
    if frame.foreign {
        return if C_MODULES.iter().any(|name| module.starts_with(name)) { Class::C } else { Class::Own };
    }
    let (first, rest) = frame.func.split_once("::").unwrap_or((&frame.func, ""));
    // Debug information may not mention an inlined function of the standard library: its file then appears with the name
    // of the calling function. So the file decides only for names without a path.
    let bare = rest.is_empty() || PRIMITIVES.contains(&first);
    let of_std = if bare { is_std_file(&frame.file) } else { STD_CRATES.contains(&first) };
    if of_std { Class::Std } else { Class::Own }
}

/// Functions of the C library that return a new block for their caller, wherever they are defined.
const C_WRAPPERS: &[&str] = &[
    "strdup",
    "strndup",
    "wcsdup",
    "asprintf",
    "vasprintf",
    "getline",
    "getdelim",
    "realpath",
    "canonicalize_file_name",
];

/// Other such functions, besides those with a telling end.
const WRAPPERS: &[&str] =
    &["g_slice_alloc", "g_strdup_printf", "g_strdup_vprintf", "av_mallocz", "ngx_palloc_large"];

/// Ends of the names of such functions: `xmalloc`, `g_malloc0_n`, `CRYPTO_zalloc`, `jv_mem_alloc`, `PyMem_RawMalloc`, `luaM_malloc_`.
const WRAPPER_ENDS: &[&str] =
    &["malloc", "calloc", "zalloc", "realloc", "reallocarray", "mem_alloc", "strdup", "strndup", "memdup"];

/// Whether a function allocates for its caller, as `xmalloc` does: by its code, or by its name where the code does not tell, or is
/// inlined.
fn is_wrapper(frame: &Frame) -> bool {
    let name = plain(&frame.func).trim_start_matches('_');
    if frame.foreign && C_WRAPPERS.contains(&name) {
        return true;
    }
    if let Some(known) = frame.allocates_for_caller {
        return known;
    }
    let stem = name.strip_suffix("_n").unwrap_or(name);
    let stem = stem.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    let stem = stem.to_ascii_lowercase();
    frame.foreign && (WRAPPERS.contains(&name) || WRAPPER_ENDS.iter().any(|end| stem.ends_with(end)))
}

/// Whether a module is Stackglass's own library, which records allocations inside the program.
pub fn is_recorder(module: &str) -> bool {
    file_name(module).starts_with("libstackglass-")
}

/// Whether a frame may be the reason for an allocation: it belongs to neither an allocator nor a function such as
/// `xmalloc`, nor a standard library, nor a header that was installed with the system, nor code that only starts a program.
/// `rust` says whether the program is compiled from Rust.
pub fn is_allocation_site(frame: &Frame, rust: bool) -> bool {
    class(frame) == Class::Own
        && !is_memory(frame)
        && !is_wrapper(frame)
        && !is_library_code(frame)
        && !is_start(frame, rust)
}

/// Whether a source file belongs to a dependency: a crate in Cargo's folders, or a package of another language.
pub fn is_dependency(file: &str) -> bool {
    file.contains("/.cargo/registry/") || file.contains("/.cargo/git/") || is_package(file)
}

/// Whether a source file belongs to the standard library, as recorded or as installed.
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
        let mut method = frame("f64::sqrt", "demo", false);
        assert_eq!(class(&method), Class::Own);
        method.file = odd.file.clone();
        assert_eq!(class(&method), Class::Std);
        assert_eq!(class(&frame("__rustc::__rust_alloc", "demo", false)), Class::Std);
        assert_eq!(class(&odd), Class::Own, "its code is partly the library's, its name is not");
        assert_eq!(class(&frame("malloc", "/lib/libc.so.6", true)), Class::C);
        assert_eq!(class(&frame("ZSTD_compress", "demo", true)), Class::Own);
    }

    #[test]
    fn allocators_are_told_by_where_their_sources_lie() {
        for (file, wanted) in [
            ("/x/build/tikv-jemalloc-sys-4b2000638b0265c6/out/build/src/arena.c", true),
            ("/x/registry/src/index/libmimalloc-sys-0.1.49/c_src/mimalloc/v3/src/page.c", true),
            ("/usr/src/jemalloc-5.3.0/src/extent.c", true),
            ("/home/me/jemalloc-viewer/src/arena.c", false),
            ("/home/me/src/mimalloc.c", false),
        ] {
            let frame = Frame { file: file.into(), ..frame("arena_malloc", "app", true) };
            assert_eq!(is_memory(&frame), wanted, "{file}");
        }
        assert!(is_memory(&frame("mimalloc::MiMalloc::alloc", "app", false)));
        assert!(!is_memory(&frame("core::alloc::layout::Layout::array", "app", false)));
    }

    #[test]
    fn sites_are_outside_of_allocators_and_standard_libraries() {
        let is_site = |frame: &Frame| is_allocation_site(frame, true);
        for func in ["demo::parse", "serde_json::de::from_str"] {
            assert!(is_site(&frame(func, "demo", false)), "{func}");
        }
        for func in ["parse(std::string const&)", "Parser<std::string>::read", "g_list_append"] {
            assert!(is_site(&frame(func, "app", true)), "{func}");
        }
        for func in ["alloc::vec::Vec::push", "__rustc::__rust_alloc", "mimalloc::MiMalloc::alloc"] {
            assert!(!is_site(&frame(func, "demo", false)), "{func}");
        }
        for (func, module) in [
            ("std::vector<int>::push_back", "app"),
            ("void std::vector<int>::_M_realloc_insert", "app"),
            ("operator new(unsigned long)", "libstdc++.so.6"),
            ("strdup", "libc.so.6"),
            ("malloc", "app"),
            ("xmalloc", "app"),
            ("luaM_malloc_", "app"),
            ("luaM_realloc_", "app"),
            ("ngx_palloc_large", "nginx"),
            ("jv_mem_alloc", "libjq.so.1"),
            ("PyMem_RawMalloc", "python3"),
            ("g_malloc0", "libglib-2.0.so.0"),
            ("main", "app"),
        ] {
            assert!(!is_site(&frame(func, module, true)), "{func}");
        }
        assert!(is_allocation_site(&frame("main", "app", true), false), "in C, main is the program");
    }

    #[test]
    fn names_of_wrappers_count_where_the_code_does_not_tell() {
        for (func, told, wanted) in [
            ("bench_malloc", None, false),
            ("bench_malloc", Some(false), true),
            ("user_strdup", Some(false), true),
            ("strdup", Some(false), false),
            ("take", None, true),
            ("take", Some(true), false),
        ] {
            let frame = Frame { allocates_for_caller: told, ..frame(func, "app", true) };
            assert_eq!(is_allocation_site(&frame, false), wanted, "{func}, {told:?}");
        }
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
        for func in [
            "std::thread::_State_impl<std::thread::_Invoker<std::tuple<work(int)::{lambda()#1}> > >::_M_run()",
            "void std::__invoke_impl<void, main::{lambda()#1}>(std::__invoke_other, main::{lambda()#1}&&)",
            "runtime.goexit.abi0",
        ] {
            assert!(is_start(&frame(func, "", true), false), "{func}");
        }
        assert!(!is_start(&frame("sort<std::__invoke>(int)", "", true), false));
        for func in ["demo::main", "core::ops::function::FnOnce::call_once_else", "clone_box", "main"] {
            assert!(!is_start(&frame(func, "", false), false), "{func}");
        }
        let mut bare = frame("{closure}", "", false);
        bare.file = "/root/.rustup/x/lib/rustlib/src/rust/library/std/src/thread/lifecycle.rs".into();
        assert!(is_start(&bare, true));
        assert!(is_start(&frame("main", "", true), true), "a Rust program's main is only a shim");
    }
}
