//! What is said about programs whose own allocator is not seen.

use super::program::Program;
use super::takeover::{self, Takeover};
use stackglass_symbols::{LinkedAllocator, linked_allocator};
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most executables that are checked.
const MOST: usize = 64;

/// The remark about a program whose own allocator is not taken over.
pub fn remark(program: &Program, takeover: &Takeover) -> String {
    let name = program.path.file_name().unwrap_or(program.name.as_os_str()).to_string_lossy();
    line(&name, &takeover.allocator, takeover.obstacle())
}

/// Checks the executables of processes, each executable once.
#[derive(Default)]
pub struct Executables {
    seen: HashSet<(u64, u64)>,
    remarks: Vec<String>,
}

impl Executables {
    /// Nothing more is said about this one.
    pub fn skip(&mut self, program: &Program) {
        if let Ok(meta) = std::fs::metadata(program.executable()) {
            self.seen.insert((meta.dev(), meta.ino()));
        }
    }

    /// Checks the executable of a process of the session in `folder`, if it still runs.
    pub fn check(&mut self, pid: u32, folder: &Path) {
        let link = PathBuf::from(format!("/proc/{pid}/exe"));
        let Ok(meta) = std::fs::metadata(&link) else { return };
        if self.seen.len() >= MOST || !self.seen.insert((meta.dev(), meta.ino())) {
            return;
        }
        if takeover::is_taken(folder, &meta) {
            return;
        }
        let Some(allocator) = linked_allocator(&link) else { return };
        let path = std::fs::read_link(&link).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.remarks.push(line(&name, &allocator, None));
    }

    /// The remarks since the last call.
    pub fn take_remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }
}

fn line(program: &str, allocator: &LinkedAllocator, obstacle: Option<&str>) -> String {
    let LinkedAllocator { name, symbol, replaces_malloc, is_rust } = allocator;
    let own = match (name, replaces_malloc) {
        (Some(name), true) => format!("defines malloc itself ({name})"),
        (None, true) => "defines malloc itself".to_owned(),
        (Some(name), false) => format!("contains the allocator {name} ({symbol})"),
        (None, false) => format!("contains an allocator of its own ({symbol})"),
    };
    let remedy = if *is_rust {
        "build it without, or with `#[global_allocator] static A: stackglass::Alloc<...>` around it"
    } else {
        "build it without"
    };
    let why = obstacle.map(|why| format!(" ({why})")).unwrap_or_default();
    format!(
        "{program} {own}: its blocks are not recorded{why}, only those of the C library's malloc; to see all, {remedy}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_the_allocator_and_what_helps() {
        let allocator = |name, replaces_malloc, is_rust| LinkedAllocator {
            name,
            symbol: "mi_malloc".into(),
            replaces_malloc,
            is_rust,
        };
        assert_eq!(
            line("jaq", &allocator(Some("mimalloc"), false, true), None),
            "jaq contains the allocator mimalloc (mi_malloc): its blocks are not recorded, only those of the C library's \
             malloc; to see all, build it without, or with `#[global_allocator] static A: stackglass::Alloc<...>` around it"
        );
        let replaced = line("x", &allocator(None, true, false), Some("reason"));
        assert!(
            replaced.starts_with("x defines malloc itself: its blocks are not recorded (reason), only"),
            "{replaced}"
        );
    }
}
