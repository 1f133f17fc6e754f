//! The modules of the own process: asked from the loader by an ordinary thread, read by signal handlers.
//!
//! **Publication.** The current list hangs on one atomic pointer. A reader counts itself in, takes the
//! pointer, counts itself out. A replaced list is retired, and unmapped once the count of readers was seen
//! zero after the replacement (a reader that comes later finds the new pointer). At most [`RETIRED`] lists
//! wait for that; with more, new lists are not published until a later call, so memory stays bounded.
//!
//! **Pinned modules** are those that can never be unloaded: the program, the vdso, the module this code is
//! in, and everything they need by `DT_NEEDED`. Their bytes may be read without asking the kernel.

use super::{Module, ModuleList, OwnedModuleList, ProgramHeader};
use crate::table::RuleTable;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// Lists that may wait to be unmapped.
const RETIRED: usize = 8;

/// The published list.
pub(crate) struct Published {
    current: AtomicPtr<ModuleList>,
    readers: AtomicU32,
    retired: [AtomicPtr<ModuleList>; RETIRED],
    changing: AtomicBool,
}

/// Whether a refresh found anything new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refreshed {
    Unchanged,
    Changed,
    /// Too many old lists are still read; try again later.
    Later,
}

impl Published {
    pub(crate) const fn new() -> Published {
        Published {
            current: AtomicPtr::new(null_mut()),
            readers: AtomicU32::new(0),
            retired: [const { AtomicPtr::new(null_mut()) }; RETIRED],
            changing: AtomicBool::new(false),
        }
    }

    /// Keeps the current list alive while `f` looks at it. Async-signal-safe.
    #[inline]
    pub(crate) fn enter(&self) -> Option<&ModuleList> {
        self.readers.fetch_add(1, Ordering::SeqCst);
        let list = self.current.load(Ordering::SeqCst);
        // SAFETY: lists are unmapped only after `readers` was zero with the pointer already replaced; this
        // reader is counted until `leave`.
        unsafe { list.as_ref() }
    }

    /// Ends what `enter` began, also where it gave nothing.
    #[inline]
    pub(crate) fn leave(&self) {
        self.readers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Asks the loader; publishes a new list if something changed. Takes the loader's lock: not for handlers.
    /// `None`: the kernel gave no memory.
    pub(crate) fn refresh(&self, table: &RuleTable) -> Option<Refreshed> {
        // Whoever comes second waits, so that there is a list when this returns.
        while self.changing.swap(true, Ordering::Acquire) {
            // SAFETY: no arguments.
            unsafe { libc::sched_yield() };
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
            && (p.adds, p.subs) == counts
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
            // Epochs are counted modulo 256. Clearing twice a round leaves no word of an earlier round: readers
            // hold lists at most `RETIRED` steps old, so what they still store is gone by the next clearing.
            table.clear();
        }
        let old = self.current.swap(list.into_raw(), Ordering::SeqCst);
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
                // SAFETY: it was replaced before `readers` was seen zero, so nobody uses it; taken out once.
                drop(unsafe { OwnedModuleList::from_raw(list) });
            }
        }
    }

    /// In a child of fork only the calling thread exists: whoever else was reading is gone.
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

/// How many modules were ever loaded and unloaded: the loader's own counters.
fn change_counts() -> (u64, u64) {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid `info`; `data` is the pair below.
        unsafe { *data.cast::<(u64, u64)>() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        1
    }
    let mut counts = (0u64, 0u64);
    // SAFETY: `first` gets the pair's address and returns before this does.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut counts).cast()) };
    counts
}

/// Fills the list with what the loader has. `list.adds/subs` become the loader's counters.
fn fill(list: &mut OwnedModuleList) {
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid `info` and keeps every module loaded during the call; `data` is
        // the list, borrowed for nobody else meanwhile.
        let (info, list) = unsafe { (&*info, &mut *data.cast::<ModuleList>()) };
        // SAFETY: `dlpi_phdr` points to `dlpi_phnum` headers.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let headers = headers.iter().map(|h| ProgramHeader {
            kind: h.p_type,
            flags: h.p_flags,
            address: h.p_vaddr,
            size: h.p_memsz,
        });
        list.adds = info.dlpi_adds;
        list.subs = info.dlpi_subs;
        if let Some(module) = Module::from_program_headers(info.dlpi_addr, headers, crate::memory::read_own) {
            let name = if info.dlpi_addr != 0 && info.dlpi_addr == vdso() {
                // The loader gives the name that stands in it, which is not that of a file.
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

/// Path of the kernel's own library, as the kernel calls its mapping.
const VDSO: &[u8] = b"[vdso]";

/// Where the kernel's own library lies, 0 if there is none.
fn vdso() -> u64 {
    // SAFETY: no pointers.
    unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) }
}

/// Marks what can never be unloaded. The list must still be in the loader's order, in which the modules
/// the program needs come before those loaded later.
fn pin(list: &mut ModuleList) {
    let vdso = vdso();
    let here = pin as fn(&mut ModuleList) as usize as u64;
    for (i, module) in list.modules_mut().iter_mut().enumerate() {
        module.pinned = i == 0 || module.bias == vdso && vdso != 0 || module.range().contains(&here);
    }
    // Each round pins at least one more or ends; a module's needs are followed when it was pinned.
    let mut progress = true;
    while progress {
        progress = false;
        for i in 0..list.iter().len() {
            let module = list.modules_mut()[i];
            if module.pinned && module.dynamic.start != 0 && module.bias != vdso {
                progress |= pin_needed(list, &module);
            }
        }
    }
}

/// Pins the modules named by one pinned module's `DT_NEEDED`; whether any was new.
fn pin_needed(list: &mut ModuleList, module: &Module) -> bool {
    const DT_NULL: u64 = 0;
    const DT_NEEDED: u64 = 1;
    const DT_STRTAB: u64 = 5;
    let entries = (module.dynamic.end - module.dynamic.start) / 16;
    // SAFETY: a pinned module's dynamic section stays mapped; `index < entries` stays inside it.
    let entry = |index: u64| unsafe { *((module.dynamic.start + index * 16) as *const (u64, u64)) };
    let live = || (0..entries).map(entry).take_while(|(tag, _)| *tag != DT_NULL);
    let Some((_, strings)) = live().find(|(tag, _)| *tag == DT_STRTAB) else { return false };
    // glibc has made it an address already, others leave it relative.
    let strings = if strings < module.start { strings + module.bias } else { strings };
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
