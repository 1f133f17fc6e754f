//! `flamegraph` and `diff`: the files that they read, write and refuse.

use crate::support::samples::{julia, recorded};
use crate::support::{Place, text};
use stackglass_files::jlprof::{self, Content};
use std::fs;
use std::process::Command;

const FOLDED: &str = "main;read;parse 40\nmain;read 10\nmain;sort 50\nidle 20\n";

fn folded() -> Place {
    let place = Place::new();
    fs::write(place.file("p.folded"), FOLDED).unwrap();
    place
}

#[test]
fn each_extension_is_another_picture() {
    let place = folded();
    for (name, start) in [
        ("p.svg", b"<svg".as_slice()),
        ("p.html", b"<!doctype html>"),
        ("p.png", b"\x89PNG"),
        ("p.jlprof", b"JLPROF"),
    ] {
        let output = place.run(["flamegraph", "p.folded", "-o", name]);
        let message = text(&output.stderr);
        assert!(output.status.success() && message.contains("6 boxes, 120 samples"), "{message}");
        assert!(fs::read(place.file(name)).unwrap().starts_with(start), "{name}");
    }
    // The default is a page with the name of the recording, in the current folder.
    fs::remove_file(place.file("p.html")).unwrap();
    assert!(place.run(["flamegraph", "p.folded"]).status.success());
    assert!(place.file("p.html").exists());
    let piped = place.run_with_input(&["flamegraph", "-", "-o", "-"], FOLDED.as_bytes());
    assert!(text(&piped.stdout).contains("parse") && piped.stdout.starts_with(b"<svg"));
}

#[test]
fn a_saved_graph_is_the_graph_that_was_drawn() {
    let place = folded();
    assert!(place.run(["flamegraph", "p.folded", "-o", "g.jlprof"]).status.success());
    let Ok(Content::Graph(nodes)) = jlprof::read(place.file("g.jlprof")) else { panic!("a graph") };
    let nodes: Vec<_> = nodes
        .map(|node| node.map(|node| (node.depth, node.frame.func.to_string(), node.start, node.stop)))
        .collect();
    let nodes: Vec<_> = nodes.into_iter().map(Result::unwrap).collect();
    let node = |depth, name: &str, start, stop| (depth, name.to_owned(), start, stop);
    assert_eq!(
        nodes,
        [
            node(0, "", 1, 120),
            node(1, "idle", 1, 20),
            node(1, "main", 21, 120),
            node(2, "read", 21, 70),
            node(3, "parse", 21, 60),
            node(2, "sort", 71, 120),
        ]
    );
    for (arguments, status) in
        [(&["flamegraph", "g.jlprof", "-o", "again.jlprof"][..], 0), (&["print", "g.jlprof"], 1)]
    {
        let output = place.run(arguments);
        assert_eq!(output.status.code() == Some(0), status == 0, "{}", text(&output.stderr));
    }
    assert_eq!(fs::read(place.file("g.jlprof")).unwrap(), fs::read(place.file("again.jlprof")).unwrap());
    // Options for samples cannot be applied to a graph.
    let output = place.run(["flamegraph", "g.jlprof", "--filter", "read", "-o", "x.svg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--filter cannot be applied"), "{}", text(&output.stderr));
}

