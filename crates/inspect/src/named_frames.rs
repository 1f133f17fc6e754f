//! Names for frames of a process that is read.

use stackglass_process_view::modules::LoadedModule;
use stackglass_profile::{Frame, Location, LocationId, Module, ModuleIndex, Recording};
use stackglass_symbols::Options;

/// The frames of stacks, given as lookup addresses: for each address the inlined functions, and the function around them. `files` are
/// the files of the modules.
pub(crate) fn of<S: AsRef<[u64]>>(
    stacks: &[S],
    modules: &[LoadedModule],
    files: &[Module],
    options: &Options,
) -> Vec<Vec<Vec<Frame>>> {
    let mut recording = Recording { modules: files.to_vec(), ..Recording::default() };
    let mut intern = |lookup: &u64| {
        let module = modules.iter().position(|module| module.module.range().contains(lookup));
        let bias = module.map_or(0, |module| modules[module].bias());
        let module = module.map(|module| ModuleIndex(module as u32));
        recording.stacks.intern_location(Location { module, offset: lookup.wrapping_sub(bias) })
    };
    let stacks: Vec<Vec<LocationId>> =
        stacks.iter().map(|lookups| lookups.as_ref().iter().map(&mut intern).collect()).collect();
    stackglass_symbols::symbolize(&mut recording, options, &mut |_| ());
    let frames = |locations: &Vec<LocationId>| {
        let frames =
            locations.iter().map(|location| recording.symbols.frames_of(*location).cloned().collect());
        frames.collect()
    };
    stacks.iter().map(frames).collect()
}
