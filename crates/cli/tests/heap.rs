//! Heap snapshots in the terminal: `heap show`, `heap diff` and `heap assemble` on files with known content.

use crate::made_up::hostile::ACTING;
use crate::support::{Place, text};
use stackglass_files::heapsnapshot::{PartsWriter, assemble};
use stackglass_profile::heap_graph::{EdgeKind, HeapGraphSink, NodeIndex, NodeKind, UNREACHABLE};
use std::io::Read;
use std::process::Stdio;

/// Writes part files: a list of `jobs` that a static holds, and a leaked cycle. `mark` is in every name.
fn parts(place: &Place, name: &str, jobs: u32, mark: &str) {
    let mut parts = PartsWriter::create(&place.file(name)).unwrap();
    let node = |parts: &mut PartsWriter, kind, text: &str, size, edges: &[(u32, &str)]| {
        let name = parts.name(&match text {
            "" | UNREACHABLE => text.to_owned(),
            text => format!("{text}{mark}"),
        });
        let from = parts.node(kind, name, u64::from(parts.node_count()) * 16 + 64, size).unwrap();
        for (to, field) in edges {
            let field = parts.name(&format!("{field}{mark}")).0;
            parts.edge(from, NodeIndex(*to), EdgeKind::Property, field).unwrap();
        }
    };
    node(&mut parts, NodeKind::Synthetic, "", 0, &[(1, "roots"), (4, "stacks"), (5, UNREACHABLE)]);
    node(&mut parts, NodeKind::Synthetic, "(static data)", 0, &[(2, "app")]);
    node(&mut parts, NodeKind::Synthetic, "app", 0, &[(3, "QUEUE")]);
    node(&mut parts, NodeKind::Synthetic, "app::QUEUE", 0, &[(8, "jobs")]);
    node(&mut parts, NodeKind::Synthetic, "(thread stacks)", 0, &[]);
    node(&mut parts, NodeKind::Synthetic, UNREACHABLE, 0, &[(6, "0")]);
    node(&mut parts, NodeKind::Object, "RcInner<Parent>", 56, &[(7, "child")]);
    node(&mut parts, NodeKind::Object, "RcInner<Child>", 40, &[(6, "parent")]);
    for job in 0..jobs {
        parts.unused(24);
        let last = job + 1 == jobs;
        let edges: &[(u32, &str)] = if last { &[] } else { &[(9 + job, "next")] };
        node(&mut parts, NodeKind::Object, "Job", 64, edges);
    }
    parts.finish().unwrap();
}

pub fn snapshot(place: &Place, name: &str, jobs: u32, mark: &str) {
    parts(place, "parts", jobs, mark);
    assemble(&place.file("parts"), &place.file(name)).unwrap();
}

#[test]
fn a_snapshot_is_shown_from_all_kinds_of_files() {
    let place = Place::new();
    snapshot(&place, "app.heapsnapshot", 500, "");
    let shown = place.stdout_of(&["heap", "show", "app.heapsnapshot"]);
    assert!(shown.starts_with("app.heapsnapshot  32.0 kB alive in 500 of 502 blocks, "), "{shown}");
    assert!(shown.contains("leaked?   96 B in 2 blocks to which nothing leads"), "{shown}");
    assert!(shown.contains("RcInner<Parent> (in cycles)"), "{shown}");
    assert!(shown.contains("12.0 kB  unused capacity: 38 % of 499 buffers in Job.next"), "{shown}");
    let of_parts = place.stdout_of(&["heap", "show", "parts"]);
    assert_eq!(of_parts.split_once("  "), Some(("parts", shown.split_once("  ").unwrap().1)));
    let mut command = place.stackglass(["heap", "show", "-", "--all"]);
    command.stdin(std::fs::File::open(place.file("app.heapsnapshot")).unwrap());
    let piped = text(&command.output().unwrap().stdout);
    assert!(piped.starts_with("standard input  32.0 kB alive"), "{piped}");
}

