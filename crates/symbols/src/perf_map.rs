//! Names of code compiled at run time, which is in no file. Many compilers (node with `--perf-basic-prof`, Java agents,
//! Julia, LuaJIT) can write `/tmp/perf-PID.map`: start, size and name in each line (Linux,
//! `tools/perf/Documentation/jit-interface.txt`).

use foldhash::{HashMap, HashSet};
use stackglass_profile::{LocationId, Process, ProcessIndex, Recording, StackId};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most bytes of a file that are read.
const LONGEST: u64 = 256 << 20;

/// The compiled functions of one process, sorted by their starts.
#[derive(Debug, Default)]
struct PerfMap(Vec<Function>);

#[derive(Debug)]
struct Function {
    start: u64,
    end: u64,
    name: Arc<str>,
}

impl PerfMap {
    fn parse(text: &str) -> PerfMap {
        let mut functions = Vec::new();
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
                functions.push(Function { start, end: start.saturating_add(size), name: Arc::from(&*name) });
            }
        }
        // New code may replace other code; the last entry counts.
        functions.sort_by_key(|function| function.start);
        PerfMap(functions)
    }

    /// The name of the function at an address.
    fn name(&self, address: u64) -> Option<&Arc<str>> {
        let after = self.0.partition_point(|function| function.start <= address);
        let function = self.0[..after].last().filter(|function| address < function.end)?;
        Some(&function.name)
    }
}

/// Names these locations, which are in no module, by the maps of the processes whose stacks have them. A forked child
/// without a map of its own has the code of its parent. Processes share a location if their code is at the same address;
/// if it is different code, the location has both names.
pub(crate) fn names(recording: &Recording, homeless: &HashSet<LocationId>) -> HashMap<LocationId, Arc<str>> {
    let mut names = HashMap::default();
    if homeless.is_empty() {
        return names;
    }
    let maps = maps(&recording.processes, recording.info.started);
    if maps.is_empty() {
        return names;
    }
    let of_process = |process: ProcessIndex| {
        let mut process = recording.processes.get(process.0 as usize)?;
        // No chain of children is longer; process ids that are used again could make a loop.
        for _ in 0..16 {
            if let Some((pid, _)) = maps.get_key_value(&process.pid) {
                return Some(*pid);
            }
            let parent = recording.processes.iter().find(|other| other.pid == process.parent);
            process = parent.filter(|_| process.forked)?;
        }
        None
    };
    let of_process: Vec<Option<u32>> =
        (0..recording.processes.len()).map(|index| of_process(ProcessIndex(index as u32))).collect();
    let samples = recording.samples.iter().filter_map(|sample| {
        let thread = recording.thread(sample.thread)?;
        Some((sample.stack, thread.process))
    });
    let allocations = recording.allocations.groups.iter().map(|group| (group.stack, group.process));
    let stacks = samples.chain(allocations).filter_map(|(stack, process)| {
        let pid = of_process.get(process.0 as usize).copied().flatten()?;
        Some((stack, pid))
    });
    let stacks: HashSet<(StackId, u32)> = stacks.collect();
    let mut found: BTreeMap<LocationId, BTreeSet<&Arc<str>>> = BTreeMap::new();
    for (stack, pid) in stacks {
        for location in recording.stacks.walk(stack).filter(|location| homeless.contains(location)) {
            let address = recording.stacks.location(location).offset;
            found.entry(location).or_default().extend(maps[&pid].name(address));
        }
    }
    for (location, of_location) in found {
        let mut of_location = of_location.into_iter();
        if let Some(first) = of_location.next() {
            let name = of_location.fold(first.clone(), |all, other| Arc::from(format!("{all} or {other}")));
            names.insert(location, name);
        }
    }
    names
}

