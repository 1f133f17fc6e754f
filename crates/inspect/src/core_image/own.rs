//! The memory of this process while it runs, read by the kernel: an address that is not valid is a failed read, never a crash.
//!
//! What is read may change at any moment. Whether it did is for the caller to check.

use stackglass_process_view::core_image::{CoreImage, Memory};
use std::io;

const PAGE: usize = 4096;

struct OwnMemory;

impl Memory for OwnMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        // By pages: a page that cannot be read does not keep those before it from being read.
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let count = (PAGE - at as usize % PAGE).min(into.len() - done);
            if !read(at, &mut into[done..done + count]) {
                break;
            }
            done += count;
        }
        done
    }
}

/// Reads bytes that lie in one page. False if they cannot be read.
fn read(address: u64, into: &mut [u8]) -> bool {
    let to = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let from = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the kernel checks `from`, and writes only to `to`, which is live.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &to, 1, &from, 1, 0) };
    read == into.len() as isize
}

/// Its memory.
pub(crate) fn memory() -> Box<dyn Memory> {
    Box::new(OwnMemory)
}

/// This process, without its threads.
///
/// # Errors
/// If its mappings cannot be read, or the kernel refuses reads of memory.
pub(crate) fn image() -> io::Result<CoreImage> {
    let (known, mut copy) = ([7u8; 16], [0; 16]);
    if !read(known.as_ptr().addr() as u64, &mut copy[..1]) || copy[0] != 7 {
        return Err(io::Error::last_os_error());
    }
    let pid = std::process::id();
    let mappings = stackglass_procfs::maps::read(pid)?;
    let executable = stackglass_procfs::process::executable(pid).display().to_string();
    Ok(CoreImage { pid, executable, mappings, threads: Vec::new(), memory: memory() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_no_crash() {
        let image = image().expect("this process can be read");
        let words = vec![7u64; 4096];
        assert_eq!(image.word(words.as_ptr().addr() as u64), Some(7));
        let mut bytes = vec![0; 4 * PAGE];
        assert_eq!(image.memory.read(words.as_ptr().addr() as u64, &mut bytes), bytes.len());
        for address in [0, 8, 0xdead_beef_0000, u64::MAX - 3] {
            assert_eq!(image.word(address), None);
        }
        assert!(image.mappings.iter().any(|mapping| mapping.executable));
    }

    /// It is in no file, but has names and unwind rules: stacks of threads that ask for the time go through it.
    #[test]
    fn the_kernels_library_is_a_module() {
        let image = image().expect("this process can be read");
        let view = stackglass_process_view::ProcessView::open(&image);
        let place = view.modules.iter().position(|module| module.path == "[vdso]").expect("it is mapped");
        assert!(!view.modules[place].module.eh_frame_hdr().is_empty());
        assert_eq!(&*view.files()[place].path, "[vdso]");
    }
}
