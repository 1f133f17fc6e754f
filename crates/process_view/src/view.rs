//! A process with its modules, and the ways from there to its files, threads and types.

use crate::core_image::CoreImage;
use crate::modules::LoadedModule;
use crate::stacks::StackFrame;
use crate::threads::ThreadStack;
use crate::{locals, module_files, modules, stacks, threads};
use stackglass_layouts::{Layouts, Local, Wanted};
use stackglass_profile::Module;
use stackglass_symbols::Options;

/// A process that does not run, or the own process.
pub struct ProcessView<'a> {
    /// Its memory and registers.
    pub image: &'a CoreImage,
    /// The program and its libraries; the program is first.
    pub modules: Vec<LoadedModule>,
}

/// The threads of a process whose registers are known. All lists have the same order.
pub struct Threads {
    /// Where their stacks end.
    pub stacks: Vec<ThreadStack>,
    /// Their frames, innermost first.
    pub frames: Vec<Vec<StackFrame>>,
    /// Their ids.
    pub tids: Vec<u32>,
}

impl<'a> ProcessView<'a> {
    /// Finds the modules of a process.
    pub fn open(image: &'a CoreImage) -> ProcessView<'a> {
        ProcessView { image, modules: modules::find(image, &image.executable) }
    }

    /// The file name of its program.
    pub fn program(&self) -> &str {
        let path = &self.image.executable;
        path.rsplit('/').next().unwrap_or(path)
    }

    /// The modules by paths that find their files from this process, in the order of [`ProcessView::modules`].
    pub fn files(&self) -> Vec<Module> {
        module_files::find(self.image, &self.modules)
    }

    /// The stacks of its threads.
    pub fn threads(&self) -> Threads {
        let stacks = threads::stacks(self.image, &self.modules);
        let states: Vec<_> = stacks.iter().map(|thread| (thread.registers, thread.end)).collect();
        let frames = stacks::frames(self.image, &self.modules, &states);
        let tids = stacks.iter().map(|thread| self.image.threads[thread.index].tid).collect();
        Threads { stacks, frames, tids }
    }

    /// Reads layouts of types from `files`, those of its modules.
    pub fn layouts(&self, files: &[Module], options: &Options, wanted: Wanted) -> Layouts {
        self.layouts_and_locals(files, options, &[], wanted).0
    }

    /// Reads layouts of types from `files`, and the variables of each frame of each thread.
    pub fn layouts_and_locals(
        &self,
        files: &[Module],
        options: &Options,
        frames: &[Vec<StackFrame>],
        wanted: Wanted,
    ) -> (Layouts, Vec<Vec<Vec<Local>>>) {
        locals::read(self.image, &self.modules, files, options, frames, wanted)
    }
}
