//! Status bits of a box and of what is hidden directly below it.
//!
//! Julia's names have the bits of FlameGraphs.jl. Native code has bits by the tables in [`stackglass_report::kinds`] and,
//! for calls through vtables and function pointers, by the call instruction.

use crate::by_function::unmarked;
use stackglass_profile::Frame;
use stackglass_report::kinds;
use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of status bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Status(pub u8);

impl Status {
    /// No bits.
    pub const NONE: Status = Status(0);
    /// Reached by a call through a vtable or a function pointer; in Julia, run-time dispatch.
    pub const DISPATCH: Status = Status(1);
    /// Memory management: an allocator or drop glue; in Julia, garbage collection.
    pub const MEMORY: Status = Status(2);
    /// Code that only starts a program or a thread; in Julia, the interactive shell.
    pub const RUNTIME: Status = Status(4);

    /// Whether all of these bits are set.
    pub const fn contains(self, of: Status) -> bool {
        self.0 & of.0 == of.0
    }

    /// The bits that are not in `other`.
    pub const fn without(self, other: Status) -> Status {
        Status(self.0 & !other.0)
    }

    /// Whether any of these bits is set.
    pub const fn any(self, of: Status) -> bool {
        self.0 & of.0 != 0
    }
}

impl BitOr for Status {
    type Output = Status;

    fn bitor(self, other: Status) -> Status {
        Status(self.0 | other.0)
    }
}

impl BitOrAssign for Status {
    fn bitor_assign(&mut self, other: Status) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:02x}", self.0)
    }
}

/// Functions of Julia's runtime that dispatch calls.
const JULIA_DISPATCH: [&str; 3] = ["jl_invoke", "jl_apply_generic", "ijl_apply_generic"];

/// The bits of a frame by Julia's rules.
pub(crate) fn of_julia(frame: &Frame) -> Status {
    match (frame.foreign, &*frame.func) {
        (true, name) if JULIA_DISPATCH.contains(&name) => Status::DISPATCH,
        (true, name) if name.starts_with("jl_gc_") => Status::MEMORY,
        (false, "eval_user_input") if frame.file.ends_with("REPL.jl") => Status::RUNTIME,
        _ => Status::NONE,
    }
}

/// The bits of a frame by all rules.
pub(crate) fn of_name(frame: &Frame) -> Status {
    let frame = &*unmarked(frame);
    let native = if kinds::is_memory(frame) { Status::MEMORY } else { Status::NONE };
    of_julia(frame) | native
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(func: &str, file: &str, foreign: bool) -> u8 {
        of_name(&Frame { func: func.into(), file: file.into(), foreign, ..Frame::unknown(0) }).0
    }

    #[test]
    fn recorded_names_keep_their_bits() {
        assert_eq!(bits("jl_invoke", "gf.c", true), 1);
        assert_eq!(bits("ijl_invoke", "gf.c", true), 0);
        assert_eq!(bits("jl_gc_collect", "gc.c", true), 2);
        assert_eq!(bits("ijl_gc_collect", "gc.c", true), 0);
        assert_eq!(bits("jl_gc_collect", "gc.c", false), 0);
        assert_eq!(bits("eval_user_input", "/x/REPL.jl", false), 4);
    }

    #[test]
    fn native_names_of_memory_management() {
        for func in ["malloc", "__libc_malloc", "__GI___libc_free", "_int_free", "realloc@@GLIBC_2.2.5"] {
            assert_eq!(bits(func, "malloc.c", true), 2, "{func}");
        }
        for func in ["core::ptr::drop_in_place", "alloc::alloc::realloc", "__rust_dealloc", "_rjem_malloc"] {
            assert_eq!(bits(func, "x", func.starts_with("_rjem")), 2, "{func}");
        }
        for func in ["malloc_wrapper", "app::free", "alloc::vec::Vec::push", "freeze"] {
            assert_eq!(bits(func, "x", true) | bits(func, "x", false), 0, "{func}");
        }
    }
}
