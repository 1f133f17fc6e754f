//! `annotate`: source lines with their times, for sources in all supported places.

use crate::support::samples::recorded;
use crate::support::{Place, Terminal, stackglass, text};
use std::fs;
use std::path::Path;

const SOURCE: &str = include_str!("../../demo/src/lib.rs");

/// The number of the first source line that contains this text.
fn line_of(what: &str) -> usize {
    SOURCE.lines().position(|line| line.contains(what)).unwrap() + 1
}

#[test]
fn hot_lines_have_numbers_and_the_rest_is_folded() {
    let place = recorded();
    let printed = place.stdout_of(&["annotate", "--file", "demo/src/lib.rs", "--cols", "100"]);
    let row = |what: &str| {
        let number = format!(" {}  ", line_of(what));
        printed.lines().find(|line| line.contains(&number) && line.contains(what))
    };
    let hot = row("field[i] = (field[i - 1]").unwrap_or_else(|| panic!("{printed}"));
    let share: f64 = hot.split_whitespace().next().unwrap().parse().unwrap();
    assert!((5.0..95.0).contains(&share), "two thirds of one of the busy threads: {hot}");
    assert!(row("//! The program that").is_none(), "{printed}");
    assert!(printed.contains("⋮") && printed.contains("    %    ms  own ms"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
    let more = place.stdout_of(&["annotate", "--file", "demo/src/lib.rs", "--context", "400"]);
    assert!(more.lines().count() > SOURCE.lines().count() && !more.contains("⋮"), "{more}");
    let asleep = place.stdout_of(&["annotate", "--asleep", "--file", "demo/src/lib.rs"]);
    assert!(asleep.contains("thread::sleep(Duration::from_millis(50))"), "{asleep}");
}

#[test]
fn files_are_chosen_by_parts_of_their_paths() {
    let place = recorded();
    for pattern in ["lib.rs", "src/lib.rs", "@stackglass-demo", "l?b.rs", "*/lib.rs"] {
        let printed = place.stdout_of(&["annotate", "--file", pattern]);
        assert!(printed.contains("@stackglass-demo/src/lib.rs"), "{pattern}: {printed}");
    }
    for pattern in ["ib.rs", "@stackglass-dem", "/src/lib.rs"] {
        let message = place.refused(&["annotate", "--file", pattern]);
        assert!(message.contains(&format!("`{pattern}`")), "{message}");
    }
}

/// A C program with line information, in a folder that may be removed.
fn c_program(place: &Place, folder: &str) {
    fs::create_dir(place.file(folder)).unwrap();
    let source = "int main(void) {\n    volatile unsigned long sum = 0;\n    \
                  for (unsigned long i = 0; i < 300000000; i++)\n        sum += i;\n    return 0;\n}\n";
    fs::write(place.file(folder).join("busy.c"), source).unwrap();
    let built = std::process::Command::new("cc")
        .args(["-g", "-O0", "-o", "busy"])
        .arg(place.file(folder).join("busy.c"))
        .current_dir(place.path())
        .status();
    assert!(built.is_ok_and(|status| status.success()), "a C compiler is there");
    assert!(place.run(["record", "-q", "-o", "c.glass", "--", "./busy"]).status.success());
}

#[test]
fn sources_that_are_newer_or_gone_are_told_of() {
    let place = Place::new();
    c_program(&place, "src");
    let printed = place.stdout_of(&["annotate"]);
    assert!(printed.contains("sum += i;") && !printed.contains("changed since"), "{printed}");
    let file = place.file("src").join("busy.c");
    let now = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    fs::File::options().write(true).open(&file).unwrap().set_modified(now).unwrap();
    let printed = place.stdout_of(&["annotate"]);
    assert!(printed.contains("changed since the recording") && printed.contains("sum += i;"), "{printed}");
    fs::write(&file, "int main(void);\n").unwrap();
    let printed = place.stdout_of(&["annotate"]);
    assert!(printed.contains("[main]"), "a line beyond the end has its function: {printed}");
    fs::remove_file(&file).unwrap();
    let printed = place.stdout_of(&["annotate"]);
    // A stack may be in the C library, whose sources are not here either.
    assert!(printed.contains("not found here") && printed.contains("busy.c"), "{printed}");
    let printed = place.stdout_of(&["annotate", "--file", "busy.c"]);
    assert!(printed.contains("not found here") && printed.contains("[main]"), "{printed}");
    fs::create_dir(&file).unwrap();
    assert!(place.stdout_of(&["annotate", "--file", "busy.c"]).contains("not found here"));
}

/// A recording of the bundled program as if it had been built elsewhere.
fn moved(place: &Place, from: &str, to: &str) {
    let mut recording = place.recording("r.glass");
    let locations = recording.stacks.locations().len() as u32;
    for id in (0..locations).map(stackglass_profile::LocationId) {
        let mut frames: Vec<_> = recording.symbols.frames_of(id).cloned().collect();
        for frame in &mut frames {
            frame.file = frame.file.replace(from, to).into();
        }
        recording.symbols.set(id, frames);
    }
    let short =
        stackglass_profile::ShortPath { prefix: "@stackglass-demo".into(), rest: "src/lib.rs".into() };
    recording.symbols.set_short_path(format!("{to}/src/lib.rs").into(), short);
    stackglass_files::write(place.file("moved.glass"), &recording).unwrap();
}

#[test]
fn sources_are_found_where_this_machine_has_them() {
    let place = recorded();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo").canonicalize().unwrap();
    let lib = "fn on_this_machine() {}\n".repeat(300);

    // A crate that Cargo fetched, under another home.
    moved(&place, demo.to_str().unwrap(), "/home/ci/.cargo/registry/src/index.crates.io-1/demo-1.2.3");
    let fetched = place.file("cargo/registry/src/index.crates.io-9/demo-1.2.3/src");
    fs::create_dir_all(&fetched).unwrap();
    fs::write(fetched.join("lib.rs"), &lib).unwrap();
    let annotate = |variables: &[(&str, &Path)], folder: &Path| {
        let mut command = place.stackglass(["annotate", "--file", "lib.rs"]);
        command.arg(place.file("moved.glass")).envs(variables.iter().copied()).current_dir(folder);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let cargo = place.file("cargo");
    let printed = annotate(&[("CARGO_HOME", &cargo)], place.path());
    assert!(printed.contains("on_this_machine") && printed.contains("read from"), "{printed}");
    let printed = annotate(&[("CARGO_HOME", place.path())], place.path());
    assert!(printed.contains("not found here"), "{printed}");

    // The standard library of a toolchain that has its sources.
    moved(&place, demo.to_str().unwrap(), "/rustc/0123456789abcdef/library/std");
    let rustlib = place.file("rustup/toolchains/t/lib/rustlib");
    fs::create_dir_all(rustlib.join("src/rust/library/std/src")).unwrap();
    fs::write(rustlib.join("src/rust/library/std/src/lib.rs"), &lib).unwrap();
    fs::write(rustlib.join("multirust-channel-manifest.toml"), "hash = \"0123456789abcdef\"").unwrap();
    let rustup = place.file("rustup");
    assert!(annotate(&[("RUSTUP_HOME", &rustup)], place.path()).contains("on_this_machine"));

    // This package, built in another folder.
    moved(&place, demo.to_str().unwrap(), "/build/elsewhere");
    let printed = annotate(&[], &demo.join("src"));
    assert!(printed.contains("field[i] = ") && printed.contains("read from"), "{printed}");
    assert!(annotate(&[], place.path()).contains("not found here"));
}

#[test]
fn what_has_no_lines_is_said() {
    let place = Place::new();
    fs::write(place.file("s.folded"), "main;f 3\n").unwrap();
    assert!(place.refused(&["annotate", "s.folded"]).contains("-g1"));
    assert!(
        place
            .run(["record", "-q", "--sampler", "preload", "-o", "none.glass", "--", "true"])
            .status
            .success()
    );
    assert!(place.refused(&["annotate", "none.glass"]).contains("line-tables-only"));
}

#[test]
fn a_terminal_sees_colours() {
    let place = recorded();
    let (status, printed) = Terminal::start(place.stackglass(["annotate", "--file", "lib.rs"])).end();
    assert_eq!(status, Some(0));
    assert!(printed.contains("\x1b[1m") && printed.contains("smooth"), "{printed}");
    assert!(!stackglass().is_empty());
}
