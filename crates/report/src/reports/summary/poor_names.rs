//! Notes on modules with much own time whose functions or lines have no names, and what helps, by language.

use super::interpreters;
use super::shares::{self, CONSIDERABLE, NOTICEABLE};
use crate::kinds;
use crate::order;
use crate::text::numbers::percent_text;
use stackglass_profile::frame::file_name;
use stackglass_profile::symbols::{Language, Missing, ModuleNote};
use stackglass_profile::{Recording, sanitize};

/// Number of notes.
const NOTES: usize = 3;

/// Modules with much own time and no names of functions or lines.
pub(super) fn poor_names(recording: &Recording, cpu: u64) -> Vec<String> {
    // By module: all own time, and that in functions without a name. A stripped library still names what it exports.
    let mut times = vec![[0_u64; 2]; recording.modules.len()];
    for sample in recording.samples.iter().filter(|sample| sample.state.uses_cpu()) {
        let Some((_, leaf)) = recording.stacks.frame(sample.stack) else { continue };
        if let Some(module) = recording.stacks.location(leaf).module
            && let Some(time) = times.get_mut(module.0 as usize)
        {
            let mut frames = recording.symbols.frames_of(leaf);
            let is_named = frames.any(|frame| !frame.func.is_empty() && frame.start_as_name().is_none());
            time[0] += sample.time.0;
            time[1] += if is_named { 0 } else { sample.time.0 };
        }
    }
    let mut notes: Vec<(u64, String)> = Vec::new();
    for note in recording.symbols.notes().iter().filter(|note| !kinds::is_recorder(&note.module)) {
        let same = recording.modules.iter().position(|module| module.path == note.module);
        let [all, nameless] = same.map_or([0; 2], |index| times[index]);
        let time = if note.missing == Missing::Names { nameless } else { all };
        let least = if note.missing == Missing::DebugInfo { CONSIDERABLE } else { NOTICEABLE };
        if time == 0 || (time as f64) < cpu as f64 * least || interpreters::is_hinted(recording, &note.module)
        {
            continue;
        }
        let program = recording.processes.iter().any(|process| process.exe == note.module);
        let what = advice(note, program && !is_packaged(&note.module));
        notes.push((time, format!("{} of {}: {what}", percent_text(time, cpu), shares::whole(recording))));
    }
    notes.sort_by(|(a, _), (b, _)| order::longest_first(*a, *b));
    notes.into_iter().take(NOTES).map(|(_, note)| note).collect()
}

/// What a module lacks, and how to get it. `readers_own`: the reader can build it again.
fn advice(note: &ModuleNote, readers_own: bool) -> String {
    let name = sanitize(file_name(&note.module));
    let lines = match note.language {
        Language::Rust => "set debug = \"line-tables-only\" under [profile.release]",
        Language::C => "compile with -g",
        Language::Go => "build without -ldflags=-w",
        Language::Unknown => "compile it with debug information (-g for most compilers)",
    };
    let names = match note.language {
        Language::Rust => "set strip = false and debug = \"line-tables-only\" under [profile.release]",
        Language::C => "compile with -g, and do not strip it (linker flag -s)",
        Language::Go => "build without -ldflags=-s",
        Language::Unknown => "do not strip it, and compile it with debug information (-g for most compilers)",
    };
    match (note.missing, readers_own) {
        (Missing::DebugInfo, true) => {
            format!("{name} has no line tables, so inlined functions and lines are missing: {lines}")
        }
        (Missing::DebugInfo, false) => {
            format!("{name} has no line tables: {PACKAGE}")
        }
        (Missing::Names, true) => {
            format!("{name} is stripped, so functions are named by their addresses: {names}")
        }
        (Missing::Names, false) => {
            format!("{name} is stripped, so only exported functions have names: {PACKAGE}")
        }
        (Missing::File, _) => format!("{name} could not be read, so its functions have no names"),
        (Missing::Changed, _) => {
            format!("{name} has changed since it was profiled, so its functions have no names: record again")
        }
    }
}

/// Where to get debug symbols of installed programs and libraries.
const PACKAGE: &str =
    "install its -dbgsym or -debuginfo package, or set DEBUGINFOD_URLS=https://debuginfod.elfutils.org";

/// Whether a file belongs to the system, so that the reader cannot rebuild it.
fn is_packaged(path: &str) -> bool {
    let path = path.strip_prefix("/usr").unwrap_or(path);
    ["/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/", "/libexec/", "/games/"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packaged_programs() {
        for path in ["/usr/bin/python3.11", "/bin/xz", "/usr/lib/jvm/bin/java", "/usr/libexec/cc1"] {
            assert!(is_packaged(path), "{path}");
        }
        for path in ["/usr/local/bin/tool", "/home/me/bin/tool", "/srv/server", "/library/tool", "server"] {
            assert!(!is_packaged(path), "{path}");
        }
    }

    #[test]
    fn advice_is_in_the_words_of_the_language() {
        for (language, words) in [
            (Language::Rust, "[profile.release]"),
            (Language::C, "-g"),
            (Language::Go, "-ldflags"),
            (Language::Unknown, "-g for most compilers"),
        ] {
            for missing in [Missing::DebugInfo, Missing::Names] {
                let text = advice(&ModuleNote { module: "/srv/server".into(), missing, language }, true);
                assert!(text.contains(words), "{text}");
                assert_eq!(text.contains("profile.release"), language == Language::Rust, "{text}");
            }
        }
    }
}
