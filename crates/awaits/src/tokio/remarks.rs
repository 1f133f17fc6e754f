//! What a dump says about itself: why there are no tasks, or not all, and which version of tokio the program has.

use super::cells::Cells;
use stackglass_layouts::Layouts;
use stackglass_profile::runtimes::tokio;
use stackglass_profile::task_dump::TaskDump;

/// Says why tasks are missing.
pub(super) fn add(layouts: &Layouts, cells: &Cells<'_>, version: Option<&str>, dump: &mut TaskDump) {
    if dump.tasks.is_empty() {
        dump.remarks.insert(0, nothing_found(layouts, cells, version));
    } else if cells.is_empty() && spawns(layouts) {
        dump.remarks.push(not_understood(version));
    }
}

/// Why there are no tasks.
fn nothing_found(layouts: &Layouts, cells: &Cells<'_>, version: Option<&str>) -> String {
    let has_types = layouts.coroutines().files().next().is_some();
    let symbols = layouts.known_functions(0);
    let has_symbols = symbols.is_some_and(|known| known.has_rust_symbols);
    let polls = symbols.is_some_and(|known| !known.polls.is_empty());
    match (layouts.is_rust(), has_types, cells.is_empty()) {
        (false, ..) if !has_symbols => "the program has no debug information of Rust and no symbols, so it is stripped or not written in Rust: a Rust program needs `strip = false` and `debug = 2` under [profile.release] in Cargo.toml (without the latter, only the function of each task is known)",
        (false, ..) if polls => "no tokio runtime has a task now, as far as symbols tell: `debug = 2` under [profile.release] in Cargo.toml is sure",
        (false, ..) => "by its symbols, the program spawns no tasks of tokio, and it has no debug information, which would tell more: `debug = 2` under [profile.release] in Cargo.toml",
        (true, false, _) => "its debug information has no types of async functions: it has no such functions, or its own crate needs `debug = 2` (or `true`) in the Cargo profile",
        (true, true, true) if spawns(layouts) => return not_understood(version),
        (true, true, true) => "the program spawns no tasks of tokio",
        (true, true, false) => "no tokio runtime has a task now",
    }
    .to_owned()
}

/// Whether the program has types of async functions, and functions that poll tasks of tokio.
fn spawns(layouts: &Layouts) -> bool {
    let is_task = |name: &str| name.contains(tokio::SCHEDULER) || name.contains(tokio::LOCAL_SHARED);
    let coroutines = layouts.coroutines();
    coroutines.files().next().is_some() && coroutines.polls().iter().any(|poll| is_task(&poll.name))
}

fn not_understood(version: Option<&str>) -> String {
    let version = version.map(|version| format!(" {version}")).unwrap_or_default();
    format!("the tasks of tokio{version} are not understood; those of tokio {} are", tokio::VERSIONS)
}

/// The version of tokio, from the path of its sources.
pub(super) fn version(layouts: &Layouts) -> Option<String> {
    layouts.coroutines().files().find_map(|file| {
        let (_, rest) = file.split_once("/tokio-")?;
        let (version, rest) = rest.split_once('/')?;
        let is_version =
            version.split('.').count() >= 3 && version.starts_with(|char: char| char.is_ascii_digit());
        (is_version && rest.starts_with("src/")).then(|| version.to_owned())
    })
}
