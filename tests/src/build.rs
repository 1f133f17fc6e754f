//! Programs that the tests run: the command, the workloads, and hosts, which are compiled here.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Language of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// C, by `cc`.
    C,
    /// C++, by `c++`.
    Cpp,
    /// Rust, by `rustc`.
    Rust,
}

/// Cargo's target folder, from the path of this test.
fn target_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let deps = test.parent().expect("a test lies in a folder");
    deps.parent().expect("deps lies in the target folder").to_path_buf()
}

/// A program of this workspace: from a variable, or built now.
fn built(variable: &str, package: &str, binary: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        return PathBuf::from(path);
    }
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "-p", package, "--bins"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let folder = target_folder();
    if folder.ends_with("release") {
        build.arg("--release");
    }
    let status = build.status().expect("cargo can be started");
    assert!(status.success(), "{package} does not build");
    folder.join(binary)
}

/// The command: `$STACKGLASS_BIN`, or built with the profile of the tests.
pub fn stackglass() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built("STACKGLASS_BIN", "stackglass", "stackglass"))
}

/// The workloads: `$WORKLOADS_BIN`, or built with the profile of the tests.
pub fn workloads() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built("WORKLOADS_BIN", "workloads", "workloads"))
}

/// The program with tasks that wait: `$AWAITS_BIN`, or built with the profile of the tests.
pub fn awaits() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| built("AWAITS_BIN", "awaits", "awaits"))
}

/// The host of this name, compiled as in distributions: optimised, with line tables, without frame pointers.
pub fn host(name: &str, language: Language) -> PathBuf {
    host_with(name, language, &[])
}

/// A host compiled with more flags.
pub fn host_with(name: &str, language: Language, flags: &[&str]) -> PathBuf {
    let (compiler, extension, usual): (&str, &str, &[&str]) = match language {
        Language::C => ("cc", "c", &["-O2", "-g", "-fomit-frame-pointer", "-Wall", "-Werror", "-pthread"]),
        Language::Cpp => {
            ("c++", "cpp", &["-O2", "-g", "-fomit-frame-pointer", "-Wall", "-Werror", "-pthread"])
        }
        Language::Rust => {
            ("rustc", "rs", &["--edition=2024", "-Copt-level=2", "-Cdebuginfo=line-tables-only"])
        }
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("hosts").join(name).with_extension(extension);
    compiled(compiler, &source, name, &[usual, flags].concat())
}

/// A program of a test, with the name that its process gets. All tests that compile the same file with the same flags share it.
pub fn compiled(compiler: &str, source: &Path, name: &str, flags: &[&str]) -> PathBuf {
    // A folder for each content: files in it are never replaced, since another test may run them.
    let mut content = DefaultHasher::new();
    for file in std::iter::once(source.to_path_buf()).chain(included(source)) {
        let text = std::fs::read(&file);
        text.unwrap_or_else(|error| panic!("{}: {error}", file.display())).hash(&mut content);
    }
    (compiler, flags).hash(&mut content);
    let folder = target_folder().join("hosts").join(format!("{:016x}", content.finish()));
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let program = folder.join(name);
    if program.exists() {
        return program;
    }
    // Tests run in parallel: compile in an own folder, as rustc has further files beside its output. The first finished test links
    // its program to the common name.
    let own_folder = folder.join(format!("making.{}.{:?}", std::process::id(), std::thread::current().id()));
    std::fs::create_dir_all(&own_folder).expect("the target folder can be written");
    let own = own_folder.join(name);
    let mut command = Command::new(compiler);
    command.arg(source).arg("-o").arg(&own).args(flags);
    let output = command.output().unwrap_or_else(|error| panic!("{compiler} cannot be started: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} does not compile:\n{said}", source.display());
    if let Err(error) = std::fs::hard_link(&own, &program) {
        assert!(program.exists(), "{} cannot be made: {error}", program.display());
    }
    std::fs::remove_dir_all(&own_folder).expect("an own folder can be removed");
    program
}

/// What a source may include: the headers beside it, and for Rust the other sources.
fn included(source: &Path) -> Vec<PathBuf> {
    let end = if source.extension().is_some_and(|end| end == "rs") { "rs" } else { "h" };
    let beside =
        std::fs::read_dir(source.parent().expect("a source lies in a folder")).expect("sources are there");
    let paths = beside.map(|entry| entry.expect("a folder can be listed").path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|its| its == end)).collect();
    files.sort();
    files
}
