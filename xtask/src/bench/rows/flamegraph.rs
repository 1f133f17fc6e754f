//! Drawing folded stacks, compared with inferno's `flamegraph` on the same files: time, size and memory.
//!
//! By default, inferno omits boxes narrower than 0.01 % of the picture; both ways are measured. Stackglass's SVG merges boxes
//! narrower than a point. Its page has every box, like inferno's picture with `--minwidth 0`.

use crate::bench::figure::{Bound, Figure, Unit};
use crate::bench::made_stacks::folded;
use crate::bench::setup::Setup;
use crate::bench::statistics::{Interval, median};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Distinct stacks, as it is written, functions in them, and rounds.
const INPUTS: [(usize, &str, usize, usize); 3] =
    [(1_000, "1 000", 400, 41), (20_000, "20 000", 2_000, 21), (100_000, "100 000", 5_000, 11)];

/// Most bytes of a page for each of its boxes, the whole file counted, and the boxes from which on that holds: the viewer
/// and the picture for readers without scripts are there in smaller ones, too.
const BYTES_A_BOX: f64 = 40.0;
const MANY_BOXES: usize = 100_000;

/// One way to draw a file: what figures call it, what it writes, and its command line.
struct Way {
    name: &'static str,
    picture: PathBuf,
    words: Vec<String>,
    /// The picture comes on standard output.
    says: bool,
}

/// Wall time and CPU time in s, peak memory and size of the picture in MB.
type Cost = [f64; 4];

/// What each of them is called, its unit in notes and how many of these it is, and the unit of its ratio.
const COSTS: [(&str, f64, &str, Unit); 4] = [
    ("wall time", 1e3, "ms", Unit::Times),
    ("CPU time", 1e3, "ms", Unit::Times),
    ("peak memory", 1.0, "MB", Unit::Times),
    // Some are a thousandth of the other.
    ("size", 1.0, "MB", Unit::Percent),
];

/// New processes in turn; each round starts with another command.
pub fn measure(setup: &Setup) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (distinct, called, functions, rounds) in INPUTS {
        let input = setup.scratch(&format!("made-{distinct}.folded"));
        std::fs::write(&input, folded(distinct, functions))?;
        let ways = ways(setup, &input)?;
        for way in &ways {
            draw(setup, way)?;
        }
        let rounds = (0..setup.either(rounds, 3))
            .map(|round| {
                let mut costs = [[0.0; 4]; 4];
                for i in 0..ways.len() {
                    let which = (i + round) % ways.len();
                    costs[which] = draw(setup, &ways[which])?;
                }
                Ok(costs)
            })
            .collect::<Result<Vec<[Cost; 4]>>>()?;
        figures.extend(compare(&format!("{called} stacks"), &ways, &rounds));
        figures.push(page(&format!("{called} stacks"), &ways)?);
    }
    Ok(figures)
}

/// Ours first, then inferno's.
fn ways(setup: &Setup, input: &Path) -> Result<[Way; 4]> {
    let inferno = setup.peers.inferno.as_ref().context("inferno is missing")?;
    let ours = |name, file: &str| {
        let picture = setup.scratch(file);
        let words = [&setup.tools.stackglass, Path::new("flamegraph"), input, Path::new("-o"), &picture];
        let words = words.map(|word| word.display().to_string()).to_vec();
        Way { name, picture, words, says: false }
    };
    let theirs = |name, file: &str, flags: &[&str]| {
        let mut words = vec![inferno.display().to_string()];
        words.extend(flags.iter().map(|flag| (*flag).to_owned()));
        words.push(input.display().to_string());
        Way { name, picture: setup.scratch(file), words, says: true }
    };
    Ok([
        ours("SVG", "made.svg"),
        ours("page", "made.html"),
        theirs("inferno", "inferno.svg", &[]),
        theirs("inferno --minwidth 0", "inferno-all.svg", &["--minwidth", "0"]),
    ])
}

/// Draws a picture once.
fn draw(setup: &Setup, way: &Way) -> Result<Cost> {
    let run = match way.says {
        true => setup.run_into(&way.words, &way.picture)?,
        false => setup.run(&way.words)?,
    };
    let bytes = std::fs::metadata(&way.picture)?.len();
    ensure!(bytes > 0, "{} has drawn nothing", way.name);
    Ok([run.wall, run.tree_cpu, run.peak, bytes as f64 * 1e-6])
}

/// Each cost of Stackglass ÷ the same of inferno.
fn compare(what: &str, ways: &[Way], rounds: &[[Cost; 4]]) -> Vec<Figure> {
    let middle = |way: usize, cost: usize| {
        median(&rounds.iter().map(|round| round[way][cost]).collect::<Vec<_>>()) * COSTS[cost].1
    };
    let mut figures = Vec::new();
    for (cost, (name, _, unit, of_ratio)) in COSTS.iter().enumerate() {
        for (ours, theirs) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
            let ratio = Interval::bootstrap(rounds, |rounds| {
                median(&rounds.iter().map(|r| r[ours][cost] / r[theirs][cost]).collect::<Vec<_>>())
            });
            let note = format!("{} and {} {unit}", short(middle(ours, cost)), short(middle(theirs, cost)));
            let what = format!("{what}, {name}: {} ÷ {}", ways[ours].name, ways[theirs].name);
            figures.push(Figure::told(what, ratio, *of_ratio).note(note));
        }
    }
    if let Some(first) = figures.first_mut() {
        first.add_note(&format!("{} rounds", rounds.len()));
    }
    figures
}

/// At least two digits.
fn short(x: f64) -> String {
    let digits = if x < 1.0 {
        2
    } else if x < 100.0 {
        1
    } else {
        0
    };
    format!("{x:.digits$}")
}

/// How many bytes a box of the page takes, all of its boxes being those that inferno draws as well.
fn page(what: &str, ways: &[Way]) -> Result<Figure> {
    let page = std::fs::read_to_string(&ways[1].picture)?;
    let (data, _) = page
        .split_once(" id=\"data\">")
        .and_then(|(_, rest)| rest.split_once("</script>"))
        .context("the page has no data")?;
    let data: Value = serde_json::from_str(data)?;
    let boxes =
        data["views"][0]["cpu"]["nodes"].as_u64().context("the page does not tell its boxes")? as usize;
    let names: Vec<&str> = data["strings"].as_array().into_iter().flatten().flat_map(Value::as_str).collect();
    let differ = names.iter().collect::<HashSet<_>>().len();
    ensure!(differ == names.len(), "{} names are in the page's data, {differ} of them differ", names.len());
    let drawn =
        |way: &Way| -> Result<usize> { Ok(std::fs::read_to_string(&way.picture)?.matches(" fg:x=").count()) };
    let (fewer, all) = (drawn(&ways[2])?, drawn(&ways[3])?);
    ensure!(all == boxes, "the page has {boxes} boxes, inferno draws {all}: they show different things");
    let bytes = Interval::exact(page.len() as f64 / boxes as f64);
    let what = format!("{what}, the page: bytes a box");
    let note = format!(
        "{boxes} boxes, of which inferno draws {fewer} by default; {} names, each once in the page's data",
        names.len()
    );
    let figure = match boxes >= MANY_BOXES {
        true => Figure::must(what, bytes, Unit::Count, Bound::AtMost(BYTES_A_BOX)),
        false => Figure::told(what, bytes, Unit::Count),
    };
    Ok(figure.note(note))
}
