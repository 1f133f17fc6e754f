//! Samples for tests: a recording of the bundled program, and files that Julia wrote.

// Not every test uses all of it.
#![allow(dead_code)]

use super::{Place, stackglass, text};
use std::path::PathBuf;
use std::process::{Output, Stdio};

/// A folder with a recording of the bundled program in `r.glass`.
pub fn recorded() -> Place {
    let place = Place::new();
    let output =
        place.run(["record", "-o", "r.glass", "--", stackglass(), "demo-workload", "--time", "600ms"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    place
}

/// One of the recorded `.jlprof` files.
pub fn julia(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/flamegraphs/jlprof").join(name)
}

/// All of them, including malformed ones.
pub fn all_of_julia() -> Vec<PathBuf> {
    let entries = julia("").read_dir().expect("they are in the project").flatten();
    let files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "jlprof"))
        .collect();
    assert!(files.len() > 60, "{}", files.len());
    files
}

impl Place {
    /// Runs the command with this input.
    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Output {
        use std::io::Write;
        let mut command = self.stackglass(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let mut stdin = child.stdin.take().expect("it was asked for");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().expect("the command ends");
        writer.join().expect("writing does not panic").expect("all of it is read");
        output
    }

    /// Runs the command, which must succeed, and returns what it wrote to standard output.
    pub fn stdout_of(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs the command, which must fail with one line, and returns the line.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let message = text(&output.stderr);
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{arguments:?}: {}",
            text(&output.stdout)
        );
        assert!(
            message.starts_with("stackglass: ") && message.lines().count() == 1,
            "{arguments:?}: {message}"
        );
        message
    }
}
