//! Facts about other processes and their threads, read without affecting them.
//!
//! Readers of `/proc` ([`status`], [`process`], [`threads`], [`maps`]), of names in ELF files ([`elf_names`]), and of
//! clocks ([`clock`]). All sampling from outside uses them; none of it runs inside a profiled program.

pub mod clock;
pub mod elf_names;
pub mod limits;
pub mod maps;
mod page_cache;
pub mod process;
pub mod smaps;
pub mod status;
pub mod threads;

pub use page_cache::PageCache;
pub use process::ImageKey;
pub use status::Status;

/// Whether the file system proc(5) is where it is expected. A changed root folder often lacks it.
pub fn is_mounted() -> bool {
    std::path::Path::new("/proc/self/stat").exists()
}
