//! Programs with known results: they are built in a separate folder, and print addresses in their code and the lines of
//! the calls that lead there.

use stackglass_profile::recording::Module;
use stackglass_profile::symbols::Missing;
use stackglass_profile::{Frame, Location, Recording};
use stackglass_symbols::{Options, Outcome};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A built program.
pub struct Program {
    pub folder: tempfile::TempDir,
    pub path: PathBuf,
    pub source: PathBuf,
}

/// An address and its lines, as the program prints them.
#[derive(Debug)]
pub struct Answer {
    pub address: u64,
    /// Lines of the chain, innermost first.
    pub lines: Vec<i64>,
}

/// Runs a command; panics with its messages if it fails.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl Program {
    /// Builds a program from `tests/real/sources` with `compiler` and its flags.
    pub fn build(source: &str, compiler: &str, flags: &[&str]) -> Program {
        Program::build_with(source, compiler, flags, &[])
    }

    /// The same with environment variables.
    pub fn build_with(source: &str, compiler: &str, flags: &[&str], environment: &[(&str, &str)]) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let copy = root.join(source);
        std::fs::copy(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../symbols/tests/real/sources").join(source),
            &copy,
        )
        .unwrap();
        let path = root.join("program");
        run(Command::new(compiler)
            .current_dir(&root)
            .arg(source)
            .args(flags)
            .arg("-o")
            .arg(&path)
            .envs(environment.iter().copied()));
        Program { path, source: copy, folder }
    }

    /// The Rust program with known results, optimised.
    pub fn rust(flags: &[&str]) -> Program {
        let mut all = vec!["--edition=2024", "-Copt-level=2", "--crate-name=known"];
        all.extend(flags);
        Program::build("known.rs", "rustc", &all)
    }

    /// Runs a tool of binutils on a file in the program's folder.
    pub fn tool(&self, name: &str, arguments: &[&str]) {
        run(Command::new(name).current_dir(self.path.parent().unwrap()).args(arguments));
    }

    /// Runs the program and reads an address and its lines.
    pub fn says(&self, place: &str) -> Answer {
        let output = run(&mut Command::new(&self.path));
        let line = output.lines().find_map(|line| line.strip_prefix(place)).expect("the place");
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u64>().unwrap());
        // The program prints the end of the instruction; the lookup address is in the instruction, as for callers.
        Answer { address: numbers.next().unwrap() - 1, lines: numbers.map(|line| line as i64).collect() }
    }
}

/// The frames of an address, why names are missing, and the outcome.
pub fn frames(path: &Path, address: u64, options: &Options) -> (Vec<Frame>, Vec<Missing>, Outcome) {
    frames_with_id(path, &[], address, options)
}

/// The same with a recorded build id.
pub fn frames_with_id(
    path: &Path,
    build_id: &[u8],
    address: u64,
    options: &Options,
) -> (Vec<Frame>, Vec<Missing>, Outcome) {
    let mut recording = Recording::default();
    let module = Module { path: path.to_str().unwrap().into(), build_id: build_id.into() };
    let module = recording.intern_module(module);
    let location = recording.stacks.intern_location(Location { module: Some(module), offset: address });
    let outcome = stackglass_symbols::symbolize(&mut recording, options, &mut |_| ());
    let frames = recording.symbols.frames_of(location).cloned().collect();
    let missing = recording.symbols.notes().iter().map(|note| note.missing).collect();
    (frames, missing, outcome)
}
