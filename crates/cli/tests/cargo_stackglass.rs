//! `cargo stackglass` builds and records with the conventions of Cargo.

use crate::support;
use crate::support::{Place, text};
use std::path::Path;
use std::process::{Command, Output};

fn project(manifest: &str, files: &[(&str, &str)]) -> Place {
    let place = Place::new();
    std::fs::write(place.file("Cargo.toml"), manifest).unwrap();
    for (name, content) in files {
        let path = place.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    place
}

fn cargo_stackglass(place: &Place, arguments: &[&str]) -> Output {
    // The arguments that Cargo passes.
    Command::new(Path::new(support::stackglass()).with_file_name("cargo-stackglass"))
        .arg("stackglass")
        .args(arguments)
        .current_dir(place.path())
        .env("CARGO_TARGET_DIR", place.file("target"))
        .env_remove("CARGO_PROFILE_RELEASE_DEBUG")
        .output()
        .unwrap()
}

const BUSY: &str = r#"
#[inline(never)]
fn spin() -> u64 { (0..80_000_000u64).fold(0, |a, b| std::hint::black_box(a ^ b)) }
fn main() {
    spin();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!("{}", arguments.join("|"));
    std::process::exit(arguments.len() as i32);
}
"#;

const PACKAGE: &str = "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";

#[test]
fn the_packages_program_is_built_with_line_tables_and_recorded() {
    let place = project(PACKAGE, &[("src/main.rs", BUSY)]);
    let output = cargo_stackglass(&place, &["--", "--two", "words"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(text(&output.stdout), "--two|words\n");
    assert!(message.contains("CARGO_PROFILE_RELEASE_DEBUG=line-tables-only"), "{message}");
    let recording = place.recording("sample.glass");
    let spin =
        recording.symbols.frames().iter().find(|frame| frame.func.ends_with("spin")).expect("it was hot");
    assert!(spin.file.ends_with("src/main.rs") && spin.line > 0, "{spin:?}");
}

#[test]
fn targets_are_named_as_for_cargo_and_must_be_one() {
    let manifest = format!("{PACKAGE}\n[profile.release]\ndebug = 1\n");
    let test = "#[test]\nfn works() { assert!(std::path::Path::new(\"Cargo.toml\").exists()); }\n";
    let place = project(
        &manifest,
        &[
            ("src/bin/one.rs", BUSY),
            ("src/bin/two.rs", BUSY),
            ("examples/three.rs", BUSY),
            ("tests/four.rs", test),
        ],
    );
    let output = cargo_stackglass(&place, &[]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("one, two"), "{}", text(&output.stderr));
    let output = cargo_stackglass(&place, &["--bin", "two", "-o", "second.glass"]);
    assert!(output.status.success());
    assert!(!text(&output.stderr).contains("line-tables-only"), "the profile has debug information");
    assert!(place.file("second.glass").exists());
    assert!(cargo_stackglass(&place, &["--example", "three"]).status.success());
    assert!(place.file("three.glass").exists());
    let output = cargo_stackglass(&place, &["--test", "four"]);
    assert!(output.status.success(), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("1 passed"));
}

#[test]
fn a_failing_build_is_cargos_to_explain() {
    let place = project(PACKAGE, &[("src/main.rs", "fn main() { nonsense }")]);
    let output = cargo_stackglass(&place, &[]);
    assert_eq!(output.status.code(), Some(101));
    assert!(text(&output.stderr).contains("nonsense"));
    assert!(!place.file("sample.glass").exists());
}
