//! Allocations of recordings with known content: as text, as it looks, and as JSON.
//!
//! Goldens lie in `tests/goldens`; `STACKGLASS_BLESS=1` writes them anew, to be reviewed by eye.

use crate::goldens::check;
use crate::made_up::Maker;
use crate::made_up::allocating::{allocating, counts};
use stackglass_profile::{AllocationKind, AllocationSampling, Recording};
use stackglass_report::allocation_queries::{TypeLeaf, weighted};
use stackglass_report::comparison::ComparisonKey;
use stackglass_report::{
    AllocationKey, AllocationTable, AllocationsText, Comparison, Format, GroupBy, Metric, Report, Style,
    allocations,
};

fn screen(recording: &Recording, text: AllocationsText) -> String {
    let mut out = Vec::new();
    text.write(recording, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn types_at_80_columns() {
    let text = screen(&allocating(AllocationSampling::Every), AllocationsText::new());
    check("allocations-type-80.txt", &text);
    assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_small_screen_is_not_exceeded() {
    let mut recording = allocating(AllocationSampling::Bytes(512_000));
    recording.allocations.processes[0].lost = 12;
    let whole = screen(&recording, AllocationsText::new());
    let header = "   %  count";
    for rows in 8..=whole.lines().count() {
        let text = screen(&recording, AllocationsText::new().rows(Some(rows)));
        assert!(text.lines().count() <= rows, "{rows} lines:\n{text}");
        assert_eq!(text.lines().next(), whole.lines().next());
        // What there is room for is used.
        assert!(
            text.contains(header) || rows < 12 && text.contains("`stackglass allocs`"),
            "{rows}:\n{text}"
        );
    }
    assert_eq!(screen(&recording, AllocationsText::new().rows(Some(whole.lines().count()))), whole);
    assert_eq!(
        screen(&recording, AllocationsText::new().everything(true).rows(Some(8))).lines().count(),
        screen(&recording, AllocationsText::new().everything(true)).lines().count()
    );
}

#[test]
fn other_keys_and_metrics() {
    let recording = allocating(AllocationSampling::Every);
    for key in AllocationKey::ALL {
        let text = screen(&recording, AllocationsText::new().key(*key).metric(Metric::LeakedBytes));
        check(&format!("allocations-{}-leaked-80.txt", key.word()), &text);
    }
}

#[test]
fn all_rows_at_120_columns() {
    let text =
        AllocationsText::new().cols(120).everything(true).key(AllocationKey::Site).metric(Metric::PeakBytes);
    check("allocations-site-all-120.txt", &screen(&allocating(AllocationSampling::Every), text));
}

#[test]
fn samples_are_shown_with_what_they_mean() {
    for (name, sampling) in [
        ("bytes", AllocationSampling::Bytes(512_000)),
        ("rate", AllocationSampling::Rate(0.1)),
        ("scaled-rate", AllocationSampling::ScaledRate(0.1)),
    ] {
        let mut recording = allocating(sampling);
        recording.allocations.processes[0].lost = 12;
        recording.allocations.processes[0].without_stack = 1;
        recording.info.remarks.push("mimalloc is linked into the program".to_owned());
        check(&format!("allocations-{name}-80.txt"), &screen(&recording, AllocationsText::new()));
    }
}

#[test]
fn few_types_get_advice() {
    use stackglass_profile::symbols::{Language, Missing, ModuleNote};
    let mut recording = allocating(AllocationSampling::Every);
    recording.symbols.note(ModuleNote {
        module: "/home/me/demo/target/release/demo".into(),
        missing: Missing::DebugInfo,
        language: Language::Rust,
    });
    // A library that allocates nothing.
    recording.symbols.note(ModuleNote {
        module: "/usr/lib/libstdc++.so.6".into(),
        missing: Missing::DebugInfo,
        language: Language::C,
    });
    recording.allocations.groups.retain(|group| recording.symbols.allocated_type(group.stack).is_none());
    let text = screen(&recording, AllocationsText::new());
    assert!(!text.contains("libstdc++"), "{text}");
    assert!(
        text.contains("100 %) is unknown (demo without debug") || text.contains("type of 100 % of"),
        "{text}"
    );
    assert!(text.contains("`debug = 1`"), "{text}");
}

#[test]
fn nothing_allocated_is_said() {
    let mut recording = allocating(AllocationSampling::Every);
    recording.allocations.groups.clear();
    let text = screen(&recording, AllocationsText::new());
    assert!(text.starts_with("demo big.json  0 B in 0 allocations\n"), "{text}");
}

#[test]
fn sums_are_those_of_the_groups_whatever_the_key() {
    let recording = allocating(AllocationSampling::Every);
    let total = recording.allocations.total(AllocationKind::Block);
    for key in AllocationKey::ALL {
        let table = AllocationTable::new(&recording, *key, Metric::Count);
        let mut sum = Default::default();
        table.rows.iter().for_each(|row| stackglass_profile::AllocationCounts::add(&mut sum, &row.counts));
        assert_eq!((sum, table.total), (total, total), "{key:?}");
        assert!(table.rows.is_sorted_by_key(|row| std::cmp::Reverse(row.counts.count)), "{key:?}");
        assert_eq!(table.mappings.bytes, 2 << 30);
    }
}

#[test]
fn sites_are_in_the_code_that_causes_the_allocation() {
    let recording = allocating(AllocationSampling::Every);
    let table = AllocationTable::new(&recording, AllocationKey::Site, Metric::Count);
    let names: Vec<&str> =
        table.rows.iter().map(|row| row.name.rsplit('/').next().unwrap()).take(6).collect();
    assert_eq!(names, ["de.rs:900", "load.rs:48", "tree.rs:66", "tree.rs:65", "tree.rs:64", "tree.rs:63"]);
    let strdup = table.rows.iter().find(|row| row.counts.count == 3_000).unwrap();
    assert_eq!(strdup.name, "png_create_info", "a block made inside strdup belongs to its caller");
    let value = table.rows.iter().find(|row| row.name.ends_with("de.rs:900")).unwrap();
    assert_eq!(value.counts.bytes, 60_000 * 320 + 200_000 * 64, "recursion counts once");
}

#[test]
fn colours_change_nothing_but_colours() {
    let recording = allocating(AllocationSampling::Every);
    let coloured = screen(&recording, AllocationsText::new().style(Style::Ansi));
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some(start) = rest.find('\u{1b}') {
        plain += &rest[..start];
        let end = rest[start..].find('m').expect("a colour ends with m");
        rest = &rest[start + end + 1..];
    }
    assert_eq!(plain + rest, screen(&recording, AllocationsText::new()));
}

#[test]
fn json_has_all_rows() {
    let recording = allocating(AllocationSampling::Every);
    let mut out = Vec::new();
    allocations::write_json(&AllocationTable::new(&recording, AllocationKey::Type, Metric::Bytes), &mut out)
        .unwrap();
    check("allocations-type.json", &String::from_utf8(out).unwrap());
}

/// The part between the first ```json and the next ```.
fn documented() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("```json\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn json_is_as_documented() {
    let mut maker = Maker::new(&["demo"]);
    let process = maker.process("/bin/demo", &["demo"]);
    let main = maker.thread(process, "demo");
    maker.records_allocations(process, AllocationSampling::Every);
    maker.allocations(main, "demo::main /d/main.rs:3", Some("[u8]"), 32, counts(600, 32, 350, 400, 504));
    maker.allocations(main, "demo::main /d/main.rs:5", Some("[u8]"), 32, counts(400, 32, 400, 0, 0));
    let mut some = counts(10, 102, 0, 0, 10);
    (some.bytes, some.peak_bytes) = (1024, 1024);
    maker.allocations(main, "demo::main /d/main.rs:7", None, 102, some);
    let mut out = Vec::new();
    let table = AllocationTable::new(&maker.recording, AllocationKey::Type, Metric::Bytes);
    allocations::write_json(&table, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), documented());
}

/// The report of allocations by a metric.
fn report(report: Report, recording: Recording, metric: Metric) -> String {
    let mut out = Vec::new();
    let recording = weighted(recording, metric, TypeLeaf::Without);
    report.metric(metric).write(&recording, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn full_reports_close_as_in_julia() {
    let recording = || allocating(AllocationSampling::Every);
    check("allocations-tree.txt", &report(Report::new(), recording(), Metric::Bytes));
    let flat = Report::new().format(Format::Flat).c(true);
    check("allocations-flat.txt", &report(flat, recording(), Metric::Bytes));
    let counted = report(Report::new(), recording(), Metric::Temporary);
    assert!(counted.ends_with("Total snapshots: 145455\n"), "{counted}");
    let grouped = report(Report::new().group_by(GroupBy::Thread), recording(), Metric::PeakBytes);
    assert!(
        grouped.contains("Thread 1 (demo) Total snapshots: 213961. Total bytes: 27756800\n"),
        "{grouped}"
    );
    let one = report(Report::new().threads(2), recording(), Metric::Bytes);
    assert!(one.ends_with("Total snapshots: 5000\nTotal bytes: 8312000\n"), "{one}");
}

#[test]
fn an_empty_report_warns_about_allocations() {
    let mut recording = allocating(AllocationSampling::Every);
    recording.allocations.groups.clear();
    let recording = weighted(recording, Metric::Bytes, TypeLeaf::Without);
    let mut out = Vec::new();
    let written = Report::new().metric(Metric::Bytes).write(&recording, &mut out).unwrap();
    assert_eq!(written.warnings, [stackglass_report::NO_ALLOCATIONS]);
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 2, "a tree still has its header");
}

#[test]
fn recursion_counts_bytes_once_in_a_flat_table() {
    let flat =
        report(Report::new().format(Format::Flat), allocating(AllocationSampling::Every), Metric::Bytes);
    let line = flat.lines().find(|line| line.ends_with("serde_json::de::parse_value")).unwrap();
    assert!(line.trim_start().starts_with("32000000 "), "{line}");
}

#[test]
fn differences_are_exact_if_every_allocation_was_recorded() {
    let compare = |sampling, metric| {
        let before = allocating(sampling);
        let mut after = before.clone();
        after.allocations.groups[3].counts = counts(140_001, 24, 140_000, 130_000, 5_000);
        let [before, after] = [before, after].map(|side| weighted(side, metric, TypeLeaf::Without));
        Comparison::by(metric, ComparisonKey::Function, &before, &after)
    };
    let exact = compare(AllocationSampling::Every, Metric::Bytes);
    let changed: Vec<_> = exact.rows.iter().filter(|row| row.is_beyond_noise()).collect();
    assert_eq!(changed.len(), 1);
    assert_eq!((&*changed[0].name, changed[0].change, changed[0].error), ("demo::load::names", 24.0, 0.0));
    let sampled = compare(AllocationSampling::Rate(0.1), Metric::Bytes);
    let row = sampled.rows.iter().find(|row| &*row.name == "demo::load::names").unwrap();
    let expected = 24.0 * (2.0 * 140_000.0_f64).sqrt();
    assert!((row.error / expected - 1.0).abs() < 0.01, "{} {expected}", row.error);
    assert!(!row.is_beyond_noise());
    // A tenth of the blocks was seen.
    let scaled = compare(AllocationSampling::ScaledRate(0.1), Metric::Bytes);
    let row = scaled.rows.iter().find(|row| &*row.name == "demo::load::names").unwrap();
    let expected = 24.0 * (2.0 * 140_000.0_f64 / 0.1).sqrt();
    assert!((row.error / expected - 1.0).abs() < 0.01, "{} {expected}", row.error);
    let estimated = compare(AllocationSampling::Bytes(48_000), Metric::Bytes);
    let row = estimated.rows.iter().find(|row| &*row.name == "demo::load::names").unwrap();
    let expected = (2.0 * 3_360_000.0 * 48_000.0_f64).sqrt();
    assert!((row.error / expected - 1.0).abs() < 0.01, "{} {expected}", row.error);
}

#[test]
fn types_are_compared_like_functions() {
    let before = allocating(AllocationSampling::Every);
    let mut after = before.clone();
    after.allocations.groups[3].counts = counts(140_001, 24, 140_000, 130_000, 5_000);
    let of_group = before.symbols.allocated_type(before.allocations.groups[3].stack).cloned();
    let [before, after] = [before, after].map(|side| weighted(side, Metric::Bytes, TypeLeaf::With));
    let comparison = Comparison::by(Metric::Bytes, ComparisonKey::Type, &before, &after);
    let changed: Vec<_> = comparison.rows.iter().filter(|row| row.is_beyond_noise()).collect();
    assert_eq!(changed.len(), 1);
    assert_eq!((Some(&changed[0].name), changed[0].change), (of_group.as_ref(), 24.0));
    let all: f64 = comparison.rows.iter().map(|row| row.before.amount).sum();
    assert_eq!(all, comparison.before.amount, "each byte has one type");
}

/// The error that is said is the spread of many recordings of the same program.
#[test]
fn errors_of_estimates_are_their_spread() {
    let rate = 0.05;
    let sizes = [(4000, 24), (3000, 1000), (400, 20_000)];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) as f64 / (1_u64 << 53) as f64
    };
    let truth: f64 = sizes.iter().map(|(n, size)| f64::from(n * size)).sum();
    let (runs, mut squares) = (400, 0.0);
    for _ in 0..runs {
        let mut recording = allocating(AllocationSampling::ScaledRate(rate));
        recording.allocations.groups.truncate(sizes.len());
        for (group, (n, size)) in recording.allocations.groups.iter_mut().zip(sizes) {
            let seen = (0..n).filter(|_| random() < rate).count() as f64;
            let count = (seen / rate).round() as u64;
            group.kind = AllocationKind::Block;
            group.counts = counts(count, size as u64, 0, 0, 0);
        }
        let table = AllocationTable::new(&recording, AllocationKey::Type, Metric::Bytes);
        let bytes = table.total.bytes as f64;
        squares += ((bytes - truth) / (bytes * table.error)).powi(2);
    }
    // Deviations in units of their errors: a mean square of 1.
    let mean = squares / f64::from(runs);
    assert!((0.75..1.4).contains(&mean), "{mean}");
}
