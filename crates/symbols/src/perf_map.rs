//! Names of code compiled at run time, which is in no file. Many compilers (node with `--perf-basic-prof`, Java agents,
//! Julia, LuaJIT) can write `/tmp/perf-PID.map`: start, size and name in each line (Linux,
//! `tools/perf/Documentation/jit-interface.txt`).

use stackglass_profile::{Frame, Process};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes of a file that are read.
const LONGEST: u64 = 256 << 20;

/// The compiled functions of all processes, sorted by their starts.
#[derive(Debug, Default)]
pub(crate) struct PerfMaps(Vec<Function>);

#[derive(Debug)]
struct Function {
    start: u64,
    end: u64,
    name: Arc<str>,
}

impl PerfMaps {
    /// Reads the maps of these processes. `started` is the start of the recording in nanoseconds since 1970; an older map
    /// belongs to an earlier process with the same id.
    pub fn of(processes: &[Process], started: u64) -> PerfMaps {
        let mut maps = PerfMaps::default();
        for process in processes {
            if let Some(text) = read(&PathBuf::from(format!("/tmp/perf-{}.map", process.pid)), started) {
                maps.add(&text);
            }
        }
        maps.sort();
        maps
    }

    fn add(&mut self, text: &str) {
        for line in text.lines() {
            let mut parts = line.splitn(3, ' ');
            let mut number = || {
                let digits = parts.next()?;
                u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
            };
            if let (Some(start), Some(size)) = (number(), number())
                && let Some(name) = parts.next().filter(|name| !name.is_empty())
            {
                let name = without_tier(name);
                self.0.push(Function { start, end: start.saturating_add(size), name: Arc::from(&*name) });
            }
        }
    }

    fn sort(&mut self) {
        // New code may replace other code; the last entry counts.
        self.0.sort_by_key(|function| function.start);
    }

    /// The frame of an address in compiled code.
    pub fn frame(&self, address: u64) -> Option<Frame> {
        let after = self.0.partition_point(|function| function.start <= address);
        let function = self.0[..after].last().filter(|function| address < function.end)?;
        Some(Frame { func: function.name.clone(), ..Frame::unknown(address) })
    }
}

/// V8 marks how it has compiled a function: `JS:~f`, `JS:^f`, `JS:+f` and `JS:*f` are one function, whose samples belong
/// together.
fn without_tier(name: &str) -> Cow<'_, str> {
    for kind in ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"] {
        let function = name.strip_prefix(kind).and_then(|rest| rest.strip_prefix(['~', '^', '+', '*']));
        if let Some(function) = function {
            return Cow::Owned(format!("{kind}{function}"));
        }
    }
    Cow::Borrowed(name)
}

/// A map of this recording that this user or root owns, since all users can write to `/tmp`.
fn read(path: &Path, started: u64) -> Option<String> {
    let ours = std::fs::metadata("/proc/self").ok()?.uid();
    if !std::fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let meta = file.metadata().ok()?;
    let written = meta.mtime().unsigned_abs() + 1;
    if !meta.is_file() || ![0, ours].contains(&meta.uid()) || written < started / 1_000_000_000 {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_compiled_code_have_names() {
        let mut maps = PerfMaps::default();
        maps.add(
            "2000 10 later\n1000 80 LazyCompile:~main app.js:3\nbad line\n0x3000 0x8 hex\n1000 20 again\n",
        );
        maps.add("ffffffffffffffff ff end\n4000 10\n");
        maps.sort();
        let name = |address| maps.frame(address).map(|frame| frame.func.to_string());
        assert_eq!(name(0xfff), None);
        assert_eq!(name(0x101f).as_deref(), Some("again"));
        assert_eq!(name(0x2000).as_deref(), Some("later"));
        assert_eq!(name(0x2010), None);
        assert_eq!(name(0x3007).as_deref(), Some("hex"));
        assert_eq!(name(0x4001), None);
    }

    #[test]
    fn one_function_has_one_name_however_it_is_compiled() {
        for name in
            ["JS:~f /srv/a.js:1:2", "JS:*f /srv/a.js:1:2", "JS:^f /srv/a.js:1:2", "JS:+f /srv/a.js:1:2"]
        {
            assert_eq!(without_tier(name), "JS:f /srv/a.js:1:2");
        }
        for name in ["py::f:/srv/a.py", "Builtin:ArrayMap", "*f", "JS:f", "int W.inner(int)"] {
            assert_eq!(without_tier(name), name);
        }
    }

    #[test]
    fn maps_of_the_recorded_processes_are_read() {
        let process = Process { pid: std::process::id(), ..Process::default() };
        let path = PathBuf::from(format!("/tmp/perf-{}.map", process.pid));
        std::fs::write(&path, "7000 100 jitted\n").unwrap();
        let processes = [process];
        let found = PerfMaps::of(&processes, 0).frame(0x7010).map(|frame| frame.func);
        let stale = PerfMaps::of(&processes, u64::MAX).frame(0x7010);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found.as_deref(), Some("jitted"));
        assert!(stale.is_none());
    }
}
