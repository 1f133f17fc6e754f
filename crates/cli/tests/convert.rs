//! `convert`: what it keeps, which losses it reports, and which files it never touches.

use crate::support::samples::{all_of_julia, julia, recorded};
use crate::support::{Place, Terminal, text};
use stackglass_files::folded;
use stackglass_files::jlprof::{self, Content};
use stackglass_profile::snapshots;
use stackglass_report::call_tree::StateFilter;
use stackglass_report::{Selection, add_unaccounted, merge_threads, name_stackless, unaccounted_cpu};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[test]
fn a_recording_becomes_what_other_tools_read() {
    let place = recorded();
    let recording = place.recording("r.glass");
    let output = place.run(["convert", "r.glass", "r.jlprof"]);
    let message = text(&output.stderr);
    assert!(output.status.success() && output.stdout.is_empty(), "{message}");
    assert!(message.contains("lost: processes, modules") && message.lines().count() == 1, "{message}");
    let samples = jlprof::read(place.file("r.jlprof")).and_then(Content::samples).unwrap();
    assert_eq!(samples.data, recording.data());

    let output = place.run(["convert", "r.glass", "r.folded"]);
    assert!(text(&output.stderr).contains("lost: files, lines"), "{}", text(&output.stderr));
    let mut expected = Vec::new();
    let mut on_cpu = recording.clone();
    let unaccounted = unaccounted_cpu(&on_cpu);
    Selection::new(StateFilter::Awake).keep_in(&mut on_cpu);
    name_stackless(&mut on_cpu);
    add_unaccounted(&mut on_cpu, unaccounted);
    merge_threads(&mut on_cpu);
    folded::write_to(&mut expected, &on_cpu).unwrap();
    assert_eq!(fs::read(place.file("r.folded")).unwrap(), expected);
    // Formats and names by flag, and through pipes.
    assert!(place.run(["convert", "r.glass", "stacks.txt", "--to", "folded"]).status.success());
    assert_eq!(fs::read(place.file("stacks.txt")).unwrap(), expected);
    let bytes = fs::read(place.file("r.glass")).unwrap();
    let piped = place.run_with_input(&["convert", "-", "-", "--to", "folded"], &bytes);
    assert_eq!(piped.stdout, expected);
    let piped = place.run_with_input(&["convert", "-", "-", "--to", "glass"], &bytes);
    fs::write(place.file("again.glass"), piped.stdout).unwrap();
    assert_eq!(place.recording("again.glass").samples, recording.samples);
}

#[test]
fn a_recording_and_what_was_made_of_it_count_the_same() {
    let place = recorded();
    let total = |file: &str| {
        let output = place.run(["print", file, "--format", "flat", "--c", "--wall"]);
        let report = text(&output.stdout);
        let line = report.lines().find(|line| line.starts_with("Total snapshots: "));
        let line = line.unwrap_or_else(|| panic!("{report}{}", text(&output.stderr)));
        line["Total snapshots: ".len()..].split('.').next().unwrap().parse::<u64>().unwrap()
    };
    let recording = place.recording("r.glass");
    let recorded = total("r.glass");
    // Folded stacks have a line for time without a stack, and round the time of all threads together.
    let mut as_stacks = recording.clone();
    name_stackless(&mut as_stacks);
    add_unaccounted(&mut as_stacks, unaccounted_cpu(&recording));
    merge_threads(&mut as_stacks);
    let of_stacks = snapshots(&as_stacks).into_iter().sum::<u64>();
    // That format has no state for time without a CPU.
    let of_julia = recorded - recording.unexpressed();
    assert!(of_julia > 0, "{recorded}");
    for (made, expected) in [("r.jlprof", of_julia), ("r.folded", of_stacks), ("again.glass", recorded)] {
        assert!(place.run(["convert", "r.glass", made]).status.success());
        if made == "r.folded" {
            assert!(place.run(["convert", "r.glass", made, "--wall"]).status.success());
        }
        assert_eq!(total(made), expected, "{made}");
    }
}

#[test]
fn folded_stacks_and_back_are_the_same() {
    let place = Place::new();
    let stacks = "main 4\nmain;f 3\nmain;f;g h 2\n";
    fs::write(place.file("a.folded"), stacks).unwrap();
    for through in ["b.glass", "b.jlprof"] {
        let output = place.run(["convert", "a.folded", through]);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "nothing is lost: {}",
            text(&output.stderr)
        );
        assert!(place.run(["convert", through, "c.folded"]).status.success());
        assert_eq!(fs::read_to_string(place.file("c.folded")).unwrap(), stacks, "{through}");
    }
}

