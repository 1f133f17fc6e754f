//! Every key in the JSON of every verb is in `docs/json.md`, in the section of the verb or in that of all reports on time.

use crate::support::samples::recorded;
use crate::support::target::Target;
use crate::support::{Place, end_of, stackglass};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// All keys of objects, at any depth. Counters have names that come from elsewhere.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                found.insert(key.clone());
                if key != "counters" {
                    keys(member, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

/// The text of a section, without its examples.
fn section(heading: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once(&format!("## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let section = rest.split("\n## ").next().unwrap();
    let parts = section.split("```json").map(|part| part.rsplit("```").next().unwrap());
    parts.collect()
}

fn check(place: &Place, arguments: &[&str], sections: &[&str]) -> Value {
    let text = place.stdout_of(&[arguments, &["--json"]].concat());
    check_text(&text, arguments, sections)
}

fn check_text(text: &str, arguments: &[&str], sections: &[&str]) -> Value {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let documented: String = sections.iter().map(|heading| section(heading)).collect();
    let mut found = BTreeSet::new();
    keys(&value, &mut found);
    assert!(found.len() > 8, "{found:?}");
    for key in found {
        assert!(documented.contains(&format!("`{key}`")), "{arguments:?}: `{key}` is not in {sections:?}");
    }
    value
}

#[test]
fn keys_of_reports_are_documented() {
    let place = recorded();
    let time = "Reports on time";
    for key in ["function", "line", "module", "crate", "thread", "process"] {
        check(&place, &["hot", "--by", key], &[time, "`stackglass hot`"]);
    }
    check(&place, &["print"], &[time, "`stackglass hot`", "`stackglass print`"]);
    check(&place, &["callers", "compute"], &[time, "`stackglass callers`"]);
    check(&place, &["annotate"], &[time, "`stackglass annotate`"]);
    check(&place, &["diff", "r.glass", "r.glass"], &[time, "`stackglass diff`"]);
    check(&place, &["info"], &[time, "`stackglass info`"]);
}

#[test]
fn keys_of_a_peek_are_documented() {
    let place = Place::new();
    let target = Target::start_workload();
    let sections = ["Reports on time", "`stackglass hot`", "`stackglass print`", "`stackglass peek`"];
    let peek = check(&place, &["peek", &target.pid(), "--duration", "300ms"], &sections);
    let threads = peek["threads"].as_array().unwrap();
    assert!(threads.len() > 3, "{peek}");
    assert!(threads.iter().any(|thread| thread["state"] == "asleep" && thread["stack"][0].is_object()));
    assert!(peek["profile"]["total"].as_u64().is_some(), "{peek}");
}

#[test]
fn keys_of_top_are_documented() {
    let place = Place::new();
    let words = ["top", "--json", "--", stackglass(), "demo-workload", "--time", "60s"];
    let mut child = place.stackglass(words).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let object = check_text(&lines.next().unwrap().unwrap(), &words, &["`stackglass top`"]);
        let [wall, cpu] = ["wall", "cpu"].map(|key| object[key].as_u64().unwrap());
        assert!((900_000_000..5_000_000_000).contains(&wall) && cpu > wall / 50, "{object}");
        let own = |rows: &str| -> u64 {
            object[rows].as_array().unwrap().iter().map(|row| row["own"].as_u64().unwrap()).sum()
        };
        assert!(own("functions") == cpu && (1..=cpu).contains(&own("lines")), "{object}");
        assert!(object["threads"].as_array().unwrap().iter().any(|thread| thread["function"].is_string()));
    }
    // A reader that goes away ends it, with the program that it has started.
    drop(lines);
    assert_eq!(end_of(&mut child), Some(0));
}
