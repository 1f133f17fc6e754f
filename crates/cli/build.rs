//! Builds the preload library that is embedded in the command.
//!
//! The library runs inside programs that do not cooperate. It is therefore always built the same way (optimised, stripped,
//! aborting instead of unwinding), whatever profile, flags, wrappers or lints the command itself is built with. A nested
//! Cargo with a target folder of its own does that.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library is built for glibc, even if the command is linked to musl.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The crates whose changes require a new library.
const CRATES: [&str; 7] = ["wire", "unwind", "host", "heap", "sampling", "sampler", "preload"];

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it"));
    let crates = here.parent().expect("crates/cli lies in crates");
    for name in CRATES {
        println!("cargo::rerun-if-changed={}", crates.join(name).join("src").display());
        println!("cargo::rerun-if-changed={}", crates.join(name).join("Cargo.toml").display());
    }
    println!("cargo::rerun-if-changed=build.rs");

    let library = build(&crates.join("preload/Cargo.toml"), &out.join("preload"));
    let mut bytes = std::fs::read(&library).expect("Cargo has just built it");
    let library = out.join("libstackglass.so");
    drop_needed_loader(&mut bytes);
    std::fs::write(&library, &bytes).expect("OUT_DIR can be written to");
    let mut hash = DefaultHasher::new();
    bytes.hash(&mut hash);
    println!("cargo::rustc-env=STACKGLASS_LIBRARY={}", library.display());
    println!("cargo::rustc-env=STACKGLASS_LIBRARY_HASH={:016x}", hash.finish());
}

fn build(manifest: &Path, target_folder: &Path) -> PathBuf {
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("Cargo sets it"));
    cargo.args(["build", "--quiet", "--release", "--lib", "--locked", "--target", TARGET]);
    cargo.arg("--manifest-path").arg(manifest).arg("--target-dir").arg(target_folder);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(shapes_a_build) {
            cargo.env_remove(name);
        }
    }
    // Set but empty, these also override configuration files.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
        cargo.env(name, "");
    }
    for (name, value) in [
        ("PANIC", "abort"),
        ("OPT_LEVEL", "3"),
        ("LTO", "fat"),
        ("CODEGEN_UNITS", "1"),
        ("DEBUG", "false"),
        ("STRIP", "symbols"),
    ] {
        cargo.env(format!("CARGO_PROFILE_RELEASE_{name}"), value);
    }
    let output = cargo.output().expect("Cargo can be started");
    assert!(
        output.status.success(),
        "the preload library does not build:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    target_folder.join(TARGET).join("release/libstackglass_preload.so")
}

/// Removes glibc's dynamic linker from the list of needed libraries. A glibc program has it anyway. The loader of another
/// C library (musl), which inherits the environment, would not find it and refuse to start the program. The entry becomes
/// a `DT_DEBUG` (21), which loaders ignore in libraries.
fn drop_needed_loader(elf: &mut [u8]) {
    for at in entries_of_loader(elf) {
        elf[at..at + 16].fill(0);
        elf[at] = 21;
    }
}

/// The places in `PT_DYNAMIC` (type 2: pairs of words, up to a tag of 0) that name the dynamic linker: a
/// `DT_NEEDED` (1) holds an offset into the strings at `DT_STRTAB` (5). See elf(5).
fn entries_of_loader(elf: &[u8]) -> Vec<usize> {
    let word = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u16::from_le_bytes([elf[at], elf[at + 1]]) as usize;
    let segments: Vec<usize> = (0..half(56)).map(|i| word(32) as usize + i * half(54)).collect();
    let of_type = |kind: u8, at: usize| elf[at..at + 4] == [kind, 0, 0, 0];
    let list = *segments.iter().find(|at| of_type(2, **at)).expect("a library has a list of needs");
    let entries: Vec<usize> =
        (word(list + 8) as usize..).step_by(16).take_while(|at| word(*at) != 0).collect();
    let strings = entries.iter().find(|at| word(**at) == 5).map(|at| word(at + 8)).expect("names");
    let holds =
        |at: usize| of_type(1, at) && (word(at + 16)..word(at + 16) + word(at + 32)).contains(&strings);
    let load = *segments.iter().find(|at| holds(**at)).expect("names are loaded");
    let strings = (strings - word(load + 16) + word(load + 8)) as usize;
    let named = |at: usize| elf[strings + word(at + 8) as usize..].starts_with(b"ld-linux");
    entries.into_iter().filter(|at| word(*at) == 1 && named(*at)).collect()
}

/// Whether an environment variable would change how the library is built.
fn shapes_a_build(name: &str) -> bool {
    const EXACT: [&str; 12] = [
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_INCREMENTAL",
        "CARGO_TARGET_DIR",
        "CLIPPY_ARGS",
        "CLIPPY_CONF_DIR",
        "RUSTC",
        "RUSTC_LINKER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
        "RUSTDOC",
        "RUSTDOCFLAGS",
        "RUSTFLAGS",
    ];
    EXACT.contains(&name)
        || ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_", "CARGO_UNSTABLE_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}
