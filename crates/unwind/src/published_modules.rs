//! The modules of the own process. An ordinary thread reads them from the loader; signal handlers use the list.
//!
//! **Publication.** One atomic pointer holds the current list. A reader increments a count, loads the pointer, and
//! decrements the count when it is done. A replaced list is retired. It is unmapped once the count is zero after the
//! replacement, since later readers load the new pointer. At most [`RETIRED`] lists are retired; beyond that, a new
//! list is published by a later call, so memory stays bounded.
//!
//! **Pinned modules** can never be unloaded: the program, the vdso, the module that contains this code, and all that they
//! need by `DT_NEEDED`. Their bytes are read without a system call.

use crate::modules::{ChangeCounts, Module, ModuleList, OwnedModuleList, ProgramHeader};
use crate::table::RuleTable;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Most retired lists.
const RETIRED: usize = 8;

/// The published list.
pub(crate) struct Published {
    current: AtomicPtr<ModuleList>,
    readers: AtomicU32,
    retired: [AtomicPtr<ModuleList>; RETIRED],
    changing: AtomicBool,
    /// The epoch of the current list.
    epoch: AtomicU64,
}

/// Result of a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refreshed {
    Unchanged,
    Changed,
    /// Too many retired lists still have readers; try again later.
    Later,
}

impl Published {
    pub(crate) const fn new() -> Published {
        Published {
            current: AtomicPtr::new(null_mut()),
            readers: AtomicU32::new(0),
            retired: [const { AtomicPtr::new(null_mut()) }; RETIRED],
            changing: AtomicBool::new(false),
            epoch: AtomicU64::new(0),
        }
    }

    /// The epoch of the current list.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The current list, which is not unmapped before [`Published::leave`]. Async-signal-safe.
    #[inline]
    pub(crate) fn enter(&self) -> Option<&ModuleList> {
        self.readers.fetch_add(1, Ordering::SeqCst);
        let list = self.current.load(Ordering::SeqCst);
        // SAFETY: a list is unmapped only when `readers` was zero after the pointer was replaced; this reader is counted
        // until `leave`.
        unsafe { list.as_ref() }
    }

    /// Ends the access begun by [`Published::enter`], also where that gave `None`.
    #[inline]
    pub(crate) fn leave(&self) {
        self.readers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Publishes a new list if the loader's modules have changed. Takes the loader's lock: not for handlers.
    /// `None` if the kernel gave no memory.
    pub(crate) fn refresh(&self, table: &RuleTable) -> Option<Refreshed> {
        // A second caller waits, so that a list exists when this returns.
        while self.changing.swap(true, Ordering::Acquire) {
            // SAFETY: no arguments.
            unsafe { libc::sched_yield() };
        }
        let result = self.refresh_alone(table);
        self.changing.store(false, Ordering::Release);
        result
    }

    /// As [`Published::refresh`], but gives up if another thread does it now.
    pub(crate) fn try_refresh(&self, table: &RuleTable) -> Option<Refreshed> {
        if self.changing.swap(true, Ordering::Acquire) {
            return None;
        }
        let result = self.refresh_alone(table);
        self.changing.store(false, Ordering::Release);
        result
    }

    fn refresh_alone(&self, table: &RuleTable) -> Option<Refreshed> {
        self.unmap_retired();
        // SAFETY: only this function replaces or retires lists, and `changing` keeps it alone.
        let previous = unsafe { self.current.load(Ordering::Acquire).as_ref() };
        let counts = change_counts();
        if let Some(p) = previous
            && p.changes == counts
        {
            return Some(Refreshed::Unchanged);
        }
        let Some(free) = self.retired.iter().find(|r| r.load(Ordering::Relaxed).is_null()) else {
            return Some(Refreshed::Later);
        };
        let mut list = OwnedModuleList::new()?;
        fill(&mut list);
        list.finish(previous);
        if list.epoch() != previous.map_or(0, ModuleList::epoch) && list.epoch().is_multiple_of(128) {
            // Epochs are counted modulo 256. Two clearings a round leave no word of an earlier round: readers hold
            // lists at most `RETIRED` steps old, so the next clearing removes all that they store.
            table.clear();
        }
        let epoch = u64::from(list.epoch());
        let old = self.current.swap(list.into_raw(), Ordering::SeqCst);
        self.epoch.store(epoch, Ordering::Release);
        free.store(old, Ordering::Relaxed);
        self.unmap_retired();
        Some(Refreshed::Changed)
    }

    fn unmap_retired(&self) {
        if self.readers.load(Ordering::SeqCst) != 0 {
            return;
        }
        for place in &self.retired {
            let list = place.swap(null_mut(), Ordering::Relaxed);
            if !list.is_null() {
                // SAFETY: it was replaced before `readers` was zero, so it has no reader; it is taken out once.
                drop(unsafe { OwnedModuleList::from_raw(list) });
            }
        }
    }

    /// Resets the counts in a forked child, where the calling thread is the only one.
    pub(crate) fn after_fork(&self) {
        self.readers.store(0, Ordering::SeqCst);
        self.changing.store(false, Ordering::SeqCst);
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.unmap_retired();
        let list = *self.current.get_mut();
        if !list.is_null() {
            // SAFETY: exclusive access: no reader is left.
            drop(unsafe { OwnedModuleList::from_raw(list) });
        }
    }
}

/// The loader's counters of modules loaded and unloaded.
fn change_counts() -> ChangeCounts {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid `info`; `data` is the counters below.
        unsafe { *data.cast::<ChangeCounts>() = ChangeCounts::from_info(&*info) };
        1
    }
    let mut counts = ChangeCounts::default();
    // SAFETY: `first` gets the address of the counters and returns before this does.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut counts).cast()) };
    counts
}

