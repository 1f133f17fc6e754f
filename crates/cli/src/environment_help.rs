//! `stackglass help environment`: all variables of the environment that change what the command and the crate do.

pub(crate) const TEXT: &str = "\
Variables of the environment that `stackglass` and programs with the crate read.

Output
  COLUMNS      width of reports; otherwise the terminal's. Files and pipes
               get lines of any width
  LINES        height of the screen that a summary fits
  NO_COLOR     set to anything: no colours
  TERM         `dumb`: no colours and no status line
  JULIA_EDITOR, VISUAL, EDITOR   the editor that links to source lines open
  BROWSER      the program that opens pages
  DISPLAY, WAYLAND_DISPLAY   one is set: there is a desktop to open pages on

Names of functions and lines
  DEBUGINFOD_URLS        servers to ask for debug information that is missing
                         here, as elfutils has it; without it, none is asked
  DEBUGINFOD_CACHE_PATH, DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME,
  DEBUGINFOD_MAXSIZE     as elfutils has them
  STACKGLASS_DEBUGINFOD  0: ask no server, whatever DEBUGINFOD_URLS says
  CARGO_HOME, RUSTUP_HOME   where the sources of crates and of Rust lie

Peeks
  STACKGLASS_PEEK_HEAP_SNAPSHOT   1, t, true, y or yes: each peek also saves a
                         heap snapshot. `peek` reads it, and a program that
                         answers peeks itself

Files
  XDG_RUNTIME_DIR        a place for sessions, beside /dev/shm and /tmp
  XDG_CACHE_HOME         folder of the unpacked preload library, and of debug
                         information that servers have sent
  TMPDIR                 a place for snapshots and recordings on their way to
                         stdout
  HOME                   the folders of Cargo, of Rust and of caches lie there,
                         if no variable above names them; `~` in a path

Programs
  PATH                   folders of programs without a path
  CARGO                  the Cargo that `cargo stackglass` calls; `demo` shows
                         commands for `cargo run` if it is set
  CARGO_PROFILE_NAME_DEBUG  of a profile of Cargo: `cargo stackglass` adds line
                         tables if nothing else is set
  KUBERNETES_SERVICE_HOST   set: `doctor` speaks of a container

Set for recorded programs, with `--sampler preload`, `--allocs` and `run`
  STACKGLASS_SESSION     the folder of the session; not for users
  LD_PRELOAD             the preload library comes before what is set
  ASAN_OPTIONS           the order of libraries is not verified";

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Variables that sources read, and names of those of this project in all sources.
    #[test]
    fn no_variable_is_missing() {
        let mut folders = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() && !["target", "tests"].iter().any(|name| path.ends_with(name)) {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "rs") && path.components().any(is_source)
                {
                    check(&path);
                }
            }
        }
    }

    fn is_source(part: std::path::Component<'_>) -> bool {
        part.as_os_str() == "src"
    }

    fn check(path: &Path) {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let begins = ["var(\"", "var_os(\"", "set(\"", "folder(\"", "home(\""];
        for (at, begin) in begins.iter().flat_map(|begin| code.match_indices(begin)) {
            let name = code[at + begin.len()..].split('"').next().unwrap();
            let is_name = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            let is_of_tests = path.components().any(|part| part.as_os_str() == "replay");
            assert!(
                !is_name || is_of_tests || TEXT.contains(name),
                "{name} of {} is not in the help",
                path.display()
            );
        }
        for (at, _) in text.match_indices("\"STACKGLASS_") {
            let name = text[at + 1..].split('"').next().unwrap();
            // Those of tests, benchmarks and builds.
            let is_inner = ["_TEST_", "_BENCH_", "_BLESS", "_BIN", "_LIBRARY", "_CONFORMANCE"];
            let is_name = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
            if is_name && name != "STACKGLASS_" && !is_inner.iter().any(|part| name.contains(part)) {
                assert!(TEXT.contains(name), "{name} of {} is not in the help", path.display());
            }
        }
    }
}
