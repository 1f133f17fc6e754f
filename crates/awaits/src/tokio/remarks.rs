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
    match (layouts.is_rust(), has_types, cells.is_empty()) {
        (false, ..) => "the program has no debug information of Rust, which the tasks of a Rust program are read by: its own crate needs `debug = 2` in its Cargo profile, and no `strip`",
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
