//! Interpreters and runtimes that compile programs at run time: what shows the functions of the programs that they run.
//!
//! Without it, a report shows the interpreter. The hint is therefore the first line, not a note.

use crate::text::columns::wrap;
use crate::text::style::{Line, Paint};
use stackglass_profile::frame::file_name;
use stackglass_profile::{Process, ProcessIndex, Recording};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum share of the CPU time for a hint.
const CONSIDERABLE: f64 = 0.2;

/// An interpreter, or a runtime that compiles programs at run time.
pub(super) struct Runtime {
    /// Its usual name.
    pub name: &'static str,
    /// What it runs, as in "Java functions".
    functions: &'static str,
    /// Its executables, without version numbers.
    executables: &'static [&'static str],
    /// The library by which other executables load it; empty if there is none.
    library: &'static str,
    /// How to get complete stacks and names.
    remedy: &'static str,
}

/// Options are those of the runtimes' documentation: `python3 --help-xoptions` and *Python support for the Linux perf
/// profiler*; `node --v8-options`; `ruby --help`; *The java Command* and JDK-8254723; *Runtime configuration options for
/// debugging and profiling* (.NET); *The BeamAsm JIT* (Erlang).
const RUNTIMES: &[Runtime] = &[
    Runtime {
        name: "python",
        functions: "Python functions",
        executables: &["python"],
        library: "libpython",
        remedy: "set PYTHONPERFSUPPORT=1 in its environment",
    },
    Runtime {
        name: "node",
        functions: "JavaScript functions",
        executables: &["node", "nodejs"],
        library: "libnode.so",
        remedy: "run node with --perf-basic-prof --interpreted-frames-native-stack",
    },
    Runtime {
        name: "deno",
        functions: "JavaScript functions",
        executables: &["deno"],
        library: "",
        remedy: "run deno with --v8-flags=--perf-basic-prof,--interpreted-frames-native-stack",
    },
    Runtime {
        name: "ruby",
        functions: "Ruby methods",
        executables: &["ruby"],
        library: "libruby",
        remedy: "run ruby with --yjit-perf (Ruby 3.3 or later)",
    },
    Runtime {
        name: "java",
        functions: "Java methods",
        executables: &["java"],
        library: "libjvm.so",
        remedy: "run java with -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit \
                 (JDK 17 or later)",
    },
    Runtime {
        name: ".NET",
        functions: ".NET methods",
        executables: &["dotnet"],
        library: "libcoreclr.so",
        remedy: "set DOTNET_PerfMapEnabled=1 in its environment",
    },
    Runtime {
        name: "the Erlang runtime",
        functions: "Erlang functions",
        executables: &["beam.smp"],
        library: "",
        remedy: "run erl with +JPperf true",
    },
];

impl Runtime {
    /// How to get complete stacks and names; `None` if the options of it are among the arguments.
    pub fn remedy_for(&self, process: &Process) -> Option<&'static str> {
        let mut options = self.remedy.split(' ').filter(|word| word.starts_with(['-', '+'])).peekable();
        let has = |option: &str| process.arguments.iter().any(|argument| argument == option);
        let is_followed = options.peek().is_some() && options.all(has);
        (!is_followed).then_some(self.remedy)
    }
}

/// The first line of the report, if much of the time is that of programs whose functions have no names.
pub(super) fn hint(recording: &Recording) -> Option<String> {
    let (runtime, process) = nameless(recording)?;
    let Runtime { functions, remedy, .. } = runtime;
    if runtime.name == "python" && python_version(recording, process).is_some_and(|minor| minor < 12) {
        return Some(format!("To see {functions}, use Python 3.12 or later, and {remedy}."));
    }
    Some(format!("To see {functions}, {remedy}."))
}

/// The name of the runtime that the hint is about.
pub(super) fn runtime_of_hint(recording: &Recording) -> Option<&'static str> {
    nameless(recording).map(|(runtime, _)| runtime.name)
}

