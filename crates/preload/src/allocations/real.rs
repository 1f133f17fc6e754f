//! The allocator behind this library: that of the C library, or of another preloaded or linked one.
//!
//! Each word first points to a function that looks all of them up. The first allocation happens before any constructor has
//! run. Older C libraries allocate while they look up a name: those few blocks come from a buffer of this library.

use super::sanitizers;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::*};

macro_rules! real {
    ($($word:ident $name:ident($($arg:ident: $type:ty),*) -> $result:ty, $first:ident;)*) => {
        $(
            #[doc = concat!("The real `", stringify!($name), "`.")]
            pub static $word: AtomicPtr<c_void> = AtomicPtr::new($first as *const () as *mut c_void);

            unsafe extern "C" fn $first($($arg: $type),*) -> $result {
                if !resolve() {
                    // SAFETY: as for the function itself.
                    return unsafe { early::$name($($arg),*) };
                }
                // SAFETY: passed on.
                unsafe { $name($($arg),*) }
            }

            #[doc = concat!("Calls the real `", stringify!($name), "`.")]
            #[inline(always)]
            pub unsafe fn $name($($arg: $type),*) -> $result {
                let function = $word.load(Relaxed);
                // SAFETY: the function of this name of a later library, or the one above, of the same type.
                unsafe { transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> $result>(function)($($arg),*) }
            }
        )*

        fn look_up_all() {
            $(look_up(&$word, concat!(stringify!($name), "\0"), early::$name as *const ());)*
        }
    };
}

real! {
    MALLOC malloc(size: usize) -> *mut c_void, first_malloc;
    CALLOC calloc(count: usize, size: usize) -> *mut c_void, first_calloc;
    REALLOC realloc(old: *mut c_void, size: usize) -> *mut c_void, first_realloc;
    REALLOCARRAY reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void, first_reallocarray;
    MEMALIGN memalign(align: usize, size: usize) -> *mut c_void, first_memalign;
    ALIGNED_ALLOC aligned_alloc(align: usize, size: usize) -> *mut c_void, first_aligned_alloc;
    POSIX_MEMALIGN posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int, first_posix_memalign;
    VALLOC valloc(size: usize) -> *mut c_void, first_valloc;
    PVALLOC pvalloc(size: usize) -> *mut c_void, first_pvalloc;
    FREE free(block: *mut c_void) -> (), first_free;
    MMAP mmap(at: *mut c_void, len: usize, protection: c_int, flags: c_int, file: c_int, offset: i64) -> *mut c_void, first_mmap;
    MUNMAP munmap(at: *mut c_void, len: usize) -> c_int, first_munmap;
}

static RESOLVING: AtomicBool = AtomicBool::new(false);
static RESOLVED: AtomicBool = AtomicBool::new(false);

/// Looks all functions up. False while that is in progress.
pub fn resolve() -> bool {
    if RESOLVED.load(Acquire) {
        return true;
    }
    // The first call comes from the loader, before there are other threads.
    if RESOLVING.swap(true, AcqRel) {
        return false;
    }
    look_up_all();
    look_around();
    super::confinement::resolve();
    if early::USED.load(Relaxed) != 0 {
        early::WRAPPED_FREE.store(FREE.load(Relaxed), Relaxed);
        early::WRAPPED_REALLOC.store(REALLOC.load(Relaxed), Relaxed);
        FREE.store(early::checked_free as *const () as *mut c_void, Relaxed);
        REALLOC.store(early::checked_realloc as *const () as *mut c_void, Relaxed);
    }
    RESOLVED.store(true, Release);
    true
}

/// A missing function gets its stand-in.
fn look_up(word: &AtomicPtr<c_void>, name: &str, missing: *const ()) {
    let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else { return };
    // SAFETY: the name ends with a zero byte. RTLD_NEXT is relative to this library.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    word.store(if found.is_null() { missing.cast_mut().cast() } else { found }, Relaxed);
}

static IS_LEFT_ALONE: AtomicBool = AtomicBool::new(false);
static HAS_SHADOW: AtomicBool = AtomicBool::new(false);

/// Whether a sanitizer is in the process whose shadow memory is as large as the address space.
pub fn has_shadow_memory() -> bool {
    HAS_SHADOW.load(Relaxed)
}

