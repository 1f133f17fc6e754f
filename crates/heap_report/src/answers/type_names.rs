//! The type of a node.
//!
//! For native programs this is the name of the node. In snapshots of other programs, names of strings are their text, and names of
//! functions and symbols are those of single ones: these nodes are put together, as DevTools does. In Julia's snapshots, each
//! kind of nodes is a type. Blocks of unknown type have one type for each size class.

use foldhash::HashMap;
use stackglass_profile::heap_graph::{HeapGraph, NODE_KINDS};
use stackglass_profile::{SizeClass, UNKNOWN_TEXT, UNKNOWN_TYPE, is_unknown_type};

const NONE: u32 = u32::MAX;

/// How nodes of a kind are named.
#[derive(Clone, Copy)]
enum Rule {
    /// By their name.
    Name,
    /// By their name up to a space, if it is an element of a web page.
    Element,
    /// Like [`Rule::Name`] if that is the type of texts, else all the same.
    Text(u32),
    /// All the same.
    Same(u32),
}

/// The type of nodes without a name, by kind.
pub(super) fn of_kind(kind: &str) -> String {
    format!("({kind})")
}

/// Names of the types in a graph.
pub(super) struct TypeNames {
    rules: Vec<Rule>,
    /// By the name of a node: the type. [`NONE`] for names that are no types, and for an empty one.
    by_name: Vec<u32>,
    /// By the kind of a node without a name.
    by_kind: Vec<u32>,
    names: Vec<Box<str>>,
    /// By the name of a node: whether its type is unknown, so that its size is a part of it.
    is_unknown: Vec<bool>,
    by_size: HashMap<(u32, SizeClass), u32>,
    /// Of these types: the name without the size, and the size.
    sized: HashMap<u32, (Box<str>, SizeClass)>,
    synthetic: u16,
    /// Whether each block has the size 1.
    pub sizes_are_counts: bool,
}

impl TypeNames {
    pub fn new(graph: &HeapGraph) -> TypeNames {
        TypeNames::from_graph(graph, true)
    }

    /// The same, but blocks of unknown type that begin with text count as all others: short texts are not known as such, so
    /// rows with and without texts would each have a part of what grows.
    pub fn without_texts(graph: &HeapGraph) -> TypeNames {
        TypeNames::from_graph(graph, false)
    }

    fn from_graph(graph: &HeapGraph, with_texts: bool) -> TypeNames {
        let mut known: HashMap<Box<str>, u32> = HashMap::default();
        let mut names = Vec::new();
        let mut intern = |text: &str| {
            *known.entry(text.into()).or_insert_with(|| {
                names.push(text.into());
                names.len() as u32 - 1
            })
        };
        let rules: Vec<Rule> = graph
            .node_kinds
            .iter()
            .map(|kind| match kind.as_str() {
                "native" => Rule::Element,
                "code" => Rule::Same(intern("(compiled code)")),
                "closure" => Rule::Same(intern("Function")),
                "regexp" => Rule::Same(intern("RegExp")),
                "symbol" => Rule::Same(intern("(symbol)")),
                "string" | "concatenated string" | "sliced string" => Rule::Text(intern(&of_kind(kind))),
                kind if NODE_KINDS.contains(&kind) => Rule::Name,
                kind => Rule::Same(intern(kind)),
            })
            .collect();
        let by_kind = graph.node_kinds.iter().map(|kind| intern(&of_kind(kind))).collect();
        let mut by_name = vec![NONE; graph.strings.len()];
        for (kind, name) in graph.kinds.iter().zip(&graph.names) {
            let (name, text) = (name.0 as usize, &graph.strings[name.0 as usize]);
            if by_name[name] != NONE {
                continue;
            }
            match rules.get(usize::from(*kind)) {
                Some(Rule::Same(_)) => {}
                _ if text.is_empty() => {}
                Some(Rule::Text(_)) if !is_type_of_texts(text) => {}
                Some(Rule::Element) => by_name[name] = intern(&element(text)),
                _ => by_name[name] = intern(text),
            }
        }
        let synthetic = graph.node_kinds.iter().position(|kind| kind == "synthetic");
        let synthetic = synthetic.map_or(u16::MAX, |at| at as u16);
        let mut is_unknown: Vec<bool> = graph.strings.iter().map(|name| is_unknown_type(name)).collect();
        let sizes_are_counts = sizes_are_counts(graph, synthetic);
        if sizes_are_counts {
            is_unknown.fill(false);
        }
        let (mut by_size, mut sized) = (HashMap::default(), HashMap::default());
        for node in (0..graph.len()).filter(|node| graph.kinds[*node] != synthetic) {
            let name = graph.names[node].0;
            if is_unknown[name as usize] {
                let class = class_of(graph, node);
                let plain = match &*graph.strings[name as usize] {
                    UNKNOWN_TEXT if !with_texts => UNKNOWN_TYPE,
                    plain => plain,
                };
                by_size.entry((name, class)).or_insert_with(|| {
                    let id = intern(&with_sizes(plain, class));
                    sized.insert(id, (plain.into(), class));
                    id
                });
            }
        }
        TypeNames { rules, by_name, by_kind, names, is_unknown, by_size, sized, synthetic, sizes_are_counts }
    }

