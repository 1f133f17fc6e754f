//! The own process's unwinder: published modules, the table of rules and the walker put together, for a
//! `static` that a signal handler can use.

use crate::memory::{OwnImages, StackMemory};
use crate::modules::ModuleList;
use crate::modules::own::{Published, Refreshed};
use crate::registers::Registers;
use crate::scratch::Scratch;
use crate::table::RuleTable;
use crate::walk::{Cut, End, Walk, Walker};

/// Unwinds threads of the own process. Nothing is allocated before the first [`Unwinder::refresh`].
pub struct Unwinder {
    modules: Published,
    table: RuleTable,
}

/// Why [`Unwinder::refresh`] failed: the kernel gave no memory for the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the kernel refused memory for the list of loaded modules; raise the limit on address space (ulimit -v)")
    }
}

impl std::error::Error for OutOfMemory {}

impl Unwinder {
    /// An unwinder that knows no module yet: every walk is cut after its first frame.
    pub const fn new() -> Unwinder {
        Unwinder { modules: Published::new(), table: RuleTable::new() }
    }

    /// Looks for loaded and unloaded modules. Cheap when nothing changed (one call of `dl_iterate_phdr`).
    /// Takes the loader's lock: not from a signal handler. True: there is a new list to be seen by
    /// [`Unwinder::modules`].
    ///
    /// # Errors
    /// [`OutOfMemory`]; the previous list stays in force.
    pub fn refresh(&self) -> Result<bool, OutOfMemory> {
        self.table.reserve();
        match self.modules.refresh(&self.table) {
            Some(refreshed) => Ok(refreshed == Refreshed::Changed),
            None => Err(OutOfMemory),
        }
    }

    /// The current modules. Hold it briefly: lists replaced meanwhile cannot be given back.
    /// `None` before the first refresh.
    pub fn modules(&self) -> Option<ModulesGuard<'_>> {
        match self.modules.enter() {
            Some(list) => Some(ModulesGuard { published: &self.modules, list }),
            None => {
                self.modules.leave();
                None
            }
        }
    }

    /// Walks the stack that `registers` and `stack` describe, of the calling or another thread of this
    /// process. Async-signal-safe. See [`Walker::walk`].
    #[inline]
    pub fn walk<S: StackMemory>(
        &self,
        registers: &Registers,
        stack: &mut S,
        scratch: &mut Scratch,
        out: &mut [u64],
    ) -> Walk {
        let walk = match self.modules.enter() {
            Some(modules) => {
                let mut walker = Walker { modules, table: Some(&self.table), images: &OwnImages, scratch };
                walker.walk(registers, stack, out)
            }
            None => match out.first_mut() {
                Some(place) => {
                    *place = registers.pc();
                    Walk { len: 1, end: End::Cut(Cut::NoModule) }
                }
                None => Walk { len: 0, end: End::Cut(Cut::Depth) },
            },
        };
        self.modules.leave();
        walk
    }

    /// To be called first in a child of fork that goes on using this unwinder.
    pub fn after_fork(&self) {
        self.modules.after_fork();
    }
}

impl Default for Unwinder {
    fn default() -> Self {
        Unwinder::new()
    }
}

/// The modules of the own process, kept from being unmapped.
pub struct ModulesGuard<'a> {
    published: &'a Published,
    list: &'a ModuleList,
}

impl std::ops::Deref for ModulesGuard<'_> {
    type Target = ModuleList;

    fn deref(&self) -> &ModuleList {
        self.list
    }
}

impl Drop for ModulesGuard<'_> {
    fn drop(&mut self) {
        self.published.leave();
    }
}
