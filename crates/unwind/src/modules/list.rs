//! The list of modules that a walker searches: sorted by address, in a separate mapping, without an allocator.
//!
//! A list is filled once and then only read. Its size is fixed; unused pages are never touched. Modules beyond it
//! are left out, and stacks through them are cut as "no module".

use super::Module;
use crate::pages::{map_private, unmap};
use std::ops::{Deref, DerefMut};

/// Most modules in a list. The largest known programs load about a thousand.
const CAPACITY: usize = 4096;
const PATH_BYTES: usize = 1 << 19;

/// The loader's counters of its changes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct ChangeCounts {
    loaded: u64,
    unloaded: u64,
}

impl ChangeCounts {
    pub(crate) fn from_info(info: &libc::dl_phdr_info) -> ChangeCounts {
        ChangeCounts { loaded: info.dlpi_adds, unloaded: info.dlpi_subs }
    }
}

/// Modules of one process at one moment.
pub struct ModuleList {
    generation: u64,
    pub(crate) changes: ChangeCounts,
    count: u32,
    path_used: u32,
    next_id: u32,
    epoch: u8,
    modules: [Module; CAPACITY],
    paths: [u8; PATH_BYTES],
}

impl ModuleList {
    /// Number of changes to the process's modules seen so far.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Changes whenever modules were unloaded, so that an address may have another rule.
    pub(crate) fn epoch(&self) -> u8 {
        self.epoch
    }

    /// All modules, by address.
    pub fn iter(&self) -> std::slice::Iter<'_, Module> {
        self.modules.get(..self.count as usize).unwrap_or(&[]).iter()
    }

    /// The module whose code holds the address.
    #[inline]
    pub fn find(&self, address: u64) -> Option<&Module> {
        let modules = self.modules.get(..self.count as usize)?;
        let behind = modules.partition_point(|m| m.start <= address);
        let module = modules.get(behind.checked_sub(1)?)?;
        module.is_executable(address).then_some(module)
    }

    /// The file the module was loaded from, as the loader names it.
    pub fn path(&self, module: &Module) -> &[u8] {
        let start = module.path_at as usize;
        self.paths.get(start..start + usize::from(module.path_len)).unwrap_or(&[])
    }

    /// Adds a module; the list is complete after [`ModuleList::finish`]. Addresses must not overlap.
    pub fn push(&mut self, module: Module, path: &[u8]) {
        let path = path.get(..usize::from(u16::MAX)).unwrap_or(path);
        let at = self.path_used as usize;
        let Some(entry) = self.modules.get_mut(self.count as usize) else {
            return;
        };
        *entry = module;
        entry.path_at = self.path_used;
        entry.path_len = 0;
        if let Some(bytes) = self.paths.get_mut(at..at + path.len()) {
            bytes.copy_from_slice(path);
            entry.path_len = path.len() as u16;
            self.path_used += path.len() as u32;
        }
        self.count += 1;
    }

    /// Sorts the list and numbers its modules. A module that is in `previous` keeps its number.
    pub fn finish(&mut self, previous: Option<&ModuleList>) {
        self.next_id = previous.map_or(1, |p| p.next_id);
        let count = self.count as usize;
        let mut kept = 0;
        for i in 0..count {
            let module = self.modules[i];
            let known = previous.and_then(|p| {
                p.find_start(module.start)
                    .filter(|m| m.is_same_as(&module) && p.path(m) == self.path(&module))
            });
            self.modules[i].id = match known {
                Some(old) => {
                    kept += 1;
                    old.id
                }
                None => {
                    self.next_id += 1;
                    self.next_id - 1
                }
            };
        }
        self.modules[..count].sort_unstable_by_key(|m| m.start);
        if let Some(previous) = previous {
            let gone = previous.count - kept;
            let changed = gone > 0 || self.count != previous.count;
            self.generation = previous.generation + u64::from(changed);
            self.epoch = previous.epoch.wrapping_add(u8::from(gone > 0));
        } else {
            self.generation = 1;
        }
    }

    fn find_start(&self, start: u64) -> Option<&Module> {
        let modules = self.modules.get(..self.count as usize)?;
        modules.binary_search_by_key(&start, |m| m.start).ok().and_then(|i| modules.get(i))
    }

    pub(crate) fn modules_mut(&mut self) -> &mut [Module] {
        &mut self.modules[..self.count as usize]
    }
}

impl<'a> IntoIterator for &'a ModuleList {
    type Item = &'a Module;
    type IntoIter = std::slice::Iter<'a, Module>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A [`ModuleList`] and the mapping it lies in.
pub struct OwnedModuleList(*mut ModuleList);

// SAFETY: it is the only owner of plain memory.
unsafe impl Send for OwnedModuleList {}
// SAFETY: shared access only reads.
unsafe impl Sync for OwnedModuleList {}

impl OwnedModuleList {
    /// An empty list, or `None` when the kernel gives no memory.
    pub fn new() -> Option<OwnedModuleList> {
        // All-zero bytes are a valid list: integers, booleans and arrays of them.
        map_private(size_of::<ModuleList>()).map(|memory| OwnedModuleList(memory.cast()))
    }

    pub(crate) fn into_raw(self) -> *mut ModuleList {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }

    /// # Safety
    /// `raw` must come from [`OwnedModuleList::into_raw`], once, and have no other user.
    pub(crate) unsafe fn from_raw(raw: *mut ModuleList) -> OwnedModuleList {
        OwnedModuleList(raw)
    }
}

impl Deref for OwnedModuleList {
    type Target = ModuleList;

    fn deref(&self) -> &ModuleList {
        // SAFETY: points to a zeroed mapping of the right size and alignment.
        unsafe { &*self.0 }
    }
}

impl DerefMut for OwnedModuleList {
    fn deref_mut(&mut self) -> &mut ModuleList {
        // SAFETY: as above; `self` is the only owner.
        unsafe { &mut *self.0 }
    }
}

impl Drop for OwnedModuleList {
    fn drop(&mut self) {
        unmap(self.0.cast(), size_of::<ModuleList>());
    }
}
