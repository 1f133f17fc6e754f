//! Answers for programs, as documented in `docs/json.md`.

use crate::answers::growth::{GrowthRow, HeapSums};
use crate::answers::{
    BlockRow, BlocksOfType, Dominator, DuplicateString, HeapAnswers, HeapPath, OwnerRow, RetainerRow,
    SiteRow, TypeAnswer, TypeRow, UnusedRow, total,
};
use serde::Serialize;
use stackglass_report::json::{InLine, Rows, write_sections};
use std::io::{self, Write};
use std::{iter, slice};

/// Number of holders in the answer.
const LARGEST: usize = 100;

/// The members of the first answer that begin a line.
const SHOW_SECTIONS: &[&str] =
    &["types", "unreachable", "lost", "only_weak", "owners", "largest", "unused", "duplicate_strings"];

/// A list of rows, each made of a row of the answer.
type Each<'a, T, R> = Rows<iter::Map<slice::Iter<'a, T>, fn(&'a T) -> R>>;

fn each<'a, T, R>(rows: &'a [T], row: fn(&'a T) -> R) -> Each<'a, T, R> {
    Rows(rows.iter().map(row))
}

/// Writes what is alive, what holds it, and what could be saved, as one JSON object.
///
/// # Errors
/// When writing fails.
pub fn write_show_json(answers: &HeapAnswers<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (types, leaks, waste) = (answers.types(), answers.leaks(), answers.waste());
    let (graph, largest) = (answers.graph(), answers.largest(LARGEST));
    let sum = total(&types.unreachable);
    let show = Show {
        nodes: graph.len(),
        edges: graph.targets.len(),
        self_size: answers.self_size(),
        types: each(&types.alive, Type::from_row),
        unreachable: Candidates {
            sum: Sum { count: sum.count, self_size: sum.self_size },
            lost: Sum { count: leaks.lost_count, self_size: leaks.lost_size },
            only_weak: Sum { count: leaks.weak_count, self_size: leaks.weak_size },
            unread_threads: leaks.unread_threads,
            unread_mappings: leaks.unread_mappings,
            types: each(&types.unreachable, Type::from_row),
            owners: each(&leaks.owners, Owner::from_row),
        },
        largest: each(&largest, Holder::from_dominator),
        unused: each(&waste.unused, Unused::from_row),
        duplicate_strings: waste.duplicates.as_ref().map(|found| each(&found.strings, Duplicate::from_row)),
    };
    write_sections(SHOW_SECTIONS, &show, out)
}

#[derive(Serialize)]
struct Show<'a> {
    nodes: usize,
    edges: usize,
    self_size: u64,
    types: Each<'a, TypeRow, Type<'a>>,
    unreachable: Candidates<'a>,
    largest: Each<'a, Dominator, Holder<'a>>,
    unused: Each<'a, UnusedRow, Unused<'a>>,
    duplicate_strings: Option<Each<'a, DuplicateString, Duplicate<'a>>>,
}

/// Blocks that no root reaches.
#[derive(Serialize)]
struct Candidates<'a> {
    #[serde(flatten)]
    sum: Sum,
    lost: Sum,
    only_weak: Sum,
    unread_threads: u64,
    unread_mappings: u64,
    types: Each<'a, TypeRow, Type<'a>>,
    owners: Each<'a, OwnerRow, Owner<'a>>,
}

#[derive(Serialize)]
struct Sum {
    count: u64,
    self_size: u64,
}

#[derive(Serialize)]
struct Type<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    count: u64,
    self_size: u64,
    retained_size: u64,
}

#[derive(Serialize)]
struct Owner<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    weak: bool,
    owners: u64,
    in_cycles: u64,
    count: u64,
    size: u64,
    sites: InLine<Each<'a, SiteRow, Site<'a>>>,
}

#[derive(Serialize)]
struct Site<'a> {
    site: &'a str,
    count: u64,
    self_size: u64,
}

/// A block or variable that holds others.
#[derive(Serialize)]
struct Holder<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    alike: u64,
    count: u64,
    retained_size: u64,
    path: Vec<String>,
}

#[derive(Serialize)]
struct Unused<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    holder: &'a str,
    field: &'a str,
    count: u64,
    self_size: u64,
    unused_size: u64,
}

