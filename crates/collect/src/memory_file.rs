//! Files in memory, which have no name in any file system (memfd_create(2)).

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

/// Creates an empty one. `/proc/PID/fd` shows `name`. A program that is executed does not get it.
pub(crate) fn memory_file(name: &CStr, flags: libc::c_uint) -> io::Result<File> {
    // SAFETY: the name ends with a zero byte.
    let file = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags) };
    match file {
        0.. => {
            // SAFETY: a new descriptor, which nothing else owns.
            Ok(unsafe { File::from_raw_fd(file) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}