static IN_GLIBC: AtomicBool = AtomicBool::new(false);
static HAS_OTHER: AtomicBool = AtomicBool::new(false);
static IS_GLIBC: AtomicBool = AtomicBool::new(false);

/// Looks up what else must be known of the process. Later, a hook may not ask the loader: it may have been called by the loader, in
/// the middle of its work.
fn look_around() {
    // SAFETY: the name ends with a zero byte.
    let find = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let module = |address: *const c_void| {
        // SAFETY: all zeros is a value, which the loader fills.
        unsafe {
            let mut info: libc::Dl_info = core::mem::zeroed();
            if libc::dladdr(address, &mut info) == 0 { core::ptr::null_mut() } else { info.dli_fbase }
        }
    };
    IS_LEFT_ALONE.store(sanitizers::bears_no_library(), Relaxed);
    HAS_SHADOW.store(IS_LEFT_ALONE.load(Relaxed) || sanitizers::has_address_sanitizer(), Relaxed);
    if IS_LEFT_ALONE.load(Relaxed) {
        // Functions of the loader that it has taken over do not work yet.
        return;
    }
    let version = find(c"gnu_get_libc_version");
    IN_GLIBC.store(!version.is_null(), Relaxed);
    IS_GLIBC.store(!version.is_null() && module(version) == module(MALLOC.load(Relaxed)), Relaxed);
    let own = module((&raw const MALLOC).cast());
    if !IS_GLIBC.load(Relaxed) && module(MALLOC.load(Relaxed)) != own {
        find_allocator();
    }
    let is_other = |address: *mut c_void| own != module(address) && is_defined_at(address);
    HAS_OTHER.store(is_other(find(c"malloc")) || is_other(find(c"free")), Relaxed);
}

/// First address and end of the library with the allocator, if it is not the C library.
static ALLOCATOR: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

fn find_allocator() {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, malloc: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid `info`, whose `dlpi_phdr` points to `dlpi_phnum` headers, and keeps the module loaded
        // during the call.
        let (base, headers) = unsafe {
            let info = &*info;
            (info.dlpi_addr as usize, core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()))
        };
        let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start = loaded().map(|header| base.wrapping_add(header.p_vaddr as usize)).min();
        let end = loaded().map(|header| base.wrapping_add((header.p_vaddr + header.p_memsz) as usize)).max();
        let (Some(start), Some(end)) = (start, end) else { return 0 };
        if !(start..end).contains(&malloc.addr()) {
            return 0;
        }
        ALLOCATOR[0].store(start, Relaxed);
        ALLOCATOR[1].store(end, Relaxed);
        1
    }
    // SAFETY: `visit` has the required type, and only compares its last argument with addresses.
    unsafe { libc::dl_iterate_phdr(Some(visit), MALLOC.load(Relaxed)) };
}

/// Whether code lies in the library with the allocator, if that is not the C library.
pub fn is_in_allocator(pc: usize) -> bool {
    (ALLOCATOR[0].load(Relaxed)..ALLOCATOR[1].load(Relaxed)).contains(&pc)
}

/// Whether a function is really defined at an address: a program at a fixed address has entries of its own for functions of
/// libraries.
fn is_defined_at(address: *mut c_void) -> bool {
    type Dladdr1 =
        unsafe extern "C" fn(*const c_void, *mut libc::Dl_info, *mut *const libc::Elf64_Sym, c_int) -> c_int;
    const RTLD_DL_SYMENT: c_int = 1;
    // SAFETY: glibc's function of this name, or null, which is `None`. All zeros is a value of the structure, which it fills.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, c"dladdr1".as_ptr());
        let Some(dladdr1) = transmute::<*mut c_void, Option<Dladdr1>>(found) else { return true };
        let mut info: libc::Dl_info = core::mem::zeroed();
        let mut symbol = core::ptr::null();
        let is_known = dladdr1(address, &mut info, &mut symbol, RTLD_DL_SYMENT) != 0;
        !is_known || symbol.is_null() || (*symbol).st_shndx != 0
    }
}

/// Whether the C library is glibc, and there is no sanitizer that bears no library before its own.
pub fn is_in_glibc() -> bool {
    resolve();
    IN_GLIBC.load(Relaxed)
}

/// Whether the allocator is glibc's, in which two blocks are at least 32 bytes apart.
pub fn is_glibc() -> bool {
    IS_GLIBC.load(Relaxed)
}

