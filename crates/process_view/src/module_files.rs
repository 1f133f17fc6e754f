//! Where this process finds the files of another one's modules.
//!
//! A mapping names its file by a path in the process's root folder and mount namespace, where another file may be by now. So the
//! inode number must be that of the mapping.

use crate::core_image::{CoreImage, Mapping};
use crate::modules::LoadedModule;
use stackglass_profile::Module;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The kernel's suffix for a file that was deleted.
const DELETED: &str = " (deleted)";
/// The candidate that is a link of the kernel.
const LINK: usize = 3;

/// The modules by paths that find their files from this process.
pub(crate) fn find(image: &CoreImage, modules: &[LoadedModule]) -> Vec<Module> {
    let root = std::fs::read_link(format!("/proc/{}/root", image.pid)).unwrap_or_else(|_| "/".into());
    let is_in_other_namespace = {
        let namespace = |task: &str| std::fs::read_link(format!("/proc/{task}/ns/mnt")).ok();
        namespace(&image.pid.to_string()) != namespace("self")
    };
    let file = |module: &LoadedModule| {
        let mapping = image.mappings.iter().find(|mapping| mapping.path == module.path);
        let path = mapping.filter(|mapping| mapping.path.starts_with('/')).map(|mapping| {
            let candidates = candidates(image.pid, &root, mapping);
            let found = candidates.iter().find(|path| inode(path) == Some(mapping.inode));
            // Some file systems report other numbers for files than for mappings. Readers compare build ids.
            let likely = if is_in_other_namespace { &candidates[1] } else { &candidates[0] };
            match found {
                // A link of the kernel is no name.
                Some(link) if *link == candidates[LINK] => {
                    if let Ok(file) = File::open(link) {
                        stackglass_symbols::register_open_file(&candidates[0].display().to_string(), file);
                    }
                    candidates[0].display().to_string()
                }
                found => found.unwrap_or(likely).display().to_string(),
            }
        });
        let path = path.unwrap_or_else(|| module.path.clone());
        Module { path: path.into(), build_id: module.module.build_id().into() }
    };
    modules.iter().map(file).collect()
}

/// Paths that may find the file of a mapping: its own, that in the root folder of the process, and the kernel's links, which
/// also find deleted files.
fn candidates(pid: u32, root: &Path, mapping: &Mapping) -> [PathBuf; 4] {
    let path = mapping.path.strip_suffix(DELETED).unwrap_or(&mapping.path);
    let inside = path.trim_start_matches('/');
    [
        path.into(),
        Path::new(&format!("/proc/{pid}/root")).join(inside),
        root.join(inside),
        format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.range.start, mapping.range.end).into(),
    ]
}

fn inode(path: &Path) -> Option<u64> {
    path.metadata().ok().map(|file| file.ino())
}
