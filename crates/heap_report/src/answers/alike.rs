//! Sums of one copy of a heap by type, site and path: what is compared when a process is watched.

use super::HeapPath;
use super::growth::Sum;
use super::holders::Holders;
use super::reach::Reach;
use super::type_names::TypeNames;
use foldhash::HashMap;
use stackglass_profile::SizeClass;
use stackglass_profile::heap_graph::{AllocatingFunction, HeapGraph};
use std::sync::Arc;

/// What blocks have in common that count together.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Alike {
    /// Their type, or the site that allocated them; if the type is unknown, what they begin with.
    pub name: String,
    /// Their sizes, if the type is unknown.
    pub size_class: Option<SizeClass>,
    /// The place that allocated them, if it is known and not the name.
    pub site: Option<String>,
    /// The path to them, without indices of elements, ids of threads, and lines of frames. In a list or tree, it is the path to the
    /// first node. Empty if no path leads to them.
    pub path: HeapPath,
}

/// Sums of one copy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AlikeSums {
    /// All blocks.
    pub all: Sum,
    /// Those that are alike.
    pub rows: HashMap<Arc<Alike>, Sum>,
}

impl AlikeSums {
    /// The sums of a graph.
    pub fn new(graph: &HeapGraph) -> AlikeSums {
        let types = TypeNames::without_texts(graph);
        let holders = Holders::new(graph, &types, &Reach::new(graph).alive);
        let mut all = Sum::default();
        let mut sums: HashMap<Key<'_>, Sum> = HashMap::default();
        for node in (0..graph.len()).filter(|node| !types.is_root(graph, *node)) {
            let type_id = types.of(graph, node);
            let one = Sum { count: graph.block_count(node), self_size: graph.self_sizes.get(node) };
            let site = graph.allocated_by(node);
            all.add(one);
            sums.entry((type_id, site, holders.number(node))).or_default().add(one);
        }
        let mut rows: HashMap<Arc<Alike>, Sum> = HashMap::default();
        for ((type_id, site, path), sum) in sums {
            let (name, size_class) = types.without_size(type_id);
            let alike = Alike {
                name: name.to_owned(),
                size_class,
                site: site.filter(|_| !name.starts_with("site: ")).map(ToString::to_string),
                path: path.map_or_else(HeapPath::default, |number| holders.path(number)),
            };
            // Different numbers may have one name.
            rows.entry(Arc::new(alike)).or_default().add(sum);
        }
        AlikeSums { all, rows }
    }
}

/// Type, site, and path, as numbers in one graph.
type Key<'g> = (u32, Option<&'g AllocatingFunction>, Option<u32>);
