//! Names of the code on the stacks of threads that poll tasks, while the recording grows.
//!
//! A stack is cut at the task's own function, which has to be known by its name. Reading debug information takes a while, so
//! addresses are collected and named together, ever less often: most are met early.

use crate::task_stacks::{Call, Calls, Code};
use foldhash::{HashMap, HashSet};
use stackglass_profile::{AwaitKind, AwaitLocation, Location, LocationId, Module, ModuleIndex, Recording};
use stackglass_symbols::{Options, symbolize};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time until addresses are named, at first and at most.
const FIRST: Duration = Duration::from_millis(150);
const LONGEST: Duration = Duration::from_secs(5);
/// Naming takes at most this part of the time.
const SHARE: u32 = 20;
/// Most addresses with names.
const MOST: usize = 1 << 17;

/// Names by address.
pub(super) struct Names {
    modules: Vec<Arc<Module>>,
    numbers: HashMap<Arc<Module>, u32>,
    known: Calls,
    wanted: HashSet<Code>,
    due: Instant,
    pause: Duration,
}

impl Names {
    pub(super) fn new() -> Names {
        Names {
            modules: Vec::new(),
            numbers: HashMap::default(),
            known: Calls::default(),
            wanted: HashSet::default(),
            due: Instant::now() + FIRST,
            pause: FIRST,
        }
    }

    /// The number of a module.
    pub(super) fn module(&mut self, module: Module) -> u32 {
        let module = Arc::new(module);
        if let Some(known) = self.numbers.get(&module) {
            return *known;
        }
        let number = self.modules.len() as u32;
        self.modules.push(module.clone());
        self.numbers.insert(module, number);
        number
    }

    /// All modules, by their numbers.
    pub(super) fn modules(&self) -> &[Arc<Module>] {
        &self.modules
    }

    /// The names that are known.
    pub(super) fn known(&self) -> &Calls {
        &self.known
    }

    /// Requests the names of an address. Returns whether they are known.
    pub(super) fn want(&mut self, code: Code) -> bool {
        let is_known = self.known.contains_key(&code);
        if !is_known {
            self.wanted.insert(code);
        }
        is_known
    }

    /// Whether it is time to name what was requested.
    pub(super) fn is_due(&self) -> bool {
        !self.wanted.is_empty() && Instant::now() >= self.due
    }

    /// Names all addresses that were requested.
    pub(super) fn find(&mut self) {
        if self.wanted.is_empty() {
            return;
        }
        let start = Instant::now();
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let mut scratch = Recording::default();
        // With a frame of an await stack, bodies of coroutines are named as in such stacks.
        let kind = AwaitKind::Waiting;
        let mark = AwaitLocation { kind, function: "".into(), file: "".into(), line: 0 };
        scratch.modules =
            self.modules.iter().map(|module| (**module).clone()).chain([mark.module()]).collect();
        let codes: Vec<Code> = std::mem::take(&mut self.wanted).into_iter().collect();
        let location = |code: &Code| Location { module: code.module.map(ModuleIndex), offset: code.offset };
        let ids: Vec<LocationId> =
            codes.iter().map(|code| scratch.stacks.intern_location(location(code))).collect();
        let options = Options { threads: Some(1), ..Options::default() };
        symbolize(&mut scratch, &options, &mut |_| ());
        for (code, id) in codes.into_iter().zip(ids) {
            let calls = scratch.symbols.frames_of(id).map(Call::from_frame);
            self.known.insert(code, calls.collect());
        }
        self.pause = (self.pause * 2).max(start.elapsed() * SHARE).min(LONGEST);
        self.due = Instant::now() + self.pause;
    }
}
