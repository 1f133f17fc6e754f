//! Whether it is worth while to read the types of a module for await stacks: a search in its strings, which takes a hundredth
//! of the time.

use memchr::memmem;
use stackglass_debug_info::Options;
use stackglass_debug_info::elf::Elf;
use stackglass_debug_info::locate;
use stackglass_debug_info::sections::load_section;
use stackglass_profile::Module;

/// The namespace of tokio. Strings may share their ends.
const TOKIO: &str = "tokio\0";
/// The namespace of our own wrapper.
const CRATE: &str = "stackglass\0";
/// Names of coroutines contain one of them.
const COROUTINES: [&str; 3] = ["{async_fn_env#", "{async_block_env#", "{async_closure_env#"];

/// Part of the symbols of the module that wraps tasks, as both kinds of mangling have it.
const WRAPPER: &str = "10stackglass4task";

/// Whether a module may give names to its tasks, by `.task("name")` of the crate stackglass. `true` also for strings that mean
/// something else.
pub fn may_name_tasks(module: &Module, options: &Options) -> bool {
    let files = locate::files_of(module, &Options { debuginfod: None, ..options.clone() });
    let elves = [&files.program, &files.debug].into_iter().flatten().filter_map(|file| Elf::parse(file).ok());
    elves.into_iter().any(|elf| {
        [".strtab", ".debug_str"].into_iter().any(|section| {
            let strings = load_section(&elf, section).unwrap_or_default();
            memmem::find(&strings, WRAPPER.as_bytes()).is_some()
        })
    })
}

/// Whether the debug information of a module may describe tasks of tokio. `true` also for strings that mean something else.
pub fn may_describe_tasks(module: &Module, options: &Options) -> bool {
    has_coroutines_and(module, options, TOKIO)
}

/// Whether it may describe tasks that are named by the crate `stackglass`, of any executor.
pub fn may_describe_named_tasks(module: &Module, options: &Options) -> bool {
    has_coroutines_and(module, options, CRATE)
}

fn has_coroutines_and(module: &Module, options: &Options, namespace: &str) -> bool {
    let files = locate::files_of(module, &Options { debuginfod: None, ..options.clone() });
    let Some(elf) = files.debug_info() else { return false };
    let contains = |elf: &Elf<'_>, section| {
        let strings = load_section(elf, section).unwrap_or_default();
        let has = |text: &str| memmem::find(&strings, text.as_bytes()).is_some();
        has(namespace) && COROUTINES.iter().any(|name| has(name))
    };
    let package = files.package.as_ref().and_then(|file| Elf::parse(file).ok());
    contains(&elf, ".debug_str") || package.is_some_and(|elf| contains(&elf, ".debug_str.dwo"))
}
