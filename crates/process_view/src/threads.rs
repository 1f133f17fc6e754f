//! The threads of a process, and where their stacks end.

use crate::core_image::{CoreImage, ThreadRegisters};
use crate::modules::LoadedModule;

/// A thread, and where its stack ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadStack {
    /// Its place in [`CoreImage::threads`].
    pub index: usize,
    /// Its registers.
    pub registers: ThreadRegisters,
    /// Address behind its stack.
    pub end: u64,
}

/// The stacks of all threads whose registers are known.
pub fn stacks(image: &CoreImage, modules: &[LoadedModule]) -> Vec<ThreadStack> {
    let local = thread_local_bytes(modules);
    let threads = image.threads.iter().enumerate();
    let stacks = threads.filter_map(|(index, thread)| {
        let registers = thread.registers?;
        let mapping = image.mapping(registers.rsp())?;
        // Stacks of threads end where their thread-local storage begins.
        let base = registers.fs_base().saturating_sub(local);
        let end = if mapping.range.contains(&registers.fs_base()) && base > registers.rsp() {
            base
        } else {
            mapping.range.end
        };
        Some(ThreadStack { index, registers, end })
    });
    stacks.collect()
}

/// Bytes of thread-local storage that the modules have in each thread.
pub fn thread_local_bytes(modules: &[LoadedModule]) -> u64 {
    let sizes = modules.iter().filter_map(|module| module.thread_local);
    sizes.map(|local| local.size + local.alignment).sum()
}
