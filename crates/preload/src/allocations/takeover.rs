//! Takes over the functions of an allocator that is part of the executable, by the launcher's plan, before `main` runs.
//!
//! Each function begins with a jump then: to a stub near the executable, which passes on where the function's own first
//! instructions went, and from there to an entry (`own_entries_x86_64`). All or nothing: a byte that is not as planned, a second
//! thread, or a refusal of the kernel leaves the executable untouched. Changed pages are private copies of this process.

use super::own_entries;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering::*};
use stackglass_host::session::{PATH_BYTES, Session};
use stackglass_host::system::{self, Fd, PathText};
use stackglass_wire::takeover::{Action, JUMP_BYTES, TAKEOVER_FILE, TakeoverEntry, TakeoverPlan};

/// Bytes of stubs and moved instructions.
const PAGE: usize = 4096;
/// Room for each of them.
const STUB: usize = 32;
const ROOM: usize = PAGE / stackglass_wire::takeover::MAX_ENTRIES;
/// Places that are tried below the executable, and the distance between two.
const PLACES: usize = 512;
const STEP: usize = 64 << 10;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether an allocator of the executable was taken over. Its blocks are at least 16 bytes apart.
pub fn is_done() -> bool {
    TAKEN.load(Relaxed)
}

/// Takes the functions over if there is a plan for this executable.
pub fn begin(session: &Session) {
    let errno = system::errno();
    if !is_done() && take_over(session).is_some() {
        TAKEN.store(true, Relaxed);
    }
    system::set_errno(errno);
}

fn take_over(session: &Session) -> Option<()> {
    let path = PathText::<PATH_BYTES>::new()
        .text(session.folder.as_bytes())
        .text(b"/")
        .text(TAKEOVER_FILE.as_bytes());
    let file = Fd::open(libc::AT_FDCWD, path.as_c_str(), libc::O_RDWR | libc::O_NOFOLLOW, 0)?;
    let mut plan = TakeoverPlan::new(0, 0, 0);
    if file.read_at(plan.as_bytes_mut(), 0) != TakeoverPlan::BYTES {
        return None;
    }
    let entries = plan.entries();
    if entries.is_empty() || !is_own_executable(&plan) || !is_single_threaded() {
        return None;
    }
    let executable = Executable::find()?;
    let is_as_planned = entries.iter().all(|entry| executable.holds(entry));
    if !is_as_planned {
        return None;
    }
    let page = executable.map_below()?;
    if write(&executable, entries, page).is_none() {
        // SAFETY: the mapping made above, to which nothing leads.
        unsafe { system::munmap(page.cast(), PAGE) };
        return None;
    }
    let taken = 1u64.to_ne_bytes();
    // SAFETY: reads from a live array.
    unsafe { libc::pwrite(file.raw(), taken.as_ptr().cast(), taken.len(), TakeoverPlan::TAKEN_AT as i64) };
    Some(())
}

fn is_own_executable(plan: &TakeoverPlan) -> bool {
    // SAFETY: the path ends with a zero byte; all zeros is a value of the struct, which the kernel fills.
    let stat = unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        if libc::stat(c"/proc/self/exe".as_ptr(), &mut stat) != 0 {
            return false;
        }
        stat
    };
    (stat.st_dev, stat.st_ino, stat.st_size as u64) == (plan.device, plan.inode, plan.bytes)
}

/// Constructors of other libraries may have started threads. The folder of threads has a link for each.
fn is_single_threaded() -> bool {
    // SAFETY: as above.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        libc::stat(c"/proc/self/task".as_ptr(), &mut stat) == 0 && stat.st_nlink == 3
    }
}

/// The mapped executable.
struct Executable {
    /// Difference between addresses in memory and in its file.
    base: usize,
    segments: &'static [libc::Elf64_Phdr],
}

impl Executable {
    fn find() -> Option<Executable> {
        // SAFETY: no pointers; the kernel passes the address and number of the program headers, which stay mapped.
        let segments = unsafe {
            let at = libc::getauxval(libc::AT_PHDR) as *const libc::Elf64_Phdr;
            if at.is_null() {
                return None;
            }
            core::slice::from_raw_parts(at, libc::getauxval(libc::AT_PHNUM) as usize)
        };
        let own = segments.iter().find(|segment| segment.p_type == libc::PT_PHDR)?;
        let base = segments.as_ptr().addr().wrapping_sub(own.p_vaddr as usize);
        Some(Executable { base, segments })
    }

    fn address(&self, in_file: u64) -> usize {
        self.base.wrapping_add(in_file as usize)
    }