/// The hint in lines of at most `cols` columns, and an empty line; nothing without a hint.
pub(in crate::reports) fn hint_lines(recording: &Recording, cols: usize) -> Vec<Line> {
    let Some(hint) = hint(recording) else { return Vec::new() };
    let lines = wrap(&hint, cols).into_iter().map(|text| Line::from_text(Paint::Yellow, text));
    lines.chain([Line::new()]).collect()
}

/// Whether a module is the interpreter of a hint: its own lines are not what the reader misses.
pub(super) fn is_hinted(recording: &Recording, module: &str) -> bool {
    nameless(recording).is_some_and(|(runtime, process)| {
        module == &*process.exe
            || !runtime.library.is_empty() && file_name(module).starts_with(runtime.library)
    })
}

/// The runtime with most CPU time of processes without names from it, and the process with most of that.
fn nameless(recording: &Recording) -> Option<(&'static Runtime, &Process)> {
    let named = processes_with_names(recording);
    let mut times: BTreeMap<ProcessIndex, u64> = BTreeMap::new();
    let mut all = 0;
    for sample in recording.samples.iter().filter(|sample| sample.state.uses_cpu()) {
        all += sample.time.0;
        if let Some(thread) = recording.thread(sample.thread) {
            *times.entry(thread.process).or_default() += sample.time.0;
        }
    }
    let mut runtimes: BTreeMap<&str, (u64, u64, &Runtime, &Process)> = BTreeMap::new();
    for (index, time) in times {
        let Some(process) = recording.processes.get(index.0 as usize) else { continue };
        let Some(runtime) = runtime(recording, process).filter(|_| !named.contains(&index)) else { continue };
        let known = runtimes.entry(runtime.name).or_insert((0, 0, runtime, process));
        known.0 += time;
        if time > known.1 {
            (known.1, known.3) = (time, process);
        }
    }
    let most = runtimes.into_values().max_by_key(|(time, ..)| *time)?;
    (most.0 > 0 && most.0 as f64 >= all as f64 * CONSIDERABLE).then_some((most.2, most.3))
}

/// The processes with a stack that has a function of a runtime: code in no file that has a name.
fn processes_with_names(recording: &Recording) -> BTreeSet<ProcessIndex> {
    // By stack: whether it has one. A caller's stack comes before those of its callees.
    let mut has_name = vec![false];
    for (caller, location) in recording.stacks.nodes() {
        let location = *location;
        let generated = recording.stacks.location(location).module.is_none()
            && recording.symbols.frames_of(location).any(|frame| !frame.func.is_empty());
        has_name.push(generated || has_name.get(caller.0 as usize).is_some_and(|has| *has));
    }
    let samples = recording.samples.iter();
    let samples = samples.filter(|sample| has_name.get(sample.stack.0 as usize).is_some_and(|has| *has));
    samples.filter_map(|sample| Some(recording.thread(sample.thread)?.process)).collect()
}

/// The runtime that a process is, or that it has loaded.
pub(super) fn runtime(recording: &Recording, process: &Process) -> Option<&'static Runtime> {
    // Python 2 shows its functions to no profiler.
    if file_name(&process.exe).starts_with("python2") {
        return None;
    }
    let exe = file_name(&process.exe).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let by_name = RUNTIMES.iter().find(|runtime| runtime.executables.contains(&exe));
    by_name.or_else(|| {
        // It is not recorded which process loaded a module.
        let only = recording.processes.len() == 1;
        let loaded = |runtime: &&Runtime| {
            let library =
                |path: &str| !runtime.library.is_empty() && file_name(path).starts_with(runtime.library);
            recording.modules.iter().any(|module| library(&module.path))
        };
        RUNTIMES.iter().find(loaded).filter(|_| only)
    })
}

/// The 11 of Python 3.11, by the name of the executable or of the library.
fn python_version(recording: &Recording, process: &Process) -> Option<u32> {
    let libraries = recording.modules.iter().map(|module| file_name(&module.path));
    let libraries = libraries.filter_map(|name| name.strip_prefix("libpython3."));
    let exe = file_name(&process.exe).strip_prefix("python3.");
    let version = exe.or_else(|| libraries.into_iter().next())?;
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}