#[derive(Serialize)]
struct Duplicate<'a> {
    text: &'a str,
    count: u64,
    self_size: u64,
    waste: u64,
}

/// Writes everything about a type as one JSON object.
///
/// # Errors
/// When writing fails.
pub fn write_type_json(answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
    let everything = Everything {
        head: TypeHead::from_answer(answer),
        path: nearest(answer),
        retainers: each(&answer.retainers, Retainer::from_row),
        fields: each(&answer.fields, Field::from_row),
        sites: each(&answer.sites, Site::from_row),
        largest: each(&answer.largest, Holder::from_dominator),
    };
    write_sections(&["unreachable", "path", "retainers", "fields", "sites", "largest"], &everything, out)
}

/// Writes the blocks of a type with their addresses as one JSON object.
///
/// # Errors
/// When writing fails.
pub fn write_blocks_json(answer: &TypeAnswer, blocks: &BlocksOfType, out: &mut dyn Write) -> io::Result<()> {
    let blocks = Blocks {
        head: TypeHead::from_answer(answer),
        in_groups: blocks.in_groups,
        blocks: each(&blocks.rows, Block::from_row),
    };
    write_sections(&["unreachable", "in_groups", "blocks"], &blocks, out)
}

#[derive(Serialize)]
struct Blocks<'a> {
    #[serde(flatten)]
    head: TypeHead<'a>,
    in_groups: u64,
    blocks: Each<'a, BlockRow, Block>,
}

#[derive(Serialize)]
struct Block {
    address: String,
    self_size: u64,
    retained_size: u64,
    path: Option<Vec<String>>,
}

/// Writes the shortest paths to a type as one JSON object.
///
/// # Errors
/// When writing fails.
pub fn write_path_json(answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
    let paths = Paths {
        head: TypeHead::from_answer(answer),
        path: nearest(answer),
        paths: each(&answer.paths, HeapPath::parts),
    };
    write_sections(&["unreachable", "path", "paths"], &paths, out)
}

/// Writes what holds a type as one JSON object.
///
/// # Errors
/// When writing fails.
pub fn write_retainers_json(answer: &TypeAnswer, out: &mut dyn Write) -> io::Result<()> {
    let retainers = Retainers {
        head: TypeHead::from_answer(answer),
        retainers: each(&answer.retainers, Retainer::from_row),
    };
    write_sections(&["unreachable", "retainers"], &retainers, out)
}

#[derive(Serialize)]
struct Everything<'a> {
    #[serde(flatten)]
    head: TypeHead<'a>,
    path: Option<Vec<String>>,
    retainers: Each<'a, RetainerRow, Retainer<'a>>,
    fields: Each<'a, RetainerRow, Field<'a>>,
    sites: Each<'a, SiteRow, Site<'a>>,
    largest: Each<'a, Dominator, Holder<'a>>,
}

#[derive(Serialize)]
struct Paths<'a> {
    #[serde(flatten)]
    head: TypeHead<'a>,
    path: Option<Vec<String>>,
    paths: Each<'a, HeapPath, Vec<String>>,
}

#[derive(Serialize)]
struct Retainers<'a> {
    #[serde(flatten)]
    head: TypeHead<'a>,
    retainers: Each<'a, RetainerRow, Retainer<'a>>,
}

/// What the answers on one type begin with.
#[derive(Serialize)]
struct TypeHead<'a> {
    #[serde(flatten)]
    alive: Type<'a>,
    unreachable: UnreachableOfType,
}

#[derive(Serialize)]
struct UnreachableOfType {
    count: u64,
    self_size: u64,
    retained_size: u64,
    only_weak: u64,
}

#[derive(Serialize)]
struct Retainer<'a> {
    holder: &'a str,
    #[serde(flatten)]
    edges: Edges<'a>,
}

/// Fields of the type itself.
#[derive(Serialize)]
struct Field<'a> {
    target: &'a str,
    #[serde(flatten)]
    edges: Edges<'a>,
}

/// The edges of a field.
#[derive(Serialize)]
struct Edges<'a> {
    field: &'a str,
    weak: bool,
    edges: u64,
    count: u64,
    self_size: u64,
}

/// Writes the growth from snapshot to snapshot as one JSON object.
///
/// # Errors
/// When writing fails.
pub fn write_growth_json(snapshots: &[HeapSums], rows: &[GrowthRow], out: &mut dyn Write) -> io::Result<()> {
    let growth =
        Growth { snapshots: each(snapshots, Snapshot::from_sums), types: each(rows, Grown::from_row) };
    write_sections(&["types"], &growth, out)
}

