//! Which filters of system calls (seccomp(2)) this process had when it was executed.
//!
//! A parent may have confined it, and may have forbidden calls that this library needs. The loader has just opened, read and closed
//! this library. The same three calls tell of the filters.

use stackglass_host::system::Fd;
use stackglass_wire::confinement;

/// The process's [`confinement`]; `None` if that cannot be read.
pub fn read() -> Option<u32> {
    let mut status = [0u8; 4096];
    let file = Fd::open(libc::AT_FDCWD, c"/proc/self/status", libc::O_RDONLY, 0)?;
    // SAFETY: the kernel writes at most the buffer's length.
    let len = unsafe { libc::read(file.raw(), status.as_mut_ptr().cast(), status.len()) };
    let status = status.get(..usize::try_from(len).ok()?).filter(|text| !text.is_empty())?;
    Some(confinement(status))
}
