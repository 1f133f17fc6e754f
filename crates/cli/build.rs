//! Builds the preload library that travels inside the command.
//!
//! It goes into programs that know nothing of us, so it is always built the same way (optimised,
//! stripped, aborting instead of unwinding), whatever profile, flags, wrappers or lints the
//! command itself is built with. A nested Cargo with a target folder of its own does that.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library is made for glibc, also when the command is linked to musl.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// What the library is made of, beside itself.
const ROOMS: [&str; 5] = ["wire", "unwind", "host", "sampler", "preload"];

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it"));
    let crates = here.parent().expect("crates/cli lies in crates");
    for room in ROOMS {
        println!("cargo::rerun-if-changed={}", crates.join(room).join("src").display());
        println!("cargo::rerun-if-changed={}", crates.join(room).join("Cargo.toml").display());
    }
    println!("cargo::rerun-if-changed=build.rs");

    let library = build(&crates.join("preload/Cargo.toml"), &out.join("preload"));
    let bytes = std::fs::read(&library).expect("Cargo has just built it");
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
    // Set and empty: what configuration files say is overruled as well.
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

/// Environment variables that would change how the library is built.
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