    /// The type of a node.
    #[inline]
    pub fn of(&self, graph: &HeapGraph, node: usize) -> u32 {
        let name = graph.names[node].0 as usize;
        if self.is_unknown[name]
            && let Some(id) = self.by_size.get(&(name as u32, class_of(graph, node)))
        {
            return *id;
        }
        match self.rules.get(usize::from(graph.kinds[node])) {
            Some(Rule::Same(id)) => *id,
            Some(Rule::Text(id)) if !is_type_of_texts(&graph.strings[name]) => *id,
            _ if self.by_name[name] == NONE => self.by_kind[usize::from(graph.kinds[node])],
            _ => self.by_name[name],
        }
    }

    /// The name of a type.
    pub fn name(&self, id: u32) -> &str {
        &self.names[id as usize]
    }

    /// The name of a type without the size of its blocks, and their size if the type is unknown.
    pub fn without_size(&self, id: u32) -> (&str, Option<SizeClass>) {
        match self.sized.get(&id) {
            Some((name, class)) => (name, Some(*class)),
            None => (self.name(id), None),
        }
    }

    /// Number of types.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether a node is a root or a group of roots, and no block.
    #[inline]
    pub fn is_root(&self, graph: &HeapGraph, node: usize) -> bool {
        graph.kinds[node] == self.synthetic
    }

    /// Whether a node is a text.
    pub fn is_text(&self, graph: &HeapGraph, node: usize) -> bool {
        matches!(self.rules.get(usize::from(graph.kinds[node])), Some(Rule::Text(_)))
            || graph.node_kinds.get(usize::from(graph.kinds[node])).is_some_and(|kind| kind == "String")
    }
}

/// The sizes of the blocks of a node.
fn class_of(graph: &HeapGraph, node: usize) -> SizeClass {
    SizeClass::from_size(graph.self_sizes.get(node) / graph.block_count(node).max(1))
}

/// The name of blocks of unknown type, with their sizes.
pub(crate) fn with_sizes(name: &str, class: SizeClass) -> String {
    let (sizes, does) = (class.sizes(), name.strip_prefix(UNKNOWN_TYPE).unwrap_or_default());
    format!("{UNKNOWN_TYPE}, {}–{} B{does}", sizes.start(), sizes.end())
}

/// Whether each block has the size 1. `synthetic` is the kind of roots.
fn sizes_are_counts(graph: &HeapGraph, synthetic: u16) -> bool {
    let mut blocks = (0..graph.len()).filter(|node| graph.kinds[*node] != synthetic).peekable();
    blocks.peek().is_some() && blocks.all(|node| graph.self_sizes.get(node) == graph.block_count(node))
}

/// Whether the name of a text is a type, as in snapshots without the contents of the program.
pub(super) fn is_type_of_texts(name: &str) -> bool {
    let is_slice = |name: &str| {
        let inside = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        inside.is_some_and(|inside| {
            !inside.is_empty() && inside.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
    };
    const NAMES: [&str; 7] = ["<redacted>", "String", "str", "CString", "OsString", "PathBuf", "Vec<u8>"];
    const BEGINNINGS: [&str; 5] =
        ["std::string", "std::basic_string", "std::__cxx11::basic_string", "char[", "site: "];
    NAMES.contains(&name)
        || is_unknown_type(name)
        || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
        || is_slice(name)
}

/// `<div>` for `<div id="a">`.
fn element(name: &str) -> String {
    let begin = if name.starts_with('<') {
        0
    } else if name.starts_with("Detached <") {
        "Detached ".len()
    } else {
        return name.to_owned();
    };
    match name[begin..].find(' ') {
        Some(end) => format!("{}>", &name[..begin + end]),
        None => name.to_owned(),
    }
}
