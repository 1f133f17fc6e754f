//! Names of the code on the stacks of threads that poll tasks, while the recording grows.
//!
//! A stack is cut at the task's own function, which has to be known by its name. Reading debug information takes a while, so
//! addresses are collected and named together, ever less often: most are met early.

use foldhash::{HashMap, HashSet};
use stackglass_profile::{AwaitKind, AwaitLocation, Location, LocationId, Module, ModuleIndex, Recording};
use stackglass_symbols::{Options, is_coroutine_body, symbolize};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time until addresses are named, at first and at most.
const FIRST: Duration = Duration::from_millis(150);
const LONGEST: Duration = Duration::from_secs(5);
/// Naming takes at most this part of the time.
const SHARE: u32 = 20;
/// Most addresses with names.
const MOST: usize = 1 << 17;

/// An address in a module, by the index of the module; or one in no module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Code {
    pub module: Option<u32>,
    /// Its address as in the file.
    pub offset: u64,
}

/// A call at an address: one of several if functions are inlined there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub function: Arc<str>,
    pub file: Arc<str>,
    /// 0 if unknown.
    pub line: u32,
    /// It is the body of an `async` function, block or closure.
    pub is_body: bool,
}

/// Names by address.
pub(super) struct Names {
    modules: Vec<Arc<Module>>,
    numbers: HashMap<Arc<Module>, u32>,
    known: HashMap<Code, Arc<[Call]>>,
    wanted: HashSet<Code>,
    due: Instant,
    pause: Duration,
}

impl Names {
    pub(super) fn new() -> Names {
        Names {
            modules: Vec::new(),
            numbers: HashMap::default(),
            known: HashMap::default(),
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

    /// The calls at an address, innermost first; `None` if it is not named yet.
    pub(super) fn of(&self, code: Code) -> Option<&Arc<[Call]>> {
        self.known.get(&code)
    }

    /// Requests the names of an address. Returns whether they are known.
    pub(super) fn want(&mut self, code: Code) -> bool {
        let is_known = self.known.contains_key(&code);
        if !is_known {
            self.wanted.insert(code);
        }
        is_known
    }

    /// Adds names. `async app::go` is the body of an `async` function, `lib tower::call` a function of a library.
    #[cfg(test)]
    pub(super) fn know(&mut self, code: Code, calls: &[&str]) {
        let call = |name: &&str| {
            let (kind, function) =
                name.split_once(' ').filter(|_| !name.contains("::{")).unwrap_or(("", name));
            let (is_body, function) = match name.strip_prefix("async ") {
                Some(function) => (true, function),
                None => (false, function),
            };
            let file = if kind == "lib" { "/root/.cargo/registry/src/x/lib.rs" } else { "f.rs" };
            Call { function: function.into(), file: file.into(), line: 7, is_body }
        };
        self.known.insert(code, calls.iter().map(call).collect());
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
            let calls = scratch.symbols.frames_of(id).map(|frame| Call {
                function: frame.func.clone(),
                file: frame.file.clone(),
                line: u32::try_from(frame.line).unwrap_or(0),
                is_body: is_coroutine_body(frame),
            });
            self.known.insert(code, calls.collect());
        }
        self.pause = (self.pause * 2).max(start.elapsed() * SHARE).min(LONGEST);
        self.due = Instant::now() + self.pause;
    }
}
