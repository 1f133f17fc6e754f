//! Installs the command, and builds a program with the crate, from the packages of this project.
//!
//! Cargo puts the packages into a registry in the target folder. The crates of other projects are added to it, from what
//! Cargo downloaded for the workspace. An empty Cargo home, which knows no other registry, then stands for a new user.

use super::{Extent, Tally};
use crate::run::{cargo, output, root, succeeds, target_folder};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of a user of the crate. It lies in the target folder, and is no part of the workspace around that.
const MANIFEST: &str = "\
[package]
name = \"user\"
version = \"0.1.0\"
edition = \"2024\"

[dependencies]
stackglass = { version = \"0.1\", default-features = false, features = [\"allocs\"] }

[workspace]
";
const PROGRAM: &str = "\
fn work() -> u64 {
    (0..300_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n))
}

fn main() {
    stackglass::profile!(work());
    stackglass::print();
}
";

/// Three checks: the packages, the command, the crate. The command is built without optimisation, except in a full run.
pub fn run(extent: Extent) -> Result<Tally> {
    let place = target_folder().join("registry");
    let home = place.join("home");
    // Cargo takes a version that it has built once as unchanged, so nothing may be left.
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    for folder in [&home, &place.join("user")] {
        fs::create_dir_all(folder)?;
    }
    let package = ["package", "--quiet", "--workspace", "--no-verify", "--allow-dirty", "--target-dir"];
    let mut package = cargo(&package);
    // Programs for tests, which have the sources or a library of another package.
    package.arg(&place);
    for program in ["awaits", "awaits-bare", "awaits-lines", "awaits-wrapped"] {
        package.args(["--exclude", program]);
    }
    if !succeeds(&mut package)? {
        bail!("`cargo package --workspace` fails");
    }
    fill(&place)?;
    fs::write(
        home.join("config.toml"),
        format!(
            "[source.crates-io]\nreplace-with = \"packages\"\n\n[source.packages]\nlocal-registry = {:?}\n",
            place.join("packages")
        ),
    )?;
    let mut tally = Tally::one(true);
    for check in [command_is_installed(&place, extent), crate_is_usable(&place)] {
        if let Err(error) = &check {
            eprintln!("{error:#}");
        }
        tally.passed += u64::from(check.is_ok());
        tally.failed += u64::from(check.is_err());
    }
    fs::remove_dir_all(place.join("built"))?;
    Ok(tally)
}

/// Makes the registry: the packages as Cargo left them, and each crate of the lock file that Cargo knows.
fn fill(place: &Path) -> Result<()> {
    let registry = place.join("packages");
    copy_folder(&place.join("package/tmp-registry"), &registry).context("Cargo left no registry")?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let home = home.context("there is no folder of Cargo")?.join("registry");
    let lock: toml::Table = toml::from_str(&fs::read_to_string(root().join("Cargo.lock"))?)?;
    let packages = lock.get("package").and_then(|list| list.as_array());
    for package in packages.context("Cargo.lock has no packages")? {
        let text = |key: &str| package.get(key).and_then(|value| value.as_str());
        // Those of the workspace have none.
        if text("checksum").is_none() {
            continue;
        }
        let named = text("name").zip(text("version"));
        let (name, version) = named.context("a package in Cargo.lock has no name or version")?;
        let place = match name.len() {
            1 | 2 => format!("{}/{name}", name.len()),
            3 => format!("3/{}/{name}", &name[..1]),
            _ => format!("{}/{}/{name}", &name[..2], &name[2..4]),
        };
        // Crates for other systems are described but were never downloaded.
        let entry = in_any(&home.join("index"), &format!(".cache/{place}"))
            .and_then(|entry| described(&entry, version))
            .with_context(|| format!("Cargo's index does not know {name} {version}"))?;
        let index = registry.join("index").join(place);
        fs::create_dir_all(index.parent().context("a file of the index lies in a folder")?)?;
        let before = fs::read_to_string(&index).unwrap_or_default();
        fs::write(&index, format!("{before}{entry}\n"))?;
        let file = format!("{name}-{version}.crate");
        if let Some(archive) = in_any(&home.join("cache"), &file) {
            fs::copy(archive, registry.join(file))?;
        }
    }
    Ok(())
}

/// The path in the folder of one of Cargo's registries.
fn in_any(registries: &Path, path: &str) -> Option<PathBuf> {
    let registries = fs::read_dir(registries).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    registries.map(|registry| registry.join(path)).find(|path| path.exists())
}

/// The description of a version in a file of Cargo's index: a line of JSON between zero bytes.
fn described(entry: &Path, version: &str) -> Option<String> {
    let bytes = fs::read(entry).ok()?;
    let mut texts = bytes.split(|byte| *byte == 0).filter_map(|text| str::from_utf8(text).ok());
    let is_it = |text: &&str| {
        serde_json::from_str::<Value>(text).is_ok_and(|entry| entry["vers"].as_str() == Some(version))
    };
    texts.find(is_it).map(str::to_owned)
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &copy)?;
        } else {
            fs::copy(entry.path(), copy)?;
        }
    }
    Ok(())
}

/// Cargo as a new user has it, without network.
fn new_cargo(place: &Path, arguments: &[&str]) -> Command {
    let mut cargo = cargo(arguments);
    cargo.env("CARGO_HOME", place.join("home")).env("CARGO_TARGET_DIR", place.join("built"));
    cargo.env("CARGO_NET_OFFLINE", "true").current_dir(place);
    cargo
}

fn command_is_installed(place: &Path, extent: Extent) -> Result<()> {
    let mut install = new_cargo(place, &["install", "--quiet", "--locked", "stackglass", "--root"]);
    install.arg(place.join("installed"));
    if extent == Extent::Quick {
        install.arg("--debug");
    }
    if !succeeds(&mut install)? {
        bail!("`cargo install stackglass` fails");
    }
    let programs = place.join("installed/bin");
    let recording = place.join("user/demo.glass");
    let mut record = Command::new(programs.join("stackglass"));
    record.args(["record", "--sampler", "preload", "-o"]).arg(&recording).arg("--");
    output(record.arg(programs.join("stackglass")).args(["demo-workload", "--time", "1s"]))?;
    let report = output(Command::new(programs.join("stackglass")).arg("print").arg(&recording))?;
    if !report.contains("stackglass_demo::") {
        bail!("the installed command does not see the functions of its own example:\n{report}");
    }
    output(Command::new(programs.join("cargo-stackglass")).args(["stackglass", "--help"]))?;
    Ok(())
}

fn crate_is_usable(place: &Path) -> Result<()> {
    let user = place.join("user");
    fs::create_dir_all(user.join("src"))?;
    fs::write(user.join("Cargo.toml"), MANIFEST)?;
    fs::write(user.join("src/main.rs"), PROGRAM)?;
    let mut run = new_cargo(place, &["run", "--quiet", "--manifest-path"]);
    let report = output(run.arg(user.join("Cargo.toml")).env("COLUMNS", "120"))?;
    if !report.contains("user::work") {
        bail!("the program does not see its own function:\n{report}");
    }
    Ok(())
}
