//! The memory of the tables: a file of the session folder, or private memory.
//!
//! The file has its full size at once, but pages only where tables are in use. Each step asks the kernel for the next pages
//! before they are touched. Without them, the tables are full. Kernels before 5.14 cannot be asked: there, the tables are small,
//! and all of their pages are reserved at once.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*};
use stackglass_host::session::PATH_BYTES;
use stackglass_host::system::{self, Fd, PathText};
use stackglass_host::{file_limit, stream_memory::Refused};
use stackglass_wire::heap::{
    COUNTERS, HEAP_BYTES, HEAP_FILE_PREFIX, HeapTables, MODULES, NODES, REFUSED_FILE_PREFIX, THREADS,
};

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
    /// Use small tables, divided by two this often, as on old kernels. 0 where that is not needed.
    pub smaller: u32,
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

    /// Size of the table in bytes.
    pub fn limit(&self) -> usize {
        self.range.len() >> SMALLER.load(Relaxed)
    }

    /// Makes sure that the first `bytes` bytes of the table exist. False if they cannot be had.
    #[inline]
    pub fn reserve(&self, tables: &HeapTables, bytes: usize) -> bool {
        bytes <= self.committed.load(Acquire) || self.grow(tables, bytes)
    }

    #[cold]
    #[inline(never)]
    fn grow(&self, tables: &HeapTables, bytes: usize) -> bool {
        let limit = self.limit();
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

const REGIONS: [&Region; 4] = [&THREAD_REGION, &MODULE_REGION, &NODE_REGION, &COUNTER_REGION];

/// Tables are divided by two this often.
static SMALLER: AtomicU32 = AtomicU32::new(0);
/// The same on kernels that do not reserve pages on request: about 6 MB.
const ON_OLD_KERNELS: u32 = 3;

/// All pages exist already, or come by themselves.
static WHOLE: AtomicBool = AtomicBool::new(false);

/// Makes pages exist, without SIGBUS. Two threads may do the same at once.
fn populate(at: *mut u8, bytes: usize) -> bool {
    if WHOLE.load(Relaxed) {
        return true;
    }
    let errno = system::errno();
    let done = advise(at, bytes).is_ok();
    system::set_errno(errno);
    done
}

/// Asks the kernel for pages. Fails with EINVAL before Linux 5.14.
fn advise(at: *mut u8, bytes: usize) -> Result<(), i32> {
    // SAFETY: advice on pages of the tables' mapping, which is never unmapped; it changes no content.
    let answer = unsafe { libc::syscall(libc::SYS_madvise, at, bytes, libc::MADV_POPULATE_WRITE) };
    if answer == 0 { Ok(()) } else { Err(system::errno()) }
}

fn refused(step: &'static str) -> Refused {
    Refused { step, errno: system::errno() }
}

/// Creates the tables: in a file if there is a session, else in private memory.
///
/// # Errors
/// [`Refused`] if the folder is not writable, the limit on file sizes is too low, or there is no memory.
pub fn create(session: Option<InFolder<'_>>) -> Result<HeapTables, Refused> {
    let base = match session {
        Some(session) => in_file(session)?,
        None => {
            let at = private()?;
            // Anonymous pages come when they are touched.
            WHOLE.store(true, Relaxed);
            at
        }
    };
    // SAFETY: a mapping of that size that is never unmapped; pages are touched only after they were populated.
    Ok(unsafe { HeapTables::at(base) })
}

/// Private memory behind a page that cannot be accessed, so that it is the first of a mapping: readers in other processes find it there.
fn private() -> Result<*mut u8, Refused> {
    const PAGE: usize = 4096;
    let at = system::map_private(PAGE + HEAP_BYTES);
    // SAFETY: the first page of the mapping that was just made, which no one uses.
    if at.is_null() || unsafe { libc::mprotect(at.cast(), PAGE, libc::PROT_NONE) } != 0 {
        return Err(refused("getting memory"));
    }
    Ok(at.wrapping_add(PAGE))
}

/// The path of this process's file in the folder of a session: `PREFIX`, the process, and a number.
fn file_of_process(session: InFolder<'_>, prefix: &str, number: u64) -> PathText<PATH_BYTES> {
    PathText::new()
        .text(session.folder)
        .text(b"/")
        .text(prefix.as_bytes())
        .number(u64::from(system::process_id()))
        .text(b"-")
        .number(number)
}

fn in_file(session: InFolder<'_>) -> Result<*mut u8, Refused> {
    if file_limit::largest_file() < HEAP_BYTES as u64 {
        return Err(Refused { step: "a file of 51 MB (see `ulimit -f`)", errno: libc::EFBIG });
    }
    let path = file_of_process(session, HEAP_FILE_PREFIX, session.begin);
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
    let file =
        Fd::open(libc::AT_FDCWD, path.as_c_str(), flags, 0o600).ok_or_else(|| refused("making a file"))?;
    let mapped = map_file(&file, session.smaller);
    if mapped.is_err() {
        // SAFETY: the path ends with a zero byte.
        unsafe { libc::unlink(path.as_c_str().as_ptr()) };
    }
    mapped
}

/// Tells the launcher that this process cannot record its allocations.
pub fn tell_refusal(session: InFolder<'_>, why: Refused) {
    let path = file_of_process(session, REFUSED_FILE_PREFIX, why.errno.unsigned_abs().into());
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
    if let Some(file) = Fd::open(libc::AT_FDCWD, path.as_c_str(), flags, 0o600) {
        // SAFETY: the descriptor and the text are live. Without room for the text, the name says enough.
        file_limit::without_signal(|| unsafe {
            libc::write(file.raw(), why.step.as_ptr().cast(), why.step.len())
        });
    }
}

fn map_file(file: &Fd, smaller: u32) -> Result<*mut u8, Refused> {
    // SAFETY: a call on a descriptor that this function owns, no pointers.
    let sized = file_limit::without_signal(|| unsafe { libc::ftruncate(file.raw(), HEAP_BYTES as i64) == 0 });
    if !sized {
        return Err(refused("reserving room"));
    }
    // SAFETY: a new mapping at an address of the kernel's choice. The kernel does not fill inaccessible pages, so no page is
    // locked before the lock is removed, in a program that locks all its memory.
    let at = unsafe {
        let at =
            system::mmap(core::ptr::null_mut(), HEAP_BYTES, libc::PROT_NONE, libc::MAP_SHARED, file.raw(), 0);
        if at == libc::MAP_FAILED {
            return Err(refused("mapping the file"));
        }
        libc::syscall(libc::SYS_munlock, at, HEAP_BYTES);
        libc::mprotect(at, HEAP_BYTES, libc::PROT_READ | libc::PROT_WRITE);
        at.cast::<u8>()
    };
    SMALLER.store(smaller, Relaxed);
    let reserved = if smaller == 0 { advise(at, 4096) } else { Err(libc::EINVAL) };
    let reserved = reserved.or_else(|errno| match errno {
        libc::EINVAL => {
            SMALLER.store(smaller.max(ON_OLD_KERNELS), Relaxed);
            reserve_all(file)
        }
        errno => Err(errno),
    });
    reserved.map_err(|errno| {
        // SAFETY: no one knows the mapping.
        unsafe { system::munmap(at.cast(), HEAP_BYTES) };
        Refused { step: "reserving room", errno }
    })?;
    Ok(at)
}

/// Reserves all pages of small tables.
fn reserve_all(file: &Fd) -> Result<(), i32> {
    let reserve = |range: Range<usize>| {
        // SAFETY: a call on a descriptor that this function owns, no pointers.
        let errno = file_limit::without_signal(|| unsafe {
            libc::posix_fallocate(file.raw(), range.start as i64, range.len() as i64)
        });
        if errno == 0 { Ok(()) } else { Err(errno) }
    };
    reserve(0..4096)?;
    for region in REGIONS {
        reserve(region.range.start..region.range.start + region.limit())?;
        region.committed.store(region.limit(), Release);
    }
    Ok(())
}

/// In a forked child: the tables were not inherited.
pub fn after_fork() {
    for region in REGIONS {
        region.committed.store(0, Release);
    }
}