#[test]
fn samples_of_julia_stay_what_they_are() {
    let place = Place::new();
    let mut read = 0;
    for file in all_of_julia() {
        let (from, name) = (file.to_str().unwrap(), file.file_name().unwrap().to_str().unwrap());
        let output = place.run(["convert", from, "b.jlprof"]);
        let Ok(before) = jlprof::read(&file).and_then(Content::samples) else {
            let message = text(&output.stderr);
            assert_eq!((output.status.code(), message.lines().count()), (Some(125), 1), "{name}: {message}");
            assert!(!place.file("b.jlprof").exists(), "{name}");
            continue;
        };
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        let after = jlprof::read(place.file("b.jlprof")).and_then(Content::samples).unwrap();
        assert_eq!((&after.data, after.magic), (&before.data, None), "{name}");
        assert_eq!(after.dictionary.addresses(), before.dictionary.addresses(), "{name}");
        fs::remove_file(place.file("b.jlprof")).unwrap();
        read += 1;
    }
    assert!(read >= 8, "{read}");
    for name in ["samples-basic.jlprof", "samples-inline.jlprof", "samples-recorded.jlprof"] {
        let file = julia(name);
        let output = place.run(["convert", file.to_str().unwrap(), "c.glass"]);
        assert!(text(&output.stderr).contains("lost: the clocks"), "{}", text(&output.stderr));
        let flat = ["--format", "flat", "--cols", "120", "--c"];
        let printed = |file: &str| place.stdout_of(&[&["print", file][..], &flat].concat());
        assert_eq!(printed("c.glass"), printed(file.to_str().unwrap()), "{name}");
    }
    let graph = julia("graph-basic.jlprof");
    let graph = graph.to_str().unwrap();
    for arguments in
        [&["convert", graph, "d.folded"][..], &["print", graph], &["info", graph], &["callers", "f", graph]]
    {
        let message = place.refused(arguments);
        assert!(message.contains("a flame graph (form 2 at byte 12)"), "{message}");
        assert!(message.contains("`stackglass flamegraph` draws it"), "{message}");
    }
}

#[test]
fn what_is_private_stays_private() {
    let place = Place::new();
    let mode = |name: &str| place.file(name).metadata().unwrap().mode() & 0o7777;
    let set =
        |name: &str, mode| fs::set_permissions(place.file(name), fs::Permissions::from_mode(mode)).unwrap();
    fs::write(place.file("a.folded"), "main 1\n").unwrap();
    set("a.folded", 0o600);
    for to in ["b.jlprof", "b.folded", "b.glass"] {
        assert!(place.run(["convert", "a.folded", to]).status.success());
        assert_eq!(mode(to), 0o600, "{to}");
    }
    let stdin = fs::File::open(place.file("a.folded")).unwrap();
    assert!(place.stackglass(["convert", "-", "c.folded"]).stdin(stdin).status().unwrap().success());
    assert_eq!(mode("c.folded"), 0o600);
    // From a public file: the mode that the umask gives. An existing file keeps its mode.
    set("a.folded", 0o644);
    fs::write(place.file("usual"), "").unwrap();
    assert!(place.run(["convert", "a.folded", "d.folded"]).status.success());
    assert_eq!(mode("d.folded"), mode("usual") & 0o644);
    for kept in [0o600, 0o640, 0o666] {
        set("d.folded", kept);
        assert!(place.run(["convert", "a.folded", "d.folded"]).status.success());
        assert_eq!(mode("d.folded"), kept);
    }
}

#[test]
fn the_input_is_never_overwritten() {
    let place = recorded();
    symlink("r.glass", place.file("link.glass")).unwrap();
    fs::hard_link(place.file("r.glass"), place.file("hard.folded")).unwrap();
    let before = (fs::read(place.file("r.glass")).unwrap(), place.file("r.glass").metadata().unwrap().ino());
    for (from, to) in [
        ("r.glass", "r.glass"),
        ("r.glass", "./r.glass"),
        ("r.glass", "link.glass"),
        ("link.glass", "r.glass"),
        ("r.glass", "hard.folded"),
    ] {
        let message = place.refused(&["convert", from, to]);
        assert!(message.contains("another file"), "{message}");
    }
    let after = (fs::read(place.file("r.glass")).unwrap(), place.file("r.glass").metadata().unwrap().ino());
    assert_eq!(after, before);
}

#[test]
fn what_cannot_be_converted_leaves_everything_as_it_was() {
    let place = Place::new();
    fs::write(place.file("b.folded"), "precious").unwrap();
    fs::write(place.file("notes.glass"), "precious").unwrap();
    fs::write(place.file("a.folded"), "main 1\nmain one\n").unwrap();
    fs::write(place.file("good.folded"), "main 1\n").unwrap();
    assert!(place.refused(&["convert", "a.folded", "b.folded"]).contains("line 2 (byte 7)"));
    assert!(place.refused(&["convert", "good.folded", "notes.glass"]).contains("is not a recording"));
    assert!(place.refused(&["convert", "none.glass", "b.folded"]).contains("none.glass"));
    assert!(place.refused(&["convert", "good.folded", "no/such/b.folded"]).contains("no/such/b.folded"));
    assert!(place.refused(&["convert", "good.folded", "/dev/full", "--to", "folded"]).contains("/dev/full"));
    for name in ["b.folded", "notes.glass"] {
        assert_eq!(fs::read_to_string(place.file(name)).unwrap(), "precious");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 4, "nothing else was left");
    for to in ["b", "b.svg", "-"] {
        let output = place.run(["convert", "good.folded", to]);
        assert_eq!(output.status.code(), Some(2), "{to}");
        let formats = "--to glass, --to jlprof, --to folded or --to heapsnapshot";
        assert!(text(&output.stderr).contains(formats), "{to}");
    }
    let output = place.run(["convert", "good.folded", "b", "--to", "svg"]);
    let message = text(&output.stderr);
    assert!(["glass", "jlprof", "folded"].iter().all(|kind| message.contains(kind)), "{message}");
    let (status, message) =
        Terminal::start(place.stackglass(["convert", "good.folded", "-", "--to", "glass"])).end();
    assert!(status == Some(125) && message.contains("terminal"), "{message}");
    // An existing file is only replaced by a complete one.
    assert!(place.run(["convert", "good.folded", "b.folded"]).status.success());
    assert_eq!(fs::read_to_string(place.file("b.folded")).unwrap(), "main 1\n");
}
