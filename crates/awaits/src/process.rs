//! The process whose tasks are read, with what is known before: memory, modules, types, variables.

use crate::wrapped_task::WrappedTask;
use stackglass_layouts::{Layouts, Local, TypeId};
use stackglass_process_view::core_image::CoreImage;
use stackglass_process_view::modules::LoadedModule;

/// A process, and what is known of it.
pub struct Process<'a> {
    /// Its memory.
    pub image: &'a CoreImage,
    /// Its modules.
    pub modules: &'a [LoadedModule],
    /// Types of these modules, read with coroutines.
    pub layouts: &'a Layouts,
    /// The local variables of each frame of some threads, innermost frame first.
    pub locals: &'a [Vec<Vec<Local>>],
    /// Kernel ids of these threads.
    pub tids: &'a [u32],
    /// Tasks of our own wrapper, from the table that the process has of them.
    pub wrapped: &'a [WrappedTask],
}

impl Process<'_> {
    /// Types by the address of their vtable in the process, sorted.
    pub(crate) fn vtables(&self) -> Vec<(u64, TypeId)> {
        let mut all = Vec::new();
        for (number, module) in self.modules.iter().enumerate() {
            let of_module = self.layouts.module(number).vtables.iter().filter(|vtable| !vtable.of_class);
            all.extend(of_module.map(|vtable| (vtable.address.wrapping_add(module.bias()), vtable.type_id)));
        }
        all.sort_unstable();
        all
    }
}
