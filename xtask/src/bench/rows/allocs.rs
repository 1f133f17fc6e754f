//! Cost of recording allocations: whole commands, plain, with Stackglass and with peers in turn.
//!
//! Nothing is subtracted: runs take a second or more, start and stop included. Each ratio is one of wall times in the same
//! round; notes have that of CPU time, all processes together. Memory, sizes and the time after the program's end are
//! measured in separate runs. Slow peers do a part of the work, and are compared with plain runs of that part.

use crate::bench::builds;
use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::made_json;
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use crate::bench::tree_memory;
use crate::bench::turns::{Slice, Way, rounds};
use crate::run::output;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Objects in the input of jaq: 1.7 MB.
const OBJECTS: usize = 8_000;
const FILTER: &str = "[.. | scalars | tostring] | length";

/// Bounds of wall times with a recorder, over the plain run.
mod bounds {
    pub const WRAPPER_OFF: f64 = 1.03;
    pub const PRELOAD_OFF: f64 = 1.08;
    pub const RATE_HUNDREDTH: f64 = 1.12;
    pub const RATE_TENTH: f64 = 1.25;
    pub const EVERY: f64 = 2.7;
    pub const EVERY_OF_JAQ: f64 = 3.2;
    /// The bound of a table of live blocks, which recording every allocation keeps.
    pub const EVERY_WITH_FRAME_POINTERS: f64 = 2.1;
    /// Megabytes over the plain run.
    pub const MEMORY: f64 = 64.0;
    /// Of the file, for each allocation.
    pub const BYTES: f64 = 4.0;
    /// Milliseconds from the program's end to the end of the report.
    pub const REPORT: f64 = 1000.0;
}

/// What is recorded.
enum Subject {
    /// A workload and its `--work`.
    Workload(&'static str, u64),
    /// jaq over a number of files.
    Jaq(u64),
}

/// A tree of values from a text.
pub fn tree(setup: &Setup) -> Result<Vec<Figure>> {
    measure(setup, &Subject::Workload("text-tree", 120))
}

/// Small objects of every container.
pub fn small(setup: &Setup) -> Result<Vec<Figure>> {
    measure(setup, &Subject::Workload("small-objects", 120))
}

/// Four threads, of which two free what the others allocate.
pub fn threads(setup: &Setup) -> Result<Vec<Figure>> {
    measure(setup, &Subject::Workload("handed-over", 900_000))
}

/// A program from the registry.
pub fn jaq(setup: &Setup) -> Result<Vec<Figure>> {
    measure(setup, &Subject::Jaq(7))
}

impl Subject {
    /// One of `parts` equal parts of the work. `program` is a build of the workloads.
    fn words(&self, setup: &Setup, program: &Path, parts: u64) -> Result<Vec<String>> {
        match self {
            Subject::Workload(name, work) => {
                let work = work / parts;
                Ok([&program.display().to_string(), *name, "--work", &work.to_string()]
                    .map(str::to_owned)
                    .to_vec())
            }
            Subject::Jaq(files) => {
                let jaq = setup.peers.jaq.as_ref().context("jaq is missing")?;
                let input = setup.scratch("allocs.json").display().to_string();
                let mut words = vec![jaq.display().to_string(), FILTER.to_owned()];
                words.extend((0..(files / parts).max(1)).map(|_| input.clone()));
                Ok(words)
            }
        }
    }

    fn is_jaq(&self) -> bool {
        matches!(self, Subject::Jaq(_))
    }
}

/// Ways to run the same work, and the comparisons between them.
#[derive(Default)]
struct Comparison {
    ways: Vec<Way>,
    /// A way, the one it is compared with, and the bound.
    ratios: Vec<(usize, usize, Option<f64>)>,
}

impl Comparison {
    fn base(&mut self, name: &'static str, words: Vec<String>) -> usize {
        self.ways.push(Way { name, before: words });
        self.ways.len() - 1
    }