    /// The protection of the segment of code around an entry, if the entry lies in one.
    fn protection(&self, entry: &TakeoverEntry) -> Option<i32> {
        let end = entry.address.checked_add(entry.original().len() as u64)?;
        let segment = self.segments.iter().find(|segment| {
            let limit = segment.p_vaddr.saturating_add(segment.p_filesz);
            segment.p_type == libc::PT_LOAD && segment.p_vaddr <= entry.address && end <= limit
        })?;
        let is_code = segment.p_flags & libc::PF_X != 0 && segment.p_flags & libc::PF_R != 0;
        let writable = if segment.p_flags & libc::PF_W != 0 { libc::PROT_WRITE } else { 0 };
        is_code.then_some(libc::PROT_READ | libc::PROT_EXEC | writable)
    }

    /// Whether the memory of an entry is as planned.
    fn holds(&self, entry: &TakeoverEntry) -> bool {
        let original = entry.original();
        // SAFETY: inside of a readable segment of the executable.
        self.protection(entry).is_some()
            && original
                == unsafe {
                    core::slice::from_raw_parts(self.address(entry.address) as *const u8, original.len())
                }
    }

    /// A page below the executable, where the heap does not grow.
    fn map_below(&self) -> Option<*mut u8> {
        let loaded = self.segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD);
        let lowest = self.address(loaded.map(|segment| segment.p_vaddr).min()?) & !(PAGE - 1);
        for place in 1..=PLACES {
            let hint = lowest.checked_sub(place * STEP).filter(|hint| *hint >= STEP)?;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping, which replaces no other. (Kernels before 4.17 take the address as a hint.)
            let at = unsafe { system::mmap(hint as *mut c_void, PAGE, protection, flags, -1, 0) };
            if at.addr() == hint {
                return Some(at.cast());
            }
            if at != libc::MAP_FAILED {
                // SAFETY: the mapping just made.
                unsafe { system::munmap(at, PAGE) };
            }
        }
        None
    }

    /// The pages around an entry.
    fn pages(&self, entry: &TakeoverEntry) -> (usize, usize) {
        let at = self.address(entry.address);
        let begin = at & !(PAGE - 1);
        (begin, (at + JUMP_BYTES).next_multiple_of(PAGE) - begin)
    }
}

/// Writes stubs and moved instructions, then the jumps. `None` before anything of the executable has changed.
fn write(executable: &Executable, entries: &[TakeoverEntry], page: *mut u8) -> Option<()> {
    let room = |index: usize| page.addr() + index * ROOM;
    for (index, entry) in entries.iter().enumerate() {
        let (stub, moved_at) = (room(index), room(index) + STUB);
        if STUB + entry.moved().len() > ROOM {
            return None;
        }
        let hook = own_entries::address(entry.action()?);
        // mov r11, moved_at; jmp [rip]; hook
        let parts: [&[u8]; 4] =
            [&[0x49, 0xbb], &moved_at.to_le_bytes(), &[0xff, 0x25, 0, 0, 0, 0], &hook.to_le_bytes()];
        let mut at = stub;
        for part in parts {
            put(at, part);
            at += part.len();
        }
        put(moved_at, entry.moved());
        for distance in entry.distances() {
            let target = executable.address(distance.target);
            let value = distance_between(moved_at + distance.end as usize, target)?;
            put(moved_at + distance.at as usize, &value.to_le_bytes());
        }
        distance_between(executable.address(entry.address) + JUMP_BYTES, stub)?;
    }
    protect((page.addr(), PAGE), libc::PROT_READ | libc::PROT_EXEC).then_some(())?;
    // Writable and executable at once: where that is forbidden, it is refused here, and not on the way back.
    let open = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let opened = entries.iter().take_while(|entry| protect(executable.pages(entry), open)).count();
    if opened == entries.len() {
        for (index, entry) in entries.iter().enumerate() {
            let at = executable.address(entry.address);
            let value = distance_between(at + JUMP_BYTES, room(index)).unwrap_or_default();
            let mut jump = [0xe9, 0, 0, 0, 0];
            jump[1..].copy_from_slice(&value.to_le_bytes());
            put(at, &jump);
        }
    }
    for entry in entries.iter().take(opened + 1) {
        protect(executable.pages(entry), executable.protection(entry)?);
    }
    (opened == entries.len()).then_some(())
}

/// The distance from the end of an instruction to an address, if it fits.
fn distance_between(end: usize, target: usize) -> Option<i32> {
    i32::try_from(target.wrapping_sub(end) as isize).ok()
}

/// Copies bytes to writable memory: the new page, or an opened page of code.
fn put(at: usize, bytes: &[u8]) {
    // SAFETY: callers pass places in such pages, and this is the only thread.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
}

fn protect((at, len): (usize, usize), protection: i32) -> bool {
    // SAFETY: pages of this library's own mapping or of the executable, which keep at least the rights they had.
    unsafe { libc::mprotect(at as *mut c_void, len, protection) == 0 }
}

const _: () = assert!(STUB >= 2 + 8 + 6 + 8 && ROOM >= STUB + stackglass_wire::takeover::MAX_MOVED);
const _: fn(Action) -> usize = own_entries::address;