/// Whether the program's own `malloc` or `free` comes before those of this library, which are then not called.
pub fn has_other_allocator() -> bool {
    HAS_OTHER.load(Relaxed)
}

/// What serves while the real functions are being looked up, and for functions that do not exist.
mod early {
    use super::*;
    use core::cell::UnsafeCell;

    const BYTES: usize = 16 << 10;

    #[repr(align(64))]
    struct Buffer(UnsafeCell<[u8; BYTES]>);
    // SAFETY: parts are handed out once each.
    unsafe impl Sync for Buffer {}

    static BUFFER: Buffer = Buffer(UnsafeCell::new([0; BYTES]));
    /// Bytes of the buffer that were handed out.
    pub static USED: AtomicUsize = AtomicUsize::new(0);
    pub static WRAPPED_FREE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    pub static WRAPPED_REALLOC: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

    fn is_early(block: *mut c_void) -> bool {
        (block.addr()).wrapping_sub(BUFFER.0.get().addr()) < BYTES
    }

    fn no_memory() -> *mut c_void {
        stackglass_host::system::set_errno(libc::ENOMEM);
        core::ptr::null_mut()
    }

    pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
        let size = size.max(1).next_multiple_of(16);
        let at = USED.fetch_add(size, Relaxed);
        if size > BYTES || at > BYTES - size {
            return no_memory();
        }
        BUFFER.0.get().cast::<c_void>().wrapping_byte_add(at)
    }

    pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        // SAFETY: the buffer is zero, and each part is handed out once.
        unsafe { malloc(count.saturating_mul(size).min(BYTES + 1)) }
    }

    pub unsafe extern "C" fn realloc(_: *mut c_void, _: usize) -> *mut c_void {
        no_memory()
    }

    pub unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
        match count.checked_mul(size) {
            // SAFETY: passed on: C libraries before glibc 2.26 have no such function.
            Some(bytes) => unsafe { super::realloc(old, bytes) },
            None => no_memory(),
        }
    }

    pub unsafe extern "C" fn memalign(_: usize, _: usize) -> *mut c_void {
        no_memory()
    }

    pub unsafe extern "C" fn aligned_alloc(_: usize, _: usize) -> *mut c_void {
        no_memory()
    }

    pub unsafe extern "C" fn posix_memalign(_: *mut *mut c_void, _: usize, _: usize) -> c_int {
        libc::ENOMEM
    }

    pub unsafe extern "C" fn valloc(_: usize) -> *mut c_void {
        no_memory()
    }

    pub unsafe extern "C" fn pvalloc(_: usize) -> *mut c_void {
        no_memory()
    }

    pub unsafe extern "C" fn free(_: *mut c_void) {}

    pub unsafe extern "C" fn mmap(
        at: *mut c_void,
        len: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: i64,
    ) -> *mut c_void {
        // SAFETY: the arguments of the program's call of mmap(2), passed on.
        unsafe { stackglass_host::system::mmap(at, len, protection, flags, file, offset) }
    }

    pub unsafe extern "C" fn munmap(at: *mut c_void, len: usize) -> c_int {
        // SAFETY: the arguments of the program's call of munmap(2), passed on.
        unsafe { stackglass_host::system::munmap(at, len) }
    }

    /// The real `free`, for all but the blocks of the buffer.
    pub unsafe extern "C" fn checked_free(block: *mut c_void) {
        if !is_early(block) {
            let real = WRAPPED_FREE.load(Relaxed);
            // SAFETY: the real `free`.
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(real)(block) }
        }
    }

    /// The real `realloc`; blocks of the buffer are copied.
    pub unsafe extern "C" fn checked_realloc(old: *mut c_void, size: usize) -> *mut c_void {
        if !is_early(old) {
            let real = WRAPPED_REALLOC.load(Relaxed);
            type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
            // SAFETY: the real `realloc`.
            return unsafe { transmute::<*mut c_void, Realloc>(real)(old, size) };
        }
        // SAFETY: `old` lies in the buffer, whose end bounds the copy.
        unsafe {
            let new = super::malloc(size);
            if !new.is_null() {
                let end = BUFFER.0.get().addr() + BYTES;
                core::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), size.min(end - old.addr()));
            }
            new
        }
    }
}