#[test]
fn questions_about_a_type() {
    let place = Place::new();
    snapshot(&place, "app.heapsnapshot", 500, "");
    let of =
        |arguments: &[&str]| place.stdout_of(&[&["heap", "show", "app.heapsnapshot"], arguments].concat());
    assert_eq!(of(&["--path-to", "Job"]), "nearest   (static data) app → app::QUEUE → .jobs → Job\n");
    assert!(of(&["--retainers", "Job"]).contains("   499 31.9 kB    499  Job.next\n"));
    let one = of(&["--type", "Child"]);
    assert!(one.starts_with("RcInner<Child>\nleaked?   1 block, 40 B of their own"), "{one}");
    let json = of(&["--path-to", "Job", "--json"]);
    let path = "[\"(static data) app\",\"app::QUEUE\",\".jobs\"]";
    assert!(json.ends_with(&format!("\"path\":{path},\n\"paths\":[\n{path}\n]}}\n")), "{json}");
    let blocks = of(&["--type", "Job", "--addresses", "--rows", "2"]);
    let expected = "\
Job
alive     500 blocks, 32.0 kB of their own, 32.0 kB with all that only they hold

retained     own        address  path
 32.0 kB    64 B           0xc0  (static data) app → app::QUEUE → .jobs
 31.9 kB    64 B           0xd0  (static data) app → app::QUEUE → .jobs → .next
498 more blocks: --all shows them
";
    assert_eq!(blocks, expected);
    assert_eq!(
        place.stdout_of(&["heap", "show", "parts", "--type", "Job", "--addresses", "--rows", "2"]),
        expected
    );
    let lost = of(&["--type", "Child", "--addresses"]);
    assert!(lost.ends_with("           0xb0  leaked?\n"), "{lost}");
    let fails = |name: &str| {
        let output = place.run(["heap", "show", "app.heapsnapshot", "--type", name]);
        assert_eq!(output.status.code(), Some(125));
        text(&output.stderr)
    };
    let several = "stackglass: several types contain `Rc`: `RcInner<Parent>` (56 B), `RcInner<Child>` (40 B); name one: \
                   stackglass heap show app.heapsnapshot --type 'RcInner<Parent>'\n";
    assert_eq!(fails("Rc"), several);
    // A value stands for the block that holds it.
    assert!(of(&["--path-to", "Child"]).ends_with("→ RcInner<Child>\n"));
    assert!(fails("Missing").contains("app.heapsnapshot has no type with `Missing` in its name"));
    assert_eq!(place.run(["heap", "show", "a", "--type", "A", "--path-to", "B"]).status.code(), Some(2));
}

#[test]
fn snapshots_are_compared() {
    let place = Place::new();
    for (name, jobs) in [("a", 500), ("b", 700), ("c", 600)] {
        snapshot(&place, name, jobs, "");
    }
    let two = place.stdout_of(&["heap", "diff", "a", "b"]);
    assert!(two.contains(" +12.8 kB     +200 32.0 kB 44.8 kB  Job\n"), "{two}");
    let two = place.stdout_of(&["heap", "diff", "b", "c", "--json"]);
    assert!(two.contains("{\"type\":\"Job\",\"count\":[700,600],\"self_size\":[44800,38400]}"), "{two}");
    let three = place.stdout_of(&["heap", "diff", "a", "b", "c"]);
    assert!(three.ends_with("no type grew in each step\n"), "{three}");
    let three = place.stdout_of(&["heap", "diff", "a", "c", "b"]);
    assert!(three.contains(" +12.8 kB     +200 32.0 kB 38.4 kB 44.8 kB  Job\n"), "{three}");
    assert_eq!(place.run(["heap", "diff", "-", "-"]).status.code(), Some(2));
}

#[test]
fn parts_are_assembled() {
    let place = Place::new();
    parts(&place, "app", 500, "");
    let output = place.run(["heap", "assemble", "app", "whole.heapsnapshot"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "stackglass: whole.heapsnapshot: 508 nodes, 508 edges, 32.1 kB\n");
    let whole = std::fs::read(place.file("whole.heapsnapshot")).unwrap();
    assert!(place.run(["heap", "assemble", "app", "-"]).stdout == whole);
    let output = place.run(["heap", "assemble", "missing"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("missing"), "{}", text(&output.stderr));
    assert!(!place.file("missing").exists());
}

#[test]
fn widths_and_closed_pipes() {
    let place = Place::new();
    parts(&place, "app", 20_000, &"_long".repeat(20));
    for columns in ["60", "80", "133"] {
        let mut command = place.stackglass(["heap", "show", "app"]);
        let shown = text(&command.env("COLUMNS", columns).output().unwrap().stdout);
        let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse().unwrap(), "{shown}");
    }
    for arguments in [vec!["heap", "show", "app", "--json"], vec!["heap", "assemble", "app", "-"]] {
        let mut command = place.stackglass(&arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 1];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn no_name_acts_on_the_terminal() {
    let place = Place::new();
    let evil: String = ACTING.iter().collect();
    let file = format!("r{evil}");
    parts(&place, &file, 3, &evil);
    let job = format!("Job{evil}");
    for arguments in [
        vec!["heap", "show", &file],
        vec!["heap", "show", &file, "--json"],
        vec!["heap", "show", &file, "--type", &job],
        vec!["heap", "show", &file, "--path-to", &job],
        vec!["heap", "show", &file, "--retainers", &job],
        vec!["heap", "show", &file, "--type", "RcInner"],
        vec!["heap", "show", &file, "--type", &evil[..1]],
        vec!["heap", "show", &evil],
        vec!["heap", "diff", &file, &file],
        vec!["heap", "assemble", &evil],
    ] {
        let output = place.run(&arguments);
        let printed = text(&output.stdout) + &text(&output.stderr);
        for c in ACTING {
            assert!(!printed.contains(c), "{arguments:?} has {c:?}:\n{}", printed.escape_debug());
        }
    }
}