#[derive(Serialize)]
struct Growth<'a> {
    snapshots: Each<'a, HeapSums, Snapshot>,
    types: Each<'a, GrowthRow, Grown<'a>>,
}

#[derive(Serialize)]
struct Snapshot {
    nodes: u64,
    edges: u64,
    self_size: u64,
    unreachable: Sum,
}

/// A type, with a number for each snapshot.
#[derive(Serialize)]
struct Grown<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    count: Vec<u64>,
    self_size: Vec<u64>,
}

/// The parts of the shortest path to a type: repeated ones once.
fn nearest(answer: &TypeAnswer) -> Option<Vec<String>> {
    answer.paths.first().map(HeapPath::parts)
}

impl TypeHead<'_> {
    fn from_answer(answer: &TypeAnswer) -> TypeHead<'_> {
        let TypeRow { count, self_size, retained_size, .. } = answer.unreachable;
        let unreachable = UnreachableOfType { count, self_size, retained_size, only_weak: answer.only_weak };
        TypeHead { alive: Type::from_row(&answer.alive), unreachable }
    }
}

impl Type<'_> {
    fn from_row(row: &TypeRow) -> Type<'_> {
        let TypeRow { ref name, count, self_size, retained_size } = *row;
        Type { name, count, self_size, retained_size }
    }
}

impl Owner<'_> {
    fn from_row(row: &OwnerRow) -> Owner<'_> {
        let OwnerRow { ref name, weak, owners, in_cycles, count, size, ref sites } = *row;
        Owner { name, weak, owners, in_cycles, count, size, sites: InLine(each(sites, Site::from_row)) }
    }
}

impl Site<'_> {
    fn from_row(row: &SiteRow) -> Site<'_> {
        Site { site: &row.name, count: row.count, self_size: row.self_size }
    }
}

impl Holder<'_> {
    fn from_dominator(row: &Dominator) -> Holder<'_> {
        let Dominator { ref name, alike, count, retained_size, ref path, .. } = *row;
        Holder { name, alike, count, retained_size, path: path.parts() }
    }
}

impl Block {
    fn from_row(row: &BlockRow) -> Block {
        let BlockRow { address, self_size, retained_size, ref path } = *row;
        let path = path.as_ref().map(HeapPath::parts);
        Block { address: format!("{address:#x}"), self_size, retained_size, path }
    }
}

impl Unused<'_> {
    fn from_row(row: &UnusedRow) -> Unused<'_> {
        let UnusedRow { ref name, ref holder, ref field, count, self_size, unused_size } = *row;
        Unused { name, holder, field, count, self_size, unused_size }
    }
}

impl Duplicate<'_> {
    fn from_row(row: &DuplicateString) -> Duplicate<'_> {
        let DuplicateString { ref text, count, self_size, waste } = *row;
        Duplicate { text, count, self_size, waste }
    }
}

impl Retainer<'_> {
    fn from_row(row: &RetainerRow) -> Retainer<'_> {
        Retainer { holder: &row.holder, edges: Edges::from_row(row) }
    }
}

impl Field<'_> {
    fn from_row(row: &RetainerRow) -> Field<'_> {
        Field { target: &row.holder, edges: Edges::from_row(row) }
    }
}

impl Edges<'_> {
    fn from_row(row: &RetainerRow) -> Edges<'_> {
        let RetainerRow { ref field, weak, edges, count, self_size, .. } = *row;
        Edges { field, weak, edges, count, self_size }
    }
}

impl Snapshot {
    fn from_sums(sums: &HeapSums) -> Snapshot {
        let HeapSums { nodes, edges, self_size, unreachable_count, unreachable_size, .. } = *sums;
        let unreachable = Sum { count: unreachable_count, self_size: unreachable_size };
        Snapshot { nodes, edges, self_size, unreachable }
    }
}

impl Grown<'_> {
    fn from_row(row: &GrowthRow) -> Grown<'_> {
        Grown {
            name: &row.name,
            count: row.sums.iter().map(|sum| sum.count).collect(),
            self_size: row.sums.iter().map(|sum| sum.self_size).collect(),
        }
    }
}
