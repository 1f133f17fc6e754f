//! Builds the preload library that is embedded in the command.
//!
//! The library runs inside programs that do not cooperate. It is therefore always built the same way (optimised, stripped,
//! aborting instead of unwinding), whatever profile, flags, wrappers or lints the command itself is built with. A nested
//! Cargo with a target folder of its own does that.
//!
//! The library's crates lie beside this one: in the project, in Cargo's folder of unpacked packages, and in a vendored folder.
//! Their folders have other names there, and their manifests may need the project's, so manifests are written here.
//! Nothing is downloaded, since the command depends on all these crates.

mod loaders;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library is built for glibc, even if the command is linked to musl.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// If set, the library also names the libraries that glibc before 2.34 has `dlsym` and `pthread_key_create` in.
/// `cargo xtask dist` sets it.
const OLD_GLIBC: &str = "STACKGLASS_OLD_GLIBC";
/// The crates of the library, with their dependencies.
const CRATES: [(&str, &[&str]); 8] = [
    ("wire", &[]),
    ("unwind", &["libc"]),
    ("host", &["libc", "unwind", "wire"]),
    ("proc-text", &[]),
    ("sampling", &["proc-text", "wire"]),
    ("heap", &["libc", "host", "sampling", "unwind", "wire"]),
    ("sampler", &["libc", "host", "proc-text", "sampling", "unwind", "wire"]),
    ("preload", &["libc", "heap", "host", "sampler", "wire"]),
];

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it"));
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-env-changed={OLD_GLIBC}");

    let workspace = out.join("workspace");
    write_manifests(&here, &workspace).expect("OUT_DIR can be written to");
    let library = build(&workspace, &out.join("preload"));
    let mut bytes = fs::read(&library).expect("Cargo has just built it");
    let library = out.join("libstackglass.so");
    loaders::serve_others(&mut bytes);
    fs::write(&library, &bytes).expect("OUT_DIR can be written to");
    let mut hash = DefaultHasher::new();
    bytes.hash(&mut hash);
    println!("cargo::rustc-env=STACKGLASS_LIBRARY={}", library.display());
    println!("cargo::rustc-env=STACKGLASS_LIBRARY_HASH={:016x}", hash.finish());
}

/// Makes a workspace of the crates, with the versions of the lock file that comes with the command.
fn write_manifests(here: &Path, workspace: &Path) -> std::io::Result<()> {
    fs::create_dir_all(workspace)?;
    fs::write(workspace.join("Cargo.toml"), "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n")?;
    let locks = [here.join("Cargo.lock"), here.join("../../Cargo.lock")];
    if let Some(lock) = locks.iter().find(|lock| lock.exists()) {
        fs::copy(lock, workspace.join("Cargo.lock"))?;
    }
    let libc = match libc_beside(here) {
        Some(folder) => format!("libc = {{ path = {folder:?} }}"),
        None => "libc = \"0.2\"".to_owned(),
    };
    for (name, dependencies) in CRATES {
        let folder = workspace.join(name);
        fs::create_dir_all(&folder)?;
        let kind = if name == "preload" { "cdylib" } else { "lib" };
        let source = sources_of(here, name).join("lib.rs");
        let mut manifest = format!(
            "[package]\nname = \"stackglass-{name}\"\nversion = \"{}\"\nedition = \"2024\"\n\n\
             [lib]\npath = {source:?}\ncrate-type = [{kind:?}]\n\n[dependencies]\n",
            env!("CARGO_PKG_VERSION")
        );
        for dependency in dependencies {
            manifest += &match *dependency {
                "libc" => format!("{libc}\n"),
                ours => format!("stackglass-{ours} = {{ path = \"../{ours}\" }}\n"),
            };
        }
        fs::write(folder.join("Cargo.toml"), manifest)?;
    }
    Ok(())
}

/// The folder with the sources of one of the library's crates.
fn sources_of(here: &Path, name: &str) -> PathBuf {
    let beside = here.parent().expect("a package lies in a folder");
    let version = env!("CARGO_PKG_VERSION");
    let folders =
        [name.replace('-', "_"), format!("stackglass-{name}-{version}"), format!("stackglass-{name}")];
    let mut sources = folders.iter().map(|folder| beside.join(folder).join("src"));
    let sources = sources.find(|sources| sources.is_dir()).unwrap_or_else(|| {
        panic!(
            "the package stackglass-{name} {version} is not in {}: build from the whole project",
            beside.display()
        )
    });
    println!("cargo::rerun-if-changed={}", sources.display());
    sources
}

/// The newest `libc` 0.2 beside this package, where Cargo unpacks the packages of a registry or vendors them.
fn libc_beside(here: &Path) -> Option<PathBuf> {
    let version = |folder: &Path| -> Option<u32> {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        let package = manifest.split("\n[package]").nth(1)?;
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key))?;
            line.strip_prefix(" = \"")?.strip_suffix('"')
        };
        (value("name")? == "libc").then(|| value("version")?.strip_prefix("0.2.")?.parse().ok())?
    };
    let folders = fs::read_dir(here.parent()?).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let named = |folder: &PathBuf| {
        let name = folder.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name == "libc" || name.starts_with("libc-0.2."))
    };
    folders
        .filter(named)
        .filter_map(|folder| Some((version(&folder)?, folder)))
        .max()
        .map(|(_, folder)| folder)
}

/// Builds the library. Tries without the network first; only a copy of the project without `libc` needs it.
fn build(workspace: &Path, target_folder: &Path) -> PathBuf {
    let offline =
        cargo_build(workspace, target_folder).arg("--offline").output().expect("Cargo can be started");
    if !offline.status.success() {
        let online = cargo_build(workspace, target_folder).output().expect("Cargo can be started");
        assert!(
            online.status.success(),
            "the preload library does not build:\n{}",
            String::from_utf8_lossy(&online.stderr)
        );
    }
    target_folder.join(TARGET).join("release/libstackglass_preload.so")
}

/// The call of Cargo, shielded from settings of the outer build.
fn cargo_build(workspace: &Path, target_folder: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("Cargo sets it"));
    cargo.args(["build", "--quiet", "--release", "--lib", "--target", TARGET]);
    cargo.arg("--manifest-path").arg(workspace.join("preload/Cargo.toml"));
    cargo.arg("--target-dir").arg(target_folder);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(shapes_a_build) {
            cargo.env_remove(name);
        }
    }
    // Set, these also override configuration files. Lints are for the crates' own builds.
    let mut flags = vec!["--cap-lints=allow"];
    if std::env::var_os(OLD_GLIBC).is_some() {
        flags.extend(["-Clink-arg=-Wl,--no-as-needed", "-Clink-arg=-l:libpthread.so.0"]);
        flags.extend(["-Clink-arg=-l:libdl.so.2", "-Clink-arg=-Wl,--as-needed"]);
    }
    for (name, value) in [
        ("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f").as_str()),
        ("RUSTC_WRAPPER", ""),
        ("RUSTC_WORKSPACE_WRAPPER", ""),
    ] {
        cargo.env(name, value);
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
    cargo
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
