//! Checks whether a Cargo profile has debug information, and names the setting that adds it.
//!
//! Sources are read in the order of Cargo: the environment, `config.toml` files from the current folder upwards, the
//! manifest of the workspace; then the same for the profile that it inherits from. Cargo has no stable command for this
//! (`cargo config get` is unstable).
//! Rules: <https://doc.rust-lang.org/cargo/reference/profiles.html>.

use cargo_metadata::{Metadata, MetadataCommand};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Longest chain of inheritance that is followed.
const MOST_INHERITED: usize = 8;

/// An environment variable for Cargo.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Setting {
    /// Its name.
    pub(crate) variable: String,
    /// Its value.
    pub(crate) value: &'static str,
}

/// The setting that gives `profile` line tables; `None` if the profile already has debug information or sets a
/// particular kind of it.
pub(crate) fn missing_line_tables(profile: &str, manifest: Option<&Path>) -> Option<Setting> {
    let tables = settings(manifest);
    let from_environment = |profile: &str| std::env::var(variable(profile)).ok();
    if has_debug_info(profile, &tables, from_environment) {
        return None;
    }
    Some(Setting { variable: variable(profile), value: "line-tables-only" })
}

/// `cargo metadata` without dependencies; `None` if Cargo fails (the build then prints the reason).
pub(crate) fn metadata(manifest: Option<&Path>) -> Option<Metadata> {
    let mut command = MetadataCommand::new();
    command.no_deps();
    if let Some(manifest) = manifest {
        command.manifest_path(manifest);
    }
    command.exec().ok()
}

fn variable(profile: &str) -> String {
    format!("CARGO_PROFILE_{}_DEBUG", profile.to_uppercase().replace('-', "_"))
}

/// Configuration files and the manifest, in order of priority.
fn settings(manifest: Option<&Path>) -> Vec<Table> {
    let mut files: Vec<PathBuf> = Vec::new();
    let here = std::env::current_dir().unwrap_or_default();
    for folder in here.ancestors() {
        files.extend(["config.toml", "config"].map(|name| folder.join(".cargo").join(name)));
    }
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    files.extend(home.map(|home| home.join("config.toml")));
    files.extend(metadata(manifest).map(|metadata| metadata.workspace_root.join("Cargo.toml").into()));
    files.iter().filter_map(|file| std::fs::read_to_string(file).ok()?.parse().ok()).collect()
}

fn has_debug_info(profile: &str, tables: &[Table], environment: impl Fn(&str) -> Option<String>) -> bool {
    let mut profile = profile.to_string();
    for _ in 0..MOST_INHERITED {
        if let Some(value) = environment(&profile) {
            return !is_off(&Value::String(value));
        }
        let entry =
            |key: &str| tables.iter().find_map(|table| table.get("profile")?.get(profile.as_str())?.get(key));
        if let Some(debug) = entry("debug") {
            return !is_off(debug);
        }
        let inherits = entry("inherits").and_then(Value::as_str).map(str::to_string);
        profile = match (inherits, profile.as_str()) {
            (_, "dev") => return true,
            (_, "release") => return false,
            (_, "test") => "dev".into(),
            (_, "bench") => "release".into(),
            (Some(parent), _) => parent,
            // Unknown: Cargo will reject it.
            (None, _) => return true,
        };
    }
    true
}

/// Whether the value means "no debug information".
fn is_off(debug: &Value) -> bool {
    match debug {
        Value::Boolean(on) => !on,
        Value::Integer(level) => *level == 0,
        Value::String(kind) => matches!(kind.as_str(), "none" | "0" | "false"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(profile: &str, manifest: &str) -> bool {
        has_debug_info(profile, &[manifest.parse().unwrap()], |_| None)
    }

    #[test]
    fn the_defaults_are_cargos() {
        assert!(has("dev", "") && has("test", ""));
        assert!(!has("release", "") && !has("bench", ""));
    }

    #[test]
    fn manifests_are_read_through_inheritance() {
        assert!(has("release", "[profile.release]\ndebug = 1"));
        assert!(has("bench", "[profile.release]\ndebug = 'line-tables-only'"));
        assert!(!has("dev", "[profile.dev]\ndebug = false"));
        assert!(!has("dist", "[profile.dist]\ninherits = 'release'"));
        assert!(has("dist", "[profile.dist]\ninherits = 'release'\ndebug = true"));
        assert!(!has("release", "[profile.release]\ndebug = 'none'"));
        assert!(
            has("a", "[profile.a]\ninherits = 'b'\n[profile.b]\ninherits = 'a'"),
            "Cargo rejects it later"
        );
    }

    #[test]
    fn the_environment_comes_first() {
        let manifest: Table = "[profile.release]\ndebug = true".parse().unwrap();
        assert!(!has_debug_info("release", &[manifest], |_| Some("0".into())));
        assert_eq!(variable("my-profile"), "CARGO_PROFILE_MY_PROFILE_DEBUG");
    }
}
