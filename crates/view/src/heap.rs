//! A heap snapshot as columns: types, largest holders, leak candidates, the dominator tree by type, and of each type what holds it, what it
//! holds and what would go with it.
//!
//! All figures are those of `stackglass heap show`. A heap of millions of blocks becomes some thousand rows.

use crate::columns::Columns;
use crate::frames::Strings;
use foldhash::HashMap;
use serde::Serialize;
use stackglass_heap_report::HeapAnswers;
use stackglass_heap_report::answers::{Dominator, HeapPath, RetainerRow, SiteRow};
use stackglass_profile::sanitize;

/// Rows of the dominator tree, at most about so many.
const TREE_ROWS: usize = 5000;
/// Largest holders.
const HOLDERS: usize = 100;
/// Rows of each list about one type.
const OF_TYPE: usize = 20;

/// A heap snapshot to be shown.
#[derive(Clone, Copy)]
pub struct Heap<'a> {
    /// Where it comes from: the name of a file.
    pub name: &'a str,
    /// Answers about it.
    pub answers: &'a HeapAnswers<'a>,
}

impl std::fmt::Debug for Heap<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heap").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Blocks and their bytes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
struct Sum {
    count: u64,
    bytes: u64,
}

/// Sums of a snapshot.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeapHead {
    name: String,
    /// Sizes are numbers of blocks.
    counts: bool,
    edges: usize,
    alive: Sum,
    /// Leak candidates to which nothing leads, and those to which only weak edges lead.
    lost: Sum,
    weak: Sum,
    /// What two or more owners of candidates hold.
    shared: Sum,
    /// Roots and what they alone hold, and what several of them hold.
    roots: Vec<(String, u64)>,
    unread_threads: u64,
    unread_mappings: u64,
    /// Rows of the tree with fewer bytes are summed up.
    least: u64,
}

/// Rows of numbers, and the names of their columns.
struct Table<const N: usize> {
    names: [&'static str; N],
    rows: Vec<[u64; N]>,
}

impl<const N: usize> Table<N> {
    fn new(names: [&'static str; N]) -> Table<N> {
        Table { names, rows: Vec::new() }
    }

    fn write(self, columns: &mut Columns) {
        for (at, name) in self.names.into_iter().enumerate() {
            columns.push(name, self.rows.iter().map(|row| row[at]));
        }
    }
}

/// What rows refer to by number.
struct Texts {
    strings: Strings,
    /// Paths by number, each a list of strings.
    numbers: HashMap<Vec<u64>, u64>,
    paths: Vec<u64>,
}

impl Texts {
    fn text(&mut self, text: &str) -> u64 {
        self.strings.intern(&sanitize(text))
    }

    fn path(&mut self, path: &HeapPath) -> u64 {
        let parts: Vec<u64> = path.parts().iter().map(|part| self.text(part)).collect();
        if let Some(number) = self.numbers.get(&parts) {
            return *number;
        }
        let number = self.numbers.len() as u64;
        self.paths.push(parts.len() as u64);
        self.paths.extend(&parts);
        self.numbers.insert(parts, number);
        number
    }

    fn holder(&mut self, of: u64, holder: &Dominator) -> [u64; 7] {
        let (name, path) = (self.text(&holder.name), self.path(&holder.path));
        [of, name, holder.is_variable.into(), holder.alike, holder.count, holder.retained_size, path]
    }

    fn field(&mut self, of: u64, holds: bool, row: &RetainerRow) -> [u64; 8] {
        let (other, field) = (self.text(&row.holder), self.text(&row.field));
        [of, holds.into(), other, field, row.weak.into(), row.edges, row.count, row.self_size]
    }

