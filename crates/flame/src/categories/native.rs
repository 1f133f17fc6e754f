//! Categories of native code: own code, dependencies, libraries, memory management.
//!
//! Names, files and modules decide, by the tables in [`stackglass_report::kinds`]. Dependencies are recognised by the
//! folders in which Cargo keeps their sources. One frame decides for its whole crate, since inlined frames may have files
//! of other crates.

use crate::by_function::unmarked;
use crate::{Color, ColorFunction, FrameId, Graph, Node};
use foldhash::HashSet;
use stackglass_profile::Frame;
use stackglass_report::kinds;
use stackglass_report::library_code::is_library_code;

/// A category of native code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Category {
    /// The reader's crates. In a program without Rust: the program itself.
    Own,
    /// Crates from a registry, from git or vendored. In a program without Rust: its libraries.
    Dependency,
    /// `std`, `core`, `alloc` and their parts. In a program without Rust: the C library.
    Std,
    /// Code not compiled from Rust, in a program with Rust.
    Foreign,
    /// Allocators and drop glue.
    Memory,
    /// The kernel and `[vdso]`.
    Kernel,
    /// Nothing is known.
    Unknown,
}

impl Category {
    /// The categories of all frames of a program, in their order. `rust`: whether it is compiled from Rust. A crate is a dependency if its
    /// sources are where Cargo keeps dependencies. The crate with `main` is always own code, as in an installed program.
    pub fn of_frames(frames: &[Frame], rust: bool) -> Vec<Category> {
        let krates = |test: fn(&Frame) -> bool| -> HashSet<&str> {
            frames.iter().filter(|frame| test(frame)).map(|frame| &*frame.krate).collect()
        };
        let (others, mains) = (krates(is_others), krates(is_main));
        let is_own = |krate: &str| !others.contains(krate) || mains.contains(krate);
        frames.iter().map(|frame| category(frame, rust, is_own)).collect()
    }

    /// All categories, in the order of the legend.
    pub const ALL: [Category; 7] = [
        Category::Own,
        Category::Dependency,
        Category::Std,
        Category::Foreign,
        Category::Memory,
        Category::Kernel,
        Category::Unknown,
    ];

    /// Its name in the legend.
    pub fn name(self) -> &'static str {
        match self {
            Category::Own => "own code",
            Category::Dependency => "dependencies",
            Category::Std => "standard library",
            Category::Foreign => "foreign code",
            Category::Memory => "memory management",
            Category::Kernel => "kernel",
            Category::Unknown => "unknown",
        }
    }

    /// Its colour in the light and the dark theme, from Paul Tol's `light` scheme, which suits black text and colour
    /// blindness.
    pub fn color(self) -> Color {
        Color::hex(match self {
            Category::Own => 0xee8866,
            Category::Dependency => 0xeedd88,
            Category::Std => 0x77aadd,
            Category::Foreign => 0x44bb99,
            Category::Memory => 0xffaabb,
            Category::Kernel => 0x99ddff,
            Category::Unknown => 0xdddddd,
        })
    }
}

/// Colours by [`Category`].
#[derive(Clone, Debug)]
pub struct CategoryColors {
    by_frame: Vec<Category>,
    dark: bool,
}

impl CategoryColors {
    /// The categories of the frames of a graph.
    pub fn from_graph(graph: &Graph) -> CategoryColors {
        let rust = graph.frames().iter().any(|frame| !frame.foreign);
        CategoryColors { by_frame: Category::of_frames(graph.frames(), rust), dark: false }
    }

    /// For a dark background.
    pub fn darkmode(self, dark: bool) -> CategoryColors {
        CategoryColors { dark, ..self }
    }

    /// The category of a frame of the graph.
    pub fn category(&self, frame: FrameId) -> Category {
        self.by_frame.get(frame.0 as usize).copied().unwrap_or(Category::Unknown)
    }
}

impl ColorFunction for CategoryColors {
    fn background(&self) -> Color {
        super::background(self.dark)
    }

    fn font(&self) -> Color {
        super::font(self.dark)
    }

    fn node(&self, _: &mut [usize], _: &Graph, node: &Node) -> Option<Color> {
        Some(self.category(node.frame).color())
    }

    fn legend(&self) -> Vec<(String, Color)> {
        let there = |category: &Category| self.by_frame.contains(category);
        let entry = |category: Category| (category.name().to_owned(), category.color());
        Category::ALL.into_iter().filter(there).map(entry).collect()
    }
}

/// Whether the file of a frame is where Cargo keeps the sources of dependencies.
fn is_others(frame: &Frame) -> bool {
    const FOLDERS: [&str; 3] = ["/registry/src/", "/git/checkouts/", "/vendor/"];
    !frame.krate.is_empty()
        && kinds::class(frame) == kinds::Class::Own
        && FOLDERS.iter().any(|folder| frame.file.contains(folder))
}

fn is_main(frame: &Frame) -> bool {
    !frame.krate.is_empty() && frame.func.strip_prefix(&*frame.krate) == Some("::main")
}

