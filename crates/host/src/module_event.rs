//! The event of a loaded module: the sampler and the recorder of allocations write the same.

use stackglass_unwind::Module;
use stackglass_wire::{Event, MODULE_TEXT_WORDS, ModuleId, TEXT_BYTES, module_text};

/// The event of a module that was noticed at `at`, with its build id and path in `text`. A long path is cut.
pub fn loaded<'t>(
    module: &Module,
    path: &[u8],
    at: u64,
    text: &'t mut [u64; MODULE_TEXT_WORDS],
) -> Event<'t> {
    let path = &path[..path.len().min(TEXT_BYTES)];
    let build_id = module.build_id();
    let words = module_text(build_id, path, text);
    let range = module.range();
    Event::ModuleLoad {
        module: ModuleId(module.id()),
        at,
        bias: module.bias(),
        low: range.start,
        high: range.end,
        text: &text[..words],
        build_id_len: build_id.len() as u32,
        path_len: path.len() as u32,
    }
}