#[test]
fn options_choose_what_is_drawn() {
    let place = folded();
    let svg = |arguments: &[&str]| {
        let all = [&["flamegraph", "p.folded", "-o", "x.svg"][..], arguments].concat();
        let output = place.run(all);
        assert!(output.status.success(), "{}", text(&output.stderr));
        fs::read_to_string(place.file("x.svg")).unwrap()
    };
    let drawn = svg(&["--filter", "^pars"]);
    assert!(drawn.contains(">parse") && !drawn.contains(">sort"), "only branches with a match");
    let drawn = svg(&["--prune", "read@"]);
    assert!(!drawn.contains(">parse") && drawn.contains(">sort"));
    assert!(svg(&["--threads", "1"]).contains("idle"));
    // Calls of a function by itself are part of its box, unless each is asked for.
    fs::write(place.file("p.folded"), "main;walk;step;walk;leaf 40\nmain;walk;step 10\n").unwrap();
    // Each box has a label and a title.
    let boxes = |arguments: &[&str], name: &str| svg(arguments).matches(name).count() / 2;
    assert_eq!((boxes(&[], ">walk ↻"), boxes(&["--recur", "off"], ">walk")), (1, 2));
    fs::write(place.file("p.folded"), FOLDED).unwrap();
    let output = place.run(["flamegraph", "p.folded", "--threads", "7", "-o", "none.svg"]);
    assert!(!output.status.success() && !place.file("none.svg").exists());
    assert!(
        text(&output.stderr).contains("no samples of the selected threads: there are threads 1"),
        "{}",
        text(&output.stderr)
    );
    for (arguments, what) in [
        (&["--prune", "nofile"][..], "FUNC@FILE"),
        (&["--filter", "("], "regex"),
        (&["--colors", "pink"], "kind"),
        (&["-o", "x.bmp"], ".html"),
    ] {
        let output = place.run([&["flamegraph", "p.folded"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(what), "{}", text(&output.stderr));
    }
}

#[test]
fn recordings_samples_of_julia_and_perf_are_drawn() {
    let place = recorded();
    let output = place.run(["flamegraph", "r.glass"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(fs::read_to_string(place.file("r.html")).unwrap().len() > 10_000);
    let samples = julia("samples-recorded.jlprof");
    let mut draw = place.stackglass(["flamegraph", "-o", "j.svg"]);
    let output = draw.arg(samples).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let perf = "rg 7/8 [001] 1.5: 1000 task-clock:u:\n\t55d0c2a1b2c3 rg::search+0x23 (/usr/bin/rg)\n\
                \t55d0c2a1b2d3 rg::main+0x3 (/usr/bin/rg)\n\n";
    let piped = place.run_with_input(&["flamegraph", "-", "-o", "-"], perf.as_bytes());
    assert!(text(&piped.stdout).contains("search"), "{}", text(&piped.stderr));
}

#[test]
fn events_of_perf_are_not_added_up() {
    let place = Place::new();
    fs::write(place.file("p.txt"), include_str!("../../files/tests/formats/perf_script/events.txt")).unwrap();
    let output = place.run(["flamegraph", "p.txt", "--colors", "kind", "-o", "p.svg"]);
    let message = text(&output.stderr);
    assert!(
        message.contains("cpu-clock is shown; a flame graph page also has page-faults, context-switches"),
        "{message}"
    );
    let svg = fs::read_to_string(place.file("p.svg")).unwrap();
    assert!(svg.contains("\n6 samples, 100 %") && !svg.contains("_copy_to_user"), "only in page-faults");
    assert!(svg.contains(">kernel "), "the legend names the kernel");
    let output = place.run(["flamegraph", "p.txt"]);
    assert!(text(&output.stderr).contains("6 samples, 2 of other events"), "{}", text(&output.stderr));
    let page = fs::read_to_string(place.file("p.html")).unwrap();
    assert!(
        page.contains("\"label\":\"event page-faults\",\"apart\":true") && page.contains("_copy_to_user")
    );
}

/// A program of ten functions; the second of them takes `slower` times as long.
fn work(place: &Place) {
    fs::write(
        place.file("work.c"),
        "#include <stdlib.h>\nvolatile double sink;\n\
         #define F(n) __attribute__((noinline)) void n(long k) { double s = sink; \
         for (long i = 0; i < k; i++) s = s * 1.0000001 + i; sink = s; }\n\
         F(alpha) F(beta) F(gamma_) F(delta) F(eps) F(zeta) F(eta) F(theta) F(iota) F(kappa)\n\
         int main(int c, char **v) { double slower = c > 1 ? atof(v[1]) : 1; long u = 20000;\n\
         for (int r = 0; r < 10000; r++) { alpha(u); beta((long)(u * 2 * slower)); gamma_(u); delta(u); eps(u / 2);\n\
         zeta(u / 2); eta(u / 4); theta(u / 4); iota(u / 8); kappa(u); } return 0; }\n",
    )
    .unwrap();
    let built =
        Command::new("cc").args(["-O1", "-g", "work.c", "-o", "work"]).current_dir(place.path()).status();
    assert!(built.unwrap().success());
}

#[test]
fn a_slower_function_is_marked_and_first_and_equal_runs_are_equal() {
    let place = Place::new();
    work(&place);
    let record = |file: &str, slower: &str| {
        let output = place.run(["record", "-q", "--delay", "500us", "-o", file, "--", "./work", slower]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    let rows = |a: &str, b: &str| {
        let output = place.run(["diff", a, b, "--all"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    // By chance, one of a dozen rows is marked in 3 % of all pairs of equal runs, and in 0.1 % of two pairs.
    let mut marked = String::new();
    let is_equal = |(a, b): (&str, &str)| {
        record(a, "1");
        record(b, "1");
        let same = rows(a, b);
        let none = !same.lines().any(|line| line.starts_with(" ! "));
        marked += &same;
        none
    };
    assert!([("a.glass", "b.glass"), ("e.glass", "f.glass")].into_iter().any(is_equal), "{marked}");
    // Errors grow where runs differ more than chance explains, so it is much slower.
    record("c.glass", "1.4");
    let slower = rows("a.glass", "c.glass");
    let first = slower
        .lines()
        .find(|line| line.contains("→") && line.contains("ms") && !line.contains("CPU time"))
        .unwrap_or_default();
    assert!(first.starts_with(" ! ") && first.ends_with(" beta"), "{slower}");
    let output = place.run(["diff", "a.glass", "c.glass", "-o", "d.html"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = fs::read_to_string(place.file("d.html")).unwrap();
    assert!(page.contains("more than before") && page.contains("beyond the noise"));
}

#[test]
fn folded_stacks_are_compared_by_samples() {
    let place = folded();
    fs::write(place.file("q.folded"), "main;read;parse 40\nmain;read 12\nmain;sort 500\nidle 19\n").unwrap();
    let output = place.run(["diff", "p.folded", "q.folded"]);
    let table = text(&output.stdout);
    assert!(table.contains("samples 120 → 571"), "{table}");
    let first = table.lines().find(|line| line.starts_with(" ! ")).unwrap_or_default();
    assert!(first.ends_with("sort") && table.matches(" ! ").count() == 1, "{table}");
    assert!(!place.run(["diff", "-", "-"]).status.success());
    assert_eq!(place.run(["diff", "p.folded", "q.folded", "-o", "d.jlprof"]).status.code(), Some(2));
}
