//! Every verb that shows a recording, on one with known allocations.

use crate::made_up;
use crate::made_up::allocating::allocating;
use crate::support::{Place, text};
use stackglass_profile::AllocationSampling;

/// A folder with recordings: `a.glass` with allocations, and `time.glass` without.
fn recorded() -> Place {
    let place = Place::new();
    stackglass_files::write(place.file("time.glass"), &made_up::demo()).unwrap();
    stackglass_files::write(place.file("a.glass"), &allocating(AllocationSampling::Every)).unwrap();
    place
}

#[test]
fn allocs_prints_tables_and_json() {
    let place = recorded();
    let types = place.stdout_of(&["allocs", "a.glass", "--cols", "80"]);
    assert!(types.starts_with("demo big.json  56.3 MB in 450 k allocations"), "{types}");
    assert!(types.contains("1  serde_json::Value\n"), "{types}");
    let newest = place.stdout_of(&["allocs", "--by", "site", "--metric", "peak-bytes"]);
    assert!(newest.contains("@demo/src/load.rs:31"), "{newest}");
    let json = place.stdout_of(&["allocs", "a.glass", "--json", "--by", "function"]);
    assert!(json.contains("{\"function\":\"demo::tree::grow\",\"count\":44800,"), "{json}");
}

#[test]
fn summaries_end_with_allocations() {
    let place = recorded();
    let both = place.stdout_of(&["print", "a.glass", "--all", "--cols", "80"]);
    assert!(both.contains("own time  100 % demo::main"), "{both}");
    assert!(both.contains("\n\n56.3 MB in 450 k allocations") && !both.contains("\n\n\n"), "{both}");
    let peak = place.stdout_of(&["print", "a.glass", "--all", "--metric", "peak-bytes"]);
    assert!(peak.contains("\nmetric    peak-bytes: 31.5 MB in 216 k blocks\n"), "{peak}");
    let mut untimed = allocating(AllocationSampling::Every);
    untimed.samples.clear();
    stackglass_files::write(place.file("untimed.glass"), &untimed).unwrap();
    let hot = place.run(["hot", "untimed.glass"]);
    assert!(text(&hot.stderr).contains("`stackglass allocs` on this file"), "{}", text(&hot.stderr));
    let untimed = place.stdout_of(&["print", "untimed.glass", "--format", "tree"]);
    assert!(
        untimed.ends_with("Total snapshots: 449801\nTotal bytes: 56256000\n"),
        "bytes are the default: {untimed}"
    );
}

