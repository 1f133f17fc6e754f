//! The memory of the tables: a file of the session folder, or private memory.
//!
//! The file has its full size at once, but pages only where tables are in use. Each step asks the kernel for the next pages
//! before they are touched. Without them, the tables are full.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use stackglass_host::session::PATH_BYTES;
use stackglass_host::system::{self, Fd, PathText};
use stackglass_host::{file_limit, image::Refused};
use stackglass_wire::heap::{COUNTERS, HEAP_BYTES, HEAP_FILE_PREFIX, HeapTables, MODULES, NODES, THREADS};

/// Pages are asked for in steps of this many bytes.
const STEP: usize = 64 << 10;
/// The first step of each table: most processes of a build need no more.
const FIRST: usize = 16 << 10;

/// Why there are no tables.
pub type TablesError = Refused;

/// A session's folder, and when this process image began.
#[derive(Clone, Copy)]
pub struct InFolder<'a> {
    /// The session folder.
    pub folder: &'a [u8],
    /// CLOCK_MONOTONIC, ns; part of the file's name.
    pub begin: u64,
}

/// A table in which pages exist up to a point.
pub struct Region {
    range: Range<usize>,
    committed: AtomicUsize,
}

impl Region {
    const fn new(range: Range<usize>) -> Region {
        Region { range, committed: AtomicUsize::new(0) }
    }

    /// Makes sure that the first `bytes` bytes of the table exist. False if they cannot be had.
    #[inline]
    pub fn reserve(&self, tables: &HeapTables, bytes: usize) -> bool {
        bytes <= self.committed.load(Acquire) || self.grow(tables, bytes)
    }

    #[cold]
    #[inline(never)]
    fn grow(&self, tables: &HeapTables, bytes: usize) -> bool {
        let limit = self.range.len();
        if bytes > limit {
            return false;
        }
        let known = self.committed.load(Acquire);
        let step = if known == 0 { FIRST } else { STEP };
        let wanted = bytes.next_multiple_of(step).min(limit);
        if !populate(tables.base().wrapping_add(self.range.start + known), wanted - known) {
            return false;
        }
        self.committed.fetch_max(wanted, AcqRel);
        true
    }
}

/// The tables that grow.
pub static THREAD_REGION: Region = Region::new(THREADS);
/// See [`THREAD_REGION`].
pub static MODULE_REGION: Region = Region::new(MODULES);
/// See [`THREAD_REGION`].
pub static NODE_REGION: Region = Region::new(NODES);
/// See [`THREAD_REGION`].
pub static COUNTER_REGION: Region = Region::new(COUNTERS);

/// All pages exist already, or come by themselves.
static WHOLE: AtomicBool = AtomicBool::new(false);

/// Makes pages exist, without SIGBUS. Two threads may do the same at once.
fn populate(at: *mut u8, bytes: usize) -> bool {
    if WHOLE.load(Relaxed) {
        return true;
    }
    let errno = system::errno();
    // SAFETY: advice on pages of the tables' mapping, which is never unmapped; it changes no content.
    let done = unsafe { libc::syscall(libc::SYS_madvise, at, bytes, libc::MADV_POPULATE_WRITE) } == 0;
    system::set_errno(errno);
    done
}

fn refused(step: &'static str) -> Refused {
    Refused { step, errno: system::errno() }
}

/// Creates the tables: in a file if there is a session, else in private memory.
///
/// # Errors
/// [`Refused`] if the folder is not writable, the limit on file sizes is too low, the kernel is older than 5.14, or there is no memory.
pub fn create(session: Option<InFolder<'_>>) -> Result<HeapTables, Refused> {
    let base = match session {
        Some(session) => in_file(session)?,
        None => {
            let at = system::map_private(HEAP_BYTES);
            if at.is_null() {
                return Err(refused("getting memory"));
            }
            // Anonymous pages come when they are touched.
            WHOLE.store(true, Relaxed);
            at
        }
    };
    // SAFETY: advice on the mapping just made: children do not get it.
    unsafe { libc::madvise(base.cast(), HEAP_BYTES, libc::MADV_DONTFORK) };
    if !populate(base, 4096) {
        return Err(refused("reserving room (it needs Linux 5.14)"));
    }
    // SAFETY: a mapping of that size that is never unmapped; pages are touched only after they were populated.
    Ok(unsafe { HeapTables::at(base) })
}

fn in_file(session: InFolder<'_>) -> Result<*mut u8, Refused> {
    if file_limit::largest_file() < HEAP_BYTES as u64 {
        return Err(Refused { step: "a file of 51 MB (see `ulimit -f`)", errno: libc::EFBIG });
    }
    let path = PathText::<PATH_BYTES>::new()
        .text(session.folder)
        .text(b"/")
        .text(HEAP_FILE_PREFIX.as_bytes())
        .number(u64::from(system::process_id()))
        .text(b"-")
        .number(session.begin);
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
    let file =
        Fd::open(libc::AT_FDCWD, path.as_c_str(), flags, 0o600).ok_or_else(|| refused("making a file"))?;
    // SAFETY: a call on a descriptor that this function owns, no pointers.
    let sized = file_limit::without_signal(|| unsafe { libc::ftruncate(file.raw(), HEAP_BYTES as i64) == 0 });
    if !sized {
        let why = refused("reserving room");
        // SAFETY: the path ends with a zero byte.
        unsafe { libc::unlink(path.as_c_str().as_ptr()) };
        return Err(why);
    }
    // SAFETY: a new mapping at an address of the kernel's choice. The kernel does not fill inaccessible pages, so no page is
    // locked before the lock is removed, in a program that locks all its memory.
    unsafe {
        let at =
            system::mmap(core::ptr::null_mut(), HEAP_BYTES, libc::PROT_NONE, libc::MAP_SHARED, file.raw(), 0);
        if at == libc::MAP_FAILED {
            return Err(refused("mapping the file"));
        }
        libc::syscall(libc::SYS_munlock, at, HEAP_BYTES);
        if libc::mprotect(at, HEAP_BYTES, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return Err(refused("mapping the file"));
        }
        Ok(at.cast())
    }
}

/// In a forked child: the tables were not inherited.
pub fn after_fork() {
    for region in [&THREAD_REGION, &MODULE_REGION, &NODE_REGION, &COUNTER_REGION] {
        region.committed.store(0, Release);
    }
}
