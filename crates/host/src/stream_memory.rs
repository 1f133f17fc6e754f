//! The memory into which this process image writes: a control page and a stream. It is a file of the session folder, or private.
//!
//! The file gets its full length at once and its pages in two steps: the control page when it is created, so that even the
//! shortest process is seen; the stream later, by [`StreamMemory::reserve`] on the sampler's thread. Only reserved pages
//! are written to. So a full disk is an error here and never a SIGBUS in the program.

use crate::file_limit;
use crate::session::PATH_BYTES;
use crate::system::{self, Fd, PathText};
use core::sync::atomic::{AtomicU64, Ordering::*};
use stackglass_wire::{CONTROL_BYTES, ControlPage, PROCESS_FILE_PREFIX, ProcessState, TEXT_BYTES, stream};

/// Sizes of a stream. A smaller one holds no deep stack.
const STREAM_BYTES: core::ops::RangeInclusive<u64> = 64 << 10..=1 << 30;

/// A mapped control page and stream of one process image. They are never unmapped.
pub struct StreamMemory {
    /// Its control page.
    pub control: &'static ControlPage,
    /// Its stream.
    pub ring: &'static [AtomicU64],
    /// Its file, `None` for private memory.
    path: Option<PathText<PATH_BYTES>>,
}

/// A step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The step, for messages.
    pub step: &'static str,
    /// The kernel's error number.
    pub errno: i32,
}

fn refused(step: &'static str) -> Refused {
    // SAFETY: errno's address is this thread's own and always valid.
    Refused { step, errno: unsafe { *libc::__errno_location() } }
}

impl StreamMemory {
    /// Creates this process's file in the session `folder`.
    ///
    /// # Errors
    /// [`Refused`] if the folder is not writable, the disk is full, the limit on file sizes is too low, or there is no memory.
    pub fn in_folder(folder: &[u8], start: u64, stream_bytes: u64) -> Result<StreamMemory, Refused> {
        let stream_bytes = size_within(stream_bytes, file_limit::largest_file())?;
        let length = CONTROL_BYTES as u64 + stream_bytes;
        let path = PathText::<PATH_BYTES>::new()
            .text(folder)
            .text(b"/")
            .text(PROCESS_FILE_PREFIX.as_bytes())
            .number(system::process_id() as u64)
            .text(b"-")
            .number(start);
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        let file = Fd::open(libc::AT_FDCWD, path.as_c_str(), flags, 0o600)
            .ok_or_else(|| refused("making a file"))?;
        // SAFETY: calls on a descriptor that this function owns, no pointers.
        let sized = file_limit::without_signal(|| unsafe {
            libc::ftruncate(file.raw(), length as i64) == 0
                && libc::posix_fallocate(file.raw(), 0, CONTROL_BYTES as i64) == 0
        });
        if !sized {
            // SAFETY: the path ends with a zero byte.
            unsafe { libc::unlink(path.as_c_str().as_ptr()) };
            return Err(refused("reserving room"));
        }
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe {
            system::mmap(
                core::ptr::null_mut(),
                length as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.raw(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(refused("mapping the file"));
        }
        // SAFETY: advice on the mapping just made: children do not get it.
        unsafe { libc::madvise(at, length as usize, libc::MADV_DONTFORK) };
        StreamMemory::over(at.cast(), length as usize, stream_bytes, Some(path), start)
    }

    /// Creates a control page and a stream in private memory, for a reader in the same process.
    ///
    /// # Errors
    /// [`Refused`] if there is no memory.
    pub fn in_memory(start: u64, stream_bytes: u64) -> Result<StreamMemory, Refused> {
        let stream_bytes = checked_size(stream_bytes);
        let length = CONTROL_BYTES + stream_bytes as usize;
        let at = system::map_private(length);
        if at.is_null() {
            return Err(refused("getting memory"));
        }
        // SAFETY: advice on the mapping just made: children do not get it.
        unsafe { libc::madvise(at.cast(), length, libc::MADV_DONTFORK) };
        StreamMemory::over(at, length, stream_bytes, None, start)
    }

    fn over(
        at: *mut u8,
        length: usize,
        stream_bytes: u64,
        path: Option<PathText<PATH_BYTES>>,
        start: u64,
    ) -> Result<StreamMemory, Refused> {
        // SAFETY: `at` is a mapping of `length` bytes that is never unmapped; this process accesses it through
        // atomics only, and so does the reader.
        let view = unsafe { stream::view(at, length, stream_bytes as usize / 8) };
        let (control, ring) = view.ok_or(Refused { step: "laying out the stream", errno: libc::EINVAL })?;
        let memory = StreamMemory { control, ring, path };
        memory.introduce(start);
        Ok(memory)
    }

    /// A second handle of the same memory, for the thread that writes to it.
    pub fn share(&self) -> StreamMemory {
        StreamMemory { control: self.control, ring: self.ring, path: None }
    }

    /// Starts over in the same private memory. No thread may write to the stream or read from it meanwhile.
    pub fn renew(&self, start: u64) {
        let words: *const AtomicU64 = (self.control as *const ControlPage).cast();
        for i in 0..size_of::<ControlPage>() / 8 {
            // SAFETY: inside the page, which is made of atomics of at most eight bytes, aligned to 64.
            unsafe { (*words.add(i)).store(0, Relaxed) };
        }
        self.introduce(start);
    }

    /// Fills the control page.
    fn introduce(&self, start: u64) {
        let control = self.control;
        control.pid.store(system::process_id(), Relaxed);
        // SAFETY: getppid has no arguments and cannot fail.
        control.ppid.store(unsafe { libc::syscall(libc::SYS_getppid) } as u32, Relaxed);
        control.start_ns.store(start, Relaxed);
        let ago = system::now().saturating_sub(start);
        control.start_realtime_ns.store(system::realtime().saturating_sub(ago), Relaxed);
        control.stream_words.store(self.ring.len() as u64, Relaxed);
        let mut text = [0u8; TEXT_BYTES];
        // SAFETY: the kernel writes at most the buffer's length.
        let n = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), text.as_mut_ptr().cast(), text.len()) };
        ControlPage::set_text(
            &control.exe,
            &control.exe_len,
            &text[..n.clamp(0, TEXT_BYTES as isize) as usize],
        );
        if let Some(file) = Fd::open(libc::AT_FDCWD, c"/proc/self/cmdline", libc::O_RDONLY, 0) {
            ControlPage::set_text(&control.cmdline, &control.cmdline_len, file.read_all(&mut text));
        }
        control.state.store(ProcessState::Starting as u32, Release);
        control.publish();
    }

    /// Reserves the stream's pages. Before that, nothing may be written to the stream. In private memory it does nothing.
    ///
    /// # Errors
    /// [`Refused`] if the disk is full.
    pub fn reserve(&self) -> Result<(), Refused> {
        let Some(path) = &self.path else { return Ok(()) };
        let file = Fd::open(libc::AT_FDCWD, path.as_c_str(), libc::O_RDWR | libc::O_NOFOLLOW, 0)
            .ok_or_else(|| refused("opening its file again"))?;
        let length = (CONTROL_BYTES + self.ring.len() * 8) as i64;
        // SAFETY: a call on a descriptor that this function owns, no pointers.
        match file_limit::without_signal(|| unsafe { libc::posix_fallocate(file.raw(), 0, length) }) {
            0 => Ok(()),
            errno => Err(Refused { step: "reserving room", errno }),
        }
    }
}

