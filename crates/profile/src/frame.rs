//! Frames: the lines of a stack as shown to the reader.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A function at a source line, as far as known.
///
/// Two frames are equal if `func`, `file`, `line`, `foreign` and `inlined` are equal. As in Julia's `StackFrame`,
/// `spec`, `allocates_for_caller`, `address`, `module` and `krate` do not matter.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Path of the function without generic arguments, hashes and impl decoration:
    /// `serde_json::de::from_str`. Empty when unknown.
    pub func: Arc<str>,
    /// The full demangled form, shown if it fits. Never compared.
    pub spec: Option<Arc<str>>,
    /// Source file as in the debug information (`/rustc/HASH` mapped). Empty when unknown.
    pub file: Arc<str>,
    /// Source line, -1 when unknown.
    pub line: i64,
    /// Not compiled from Rust.
    pub foreign: bool,
    /// Inlined into the frame that follows it.
    pub inlined: bool,
    /// Whether its code passes a size from its caller on to an allocator, and returns the block: it is then no reason for an
    /// allocation. `None` if that was not asked, or its code does not tell.
    pub allocates_for_caller: Option<bool>,
    /// Address of the frame, or 0.
    pub address: u64,
    /// File name of its module (executable or library). Empty when unknown.
    pub module: Arc<str>,
    /// Crate of the function. Empty when unknown or foreign.
    pub krate: Arc<str>,
}

impl Frame {
    /// A frame of which nothing is known. It is foreign, as in the reference.
    pub fn unknown(address: u64) -> Frame {
        let empty: Arc<str> = Arc::from("");
        Frame {
            func: empty.clone(),
            spec: None,
            file: empty.clone(),
            line: -1,
            foreign: true,
            inlined: false,
            allocates_for_caller: None,
            address,
            module: empty.clone(),
            krate: empty,
        }
    }

    /// Whether nothing is known of the frame but its address.
    pub fn is_unknown(&self) -> bool {
        self.func.is_empty() && self.file.is_empty() && self.line == -1 && self.foreign && !self.inlined
    }

    /// The name of a function without a symbol, by its start address in the module's file: `xz+0x2a40`.
    pub fn name_by_start(module: &str, start: u64) -> Arc<str> {
        Arc::from(format!("{module}+{start:#x}"))
    }

    /// The start address of a function named by it, see [`Frame::name_by_start`].
    ///
    /// ```
    /// use stackglass_profile::Frame;
    ///
    /// let mut frame = Frame::unknown(0);
    /// (frame.func, frame.module) = (Frame::name_by_start("xz", 0x2a40), "xz".into());
    /// assert_eq!((&*frame.func, frame.start_as_name()), ("xz+0x2a40", Some(0x2a40)));
    /// ```
    pub fn start_as_name(&self) -> Option<u64> {
        let (module, start) = self.func.rsplit_once("+0x")?;
        let digits = start.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let of_module = !self.module.is_empty() && module.ends_with(file_name(&self.module));
        u64::from_str_radix(start, 16).ok().filter(|_| digits && of_module)
    }

    /// The module of a frame of which nothing else is known. Empty for all other frames. It distinguishes such frames,
    /// which are equal.
    pub fn nameless_module(&self) -> &str {
        if self.is_unknown() { &self.module } else { "" }
    }

    fn identity(&self) -> (&str, &str, i64, bool, bool) {
        (&self.func, &self.file, self.line, self.foreign, self.inlined)
    }
}

impl PartialEq for Frame {
    fn eq(&self, other: &Frame) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Frame {}

impl Hash for Frame {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// Rust's functions for allocations, by the last part of their paths. The compiler makes them; those of a program with an allocator
/// of its own have the line of its `static`, and debug information may place them in its crate. Source:
/// `rustc_ast::expand::allocator`.
const RUST_ALLOCATION: [&str; 12] = [
    "__rust_alloc",
    "__rust_alloc_zeroed",
    "__rust_dealloc",
    "__rust_realloc",
    "__rdl_alloc",
    "__rdl_alloc_zeroed",
    "__rdl_dealloc",
    "__rdl_realloc",
    "__rg_alloc",
    "__rg_alloc_zeroed",
    "__rg_dealloc",
    "__rg_realloc",
];

/// Whether a path is that of a function by which Rust code calls its allocator.
///
/// ```
/// use stackglass_profile::frame::is_rust_allocation;
///
/// assert!(is_rust_allocation("__rustc::__rust_alloc") && is_rust_allocation("app::__rust_realloc"));
/// assert!(!is_rust_allocation("app::alloc"));
/// ```
pub fn is_rust_allocation(path: &str) -> bool {
    path.rsplit("::").next().is_some_and(|name| RUST_ALLOCATION.contains(&name))
}

/// A source path as reports show it: `@prefix/rest`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShortPath {
    /// `@serde`, `@std`, …; may be empty.
    pub prefix: Arc<str>,
    /// What follows the prefix.
    pub rest: Arc<str>,
}

/// Last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
