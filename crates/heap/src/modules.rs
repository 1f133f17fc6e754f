//! The modules of the process, as events in the shared table. Each change begins a new generation; nodes name the
//! generation in which their address is to be looked up.

use crate::commit::MODULE_REGION;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use stackglass_host::{UNWINDER, module_event, system};
use stackglass_unwind::{Module, ModuleList};
use stackglass_wire::heap::{HeapTables, push_module_event};
use stackglass_wire::{Event, MODULE_TEXT_WORDS, ModuleId};

/// Most modules that are known at a time.
const CAPACITY: usize = 4096;
/// Shortest time between two checks for new modules, ns. Code that is generated at run time is in no module.
const CHECK_EVERY: u64 = 1_000_000;

static GENERATION: AtomicU32 = AtomicU32::new(0);
static SINCE_UNLOAD: AtomicU32 = AtomicU32::new(0);
static UPDATING: AtomicBool = AtomicBool::new(false);
/// The list may have changed since the running update has read it.
static OUTDATED: AtomicBool = AtomicBool::new(false);
static CHECKED: AtomicU64 = AtomicU64::new(0);
/// Ids of the modules in the table; 0 for none. Written under `UPDATING`.
static KNOWN: [AtomicU32; CAPACITY] = [const { AtomicU32::new(0) }; CAPACITY];
static KNOWN_COUNT: AtomicU32 = AtomicU32::new(0);

/// The current generation.
#[inline(always)]
pub fn generation() -> u32 {
    GENERATION.load(Acquire)
}

/// The generation that began when a module was last unloaded. Older nodes may lie in another module.
#[inline(always)]
pub fn since_unload() -> u32 {
    SINCE_UNLOAD.load(Acquire)
}

/// Whether an address is in no known module.
pub fn is_nowhere(address: u64) -> bool {
    UNWINDER.modules().is_none_or(|list| list.find(address).is_none())
}

/// Brings the list up to date. True if it has changed. If another thread is doing that, it does it once more.
#[cold]
#[inline(never)]
pub fn update(tables: &HeapTables) -> bool {
    let mut has_changed = false;
    OUTDATED.store(true, Release);
    while OUTDATED.load(Acquire) && !UPDATING.swap(true, AcqRel) {
        OUTDATED.store(false, Release);
        let errno = system::errno();
        let changed = matches!(UNWINDER.try_refresh(), Some(true)) || generation() == 0;
        if changed && let Some(list) = UNWINDER.modules() {
            push_changes(tables, &list);
        }
        system::set_errno(errno);
        has_changed |= changed;
        UPDATING.store(false, Release);
    }
    has_changed
}

/// As [`update`], for an address that is in no module: at most once a millisecond, unless the list has just changed.
#[cold]
#[inline(never)]
pub fn update_now_and_then(tables: &HeapTables) -> bool {
    let now = system::now();
    let before = CHECKED.load(Relaxed);
    if now.wrapping_sub(before) < CHECK_EVERY
        || CHECKED.compare_exchange(before, now, Relaxed, Relaxed).is_err()
    {
        return false;
    }
    let changed = update(tables);
    if changed {
        CHECKED.store(0, Relaxed);
    }
    changed
}

fn push_changes(tables: &HeapTables, list: &ModuleList) {
    let next = generation() + 1;
    let mut count = KNOWN_COUNT.load(Relaxed) as usize;
    let mut unloaded = false;
    let mut place = 0;
    while place < count {
        let id = KNOWN[place].load(Relaxed);
        if list.iter().any(|module| module.id() == id) {
            place += 1;
            continue;
        }
        let _ = push(tables, &Event::ModuleUnload { module: ModuleId(id), at: u64::from(next) });
        unloaded = true;
        count -= 1;
        KNOWN[place].store(KNOWN[count].load(Relaxed), Relaxed);
    }
    for module in list.iter() {
        let is_known = KNOWN[..count].iter().any(|id| id.load(Relaxed) == module.id());
        if !is_known && count < CAPACITY && push_load(tables, list, module, next) {
            KNOWN[count].store(module.id(), Relaxed);
            count += 1;
        }
    }
    KNOWN_COUNT.store(count as u32, Relaxed);
    if unloaded {
        SINCE_UNLOAD.store(next, Release);
    }
    GENERATION.store(next, Release);
}

fn push(tables: &HeapTables, event: &Event<'_>) -> bool {
    push_module_event(tables, event, |words| MODULE_REGION.reserve(tables, words * 8))
}

/// Build id and path of the module that is being pushed: too large for the stacks of some threads.
struct Text(UnsafeCell<[u64; MODULE_TEXT_WORDS]>);
// SAFETY: used under `UPDATING` only.
unsafe impl Sync for Text {}
static TEXT: Text = Text(UnsafeCell::new([0; MODULE_TEXT_WORDS]));

fn push_load(tables: &HeapTables, list: &ModuleList, module: &Module, at: u32) -> bool {
    // SAFETY: `UPDATING` keeps this thread alone, and the reference ends with this function.
    let text = unsafe { &mut *TEXT.0.get() };
    push(tables, &module_event::loaded(module, list.path(module), at.into(), text))
}

/// In a forked child: the table was not inherited, and another thread may have been updating it.
pub fn after_fork() {
    GENERATION.store(0, Release);
    SINCE_UNLOAD.store(0, Release);
    KNOWN_COUNT.store(0, Release);
    OUTDATED.store(false, Release);
    UPDATING.store(false, Release);
}
