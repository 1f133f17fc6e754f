//! Allocations of recordings with known content: as text, as it looks, and as JSON.
//!
//! Goldens lie in `tests/goldens`; `STACKGLASS_BLESS=1` writes them anew, to be reviewed by eye.

mod made_up;

use made_up::allocating::allocating;
use stackglass_profile::{AllocationKind, AllocationSampling, Recording};
use stackglass_report::{AllocationKey, AllocationTable, AllocationsText, Metric, Style, allocations};

fn screen(recording: &Recording, text: AllocationsText) -> String {
    let mut out = Vec::new();
    text.write(recording, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn check(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
    if std::env::var_os("STACKGLASS_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{} differs from what is written now:\n{text}", path.display());
}

#[test]
fn types_at_80_columns() {
    let text = screen(&allocating(AllocationSampling::Every), AllocationsText::new());
    check("allocations-type-80.txt", &text);
    assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
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
    for (name, sampling) in
        [("bytes", AllocationSampling::Bytes(512_000)), ("rate", AllocationSampling::Rate(0.1))]
    {
        let mut recording = allocating(sampling);
        recording.allocations.processes[0].lost = 12;
        recording.allocations.processes[0].without_stack = 1;
        recording.info.remarks.push("mimalloc is linked into the program".to_owned());
        check(&format!("allocations-{name}-80.txt"), &screen(&recording, AllocationsText::new()));
    }
}

#[test]
fn few_types_get_advice() {
    use stackglass_profile::symbols::{Missing, ModuleNote};
    let mut recording = allocating(AllocationSampling::Every);
    let missing =
        ModuleNote { module: "/home/me/demo/target/release/demo".into(), missing: Missing::DebugInfo };
    recording.symbols.note(missing);
    recording.allocations.groups.retain(|group| recording.symbols.allocated_type(group.stack).is_none());
    let text = screen(&recording, AllocationsText::new());
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