/// The maps of these processes, by process id. `started` is the start of the recording in nanoseconds since 1970; an older
/// map belongs to an earlier process with the same id.
fn maps(processes: &[Process], started: u64) -> BTreeMap<u32, PerfMap> {
    let pids: BTreeSet<u32> = processes.iter().map(|process| process.pid).collect();
    let map = |pid: u32| {
        let text = read(&PathBuf::from(format!("/tmp/perf-{pid}.map")), started)?;
        Some((pid, PerfMap::parse(&text)))
    };
    pids.into_iter().filter_map(map).collect()
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
    use stackglass_profile::{Location, Nanos, Sample, State, Thread, ThreadNumber};

    #[test]
    fn addresses_in_compiled_code_have_names() {
        let map = PerfMap::parse(
            "2000 10 later\n1000 80 LazyCompile:~main app.js:3\nbad line\n0x3000 0x8 hex\n1000 20 again\n\
             ffffffffffffffff ff end\n4000 10\n",
        );
        let name = |address| map.name(address).map(|name| name.to_string());
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

    /// A recording of processes whose ids no process can have, with one stack at `address` each.
    fn recording(pids: &[(u32, u32, bool)], address: u64) -> (Recording, LocationId) {
        let mut recording = Recording::default();
        let location = recording.stacks.intern_location(Location { module: None, offset: address });
        let stack = recording.stacks.intern(&[location]);
        for (pid, parent, forked) in pids {
            let process = ProcessIndex(recording.processes.len() as u32);
            let (pid, parent, forked) = (*pid, *parent, *forked);
            recording.processes.push(Process { pid, parent, forked, ..Process::default() });
            recording.threads.push(Thread {
                process,
                tid: pid,
                name: "t".into(),
                start: Nanos(0),
                end: None,
                cpu: Nanos(0),
                blocked_signal: false,
            });
            recording.push(Sample {
                stack,
                thread: ThreadNumber(process.0 + 1),
                task: 0,
                clock: Nanos(0),
                state: State::Awake,
                cut: None,
                hits: 1,
                time: Nanos(1),
                spread: Nanos(0),
            });
        }
        (recording, location)
    }

    #[test]
    fn each_process_has_its_own_map() {
        let pid = |index: u32| 4_200_000_000 + (std::process::id() % 1_000_000) * 10 + index;
        let path = |pid: u32| PathBuf::from(format!("/tmp/perf-{pid}.map"));
        std::fs::write(path(pid(1)), "7000 100 one\n8000 100 same\n").unwrap();
        std::fs::write(path(pid(2)), "7000 100 two\n8000 100 same\n").unwrap();
        let name = |processes: &[(u32, u32, bool)], address: u64, started: u64| {
            let (mut recording, location) = recording(processes, address);
            recording.info.started = started;
            names(&recording, &HashSet::from_iter([location])).get(&location).map(|name| name.to_string())
        };
        let own = name(&[(pid(1), 1, false)], 0x7010, 0);
        let other = name(&[(pid(2), 1, false), (pid(3), 1, false)], 0x7010, 0);
        let both = name(&[(pid(1), 1, false), (pid(2), 1, false)], 0x7010, 0);
        let same = name(&[(pid(1), 1, false), (pid(2), 1, false)], 0x8010, 0);
        // A recorded process without samples there does not name the code of another one.
        let (mut idle, location) = recording(&[(pid(3), 1, false), (pid(1), 1, false)], 0x7010);
        idle.samples.truncate(1);
        let of_idle = names(&idle, &HashSet::from_iter([location]));
        let (mut child, location) = recording(&[(pid(1), 1, false), (pid(3), pid(1), true)], 0x7010);
        child.samples.remove(0);
        let of_child = names(&child, &HashSet::from_iter([location]));
        let stale = name(&[(pid(1), 1, false)], 0x7010, u64::MAX);
        std::fs::remove_file(path(pid(1))).unwrap();
        std::fs::remove_file(path(pid(2))).unwrap();
        assert_eq!([own.as_deref(), other.as_deref()], [Some("one"), Some("two")]);
        assert_eq!([both.as_deref(), same.as_deref()], [Some("one or two"), Some("same")]);
        assert!(of_idle.is_empty() && stale.is_none());
        assert_eq!(&*of_child[&location], "one");
    }
}