#[test]
fn every_verb_has_every_metric() {
    let place = recorded();
    for metric in stackglass_report::Metric::ALL {
        let metric = metric.word();
        for verb in [
            &["print", "a.glass"][..],
            &["print", "a.glass", "--format", "flat"],
            &["callers", "grow", "a.glass"],
            &["annotate", "a.glass", "--all", "--file", "*.rs"],
            &["diff", "a.glass", "a.glass"],
            &["convert", "a.glass", "-", "--to", "folded"],
            &["flamegraph", "a.glass", "-o", "a.html"],
        ] {
            let arguments = [verb, &["--metric", metric]].concat();
            let output = place.run(&arguments);
            // Only allocations call `grow`, and none of them is at a line with time.
            let nothing = metric == "time" && verb[0] == "callers";
            assert!(output.status.success() || nothing, "{arguments:?}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn views_show_bytes() {
    let place = recorded();
    let callers = place.stdout_of(&["callers", "parse_value", "a.glass", "--metric", "bytes"]);
    assert!(callers.contains("on the stack for 32.0 MB of 56.3 MB (57 % of the bytes)"), "{callers}");
    let lines = place.stdout_of(&[
        "annotate",
        "a.glass",
        "--metric",
        "live-bytes",
        "--file",
        "tree.rs",
        "--cols",
        "80",
    ]);
    assert!(lines.contains("blocks  line") && lines.contains(" 627 kB"), "{lines}");
    let both = place.stdout_of(&["annotate", "a.glass", "--file", "main.rs", "--cols", "80"]);
    assert!(both.contains("samples  bytes  line"), "time and bytes side by side:\n{both}");
    let folded = place.stdout_of(&["convert", "a.glass", "-", "--to", "folded", "--metric", "count"]);
    assert!(folded.contains(";alloc::boxed::Box::new;Rc<Node> 1600\n"), "{folded}");
    let drawn = place.run(["flamegraph", "a.glass", "--metric", "bytes", "-o", "a.svg"]);
    assert!(text(&drawn.stderr).contains("56256000 bytes"), "{}", text(&drawn.stderr));
    let svg = std::fs::read_to_string(place.file("a.svg")).unwrap();
    assert!(svg.contains("BTreeMap&lt;u32, String&gt; leaf"), "types are leaves");
    let diff = place.stdout_of(&["diff", "a.glass", "a.glass", "--metric", "bytes", "--cols", "80"]);
    assert!(
        diff.contains("bytes 56.3 MB → 56.3 MB (+0.0 %)\n")
            && diff.contains("0 of 6 functions changed, by bytes"),
        "{diff}"
    );
}

#[test]
fn without_allocations_every_verb_says_how_to_record_them() {
    let place = recorded();
    for arguments in [
        &["allocs", "time.glass"][..],
        &["print", "time.glass", "--metric", "bytes"],
        &["callers", "render", "time.glass", "--metric", "count"],
        &["annotate", "time.glass", "--metric", "bytes"],
        &["flamegraph", "time.glass", "--metric", "peak-bytes"],
        &["diff", "a.glass", "time.glass", "--metric", "bytes"],
        &["convert", "time.glass", "x.folded", "--metric", "temporary"],
    ] {
        let message = place.refused(arguments);
        assert!(
            message.contains("time.glass has no allocations: record them with `stackglass record --allocs"),
            "{message}"
        );
    }
    let message = place.refused(&["convert", "a.glass", "b.jlprof", "--metric", "bytes"]);
    assert!(message.contains("--metric bytes needs folded stacks"), "{message}");
    let converted = place.run(["convert", "a.glass", "a.jlprof"]);
    assert!(text(&converted.stderr).contains("lost: allocations"), "{}", text(&converted.stderr));
}

#[test]
fn different_shares_cannot_be_compared() {
    let place = recorded();
    stackglass_files::write(place.file("b.glass"), &allocating(AllocationSampling::Rate(0.1))).unwrap();
    let message = place.refused(&["diff", "a.glass", "b.glass", "--metric", "bytes"]);
    assert!(message.contains("record both with the same rate"), "{message}");
    let scaled = allocating(AllocationSampling::ScaledRate(0.1));
    stackglass_files::write(place.file("c.glass"), &scaled).unwrap();
    let message = place.refused(&["diff", "a.glass", "c.glass", "--by", "type"]);
    assert!(message.contains("record both with the same rate"), "{message}");
    let same = place.stdout_of(&["diff", "b.glass", "b.glass", "--metric", "bytes"]);
    assert!(same.contains("± error") && same.contains("within the noise"), "{same}");
}

#[test]
fn one_type_has_its_lines_and_callers() {
    let place = recorded();
    let lines = place.stdout_of(&["allocs", "a.glass", "--type", "serde_json::Value", "--cols", "80"]);
    assert!(lines.contains("\ntype      serde_json::Value\n"), "{lines}");
    assert!(lines.contains(" sites  site\n") && !lines.contains("\nlive "), "{lines}");
    let all = place.stdout_of(&["allocs", "a.glass", "--json"]);
    let row = all.lines().find(|line| line.contains("\"serde_json::Value\"")).expect("the type has a row");
    let bytes = row.split("\"bytes\":").nth(1).and_then(|rest| rest.split(',').next()).expect("bytes");
    let one = place.stdout_of(&["allocs", "a.glass", "--type", "serde_json::Value", "--json"]);
    assert!(one.contains(&format!("\"bytes\":{bytes},")) && one.contains("{\"site\":"), "{one}");
    let callers = place.stdout_of(&["callers", "serde_json::Value", "a.glass", "--json"]);
    assert!(
        callers
            .contains(&format!("{{\"function\":\"serde_json::Value\",\"module\":\"\",\"amount\":{bytes},"))
    );
    let text = place.stdout_of(&["callers", "serde_json::Value", "a.glass", "--cols", "80"]);
    assert!(text.starts_with("serde_json::Value\n32.0 MB of 56.3 MB (57 % of the bytes)\n"), "{text}");
    let message = place.refused(&["allocs", "a.glass", "--type", "Valu"]);
    assert!(
        message.contains("no allocation has the type `Valu`; types that contain it: `serde_json::Value`"),
        "{message}"
    );
    let message = place.refused(&["allocs", "a.glass", "--type", "Nothing"]);
    assert!(message.contains("`stackglass allocs --by type --all` lists all types"), "{message}");
}

#[test]
fn types_are_compared_by_allocations_only() {
    let place = recorded();
    let same = place.stdout_of(&["diff", "a.glass", "a.glass", "--by", "type"]);
    assert!(same.contains("type\n") && same.contains("types changed, by bytes"), "{same}");
    let output = place.run(["diff", "a.glass", "a.glass", "--by", "type", "--metric", "time"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("types have no time"), "{}", text(&output.stderr));
}