/// The largest power of two within the limits that is not above `asked`.
fn checked_size(asked: u64) -> u64 {
    let asked = asked.clamp(*STREAM_BYTES.start(), *STREAM_BYTES.end());
    if asked.is_power_of_two() { asked } else { asked.next_power_of_two() / 2 }
}

/// The size of a stream in a file of at most `largest` bytes.
fn size_within(asked: u64, largest: u64) -> Result<u64, Refused> {
    let room = largest.saturating_sub(CONTROL_BYTES as u64);
    if room < *STREAM_BYTES.start() {
        return Err(Refused { step: "a file of 72 KiB (see `ulimit -f`)", errno: libc::EFBIG });
    }
    Ok(checked_size(asked.min(room)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn sizes_become_powers_of_two_in_range() {
        assert_eq!(checked_size(0), 64 << 10);
        assert_eq!(checked_size(4 << 20), 4 << 20);
        assert_eq!(checked_size((4 << 20) + 1), 4 << 20);
        assert_eq!(checked_size(u64::MAX), 1 << 30);
    }

    #[test]
    fn a_stream_is_no_larger_than_files_may_be() {
        assert_eq!(size_within(4 << 20, u64::MAX), Ok(4 << 20));
        assert_eq!(size_within(4 << 20, 4 << 20), Ok(2 << 20));
        assert_eq!(size_within(4 << 20, 72 << 10), Ok(64 << 10));
        assert_eq!(size_within(4 << 20, (72 << 10) - 1).map_err(|r| r.errno), Err(libc::EFBIG));
        assert_eq!(size_within(4 << 20, 0).map_err(|r| r.errno), Err(libc::EFBIG));
    }

    #[test]
    fn the_memory_introduces_itself_and_its_pages_are_reserved() {
        let folder = std::env::temp_dir().join(format!("stackglass-stream-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let start = system::now();
        let memory = StreamMemory::in_folder(folder.as_os_str().as_bytes(), start, 1 << 20).unwrap();
        assert!(memory.control.is_ready());
        assert_eq!(memory.control.pid.load(Relaxed), std::process::id());
        let mut text = [0; TEXT_BYTES];
        let exe = ControlPage::text(&memory.control.exe, &memory.control.exe_len, &mut text);
        assert_eq!(exe, std::env::current_exe().unwrap().as_os_str().as_bytes());
        let file = folder.join(format!("p-{}-{start}", std::process::id()));
        let meta = std::fs::metadata(&file).unwrap();
        assert_eq!(meta.len(), (CONTROL_BYTES + (1 << 20)) as u64);
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        memory.reserve().unwrap();
        let blocks = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&file).unwrap());
        assert!(blocks * 512 >= meta.len(), "every page has its place");
        let again = StreamMemory::in_folder(folder.as_os_str().as_bytes(), start, 1 << 20);
        assert_eq!(again.err().map(|r| r.errno), Some(libc::EEXIST));
        std::fs::remove_dir_all(&folder).unwrap();
        let gone = StreamMemory::in_folder(folder.as_os_str().as_bytes(), start, 1 << 20);
        assert_eq!(gone.err().map(|r| r.errno), Some(libc::ENOENT));
    }
}
