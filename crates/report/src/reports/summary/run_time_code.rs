//! Advice for code of no known file, depending on the runtime that generates such code.
//!
//! Such code is not always generated at run time: a library that was loaded a moment before is not known either. It is
//! attributed to a JIT compiler only if the process is known to have one.

use super::cut_reasons::CutReason;
use stackglass_profile::frame::file_name;
use stackglass_profile::{Cut, Process, ProcessIndex, Recording};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A runtime that compiles programs at run time.
struct Runtime {
    /// Its usual name.
    name: &'static str,
    /// Its executables, without version numbers.
    executables: &'static [&'static str],
    /// The library by which other executables load it; empty if there is none.
    library: &'static str,
    /// How to get complete stacks and names.
    remedy: &'static str,
}

const RUNTIMES: &[Runtime] = &[
    Runtime {
        name: "node",
        executables: &["node", "nodejs"],
        library: "libnode.so",
        remedy: "--interpreted-frames-native-stack shows interpreted functions, --perf-basic-prof names all",
    },
    Runtime {
        name: "java",
        executables: &["java"],
        library: "libjvm.so",
        remedy: "-XX:+PreserveFramePointer keeps stacks whole, -XX:+UnlockDiagnosticVMOptions \
                 -XX:+DumpPerfMapAtExit names its functions",
    },
    Runtime {
        name: ".NET",
        executables: &["dotnet"],
        library: "libcoreclr.so",
        remedy: "DOTNET_PerfMapEnabled=1 in its environment names its functions",
    },
    Runtime {
        name: "the Erlang runtime",
        executables: &["beam.smp"],
        library: "",
        remedy: "erl +JPperf true keeps frame pointers and names its functions",
    },
];

/// Meaning and remedy for a recording, chosen by the process with the most time in such stacks.
pub(super) fn explained(
    recording: &Recording,
    reason: &'static CutReason,
) -> (Cow<'static, str>, &'static str) {
    let mut times: BTreeMap<ProcessIndex, u64> = BTreeMap::new();
    let samples = recording.samples.iter().filter(|sample| sample.state.uses_cpu());
    for sample in samples.filter(|sample| sample.cut == Some(Cut::NO_MODULE)) {
        if let Some(thread) = recording.thread(sample.thread) {
            *times.entry(thread.process).or_default() += sample.time.0;
        }
    }
    let most = times.into_iter().max_by_key(|(process, time)| (*time, std::cmp::Reverse(*process)));
    let process = most.and_then(|(process, _)| recording.processes.get(process.0 as usize));
    match process.and_then(|process| runtime(recording, process)) {
        Some(Runtime { name, remedy, .. }) => {
            (format!("in code of no known file, such as {name} generates at run time").into(), remedy)
        }
        None => (reason.meaning.into(), reason.remedy),
    }
}

fn runtime(recording: &Recording, process: &Process) -> Option<&'static Runtime> {
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
