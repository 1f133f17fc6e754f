//! The programs whose images are stored, and how each is compiled.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of the folder `programs`.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The name of its image.
    pub image: &'static str,
    /// Its source.
    pub source: &'static str,
    /// Most bytes of its image.
    pub most_bytes: u64,
}

pub const CPP: Program = Program { image: "heap_cpp", source: "heap.cpp", most_bytes: 400_000 };
pub const RUST: Program = Program { image: "heap_rust", source: "heap.rs", most_bytes: 400_000 };
pub const TASKS: Program = Program { image: "tasks", source: "awaits.rs", most_bytes: 400_000 };
pub const ALL: [Program; 3] = [CPP, RUST, TASKS];

/// A small build: types of the program's own crate are all that is needed. Tokio's come with the futures that use them.
const PACKAGE: &str = r#"
[package]
name = "program"
version = "0.0.0"
edition = "2024"
[workspace]
[dependencies]
tokio = { version = "=1.54.1", features = ["rt", "sync", "time"] }
[profile.dev]
opt-level = 1
debug = 2
panic = "abort"
codegen-units = 1
[profile.dev.package."*"]
debug = 0
"#;

impl Program {
    pub fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(self.source)
    }

    /// Compiles it in a folder.
    pub fn build(&self, folder: &Path) -> PathBuf {
        let program = folder.join("program");
        match self.source {
            source if source.ends_with(".cpp") => {
                let flags = ["-std=c++17", "-g", "-O1", "-static-libstdc++", "-static-libgcc"];
                run(Command::new("g++").args(flags).arg(self.path()).arg("-o").arg(&program));
                program
            }
            "awaits.rs" => {
                let package = folder.join("package");
                std::fs::create_dir_all(package.join("src")).unwrap();
                std::fs::copy(self.path(), package.join("src/main.rs")).unwrap();
                std::fs::write(package.join("Cargo.toml"), PACKAGE).unwrap();
                let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
                std::fs::copy(workspace, package.join("Cargo.lock")).unwrap();
                let flags = format!("--sysroot={}", sysroot(folder).display());
                let mut cargo = Command::new("cargo");
                cargo.current_dir(&package).arg("build").env("RUSTFLAGS", flags);
                run(cargo.env("CARGO_TARGET_DIR", folder.join("target")));
                folder.join("target/debug/program")
            }
            _ => {
                let flags = ["--edition=2024", "--crate-name=program", "-Cdebuginfo=2", "-Copt-level=1"];
                let mut rustc = Command::new("rustc");
                rustc.args(flags).arg("-Cpanic=abort").arg("--sysroot").arg(sysroot(folder));
                run(rustc.arg(self.path()).arg("-o").arg(&program));
                program
            }
        }
    }
}

/// Rust's standard library without debug information, which nothing here needs.
fn sysroot(folder: &Path) -> PathBuf {
    let of_rustc = run(Command::new("rustc").args(["--print", "target-libdir"]));
    let of_rustc = Path::new(of_rustc.trim());
    let target = of_rustc.parent().and_then(Path::file_name).unwrap();
    let libraries = folder.join("sysroot/lib/rustlib").join(target).join("lib");
    std::fs::create_dir_all(&libraries).unwrap();
    for entry in std::fs::read_dir(of_rustc).unwrap() {
        let path = entry.unwrap().path();
        let copy = libraries.join(path.file_name().unwrap());
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("rlib") => drop(run(Command::new("objcopy").arg("--strip-debug").arg(&path).arg(copy))),
            Some("rmeta") => drop(std::fs::copy(&path, copy).unwrap()),
            _ => (),
        }
    }
    folder.join("sysroot")
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
