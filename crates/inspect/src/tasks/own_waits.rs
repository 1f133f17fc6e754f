//! Reads the await stacks of waiting tasks of this process, while it runs.
//!
//! A task that waits does not change. The caller can tell whether it has waited all the time: only then the result counts. All
//! reads are made by the kernel ([`own`](crate::core_image::own)), so a pointer that is not valid does no harm.

use super::wait_copies::WaitCopy;
use crate::core_image::own;
use crate::task_stacks::{WaitStacks, flatten};
use foldhash::HashMap;
use stackglass_awaits::{Process, WrappedReader};
use stackglass_layouts::{Layouts, Wanted};
use stackglass_process_view::ProcessView;
use stackglass_process_view::core_image::CoreImage;
use stackglass_process_view::modules::LoadedModule;
use stackglass_symbols::Options;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most tasks whose last stack is kept.
const MOST_KEPT: usize = 1 << 17;

/// Why waiting tasks have no await stacks.
#[derive(Debug, thiserror::Error)]
pub enum NoAwaitStacks {
    /// The kernel refuses reads.
    #[error("waiting tasks have no await stacks: this process cannot read its memory: {0}")]
    Refused(#[from] io::Error),
    /// There are no types.
    #[error(
        "waiting tasks have no await stacks: the debug information has no types of async functions; their crate needs `debug = 2` (or `true`) in its Cargo profile"
    )]
    NoTypes,
}

/// Reads await stacks of this process.
pub struct AwaitStacks {
    image: CoreImage,
    modules: Vec<LoadedModule>,
    layouts: Layouts,
    reader: WrappedReader,
    /// By task: the number of its last wait that was read, and what was found.
    kept: HashMap<u64, (u64, Option<WaitStacks>)>,
}

impl AwaitStacks {
    /// Reads the types of the program, which takes some tenths of a second and some tens of megabytes.
    ///
    /// # Errors
    /// [`NoAwaitStacks`].
    pub fn read_types() -> Result<AwaitStacks, NoAwaitStacks> {
        let image = own::image()?;
        let view = ProcessView::open(&image);
        let files = view.files();
        // On this thread alone: others would be threads of the program.
        let options = Options { threads: Some(1), ..Options::default() };
        let layouts = view.layouts(&files, &options, Wanted::Coroutines);
        let modules = view.modules;
        if !WrappedReader::has_types(&layouts) {
            return Err(NoAwaitStacks::NoTypes);
        }
        let reader = WrappedReader::new(&process(&image, &modules, &layouts));
        Ok(AwaitStacks { image, modules, layouts, reader, kept: HashMap::default() })
    }

    /// The stacks of a task in one of its waits, which has a number. `future` gives the addresses of its future and of the
    /// future's vtable as long as the task is in that wait. `None` if the wait ends too soon, or types are missing.
    pub fn of(
        &mut self,
        task: u64,
        wait: u64,
        future: &dyn Fn() -> Option<(u64, u64)>,
    ) -> Option<WaitStacks> {
        if let Some(stacks) = self.known(task, wait) {
            return stacks;
        }
        let (address, vtable) = future().filter(|(address, _)| *address != 0)?;
        let process = process(&self.image, &self.modules, &self.layouts);
        let found = self.reader.read(&process, address, vtable);
        // All of it is of that wait, or nothing counts.
        future().filter(|again| *again == (address, vtable))?;
        let stacks = found.map(|found| WaitStacks(flatten::stacks(&found).into()));
        self.insert(task, wait, stacks)
    }

    /// The stacks of a task in a wait that was copied. `None` if more would be needed than was copied, or types are missing.
    pub fn of_copy(&mut self, task: u64, wait: u64, copy: &Arc<WaitCopy>) -> Option<WaitStacks> {
        if let Some(stacks) = self.known(task, wait) {
            return stacks;
        }
        let (image, is_missing) = copy.image(&self.image);
        let process = process(&image, &self.modules, &self.layouts);
        let (address, vtable) = copy.future;
        let found = self.reader.read(&process, address, vtable);
        let found = found.filter(|_| !is_missing.load(Ordering::Relaxed))?;
        self.insert(task, wait, Some(WaitStacks(flatten::stacks(&found).into())))
    }

    /// What was found in a wait before.
    fn known(&self, task: u64, wait: u64) -> Option<Option<WaitStacks>> {
        let (known, stacks) = self.kept.get(&task)?;
        (*known == wait).then(|| stacks.clone())
    }

    fn insert(&mut self, task: u64, wait: u64, stacks: Option<WaitStacks>) -> Option<WaitStacks> {
        if self.kept.len() >= MOST_KEPT {
            self.kept.clear();
        }
        self.kept.insert(task, (wait, stacks.clone()));
        stacks
    }
}

fn process<'a>(image: &'a CoreImage, modules: &'a [LoadedModule], layouts: &'a Layouts) -> Process<'a> {
    Process { image, modules, layouts, locals: &[], tids: &[], wrapped: &[] }
}
