//! `print`: every option of the report is a flag with the same meaning, for every kind of file.

use crate::support::samples::{all_of_julia, julia, recorded};
use crate::support::{Place, Terminal, text};
use stackglass_files::jlprof::{self, Content};
use stackglass_profile::Frame;
use stackglass_report::{FILE_COLUMNS, Format, GroupBy, Pick, Recur, Report, SortedBy, Source};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn written(report: &Report, source: Source<'_>) -> String {
    let mut out = Vec::new();
    report.write(source, &mut out).unwrap();
    text(&out)
}

/// Flags, and the report with the same options.
fn flags() -> Vec<(&'static [&'static str], Report)> {
    let report = || Report::new().cols(100);
    vec![
        (&["--format", "tree"], report()),
        (&["--format", "flat"], report().format(Format::Flat)),
        (&["--c"], report().c(true)),
        (&["--c", "--no-c"], report().c(false)),
        (&["--combine"], report()),
        (&["--no-combine"], report().combine(false)),
        (&["--no-combine", "--format=flat"], report().combine(false).format(Format::Flat)),
        (&["--maxdepth", "3"], report().maxdepth(3)),
        (&["--maxdepth", "0"], report().maxdepth(0)),
        (&["--mincount", "3"], report().mincount(3)),
        (&["--noisefloor", "1.5"], report().noisefloor(1.5)),
        (&["--sortedby", "filefuncline"], report().sorted_by(SortedBy::FileFuncLine)),
        (&["--sortedby", "count"], report().sorted_by(SortedBy::Count)),
        (&["--sortedby", "overhead"], report().sorted_by(SortedBy::Overhead)),
        (&["--sortedby", "flat_count"], report().sorted_by(SortedBy::FlatCount)),
        (&["--groupby", "none"], report()),
        (&["--groupby", "thread"], report().group_by(GroupBy::Thread)),
        (&["--groupby", "task"], report().group_by(GroupBy::Task)),
        (&["--groupby", "thread,task"], report().group_by(GroupBy::ThreadTask)),
        (&["--groupby", "task,thread"], report().group_by(GroupBy::TaskThread)),
        (&["--recur", "off"], report()),
        (&["--recur", "flat"], report().recur(Recur::Flat)),
        (&["--recur", "flatc", "--c"], report().recur(Recur::FlatC).c(true)),
        (&["--threads", "1"], report().threads(1)),
        (&["--threads", "2,3"], report().threads(vec![2, 3])),
        (&["--threads", "1,3-4"], report().threads(Pick::Ranges(vec![1..=1, 3..=4]))),
        (&["--threads", "all"], report().threads(Pick::All)),
        (&["--tasks", "0x1-0xffff"], report().tasks(1..=0xffff)),
    ]
}

#[test]
fn flags_are_the_options_of_the_report() {
    let place = Place::new();
    for name in ["samples-threads.jlprof", "samples-recorded.jlprof"] {
        let samples = jlprof::read(julia(name)).and_then(Content::samples).unwrap();
        let source = Source::Data(&samples.data, &samples.dictionary);
        let plain = written(&Report::new().cols(100), source);
        let mut others = 0;
        for (flags, report) in flags() {
            let path = julia(name);
            let mut arguments = vec!["print", path.to_str().unwrap(), "--cols", "100"];
            arguments.extend(flags);
            let expected = written(&report, source);
            let picks = flags.contains(&"--threads") || flags.contains(&"--tasks");
            if name == "samples-recorded.jlprof" && picks && !place.run(&arguments).status.success() {
                let message = place.refused(&arguments);
                assert!(message.contains("no samples of the selected "), "{message}");
                continue;
            }
            assert_eq!(place.stdout_of(&arguments), expected, "{flags:?} of {name}");
            others += usize::from(expected != plain);
        }
        assert!(others >= 12, "the samples tell {others} flags from none");
    }
}

