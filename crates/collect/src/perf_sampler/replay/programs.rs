//! The programs of which there are traces, and the traces.

use super::trace::Trace;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

/// A program, and how it is sampled.
pub(super) struct Program {
    pub name: &'static str,
    /// Program and arguments; `FOLDER` stands for the folder of the compiled ones.
    pub command: &'static [&'static str],
    /// Events are inherited, and not those of CPUs.
    pub inherited: bool,
    /// Time between two samples, ms.
    pub delay: u64,
    /// Time between two drains, if it is not the usual one.
    pub pause: Option<Duration>,
}

const fn of_cpus(name: &'static str, delay: u64, command: &'static [&'static str]) -> Program {
    Program { name, command, inherited: false, delay, pause: None }
}

const fn inherited(name: &'static str, delay: u64, command: &'static [&'static str]) -> Program {
    Program { name, command, inherited: true, delay, pause: None }
}

const HOST: &str = "FOLDER/replayed";
/// A process for each of 200 turns.
const STORM: &[&str] = &["/bin/sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"];
const PIPELINE: &str = "seq 1 90000 | sort -rn | tr 1 2 | tail -n 3";

/// All of them.
pub(super) const ALL: &[Program] = &[
    of_cpus("spin", 2, &[HOST, "spin", "300"]),
    inherited("spin-inherited", 2, &[HOST, "spin", "300"]),
    of_cpus("static", 2, &["FOLDER/replayed-static", "spin", "200"]),
    of_cpus("storm", 2, STORM),
    inherited("storm-inherited", 2, STORM),
    of_cpus("execs", 2, &[HOST, "execs", "6"]),
    inherited("execs-inherited", 2, &[HOST, "execs", "6"]),
    of_cpus("threads", 1, &[HOST, "threads", "60"]),
    inherited("threads-inherited", 1, &[HOST, "threads", "60"]),
    of_cpus("sleeps", 2, &[HOST, "sleeps"]),
    inherited("sleeps-inherited", 2, &[HOST, "sleeps"]),
    of_cpus("pipeline", 4, &["/bin/sh", "-c", PIPELINE]),
    of_cpus("deep", 10, &[HOST, "deep", "2000"]),
    of_cpus("killed", 4, &[HOST, "killed"]),
    of_cpus("children", 2, &[HOST, "children", "30"]),
    of_cpus("renames", 2, &[HOST, "renames", "100"]),
    of_cpus("plugins", 1, &[HOST, "plugins", "FOLDER/one.so", "FOLDER/two.so"]),
    Program { pause: Some(Duration::from_millis(400)), ..inherited("lost", 4, &[HOST, "switches", "8000"]) },
];

/// Where the traces are.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

/// The trace of a program.
pub(super) fn trace(name: &str) -> Rc<Trace> {
    let path = folder().join(name).with_extension("trace");
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Rc::new(Trace::unpack(&packed).expect("it was written by this crate"))
}

/// Traces of all programs.
pub(super) fn traces() -> impl Iterator<Item = (&'static str, Rc<Trace>)> {
    ALL.iter().map(|program| (program.name, trace(program.name)))
}

impl Program {
    /// The command, with programs from this folder.
    pub(super) fn command(&self, folder: &Path) -> Command {
        let place = |word: &&str| word.replace("FOLDER", folder.to_str().expect("a plain path"));
        let mut words = self.command.iter().map(place);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).env_clear().env("PATH", "/usr/bin:/bin");
        command
    }
}

/// Compiles the programs that are not of the system.
pub(super) fn compile(into: &Path) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let compile = |output: &str, source: &str, flags: &[&str]| {
        let mut command = Command::new("cc");
        command.args(["-O2", "-pthread", "-Wl,--build-id=sha1", "-w"]).args(flags);
        command.arg("-o").arg(into.join(output)).arg(sources.join(source));
        assert!(command.status().is_ok_and(|status| status.success()), "{source} does not compile");
    };
    compile("replayed", "replayed.c", &[]);
    compile("replayed-static", "replayed.c", &["-static", "-fno-pie", "-no-pie"]);
    compile("one.so", "replayed_plugin.c", &["-shared", "-fPIC", "-DPLUGIN=1"]);
    compile("two.so", "replayed_plugin.c", &["-shared", "-fPIC", "-DPLUGIN=2"]);
}