    fn site(&mut self, of: u64, row: &SiteRow) -> [u64; 4] {
        [of, self.text(&row.name), row.count, row.self_size]
    }
}

/// Adds the columns of a snapshot, and returns its sums. In columns named `of`, a type is known by the number of its name.
pub(crate) fn write(heap: &Heap<'_>, columns: &mut Columns) -> HeapHead {
    let answers = heap.answers;
    let (table, leaks, roots) = (answers.types(), answers.leaks(), answers.roots());
    let tree = answers.tree(TREE_ROWS);
    let mut texts = Texts { strings: Strings::default(), numbers: HashMap::default(), paths: Vec::new() };

    let mut types = Table::new([
        "heap.types.name",
        "heap.types.alive",
        "heap.types.count",
        "heap.types.own",
        "heap.types.retained",
    ]);
    for (rows, alive) in [(&table.alive, 1), (&table.unreachable, 0)] {
        types.rows.extend(
            rows.iter()
                .map(|row| [texts.text(&row.name), alive, row.count, row.self_size, row.retained_size]),
        );
    }
    let mut holders = Table::new([
        "heap.holders.of",
        "heap.holders.name",
        "heap.holders.variable",
        "heap.holders.alike",
        "heap.holders.count",
        "heap.holders.retained",
        "heap.holders.path",
    ]);
    // The empty name stands for all types.
    holders.rows.extend(answers.largest(HOLDERS).iter().map(|row| texts.holder(0, row)));
    let mut fields = Table::new([
        "heap.fields.of",
        "heap.fields.holds",
        "heap.fields.other",
        "heap.fields.field",
        "heap.fields.weak",
        "heap.fields.edges",
        "heap.fields.count",
        "heap.fields.own",
    ]);
    let mut retains =
        Table::new(["heap.retains.of", "heap.retains.name", "heap.retains.count", "heap.retains.own"]);
    let mut sites = Table::new(["heap.sites.of", "heap.sites.name", "heap.sites.count", "heap.sites.own"]);
    for each in answers.each_type(OF_TYPE) {
        let of = texts.text(&each.name);
        holders.rows.extend(each.largest.iter().map(|row| texts.holder(of, row)));
        fields.rows.extend(each.retainers.iter().map(|row| texts.field(of, false, row)));
        fields.rows.extend(each.fields.iter().map(|row| texts.field(of, true, row)));
        retains
            .rows
            .extend(each.retains.iter().map(|row| [of, texts.text(&row.name), row.count, row.self_size]));
        sites.rows.extend(each.sites.iter().map(|row| texts.site(of, row)));
    }
    let mut owners = Table::new([
        "heap.owners.name",
        "heap.owners.weak",
        "heap.owners.owners",
        "heap.owners.cycles",
        "heap.owners.count",
        "heap.owners.size",
    ]);
    let mut owner_sites = Table::new([
        "heap.ownerSites.of",
        "heap.ownerSites.name",
        "heap.ownerSites.count",
        "heap.ownerSites.own",
    ]);
    for (number, row) in leaks.owners.iter().enumerate() {
        owners.rows.push([
            texts.text(&row.name),
            row.weak.into(),
            row.owners,
            row.in_cycles,
            row.count,
            row.size,
        ]);
        owner_sites.rows.extend(row.sites.iter().take(OF_TYPE).map(|site| texts.site(number as u64, site)));
    }
    let mut rows = Table::new([
        "heap.tree.level",
        "heap.tree.kind",
        "heap.tree.name",
        "heap.tree.alike",
        "heap.tree.count",
        "heap.tree.own",
        "heap.tree.retained",
    ]);
    for row in &tree.rows {
        let (level, kind, name) = (row.level.into(), row.kind as u64, texts.text(&row.name));
        rows.rows.push([level, kind, name, row.alike, row.count, row.self_size, row.retained_size]);
    }
    types.write(columns);
    holders.write(columns);
    fields.write(columns);
    retains.write(columns);
    sites.write(columns);
    owners.write(columns);
    owner_sites.write(columns);
    rows.write(columns);
    columns.push("heap.paths", texts.paths);
    columns.push_text("heap.strings", &texts.strings.json());

    let alive = table.alive.iter().fold((0, 0), |sum, row| (sum.0 + row.count, sum.1 + row.self_size));
    let of = |(count, bytes)| Sum { count, bytes };
    let mut held: Vec<(String, u64)> =
        roots.groups.iter().map(|(name, size)| (sanitize(name).into_owned(), *size)).collect();
    held.push(("other roots".to_owned(), roots.others));
    held.push(("two or more of them".to_owned(), roots.shared));
    held.retain(|(_, size)| *size > 0);
    HeapHead {
        name: sanitize(heap.name).into_owned(),
        counts: answers.sizes_are_counts(),
        edges: answers.graph().targets.len(),
        alive: of(alive),
        lost: of((leaks.lost_count, leaks.lost_size)),
        weak: of((leaks.weak_count, leaks.weak_size)),
        shared: of((leaks.shared_count, leaks.shared_size)),
        roots: held,
        unread_threads: leaks.unread_threads,
        unread_mappings: leaks.unread_mappings,
        least: tree.least,
    }
}