#[test]
fn unknown_values_are_answered_with_the_right_ones_before_anything_is_read() {
    let place = Place::new();
    for (flag, valid) in [
        ("--format", vec!["tree", "flat"]),
        ("--sortedby", vec!["filefuncline", "count", "overhead", "flat_count"]),
        ("--groupby", vec!["none", "thread", "task", "thread,task", "task,thread"]),
        ("--recur", vec!["off", "flat", "flatc"]),
        ("--threads", vec!["1,3,5-7"]),
        ("--tasks", vec!["1,3,5-7"]),
        ("--maxdepth", vec!["whole number >= 0"]),
        ("--mincount", vec!["whole number >= 0"]),
        ("--noisefloor", vec![">= 0, such as 0.5 or 2"]),
        ("--cols", vec!["80"]),
    ] {
        let below_zero = ["--maxdepth", "--mincount", "--noisefloor"].contains(&flag);
        for value in ["nonsense", "-1"].into_iter().take(if below_zero { 2 } else { 1 }) {
            let output = place.run(["print", "no-such-file.glass", flag, value]);
            assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{flag}");
            let message = text(&output.stderr);
            for word in &valid {
                assert!(message.contains(word), "{flag}: {word} is missing in {message}");
            }
        }
    }
    for (flag, value, reason) in [
        ("--recur", "flat", "does not fold recursion"),
        ("--maxdepth", "3", "omit --maxdepth"),
        ("--noisefloor", "1", "omit --noisefloor"),
    ] {
        let message = place.refused(&["print", "no-such-file.glass", "--format", "flat", flag, value]);
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn samples_of_c_code_only_are_shown_as_they_are() {
    let place = Place::new();
    let samples = jlprof::read(julia("samples-recorded.jlprof")).and_then(Content::samples).unwrap();
    let mut dictionary = samples.dictionary.clone();
    for address in dictionary.addresses() {
        let frames = dictionary.get(address).unwrap_or(&[]).to_vec();
        dictionary.set(address, frames.into_iter().map(|frame| Frame { foreign: true, ..frame }));
    }
    jlprof::write(place.file("c.jlprof"), &samples.data, &dictionary).unwrap();
    fs::copy(julia("samples-recorded.jlprof"), place.file("julia.jlprof")).unwrap();
    for (file, same, other) in [("c.jlprof", "--c", "--no-c"), ("julia.jlprof", "--no-c", "--c")] {
        let printed = place.stdout_of(&["print", "--format", "tree", file]);
        assert!(printed.lines().count() > 5, "{printed}");
        assert_eq!(printed, place.stdout_of(&["print", file, same]), "{file}");
        assert_ne!(printed, place.stdout_of(&["print", file, other]), "{file}");
    }
}

#[test]
fn an_option_of_the_full_report_asks_for_it() {
    let place = recorded();
    let recording = place.recording("r.glass");
    let report = || Report::new().cols(FILE_COLUMNS);
    let piped = place.stdout_of(&["print", "--format", "tree", "--wall"]);
    assert_eq!(piped.lines().next(), Some("Overhead ╎ [+additional indent] Count File:Line  Function"));
    let totals = |text: &str| text.lines().last().map(str::to_owned);
    assert_eq!(totals(&piped), totals(&written(&report(), Source::Recording(&recording))));
    assert!(piped.contains("count_leaves") && !piped.contains("__libc_start_main"), "a Rust program");
    assert!(place.stdout_of(&["print", "--c", "--wall"]).contains("libc_start"), "with the foreign frames");

    let all = place.stdout_of(&["print", "--all"]);
    assert!(all.contains("own ms") && all.contains("start_thread") && !all.contains("--all shows"), "{all}");
    let (_, flat) = Terminal::start(place.stackglass(["print", "--format", "flat"])).end();
    assert!(flat.contains("Overhead File") && !flat.contains("own ms"), "{flat}");
    let message = place.refused(&["print", "--format", "summary", "--mincount", "3"]);
    assert!(message.contains("the summary has no options of the full report"), "{message}");
}

#[test]
fn a_report_in_a_file_is_wide_and_whole() {
    let place = recorded();
    fs::write(place.file("tree.txt"), "old").unwrap();
    fs::set_permissions(place.file("tree.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(place.stdout_of(&["print", "-o", "tree.txt", "--format", "flat"]), "");
    assert_eq!(
        place.file("tree.txt").metadata().unwrap().mode() & 0o7777,
        0o600,
        "what was private stays so"
    );
    let wide = fs::read_to_string(place.file("tree.txt")).unwrap();
    assert_eq!(wide, place.stdout_of(&["print", "--format", "flat", "--cols", "1000"]));
    assert!(wide.lines().any(|line| line.chars().count() > 120));
    place.stdout_of(&["print", "-o", "tree.txt"]);
    assert_eq!(fs::read_to_string(place.file("tree.txt")).unwrap(), place.stdout_of(&["print"]));
    place.stdout_of(&["print", "-o", "tree.txt", "--format", "tree", "--cols", "70"]);
    let narrow = fs::read_to_string(place.file("tree.txt")).unwrap();
    assert!(narrow.lines().filter(|line| !line.starts_with("Total")).all(|line| line.chars().count() <= 70));

    let before = fs::read(place.file("r.glass")).unwrap();
    std::os::unix::fs::symlink("r.glass", place.file("other")).unwrap();
    for output in ["r.glass", "./r.glass", "other"] {
        let message = place.refused(&["print", "r.glass", "-o", output]);
        assert!(message.contains("another file"), "{message}");
    }
    assert_eq!(fs::read(place.file("r.glass")).unwrap(), before);
    assert!(place.refused(&["print", "-o", "no/such/folder/x"]).contains("no/such/folder/x"));
    assert!(place.refused(&["print", "-o", "/dev/full"]).contains("/dev/full"));
}

#[test]
fn every_kind_of_file_is_told_by_its_content() {
    let place = recorded();
    fs::copy(julia("samples-basic.jlprof"), place.file("samples")).unwrap();
    fs::write(place.file("stacks"), "main;f 3\nmain;f;g h 2\n").unwrap();
    fs::copy(place.file("r.glass"), place.file("mine")).unwrap();
    for (name, total) in [("samples", None), ("stacks", Some("Total snapshots: 5.")), ("mine", None)] {
        let printed = place.stdout_of(&["print", name, "--format", "tree", "--cols", "90"]);
        assert!(printed.contains(total.unwrap_or("Total snapshots")), "{printed}");
        let bytes = fs::read(place.file(name)).unwrap();
        let totals = |printed: &str| printed.lines().last().map(str::to_owned);
        for stdin in ["-", "/dev/stdin"] {
            let piped = place.run_with_input(&["print", stdin, "--format", "tree", "--cols", "90"], &bytes);
            assert_eq!(totals(&text(&piped.stdout)), totals(&printed), "{}", text(&piped.stderr));
        }
    }
    for (content, reason) in [
        (&b""[..], "is empty"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0", "unknown format"),
        (b"main f\n", "line 1"),
    ] {
        fs::write(place.file("odd"), content).unwrap();
        let message = place.refused(&["print", "odd"]);
        assert!(message.contains(reason) && message.contains("odd"), "{message}");
    }
    assert!(place.refused(&["print", "nothing.glass"]).contains("nothing.glass"));
    assert!(place.refused(&["print", "."]).contains("cannot read"));
}

#[test]
fn malformed_files_of_julia_are_shown_or_refused() {
    let place = Place::new();
    let mut refused = 0;
    for file in all_of_julia() {
        let output = place.run(["print".as_ref(), "--format".as_ref(), "tree".as_ref(), file.as_os_str()]);
        let message = text(&output.stderr);
        let summary = place.run(["print".as_ref(), file.as_os_str()]);
        assert_eq!(summary.status, output.status, "{}", file.display());
        assert_eq!(summary.stdout.is_empty(), output.stdout.is_empty(), "{}", file.display());
        match output.status.code() {
            Some(0) => assert!(text(&output.stdout).starts_with("Overhead"), "{}", file.display()),
            Some(125) => {
                assert_eq!(message.lines().count(), 1, "{message}");
                assert!(output.stdout.is_empty(), "{}", file.display());
                refused += 1;
            }
            status => panic!("{}: {status:?} {message}", file.display()),
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn locations_are_links_on_a_terminal() {
    let place = recorded();
    let printed = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = place.stackglass(arguments);
        command.env("EDITOR", "ed").env_remove("VISUAL").env_remove("JULIA_EDITOR");
        command.envs(variables.iter().copied());
        Terminal::start(command).end().1
    };
    let main = "crates/demo/src/lib.rs";
    for verb in [&["print"][..], &["print", "--format", "tree"], &["callers", "count_leaves"], &["annotate"]]
    {
        let plain = printed(verb, &[]);
        assert!(plain.contains("\x1b]8;;file://") && plain.contains(main), "{verb:?}: {plain}");
        let code = printed(verb, &[("EDITOR", "vim"), ("VISUAL", "code")]);
        assert!(code.contains("\x1b]8;;vscode://file//"), "{verb:?}: {code}");
        assert!(!printed(&[verb, &["--no-links"]].concat(), &[]).contains("\x1b]8"), "{verb:?}");
        assert!(!printed(verb, &[("NO_COLOR", "1")]).contains('\x1b'), "{verb:?}");
        assert!(!place.stdout_of(verb).contains('\x1b'), "{verb:?} in a pipe");
    }
}
