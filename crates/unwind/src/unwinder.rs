//! The unwinder of the own process: published modules, rule table and walker, in a `static` that a signal handler uses.

use crate::memory::{OwnModules, StackMemory};
use crate::modules::ModuleList;
use crate::published_modules::{Published, Refreshed};
use crate::registers::Registers;
use crate::scratch::Scratch;
use crate::table::RuleTable;
use crate::walk::{Cut, End, Walk, Walker};

/// Unwinds threads of the own process. Nothing is allocated before the first [`Unwinder::refresh`].
pub struct Unwinder {
    modules: Published,
    table: RuleTable,
}

/// Error of [`Unwinder::refresh`]: the kernel gave no memory for the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the kernel refused memory for the list of loaded modules; raise the limit on address space (ulimit -v)")
    }
}

impl std::error::Error for OutOfMemory {}

impl Unwinder {
    /// An unwinder without modules: every walk is cut after its first frame.
    pub const fn new() -> Unwinder {
        Unwinder { modules: Published::new(), table: RuleTable::new() }
    }

    /// Updates the list of loaded modules. It is cheap if nothing changed (one call of `dl_iterate_phdr`).
    /// Takes the loader's lock: not for signal handlers. True if [`Unwinder::modules`] has a new list.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the previous list stays valid.
    pub fn refresh(&self) -> Result<bool, OutOfMemory> {
        self.table.reserve();
        match self.modules.refresh(&self.table) {
            Some(refreshed) => Ok(refreshed == Refreshed::Changed),
            None => Err(OutOfMemory),
        }
    }

    /// As [`Unwinder::refresh`], but never waits for another thread that refreshes the list: `None` then, and without
    /// memory.
    pub fn try_refresh(&self) -> Option<bool> {
        self.table.reserve();
        Some(self.modules.try_refresh(&self.table)? == Refreshed::Changed)
    }

    /// The current modules, or `None` before the first refresh. Hold the guard briefly: it keeps replaced lists in memory.
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
                let mut walker = Walker { modules, table: Some(&self.table), memory: &OwnModules, scratch };
                walker.walk(registers, stack, out)
            }
            None => match out.first_mut() {
                Some(frame) => {
                    *frame = registers.pc();
                    Walk { len: 1, end: End::Cut(Cut::NoModule) }
                }
                None => Walk { len: 0, end: End::Cut(Cut::Depth) },
            },
        };
        self.modules.leave();
        walk
    }

    /// Changes whenever modules were unloaded, so that an address may have another rule.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.modules.epoch()
    }

    /// The rule for an address, if it is in the table.
    #[inline]
    pub(crate) fn known_rule(&self, lookup: u64) -> Option<crate::rules::Rule> {
        self.table.get(lookup, self.modules.epoch() as u8)
    }

    /// Calls `act` with the modules and the table; `None` before the first refresh.
    pub(crate) fn with_modules<T>(&self, act: impl FnOnce(&ModuleList, &RuleTable) -> T) -> Option<T> {
        let result = self.modules.enter().map(|modules| act(modules, &self.table));
        self.modules.leave();
        result
    }

    /// Makes the unwinder usable in a forked child. Call it there before all else.
    pub fn after_fork(&self) {
        self.modules.after_fork();
    }
}

impl Default for Unwinder {
    fn default() -> Self {
        Unwinder::new()
    }
}

/// The modules of the own process. The list is not unmapped while the guard lives.
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
