//! What the kernel tells about processes and threads that are not one's own, without touching them.
//!
//! Readers of `/proc` ([`status`], [`process`], [`threads`], [`maps`]), of names in ELF files ([`elf_names`]), and of
//! clocks ([`clock`]). Used by all that samples from outside; nothing of it runs inside a profiled program.

pub mod clock;
pub mod elf_names;
pub mod maps;
pub mod process;
pub mod status;
pub mod threads;

pub use process::ImageKey;
pub use status::Status;
