//! Which other allocators a program contains: their blocks are not among those of glibc's malloc.

use std::path::Path;

use stackglass_symbols::linked_allocator;

use stackglass_process_view::core_image::CoreImage;

/// An allocator other than glibc's malloc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    /// Its name, `None` if it is unknown.
    pub name: Option<&'static str>,
    /// The file that contains it.
    pub file: String,
}

impl Allocator {
    /// Whether it is part of musl, in whose programs allocations are not recorded from outside.
    pub(super) fn is_musl(&self) -> bool {
        self.name == Some(MUSL)
    }
}

impl std::fmt::Display for Allocator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name.unwrap_or("an unknown allocator"), self.file)
    }
}

/// Names of libraries, and their allocators.
const LIBRARIES: [(&str, &str); 11] = [
    ("libjemalloc", "jemalloc"),
    ("libtcmalloc", "tcmalloc"),
    ("libmimalloc", "mimalloc"),
    ("libsnmalloc", "snmalloc"),
    ("librpmalloc", "rpmalloc"),
    ("libhoard", "Hoard"),
    ("libscudo", "Scudo"),
    ("libtbbmalloc_proxy", "TBB malloc"),
    ("libasan.so", "AddressSanitizer's malloc"),
    ("libc.musl", MUSL),
    ("ld-musl", MUSL),
];

const MUSL: &str = "musl's malloc";
/// musl's library as Debian installs it; glibc's is `libc.so.6`.
const MUSL_LIBRARY: &str = "libc.so";

/// The allocators of a process.
pub(super) fn find(image: &CoreImage) -> Vec<Allocator> {
    let mut found: Vec<Allocator> = Vec::new();
    let mut add = |allocator: Allocator| {
        if !found.contains(&allocator) {
            found.push(allocator);
        }
    };
    if let Some(linked) = linked_allocator(Path::new(&format!("/proc/{}/exe", image.pid))) {
        let file = std::fs::read_link(format!("/proc/{}/exe", image.pid)).unwrap_or_default();
        add(Allocator { name: linked.name, file: file.to_string_lossy().into_owned() });
    }
    for mapping in image.mappings.iter().filter(|mapping| mapping.executable) {
        let name = mapping.path.rsplit('/').next().unwrap_or_default();
        let known = LIBRARIES.iter().find(|(library, _)| name.starts_with(library));
        let musl = (name == MUSL_LIBRARY).then_some(MUSL);
        if let Some(allocator) = known.map(|(_, allocator)| *allocator).or(musl) {
            add(Allocator { name: Some(allocator), file: mapping.path.clone() });
        }
    }
    found
}
