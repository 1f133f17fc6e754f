//! What is known of a process while its modules stay the same: the types of its tasks, and where its runtimes and the futures of
//! `block_on` are.
//!
//! Types take some hundred milliseconds to read, once. Runtimes and `block_on`s begin later than the process: they are searched
//! again, ever less often, while the process runs. They stay where they are for long, and each snapshot checks them.

use super::names::Names;
use crate::task_stacks::Code;
use foldhash::HashMap;
use stackglass_awaits::{Process, RootFuture, SeenTasks, TaskReader, WrappedTask};
use stackglass_layouts::{Layouts, Local, Wanted};
use stackglass_process_view::ProcessView;
use stackglass_process_view::modules::LoadedModule;
use stackglass_process_view::stacks::StackFrame;
use stackglass_profile::Module;
use stackglass_symbols::Options;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time until runtimes, or `block_on`s, are searched again.
const FIRST: Duration = Duration::from_millis(300);
/// A search takes at most this part of the time.
const SHARE: u32 = 20;

/// A process at one moment: what is read of it at first.
pub(super) struct Seen<'a> {
    pub view: &'a ProcessView<'a>,
    /// The frames of each thread, innermost first.
    pub frames: &'a [Vec<StackFrame>],
    /// Kernel ids of these threads.
    pub tids: &'a [u32],
    /// The named tasks of the process.
    pub wrapped: &'a [WrappedTask],
}

/// When something is searched again.
pub(super) struct Retry {
    due: Instant,
    pause: Duration,
}

impl Retry {
    fn new() -> Retry {
        Retry { due: Instant::now() + FIRST, pause: FIRST }
    }

    /// Nothing was searched yet.
    pub(super) fn at_once() -> Retry {
        Retry { due: Instant::now(), pause: FIRST / 2 }
    }

    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// A search has taken so long.
    pub(super) fn searched(&mut self, took: Duration) {
        self.pause = (self.pause * 2).max(took * SHARE);
        self.due = Instant::now() + self.pause;
    }
}

/// A frame with the future of a `block_on`: thread, lookup address, and stack pointer of its caller. The future stays in its
/// place as long as the frame lives.
type RootFrame = (u32, u64, Option<u64>);

/// The future of a `block_on` on a thread.
pub(super) struct Root {
    /// Index of the thread.
    pub thread: usize,
    /// Index of the frame that has it.
    pub frame: usize,
    pub future: RootFuture,
    /// Its function.
    pub name: Arc<str>,
}

/// What is known.
pub(super) struct Types {
    key: Vec<(String, u64)>,
    layouts: Layouts,
    reader: TaskReader,
    /// The numbers of the modules for names.
    numbers: Vec<u32>,
    roots: HashMap<RootFrame, (RootFuture, Arc<str>)>,
    for_runtimes: Retry,
    for_roots: Retry,
    had_tasks: bool,
    may_have_more_roots: bool,
}

impl Types {
    /// Reads the types.
    pub(super) fn read(seen: &Seen<'_>, names: &mut Names) -> Types {
        let files = seen.view.files();
        let mut types = Types {
            key: key(&seen.view.modules),
            layouts: Layouts::default(),
            reader: TaskReader::default(),
            numbers: files.iter().map(|module| names.module(module.clone())).collect(),
            roots: HashMap::default(),
            for_runtimes: Retry::new(),
            for_roots: Retry::new(),
            had_tasks: false,
            may_have_more_roots: false,
        };
        types.read_layouts(seen, &files);
        types
    }

    /// Whether they are those of these modules.
    pub(super) fn are_of(&self, modules: &[LoadedModule]) -> bool {
        self.key == key(modules)
    }

    /// Whether tasks can be seen by them. If not, threads are.
    pub(super) fn has_tasks(&self) -> bool {
        !self.reader.is_empty() || self.layouts.has_coroutines()
    }

    /// Whether something is to be searched before the next snapshot.
    pub(super) fn wants_search(&self) -> bool {
        self.wants_roots() || self.wants_runtimes()
    }

    fn wants_roots(&self) -> bool {
        self.may_have_more_roots && self.for_roots.is_due()
    }

    fn wants_runtimes(&self) -> bool {
        !self.reader.is_empty() && self.for_runtimes.is_due()
    }

    /// Searches what is due.
    pub(super) fn search(&mut self, seen: &Seen<'_>) {
        if self.wants_roots() {
            return self.read_layouts(seen, &seen.view.files());
        }
        if self.wants_runtimes() {
            let start = Instant::now();
            self.reader.find_runtimes(&process(seen, &self.layouts, &[]));
            self.for_runtimes.searched(start.elapsed());
        }
    }