/// Fills the list from the loader.
fn fill(list: &mut OwnedModuleList) {
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid `info` and keeps every module loaded during the call; `data` is the list,
        // with no other borrow meanwhile.
        let (info, list) = unsafe { (&*info, &mut *data.cast::<ModuleList>()) };
        // SAFETY: `dlpi_phdr` points to `dlpi_phnum` headers.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let headers = headers.iter().map(|h| ProgramHeader {
            kind: h.p_type,
            flags: h.p_flags,
            address: h.p_vaddr,
            size: h.p_memsz,
        });
        list.changes = ChangeCounts::from_info(info);
        if let Some(module) = Module::from_program_headers(info.dlpi_addr, headers, crate::memory::read_own) {
            let name = if info.dlpi_addr != 0 && info.dlpi_addr == vdso() {
                // The loader gives its internal name, which is not the path of a file.
                VDSO
            } else if info.dlpi_name.is_null() {
                b"".as_slice()
            } else {
                // SAFETY: the loader's names end with a zero byte.
                unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
            };
            if name.is_empty() && list.iter().len() == 0 {
                let mut path = [0u8; 4096];
                // SAFETY: the kernel writes at most the buffer's length.
                let len = unsafe {
                    libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len())
                };
                list.push(module, path.get(..usize::try_from(len).unwrap_or(0)).unwrap_or(b""));
            } else {
                list.push(module, name);
            }
        }
        0
    }
    let raw: *mut ModuleList = &mut **list;
    // SAFETY: `each` gets the list's address and is done when this returns.
    unsafe { libc::dl_iterate_phdr(Some(each), raw.cast()) };
    pin(list);
}

/// Path of the kernel's library, by the name of its mapping.
const VDSO: &[u8] = b"[vdso]";

/// Address of the kernel's library, 0 if there is none.
fn vdso() -> u64 {
    // SAFETY: no pointers.
    unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) }
}

/// Marks modules that can never be unloaded. The list must be in the loader's order, in which the program comes first.
fn pin(list: &mut ModuleList) {
    let vdso = vdso();
    let here = pin as fn(&mut ModuleList) as usize as u64;
    for (i, module) in list.modules_mut().iter_mut().enumerate() {
        module.pinned = i == 0 || module.bias() == vdso && vdso != 0 || module.range().contains(&here);
    }
    // Each round but the last pins at least one more module.
    let mut progress = true;
    while progress {
        progress = false;
        for i in 0..list.iter().len() {
            let module = list.modules_mut()[i];
            if module.pinned && module.dynamic.start != 0 && module.bias() != vdso {
                progress |= pin_needed(list, &module);
            }
        }
    }
}

/// Pins the modules that a pinned module names by `DT_NEEDED`. True if one of them was not pinned before.
fn pin_needed(list: &mut ModuleList, module: &Module) -> bool {
    // `elf.h`.
    const DT_NULL: u64 = 0;
    const DT_NEEDED: u64 = 1;
    const DT_STRTAB: u64 = 5;
    let entries = (module.dynamic.end - module.dynamic.start) / 16;
    // SAFETY: a pinned module's dynamic section stays mapped; `index < entries` stays inside it.
    let entry = |index: u64| unsafe { *((module.dynamic.start + index * 16) as *const (u64, u64)) };
    let live = || (0..entries).map(entry).take_while(|(tag, _)| *tag != DT_NULL);
    let Some((_, strings)) = live().find(|(tag, _)| *tag == DT_STRTAB) else { return false };
    // glibc has relocated it; other C libraries leave it relative.
    let strings = if strings < module.start { strings + module.bias() } else { strings };
    let mut progress = false;
    for (_, offset) in live().filter(|(tag, _)| *tag == DT_NEEDED) {
        let at = strings.wrapping_add(offset);
        let Some(range) = module.readable_at(at) else { continue };
        let len = (range.end - at).min(256) as usize;
        // SAFETY: inside a readable, never written segment of a pinned module.
        let bytes = unsafe { std::slice::from_raw_parts(at as *const u8, len) };
        let Some(end) = bytes.iter().position(|b| *b == 0) else { continue };
        let needed = &bytes[..end];
        let found = list.iter().position(|m| {
            let path = list.path(m);
            path == needed || path.rsplit(|b| *b == b'/').next() == Some(needed)
        });
        if let Some(place) = found.and_then(|i| list.modules_mut().get_mut(i)) {
            progress |= !place.pinned;
            place.pinned = true;
        }
    }
    progress
}
