//! The local variables of the frames on all stacks.

use crate::core_image::CoreImage;
use crate::modules::LoadedModule;
use crate::stacks::StackFrame;
use stackglass_layouts::{Layouts, Local, LocalPlace, StoppedFrame, TypeId, Wanted};
use stackglass_profile::Module;
use stackglass_symbols::Options;
use std::collections::HashSet;

/// Reads the layouts of modules, and the local variables of the frames of each thread. `files` are the files of the modules.
pub(crate) fn read(
    image: &CoreImage,
    modules: &[LoadedModule],
    files: &[Module],
    options: &Options,
    frames: &[Vec<StackFrame>],
    wanted: Wanted,
) -> (Layouts, Vec<Vec<Vec<Local>>>) {
    let module_of =
        |frame: &StackFrame| modules.iter().position(|module| module.module.range().contains(&frame.lookup));
    let mut places = Vec::new();
    let mut stopped = Vec::new();
    for (thread, frames) in frames.iter().enumerate() {
        for (number, frame) in frames.iter().enumerate() {
            let Some(module) = module_of(frame) else { continue };
            let bias = modules[module].bias();
            let StackFrame { registers, cfa, .. } = *frame;
            let lookup = frame.lookup.wrapping_sub(bias);
            places.push((thread, number));
            stopped.push(StoppedFrame { module, bias, lookup, registers, cfa });
        }
    }
    let memory = |address: u64, into: &mut [u8]| image.memory.read(address, into);
    let (layouts, found) = Layouts::read_with_locals(files, options, &stopped, &memory, wanted);
    let mut locals: Vec<Vec<Vec<Local>>> =
        frames.iter().map(|frames| frames.iter().map(|_| Vec::new()).collect()).collect();
    for ((thread, number), found) in places.into_iter().zip(found) {
        let mut seen = HashSet::new();
        // Parameters of inlined functions often are variables of the caller.
        let distinct = found.into_iter().filter(|local| seen.insert((local.place.clone(), local.type_id)));
        locals[thread][number] = distinct.collect();
    }
    (layouts, locals)
}

/// The address of a value, 0 in registers, and its bytes. `read` reads memory.
pub fn value<'bytes>(
    place: &'bytes LocalPlace,
    type_id: TypeId,
    layouts: &Layouts,
    read: impl FnOnce(u64, u64) -> &'bytes [u8],
) -> (u64, &'bytes [u8]) {
    let size = layouts.get(type_id).size;
    match place {
        LocalPlace::Memory(address) => (*address, read(*address, size)),
        LocalPlace::Bytes(bytes) => (0, &bytes[..bytes.len().min(size as usize)]),
    }
}