    fn read_layouts(&mut self, seen: &Seen<'_>, files: &[Module]) {
        let start = Instant::now();
        let options = Options { threads: Some(1), ..Options::default() };
        let (layouts, locals) =
            seen.view.layouts_and_locals(files, &options, seen.frames, Wanted::Coroutines);
        self.layouts = layouts;
        let process = process(seen, &self.layouts, &locals);
        self.reader = TaskReader::new(&process);
        self.reader.find_runtimes(&process);
        self.roots.clear();
        for root in self.reader.find_roots(&process) {
            let Some(frame) = seen.frames[root.thread].get(root.frame) else { continue };
            let key = (seen.tids[root.thread], frame.lookup, frame.cfa);
            self.roots.insert(key, (root.future, root.name));
        }
        self.for_roots.searched(start.elapsed());
    }

    /// Reads the tasks, `most` at most. `below(n)` is a random number below `n`. The roots are those that `SeenTasks` has.
    pub(super) fn read_tasks(
        &mut self,
        seen: &Seen<'_>,
        most: usize,
        below: &mut dyn FnMut(usize) -> usize,
    ) -> (SeenTasks, Vec<Root>) {
        let roots = self.roots_of(seen);
        // A thread without tasks may be one that has begun to wait in `block_on` since.
        let may_have_more = (0..seen.frames.len()).any(|thread| {
            roots.iter().all(|root| root.thread != thread) && !self.polls(&seen.frames[thread])
        });
        self.may_have_more_roots = may_have_more && !self.reader.is_empty();
        let process = process(seen, &self.layouts, &[]);
        let futures: Vec<(u32, RootFuture)> =
            roots.iter().map(|root| (seen.tids[root.thread], root.future)).collect();
        let read = self.reader.read(&process, seen.frames, &futures, most, below);
        // Runtimes end and others begin: where tasks were, they are searched anew.
        if self.had_tasks && read.alive == 0 {
            self.for_runtimes = Retry::new();
        }
        self.had_tasks = read.alive > 0;
        (read, roots)
    }

    /// The known futures of `block_on` that are on stacks now.
    fn roots_of(&self, seen: &Seen<'_>) -> Vec<Root> {
        let mut roots = Vec::new();
        for (thread, frames) in seen.frames.iter().enumerate() {
            let of_frame = |(frame, known): (usize, &StackFrame)| {
                let (future, name) = self.roots.get(&(seen.tids[thread], known.lookup, known.cfa))?;
                Some(Root { thread, frame, future: *future, name: name.clone() })
            };
            roots.extend(frames.iter().enumerate().rev().find_map(of_frame));
        }
        roots
    }

    /// Whether a thread polls a task, or is a worker.
    fn polls(&self, frames: &[StackFrame]) -> bool {
        frames.iter().any(|frame| self.reader.poll_code(frame.lookup).is_some())
    }

    /// What a thread polls: the innermost task, if it polls one that polls others.
    pub(super) fn polled(&self, frames: &[StackFrame]) -> Option<Polled> {
        let (frame, code) = frames
            .iter()
            .enumerate()
            .find_map(|(at, frame)| Some((at, self.reader.poll_code(frame.lookup)?)))?;
        let blocking = code.is_blocking.then(|| code.name.clone().unwrap_or_else(|| "spawn_blocking".into()));
        Some(Polled { frame, blocking })
    }

    /// The code of frames.
    pub(super) fn codes(&self, modules: &[LoadedModule], frames: &[StackFrame]) -> Vec<Code> {
        let code = |frame: &StackFrame| {
            let at = modules.iter().position(|module| module.module.range().contains(&frame.lookup));
            match at.and_then(|at| Some((self.numbers.get(at)?, modules[at].bias()))) {
                Some((module, bias)) => {
                    Code { module: Some(*module), offset: frame.lookup.wrapping_sub(bias) }
                }
                None => Code { module: None, offset: frame.lookup },
            }
        };
        frames.iter().map(code).collect()
    }
}

/// What a thread polls.
pub(super) struct Polled {
    /// Index of the frame of the function that polls.
    pub frame: usize,
    /// The name of a function of `spawn_blocking`.
    pub blocking: Option<Arc<str>>,
}

/// What is read of the tasks of a process.
fn process<'a>(seen: &Seen<'a>, layouts: &'a Layouts, locals: &'a [Vec<Vec<Local>>]) -> Process<'a> {
    Process {
        wrapped: seen.wrapped,
        image: seen.view.image,
        modules: &seen.view.modules,
        layouts,
        locals,
        tids: seen.tids,
    }
}

fn key(modules: &[LoadedModule]) -> Vec<(String, u64)> {
    modules.iter().map(|module| (module.path.clone(), module.bias())).collect()
}