fn category(frame: &Frame, rust: bool, is_own: impl Fn(&str) -> bool) -> Category {
    let frame = &*unmarked(frame);
    let module = frame.module.rsplit('/').next().unwrap_or("");
    if is_kernel(frame, module) {
        Category::Kernel
    } else if kinds::is_memory(frame) {
        Category::Memory
    } else if frame.func.is_empty() && frame.file.is_empty() {
        Category::Unknown
    } else {
        match (kinds::class(frame), frame.foreign) {
            (kinds::Class::Std, _) => Category::Std,
            (_, true) if rust => Category::Foreign,
            (kinds::Class::C, _) => Category::Std,
            (kinds::Class::Own, true) if is_library_code(frame) => Category::Std,
            (kinds::Class::Own, true) if kinds::is_library(frame) || kinds::is_dependency(&frame.file) => {
                Category::Dependency
            }
            (kinds::Class::Own, false) if !is_own(krate(frame)) => Category::Dependency,
            (kinds::Class::Own, _) => Category::Own,
        }
    }
}

/// The crate of a function, or the first part of its path.
pub(super) fn krate(frame: &Frame) -> &str {
    match &*frame.krate {
        "" => frame.func.split_once("::").map_or("", |(first, _)| first),
        krate => krate,
    }
}

/// Kernel modules by the names of `perf` and the loader. Folded stacks mark kernel functions by `_[k]`. perf writes loaded
/// modules in brackets, at addresses in the upper half.
pub(crate) fn is_kernel(frame: &Frame, module: &str) -> bool {
    const UPPER_HALF: u64 = 0xffff_8000_0000_0000;
    matches!(module, "[vdso]" | "[vsyscall]")
        || module.starts_with("[kernel")
        || module.starts_with("[guest.kernel")
        || module.starts_with("vmlinux")
        || module.ends_with(".ko")
        || frame.func.ends_with("_[k]")
        || (module.starts_with('[') && frame.address >= UPPER_HALF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colors::greedy::deutan_difference;
    use crate::{GraphBuilder, Span, Status};

    #[test]
    fn colors_are_told_apart_by_all_and_text_is_readable() {
        for (at, one) in Category::ALL.into_iter().enumerate() {
            assert!(one.color().contrast(Color::BLACK) > 7.0, "{one:?}");
            assert!(one.color().contrast(super::super::background(true)) > 7.0, "{one:?}");
            for two in &Category::ALL[..at] {
                let difference = deutan_difference(one.color(), two.color());
                assert!(difference > 10.0, "{one:?} and {two:?}: {difference}");
            }
        }
    }

    fn categories(frames: &[(&str, &str, &str, &str, bool)]) -> Vec<Category> {
        let mut builder = GraphBuilder::default();
        let mut numbers = Vec::new();
        for (func, krate, file, module, foreign) in frames {
            let frame = Frame {
                func: (*func).into(),
                krate: (*krate).into(),
                file: (*file).into(),
                module: (*module).into(),
                foreign: *foreign,
                ..Frame::unknown(0)
            };
            numbers.push(builder.frame(&frame));
        }
        builder.open(numbers[0], Status::NONE, Span::new(1, 1));
        let colors = CategoryColors::from_graph(&builder.finish().unwrap());
        numbers.into_iter().map(|frame| colors.category(frame)).collect()
    }

    #[test]
    fn of_a_rust_program() {
        let registry = "/home/a/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";
        let told = categories(&[
            ("app::main", "app", "/home/a/app/src/main.rs", "app", false),
            (
                "serde_json::de::from_str",
                "serde_json",
                &format!("{registry}/serde_json-1.0.1/src/de.rs"),
                "app",
                false,
            ),
            // Also a dependency, although its file is hidden by inlined code of the standard library.
            (
                "serde_json::value::to_value",
                "serde_json",
                "/rustc/0/library/core/src/option.rs",
                "app",
                false,
            ),
            ("core::str::from_utf8", "core", "/rustc/0/library/core/src/str/mod.rs", "app", false),
            ("alloc::alloc::realloc", "alloc", "/rustc/0/library/alloc/src/alloc.rs", "app", false),
            ("__rustc::__rust_realloc", "__rustc", "", "app", false),
            ("malloc", "", "", "/usr/lib/libc.so.6", true),
            ("memcpy", "", "", "/usr/lib/libc.so.6", true),
            ("ZSTD_compress", "", "zstd.c", "app", true),
            ("clock_gettime", "", "", "[vdso]", true),
            ("", "", "", "app", true),
        ]);
        use Category::{Dependency, Foreign, Kernel, Memory, Own, Std, Unknown};
        let wanted =
            [Own, Dependency, Dependency, Std, Memory, Memory, Memory, Foreign, Foreign, Kernel, Unknown];
        assert_eq!(told, wanted);
    }

    #[test]
    fn an_installed_program_is_own_code() {
        let file = "/home/a/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/ripgrep-14.1.1/main.rs";
        let told = categories(&[
            ("rg::main", "rg", file, "rg", false),
            ("rg::search", "rg", file, "rg", false),
            ("ignore::walk", "ignore", file, "rg", false),
        ]);
        assert_eq!(told, [Category::Own, Category::Own, Category::Dependency]);
    }

    #[test]
    fn of_a_program_without_rust() {
        let told = categories(&[
            ("main", "", "main.c", "app", true),
            ("deflate", "", "", "/usr/lib/libz.so.1", true),
            ("qsort", "", "", "/usr/lib/libc.so.6", true),
            ("entry_SYSCALL_64_[k]", "", "", "", true),
        ]);
        assert_eq!(told, [Category::Own, Category::Dependency, Category::Std, Category::Kernel]);
    }
}