    fn against(&mut self, base: usize, bound: Option<f64>, name: &'static str, words: Vec<String>) {
        let way = self.base(name, words);
        self.ratios.push((way, base, bound));
    }

    /// The ratios of wall times. `what` follows each name.
    fn figures(&self, setup: &Setup, turns: usize, what: &str) -> Result<Vec<Figure>> {
        // The first run of each fills the page cache. It matters little where one run is enough.
        for way in self.ways.iter().filter(|_| turns > 1) {
            setup.run(&way.before)?;
        }
        let rounds = rounds(setup, &self.ways, &[], turns)?;
        let ratio = |rounds: &[Vec<Slice>], way: usize, base: usize, pick: fn(&Slice) -> f64| {
            median(&rounds.iter().map(|round| pick(&round[way]) / pick(&round[base])).collect::<Vec<_>>())
        };
        let mut figures = Vec::new();
        for (way, base, bound) in &self.ratios {
            let wall = Interval::bootstrap(&rounds, |rounds| ratio(rounds, *way, *base, |slice| slice.wall));
            let cpu = ratio(&rounds, *way, *base, |slice| slice.whole);
            let plain = median(&rounds.iter().map(|round| round[*base].wall).collect::<Vec<_>>());
            let name = format!("{} ÷ {}{what}", self.ways[*way].name, self.ways[*base].name);
            let figure = match bound {
                Some(bound) => Figure::must(name, wall, Unit::Times, Bound::AtMost(*bound)),
                None => Figure::told(name, wall, Unit::Times),
            };
            figures.push(figure.note(format!("CPU {cpu:.2}; base {plain:.2} s; {turns} rounds")));
        }
        Ok(figures)
    }
}

/// `stackglass record --allocs` with other flags.
fn record(setup: &Setup, file: &Path, flags: &[&str]) -> Vec<String> {
    let stackglass = setup.tools.stackglass.display().to_string();
    let mut words = vec![stackglass, "record".to_owned(), "-o".to_owned(), file.display().to_string()];
    words.extend(flags.iter().map(|flag| (*flag).to_owned()));
    words.push("--".to_owned());
    words
}

fn every(setup: &Setup, file: &Path) -> Vec<String> {
    record(setup, file, &["--allocs", "--no-time"])
}

fn measure(setup: &Setup, subject: &Subject) -> Result<Vec<Figure>> {
    if subject.is_jaq() {
        std::fs::write(setup.scratch("allocs.json"), made_json::list(OBJECTS))?;
    }
    let plain = builds::workloads(&setup.scratch("allocs-plain"), None, false)?;
    let mut figures = wall(setup, subject, &plain)?;
    figures.extend(after(setup, subject, &plain)?);
    figures.extend(peers(setup, subject, &plain)?);
    Ok(figures)
}

/// Wall times with Stackglass.
fn wall(setup: &Setup, subject: &Subject, plain: &Path) -> Result<Vec<Figure>> {
    let parts = setup.either(1, 4);
    let work = subject.words(setup, plain, parts)?;
    let file = setup.scratch("allocs.glass");
    let with = |before: Vec<String>| [before, work.clone()].concat();
    let mut comparison = Comparison::default();
    let base = comparison.base("plain", work.clone());
    let off = vec![setup.tools.stackglass.display().to_string(), "run".to_owned(), "--".to_owned()];
    comparison.against(base, Some(bounds::PRELOAD_OFF), "preloaded, off", with(off));
    let rates = [
        ("rate 0.01", "--allocs=0.01", bounds::RATE_HUNDREDTH),
        ("rate 0.1", "--allocs=0.1", bounds::RATE_TENTH),
    ];
    for (name, flag, bound) in rates {
        comparison.against(base, Some(bound), name, with(record(setup, &file, &[flag, "--no-time"])));
    }
    let bound = if subject.is_jaq() { bounds::EVERY_OF_JAQ } else { bounds::EVERY };
    comparison.against(base, Some(bound), "every allocation", with(every(setup, &file)));
    let timed = record(setup, &file, &["--allocs"]);
    comparison.against(base, None, "every allocation, and time samples", with(timed));
    if !subject.is_jaq() {
        let wrapped = builds::workloads(&setup.scratch("allocs-crate"), Some("stackglass"), false)?;
        let wrapped = subject.words(setup, &wrapped, parts)?;
        let tenth = [&wrapped[..], &["--allocs", "0.1"].map(str::to_owned)].concat();
        comparison.against(base, Some(bounds::WRAPPER_OFF), "crate's allocator, off", wrapped);
        comparison.against(base, Some(bounds::RATE_TENTH), "crate's allocator, rate 0.1", tenth);
        let framed = builds::workloads(&setup.scratch("allocs-frame-pointers"), None, true)?;
        let framed = subject.words(setup, &framed, parts)?;
        let recorded = [every(setup, &file), framed.clone()].concat();
        let base = comparison.base("plain with frame pointers", framed);
        let bound = Some(bounds::EVERY_WITH_FRAME_POINTERS);
        comparison.against(base, bound, "every allocation", recorded);
    }
    comparison.figures(setup, setup.either(4, 2), "")
}

/// Memory, size of the recording, and the time from the program's end to the report.
fn after(setup: &Setup, subject: &Subject, plain: &Path) -> Result<Vec<Figure>> {
    let work = subject.words(setup, plain, setup.either(1, 4))?;
    let file = setup.scratch("allocs-after.glass");
    let every = every(setup, &file);
    let recorded = [&every[..], &work].concat();

    let turns = setup.either(2, 1);
    let before = tree_memory::peak(&work)?;
    let peaks = (0..turns).map(|_| tree_memory::peak(&recorded)).collect::<Result<Vec<f64>>>()?;
    let added: Vec<f64> = peaks.iter().map(|peak| peak - before).collect();
    let mut figures = vec![
        Figure::must(
            "memory over the plain run, every allocation",
            Interval::range(&added),
            Unit::Megabytes,
            Bound::AtMost(bounds::MEMORY),
        )
        .note(format!("plain {before:.1} MB; program and launcher together")),
    ];

    let bytes = std::fs::metadata(&file)?.len() as f64;
    let count = total(setup, &file)?["total"]["count"].as_f64().context("allocs --json has a count")?;
    figures.push(
        Figure::must(
            "recording, bytes an allocation",
            Interval::exact(bytes / count),
            Unit::Count,
            Bound::AtMost(bounds::BYTES),
        )
        .note(format!("{:.1} million allocations, {:.0} kB", count * 1e-6, bytes * 1e-3)),
    );

    // The inner `measured` records the end of the program.
    let stamp = setup.scratch("allocs.stamp");
    let measured =
        [setup.tools.workloads.display().to_string(), "measured".into(), stamp.display().to_string()];
    let stamped = [&every[..], &measured, &work].concat();
    let times = (0..setup.either(4, 2))
        .map(|_| {
            let _ = std::fs::remove_file(&stamp);
            let run = setup.run(&stamped)?;
            let end = Setup::measured(&stamp)?["end_ns"].as_f64().context("no stamp")?;
            Ok(run.end * 1e3 - end * 1e-6)
        })
        .collect::<Result<Vec<f64>>>()?;
    let interval = Interval::bootstrap(&times, median);
    let what = "end of the program to the end of the report";
    figures.push(Figure::must(what, interval, Unit::Millis, Bound::AtMost(bounds::REPORT)));
    Ok(figures)
}

fn total(setup: &Setup, file: &Path) -> Result<Value> {
    let text = output(Command::new(&setup.tools.stackglass).args(["allocs", "--json"]).arg(file))?;
    serde_json::from_str(&text).context("allocs --json prints JSON")
}

/// The other profilers of allocations.
fn peers(setup: &Setup, subject: &Subject, plain: &Path) -> Result<Vec<Figure>> {
    let mut figures = heaptrack(setup, subject, plain)
        .unwrap_or_else(|error| vec![Figure::missing("heaptrack", format!("{error:#}"))]);
    if !subject.is_jaq() {
        figures.extend(
            jemalloc(setup, subject)
                .unwrap_or_else(|error| vec![Figure::missing("jemalloc's profiler", format!("{error:#}"))]),
        );
        figures.extend(
            dhat_rs(setup, subject, plain)
                .unwrap_or_else(|error| vec![Figure::missing("dhat-rs", format!("{error:#}"))]),
        );
    }
    figures.extend(
        valgrind(setup, subject, plain)
            .unwrap_or_else(|error| vec![Figure::missing("valgrind --tool=dhat", format!("{error:#}"))]),
    );
    Ok(figures)
}

fn heaptrack(setup: &Setup, subject: &Subject, plain: &Path) -> Result<Vec<Figure>> {
    let heaptrack = setup.peers.heaptrack.as_ref().context("heaptrack is missing")?;
    let parts = setup.either(2, 8);
    let work = subject.words(setup, plain, parts)?;
    let out = setup.scratch("allocs.heaptrack");
    let before = [&heaptrack.display().to_string(), "-o", &out.display().to_string()].map(str::to_owned);
    let recorded = [&before[..], &work].concat();
    let mut comparison = Comparison::default();
    let base = comparison.base("plain", work.clone());
    comparison.against(base, None, "heaptrack", recorded.clone());
    let mut figures = comparison.figures(setup, setup.either(3, 1), &part(parts))?;

    let added = tree_memory::peak(&recorded)? - tree_memory::peak(&work)?;
    figures.push(Figure::told(
        "heaptrack: memory over the plain run",
        Interval::exact(added),
        Unit::Megabytes,
    ));
    let file = ["zst", "gz"].map(|end| setup.scratch(&format!("allocs.heaptrack.{end}")));
    let file = file.into_iter().find(|file| file.is_file()).context("heaptrack wrote no recording")?;
    let print = ["heaptrack_print".to_owned(), file.display().to_string()];
    let print = setup.run_into(&print, &setup.scratch("allocs.heaptrack.txt"))?;
    let text = std::fs::read_to_string(setup.scratch("allocs.heaptrack.txt"))?;
    let count = text.lines().find_map(|line| line.strip_prefix("calls to allocation functions: "));
    let count = count.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    if let Some(count) = count {
        let bytes = std::fs::metadata(&file)?.len() as f64 / count;
        figures.push(
            Figure::told("heaptrack: bytes an allocation", Interval::exact(bytes), Unit::Count)
                .note(format!("{:.1} million allocations, compressed", count * 1e-6)),
        );
    }
    figures.push(Figure::told("heaptrack_print", Interval::exact(print.wall * 1e3), Unit::Millis));
    Ok(figures)
}

fn jemalloc(setup: &Setup, subject: &Subject) -> Result<Vec<Figure>> {
    let program = setup.peers.jemalloc.as_ref().context("the workloads with jemalloc are missing")?;
    let out = setup.scratch("allocs-jemalloc");
    let profiling = |more: &str| {
        let conf = format!("_RJEM_MALLOC_CONF=prof:true,prof_final:true,prof_prefix:{}{more}", out.display());
        ["env".to_owned(), conf].to_vec()
    };
    let mut figures = Vec::new();
    let ways = [
        ("jemalloc's profiler, 512 KiB", "", setup.either(1, 4), setup.either(3, 1)),
        ("jemalloc's profiler, every allocation", ",lg_prof_sample:0", setup.either(20, 40), 1),
    ];
    for (name, more, parts, turns) in ways {
        let work = subject.words(setup, program, parts)?;
        let mut comparison = Comparison::default();
        let base = comparison.base("jemalloc", work.clone());
        comparison.against(base, None, name, [profiling(more), work].concat());
        figures.extend(comparison.figures(setup, turns, &part(parts))?);
    }
    Ok(figures)
}

fn dhat_rs(setup: &Setup, subject: &Subject, plain: &Path) -> Result<Vec<Figure>> {
    let program = setup.peers.dhat.as_ref().context("the workloads with dhat-rs are missing")?;
    let parts = setup.either(10, 20);
    let out = ["--allocs".to_owned(), setup.scratch("allocs-dhat.json").display().to_string()];
    let recorded = [&subject.words(setup, program, parts)?[..], &out].concat();
    let mut comparison = Comparison::default();
    let base = comparison.base("plain", subject.words(setup, plain, parts)?);
    comparison.against(base, None, "dhat-rs", recorded);
    comparison.figures(setup, 1, &part(parts))
}

fn valgrind(setup: &Setup, subject: &Subject, plain: &Path) -> Result<Vec<Figure>> {
    let valgrind = setup.peers.valgrind.as_ref().context("valgrind is missing")?.display().to_string();
    let parts = setup.either(10, 20);
    let work = subject.words(setup, plain, parts)?;
    let out = format!("--dhat-out-file={}", setup.scratch("allocs-valgrind.json").display());
    let before = [valgrind, "--tool=dhat".to_owned(), out];
    let mut comparison = Comparison::default();
    let base = comparison.base("plain", work.clone());
    comparison.against(base, None, "valgrind --tool=dhat", [&before[..], &work].concat());
    comparison.figures(setup, 1, &part(parts))
}

fn part(parts: u64) -> String {
    if parts == 1 { String::new() } else { format!(", 1/{parts} of the work") }
}

/// 10^8 allocations by four threads, against the program's own account.
pub fn exact(setup: &Setup) -> Result<Vec<Figure>> {
    let work = setup.workload(&["allocate", "--threads", "4", "--work", setup.either("25000", "1000")]);
    let file = setup.scratch("allocs-exact.glass");
    let recorded = [every(setup, &file), work.clone()].concat();
    let plain = setup.run(&work)?;
    let run = setup.run(&recorded)?;

    let sites = ["allocs", "--json", "--by", "site"];
    let text = output(Command::new(&setup.tools.stackglass).args(sites).arg(&file))?;
    let sites: Value = serde_json::from_str(&text)?;
    let rows = sites["rows"].as_array().context("allocs --json has rows")?;
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap_or(f64::NAN);
    let most = rows.iter().max_by(|a, b| number(a, "count").total_cmp(&number(b, "count")));
    let most = most.context("nothing was recorded")?;
    ensure!(run.report["work"] == plain.report["work"], "two runs of the workload differ");
    let none = |what: &str, difference: f64| {
        Figure::must(what, Interval::exact(difference), Unit::Count, Bound::Within(0.0, 0.0))
    };
    let (blocks, bytes) = (run.number("work")?, run.number("bytes")?);
    let added = tree_memory::peak(&recorded)? - tree_memory::peak(&work)?;
    Ok(vec![
        none("blocks: recorded − allocated", number(most, "count") - blocks)
            .note(format!("{blocks} blocks, at {}", most["site"].as_str().unwrap_or("no line"))),
        none("bytes: recorded − allocated", number(most, "bytes") - bytes).note(format!("{bytes} bytes")),
        none("lost", lost(setup, &file)?),
        Figure::must(
            "memory over the plain run",
            Interval::exact(added),
            Unit::Megabytes,
            Bound::AtMost(bounds::MEMORY),
        ),
        Figure::told("wall time over the plain run", Interval::exact(run.wall / plain.wall), Unit::Times)
            .note(format!("plain {:.1} s, recorded {:.1} s", plain.wall, run.wall)),
    ])
}

/// Lost allocations of all processes, by `stackglass info`.
fn lost(setup: &Setup, file: &Path) -> Result<f64> {
    let text = output(Command::new(&setup.tools.stackglass).arg("info").arg(file))?;
    let counts = text.lines().filter_map(|line| {
        line.trim_start()
            .strip_prefix("allocations ")?
            .split(", ")
            .find_map(|part| part.strip_suffix(" lost"))
    });
    let counts = counts.map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    ensure!(!counts.is_empty(), "stackglass info prints no number of lost allocations");
    Ok(counts.iter().sum())
}
