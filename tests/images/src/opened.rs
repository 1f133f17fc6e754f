//! A stored image as a core image. Readers of debug information map files, so the program's file is written to a temporary folder.

use crate::pages::Pages;
use crate::stored::StoredImage;
use stackglass_process_view::core_image::{CoreImage, Mapping, Thread};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tempfile::TempDir;

/// No process has this id.
const NO_PROCESS: u32 = u32::MAX;

/// A stored image that is open. Its folder is removed with it.
pub struct Opened {
    /// Its memory.
    pub pages: Pages,
    /// The program's source.
    pub source: String,
    /// What the program said.
    pub said: String,
    program: String,
    mappings: Vec<Mapping>,
    threads: Vec<Thread>,
    _folder: TempDir,
}

impl Opened {
    /// Opens an image of the folder `stored`.
    ///
    /// # Panics
    /// If there is none, or no temporary file can be written.
    pub fn read(name: &str) -> Opened {
        Opened::new(StoredImage::read(name))
    }

    /// Opens an image.
    ///
    /// # Panics
    /// If no temporary file can be written.
    pub fn new(stored: StoredImage) -> Opened {
        let StoredImage { program, mut mappings, threads, pages, file, source, said } = stored;
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let root = folder.path().canonicalize().expect("it exists");
        let inside = |path: &str| root.join(path.trim_start_matches('/'));
        let path = inside(&program);
        write(&path, &file);
        let inode = path.metadata().expect("it was written").ino();
        // Files of this machine are others: libraries have none.
        for mapping in mappings.iter_mut().filter(|mapping| mapping.path.starts_with('/')) {
            if mapping.path == program {
                mapping.inode = inode;
            }
            mapping.path = inside(&mapping.path).display().to_string();
        }
        let program = path.display().to_string();
        Opened { pages: Pages::new(pages), source, said, program, mappings, threads, _folder: folder }
    }

    /// The core image.
    pub fn image(&self) -> CoreImage {
        self.with_memory(self.pages.clone())
    }

    /// The core image with other memory.
    pub fn with_memory(&self, memory: Pages) -> CoreImage {
        CoreImage {
            pid: NO_PROCESS,
            executable: self.program.clone(),
            mappings: self.mappings.clone(),
            threads: self.threads.clone(),
            memory: Box::new(memory),
        }
    }

    /// Bytes of the private memory that the program could write.
    pub fn writable_bytes(&self) -> u64 {
        let writable = self.mappings.iter().filter(|mapping| mapping.writable && !mapping.shared);
        writable.map(|mapping| mapping.range.end - mapping.range.start).sum()
    }
}

fn write(path: &Path, bytes: &[u8]) {
    let folder = path.parent().expect("a file is in a folder");
    std::fs::create_dir_all(folder).expect("a folder is made");
    std::fs::write(path, bytes).expect("a file is written");
}
