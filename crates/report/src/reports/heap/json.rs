//! Answers for programs, as documented in `docs/json.md`.

use crate::heap_graph::growth::{GrowthRow, HeapSums, Sum};
use crate::heap_graph::{Dominator, HeapAnswers, HeapPath, RetainerRow, SiteRow, TypeAnswer, TypeRow};
use crate::queries::heap_graph::total;
use crate::text::json::string;
use std::io::{self, Write};

/// Number of holders in the answer.
const LARGEST: usize = 100;

/// Writes what is alive, what holds it, and what could be saved, as one JSON object.
///
/// # Errors
/// When writing fails.
pub fn write_show_json(answers: &HeapAnswers<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (types, leaks, waste) = (answers.types(), answers.leaks(), answers.waste());
    let graph = answers.graph();
    let edges = graph.targets.len();
    writeln!(out, "{{\"nodes\":{},\"edges\":{edges},\"self_size\":{},", graph.len(), answers.self_size())?;
    list(out, "types", &types.alive, type_row)?;
    let sum = total(&types.unreachable);
    writeln!(out, ",\n\"unreachable\":{{\"count\":{},\"self_size\":{},", sum.count, sum.self_size)?;
    writeln!(out, "\"lost\":{{\"count\":{},\"self_size\":{}}},", leaks.lost_count, leaks.lost_size)?;
    writeln!(out, "\"only_weak\":{{\"count\":{},\"self_size\":{}}},", leaks.weak_count, leaks.weak_size)?;
    list(out, "types", &types.unreachable, type_row)?;
    out.write_all(b",\n")?;
    list(out, "owners", &leaks.owners, |row| {
        format!(
            "{{\"type\":{},\"weak\":{},\"owners\":{},\"in_cycles\":{},\"count\":{},\"size\":{},\"sites\":[{}]}}",
            string(&row.name),
            row.weak,
            row.owners,
            row.in_cycles,
            row.count,
            row.size,
            row.sites.iter().map(site).collect::<Vec<_>>().join(",")
        )
    })?;
    out.write_all(b"},\n")?;
    list(out, "largest", &answers.largest(LARGEST), dominator)?;
    out.write_all(b",\n")?;
    list(out, "unused", &waste.unused, |row| {
        format!(
            "{{\"type\":{},\"holder\":{},\"field\":{},\"count\":{},\"self_size\":{},\"unused_size\":{}}}",
            string(&row.name),
            string(&row.holder),
            string(&row.field),
            row.count,
            row.self_size,
            row.unused_size
        )
    })?;
    match waste.duplicates {
        None => out.write_all(b",\n\"duplicate_strings\":null")?,
        Some(duplicates) => {
            out.write_all(b",\n")?;
            list(out, "duplicate_strings", &duplicates.strings, |row| {
                format!(
                    "{{\"text\":{},\"count\":{},\"self_size\":{},\"waste\":{}}}",
                    string(&row.text),
                    row.count,
                    row.self_size,
                    row.waste
                )
            })?;
        }
    }
    out.write_all(b"}\n")
}

/// Writes everything about a type as one JSON object.
///
/// # Errors
/// When writing fails.
pub fn write_type_json(answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
    begin_type(answer, out)?;
    writeln!(out, "\"path\":{},", path(answer.paths.first()))?;
    list(out, "retainers", &answer.retainers, |row| retainer(row, "holder"))?;
    out.write_all(b",\n")?;
    list(out, "fields", &answer.fields, |row| retainer(row, "target"))?;
    out.write_all(b",\n")?;
    list(out, "sites", &answer.sites, site)?;
    out.write_all(b",\n")?;
    list(out, "largest", &answer.largest, dominator)?;
    out.write_all(b"}\n")
}

/// Writes the shortest paths to a type as one JSON object.
///
/// # Errors
/// When writing fails.
pub fn write_path_json(answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
    begin_type(answer, out)?;
    writeln!(out, "\"path\":{},", path(answer.paths.first()))?;
    list(out, "paths", &answer.paths, |to| path(Some(to)))?;
    out.write_all(b"}\n")
}

/// Writes what holds a type as one JSON object.
///
/// # Errors
/// When writing fails.
pub fn write_retainers_json(answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
    begin_type(answer, out)?;
    list(out, "retainers", &answer.retainers, |row| retainer(row, "holder"))?;
    out.write_all(b"}\n")
}

/// Writes the growth from snapshot to snapshot as one JSON object.
///
/// # Errors
/// When writing fails.
pub fn write_growth_json(snapshots: &[HeapSums], rows: &[GrowthRow], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{")?;
    list(out, "snapshots", snapshots, |sums| {
        format!(
            "{{\"nodes\":{},\"edges\":{},\"self_size\":{},\"unreachable\":{{\"count\":{},\"self_size\":{}}}}}",
            sums.nodes, sums.edges, sums.self_size, sums.unreachable_count, sums.unreachable_size
        )
    })?;
    out.write_all(b",\n")?;
    list(out, "types", rows, |row| {
        let all = |of: fn(&Sum) -> u64| {
            row.sums.iter().map(|sum| of(sum).to_string()).collect::<Vec<_>>().join(",")
        };
        let (counts, sizes) = (all(|sum| sum.count), all(|sum| sum.self_size));
        format!("{{\"type\":{},\"count\":[{counts}],\"self_size\":[{sizes}]}}", string(&row.name))
    })?;
    out.write_all(b"}\n")
}

fn begin_type(answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
    let row = &answer.alive;
    writeln!(out, "{{{},", sums(row))?;
    let dead = &answer.unreachable;
    writeln!(
        out,
        "\"unreachable\":{{\"count\":{},\"self_size\":{},\"retained_size\":{},\"only_weak\":{}}},",
        dead.count, dead.self_size, dead.retained_size, answer.only_weak
    )
}

/// A key with a list, one entry a line.
fn list<T>(out: &mut dyn Write, key: &str, entries: &[T], entry: impl Fn(&T) -> String) -> io::Result<()> {
    write!(out, "\"{key}\":[")?;
    for (index, one) in entries.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}\n{}", entry(one))?;
    }
    out.write_all(if entries.is_empty() { b"]" } else { b"\n]" })
}

fn sums(row: &TypeRow) -> String {
    format!(
        "\"type\":{},\"count\":{},\"self_size\":{},\"retained_size\":{}",
        string(&row.name),
        row.count,
        row.self_size,
        row.retained_size
    )
}

fn type_row(row: &TypeRow) -> String {
    format!("{{{}}}", sums(row))
}

fn site(row: &SiteRow) -> String {
    format!("{{\"site\":{},\"count\":{},\"self_size\":{}}}", string(&row.name), row.count, row.self_size)
}

fn dominator(row: &Dominator) -> String {
    format!(
        "{{\"type\":{},\"alike\":{},\"count\":{},\"retained_size\":{},\"path\":{}}}",
        string(&row.name),
        row.alike,
        row.count,
        row.retained_size,
        path(Some(&row.path))
    )
}

fn retainer(row: &RetainerRow, other: &str) -> String {
    format!(
        "{{\"{other}\":{},\"field\":{},\"weak\":{},\"edges\":{},\"count\":{},\"self_size\":{}}}",
        string(&row.holder),
        string(&row.field),
        row.weak,
        row.edges,
        row.count,
        row.self_size
    )
}

/// The parts of a path: repeated ones once.
fn path(path: Option<&HeapPath>) -> String {
    match path {
        None => "null".to_owned(),
        Some(path) => {
            let parts: Vec<String> = path.parts().iter().map(|part| string(part)).collect();
            format!("[{}]", parts.join(","))
        }
    }
}
