//! The list of modules a walker searches: sorted by address, in one mapping of its own, no allocator involved.
//!
//! A list is filled once and then only read. Its size is fixed and generous; pages nobody needs are never
//! touched. What does not fit is counted, and its stacks are cut as "no module".

use super::Module;
use crate::memory::{map_private, unmap};
use std::ops::{Deref, DerefMut};

/// Modules in one list. The largest programs known load about a thousand.
const CAPACITY: usize = 4096;
const PATH_BYTES: usize = 1 << 19;

/// Modules of one process at one moment.
pub struct ModuleList {
    generation: u64,
    pub(super) adds: u64,
    pub(super) subs: u64,
    count: u32,
    left_out: u32,
    path_used: u32,
    next_id: u32,
    epoch: u8,
    modules: [Module; CAPACITY],
    paths: [u8; PATH_BYTES],
}

impl ModuleList {
    /// Counts the changes of the process's modules seen so far.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Changes when an address may have got another rule: modules went away since.
    pub(crate) fn epoch(&self) -> u8 {
        self.epoch
    }

    /// Modules that did not fit.
    pub fn left_out(&self) -> u32 {
        self.left_out
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
        let Some(place) = self.modules.get_mut(self.count as usize) else {
            self.left_out += 1;
            return;
        };
        *place = module;
        place.path_at = self.path_used;
        place.path_len = 0;
        if let Some(bytes) = self.paths.get_mut(at..at + path.len()) {
            bytes.copy_from_slice(path);
            place.path_len = path.len() as u16;
            self.path_used += path.len() as u32;
        }
        self.count += 1;
    }

    /// Sorts, gives numbers (the same as in `previous` for modules that stayed) and counts the generation.
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

    pub(super) fn modules_mut(&mut self) -> &mut [Module] {
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
        // All-zero bytes are a valid list: it consists of integers, booleans and arrays of them.
        map_private(size_of::<ModuleList>()).map(|place| OwnedModuleList(place.cast()))
    }

    pub(super) fn into_raw(self) -> *mut ModuleList {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }

    /// # Safety
    /// `raw` must come from [`OwnedModuleList::into_raw`], once, and nobody may still use it.
    pub(super) unsafe fn from_raw(raw: *mut ModuleList) -> OwnedModuleList {
        OwnedModuleList(raw)
    }
}

impl Deref for OwnedModuleList {
    type Target = ModuleList;

    fn deref(&self) -> &ModuleList {
        // SAFETY: points to a mapping of the right size and alignment (a page), initialised by being zero.
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
