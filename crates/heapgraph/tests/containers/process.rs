//! A program that prints its blocks and edges, and the edges that are found in it.

use stackglass_heapgraph::references::{
    BlockType, EdgeName, Extent, Hold, Pointers, Reference, References, start_of_text, text,
};
use stackglass_layouts::Layouts;
use stackglass_process_view::core_image::{CoreImage, Memory};
use stackglass_process_view::modules;
use stackglass_procfs::maps;
use stackglass_profile::recording::Module;
use stackglass_symbols::Options;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What a program prints.
#[derive(Debug, Default)]
pub struct Printed {
    /// Sizes of its live blocks by address.
    pub blocks: BTreeMap<u64, u64>,
    pub root: u64,
    /// Edges: kind, first bytes of the blocks where they begin and end. Blocks that are not in `blocks` keep their address.
    pub edges: BTreeSet<(&'static str, u64, u64)>,
    pub unowned: BTreeSet<u64>,
    pub texts: BTreeMap<u64, String>,
    /// Variables: address and name.
    pub variables: Vec<(u64, String)>,
}

/// An edge that is found.
#[derive(Clone, Debug)]
pub struct Found {
    pub from: u64,
    pub to: u64,
    pub hold: Hold,
    /// As users read it.
    pub name: String,
}

/// What is found.
pub struct Graph {
    pub edges: Vec<Found>,
    /// What each block that is reached contains, with the name of the type.
    pub contains: BTreeMap<u64, String>,
    pub texts: BTreeMap<u64, String>,
    /// Used and capacity, by address of the buffer.
    pub usage: BTreeMap<u64, (u64, u64)>,
    /// Owners that point into a block.
    pub doubtful_owners: usize,
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct ProcessMemory(File);

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        self.0.read_at(into, address).unwrap_or(0)
    }
}

/// Compiles a source of these tests in a folder.
pub fn build(folder: &Path, source: &str, compiler: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/containers/sources").join(source);
    let path = folder.join("program");
    let output = Command::new(compiler).arg(source).args(flags).arg("-o").arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

/// Runs a program until it is `ready`, and follows its pointers from its root, which has the type `root`.
pub fn follow(program: &Path, root: &str) -> (Printed, Graph) {
    let mut command = Command::new(program);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut running = Running(child);
    let mut lines = Vec::new();
    for line in BufReader::new(running.0.stdout.take().unwrap()).lines() {
        match line.unwrap() {
            line if line == "ready" => break,
            line => lines.push(line),
        }
    }
    let printed = read(&lines);
    let image = image(running.0.id());
    let graph = search(&image, program, root, &printed);
    (printed, graph)
}

fn read(lines: &[String]) -> Printed {
    let mut printed = Printed::default();
    let mut edges = Vec::new();
    for line in lines {
        let mut words = line.splitn(3, ' ');
        let kind = words.next().unwrap();
        let first = words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        let rest = words.next().unwrap_or("");
        let second = rest.parse::<u64>().unwrap_or(0);
        match kind {
            "block" => drop(printed.blocks.insert(first, second)),
            "root" => printed.root = first,
            "owns" => edges.push(("owns", first, second)),
            "refers" => edges.push(("refers", first, second)),
            "weak" | "doubtful" => edges.push(("weak", first, second)),
            "unowned" => drop(printed.unowned.insert(first)),
            "variable" => printed.variables.push((first, rest.to_owned())),
            "text" => drop(printed.texts.insert(first, rest.to_owned())),
            _ => (),
        }
    }
    let start = |address| block(&printed.blocks, address).unwrap_or(address);
    printed.edges = edges.iter().map(|(kind, from, to)| (*kind, start(*from), start(*to))).collect();
    printed.texts = printed.texts.iter().map(|(at, text)| (start(*at), text.clone())).collect();
    printed
}

/// The first byte of the block with this address.
fn block(blocks: &BTreeMap<u64, u64>, address: u64) -> Option<u64> {
    let (start, size) = blocks.range(..=address).next_back()?;
    (address - start < (*size).max(1)).then_some(*start)
}

fn image(pid: u32) -> CoreImage {
    let mappings = maps::read(pid).unwrap();
    let memory = Box::new(ProcessMemory(File::open(format!("/proc/{pid}/mem")).unwrap()));
    CoreImage { pid, executable: String::new(), mappings, threads: Vec::new(), memory }
}

fn name(reference: &Reference<'_>) -> String {
    match reference.name {
        EdgeName::Field(name) => name.to_owned(),
        EdgeName::Index(index) if reference.within.is_empty() => format!("[{index}]"),
        EdgeName::Index(index) => format!("[{index}].{}", reference.within),
    }
}

fn search(image: &CoreImage, program: &Path, root: &str, printed: &Printed) -> Graph {
    let modules = modules::find(image, program.to_str().unwrap());
    let files: Vec<Module> = (modules.iter())
        .map(|module| Module { path: module.path.as_str().into(), build_id: module.module.build_id().into() })
        .collect();
    let layouts = Layouts::read(&files, &Options::default());
    let mut references = References::new(&layouts);
    for (index, module) in modules.iter().enumerate() {
        references.load_module(index, module.bias());
    }
    let root = layouts.by_name(root).expect("the type of the root");
    let mut graph = Graph {
        edges: Vec::new(),
        contains: BTreeMap::new(),
        texts: BTreeMap::new(),
        usage: BTreeMap::new(),
        doubtful_owners: 0,
    };
    let mut pending = VecDeque::from([(printed.root, BlockType::One(root), Extent::default())]);
    let mut bytes = Vec::new();
    let data = layouts.module(0);
    for (at, name) in &printed.variables {
        let part = format!("::{name}");
        let mut all = data.statics.iter().chain(&data.thread_locals);
        let variable = all
            .find(|variable| variable.name.ends_with(&part) || variable.name.contains(&format!("{part}::")));
        let names = || data.statics.iter().chain(&data.thread_locals).map(|variable| &variable.name);
        let variable = variable.unwrap_or_else(|| panic!("{name}: {:#?}", names().collect::<Vec<_>>()));
        let type_id = variable.type_id.unwrap();
        bytes.resize(variable.size as usize, 0);
        assert_eq!(image.memory.read(*at, &mut bytes), bytes.len());
        graph.contains.insert(*at, layouts.get(type_id).name.to_string());
        references.of_value(type_id, *at, &bytes, image, &mut |reference| {
            let Some(to) = block(&printed.blocks, reference.target) else { return };
            graph.edges.push(Found { from: *at, to, hold: reference.hold, name: name.clone() });
            pending.push_back((to, reference.contains.unwrap(), reference.extent()));
        });
    }
    while let Some((at, contains, extent)) = pending.pop_front() {
        if graph.contains.contains_key(&at) {
            continue;
        }
        let size = printed.blocks[&at];
        let contains = references.fitting(contains, size);
        graph.contains.insert(at, describe(&layouts, contains));
        assert_ne!(references.pointers(contains), Pointers::Unknown, "{}", describe(&layouts, contains));
        bytes.resize(size as usize, 0);
        assert_eq!(image.memory.read(at, &mut bytes), bytes.len());
        let Graph { edges, texts, usage, doubtful_owners, .. } = &mut graph;
        references.of_block(contains, extent, at, &bytes, image, &mut |reference| {
            let Some(to) = block(&printed.blocks, reference.target) else { return };
            // As in a graph, an owner that points into a block is doubtful.
            let doubtful = reference.hold == Hold::Owns && to != reference.target;
            let hold = if doubtful { Hold::Weak } else { reference.hold };
            *doubtful_owners += usize::from(doubtful);
            edges.push(Found { from: at, to, hold, name: name(&reference) });
            if let Some(used) = reference.usage {
                usage.insert(to, (used.used, used.capacity));
            }
            if reference.text
                && let Some(contains) = reference.contains
            {
                let mut bytes = vec![0; printed.blocks[&to] as usize];
                assert_eq!(image.memory.read(to, &mut bytes), bytes.len());
                let bytes = &bytes[start_of_text(contains) as usize..];
                let length = reference.elements.unwrap_or_default();
                let bytes = &bytes[..bytes.len().min(length as usize)];
                texts.insert(to, text(length, bytes).unwrap_or_default());
            }
            // What a reference says of its target may be a part of it.
            if reference.hold != Hold::Weak
                && reference.target == to
                && let Some(contains) = reference.contains
            {
                pending.push_back((to, contains, reference.extent()));
            }
        });
    }
    graph
}

fn describe(layouts: &Layouts, contains: BlockType) -> String {
    match contains {
        BlockType::One(id) => layouts.get(id).name.to_string(),
        BlockType::Elements(id) => format!("[{}]", layouts.get(id).name),
        BlockType::CountedElements(id) | BlockType::SharedElements(id) => {
            format!("counted [{}]", layouts.get(id).name)
        }
        BlockType::Table(id) => format!("table of {}", layouts.get(id).name),
        BlockType::Bytes => "bytes".to_owned(),
    }
}

impl Graph {
    /// Compares what is found with what the program knows. Blocks of which the program does not print the owner must have one.
    pub fn compare(&self, printed: &Printed) {
        let kind = |hold| match hold {
            Hold::Owns => "owns",
            Hold::Refers => "refers",
            Hold::Weak => "weak",
        };
        let found: BTreeSet<_> =
            self.edges.iter().map(|edge| (kind(edge.hold), edge.from, edge.to)).collect();
        let type_of = |at: &u64| self.contains.get(at).map_or("(not reached)", String::as_str);
        let missing: Vec<String> = (printed.edges.difference(&found))
            .map(|(kind, from, to)| format!("{kind} {} -> {to:x} {}", type_of(from), type_of(to)))
            .collect();
        assert!(
            missing.is_empty(),
            "{} edges are not found: {:#?}",
            missing.len(),
            &missing[..missing.len().min(20)]
        );

        let mut owners: BTreeMap<u64, Vec<&Found>> = BTreeMap::new();
        for edge in self.edges.iter().filter(|edge| edge.hold == Hold::Owns) {
            owners.entry(edge.to).or_default().push(edge);
        }
        let targets = |owns: bool| -> BTreeSet<u64> {
            printed.edges.iter().filter(|edge| (edge.0 == "owns") == owns).map(|edge| edge.2).collect()
        };
        let (known, referred) = (targets(true), targets(false));
        let mut wrong = Vec::new();
        for at in printed.blocks.keys() {
            let count = owners.get(at).map_or(0, Vec::len);
            let expected = match () {
                () if *at == printed.root || printed.unowned.contains(at) => count == 0,
                // Its edges are compared one by one.
                () if known.contains(at) => true,
                () if referred.contains(at) => count <= 1,
                // Senders and receivers share a channel.
                () if type_of(at).starts_with("std::sync::mpmc::counter::Counter<") => count == 2,
                () => count == 1,
            };
            if !expected {
                let edges = owners.get(at).map(Vec::as_slice).unwrap_or_default();
                let owners: Vec<_> =
                    edges.iter().map(|edge| format!("{} of {}", edge.name, type_of(&edge.from))).collect();
                wrong.push(format!("{at:x} {} is owned by {owners:?}", type_of(at)));
            }
        }
        assert!(wrong.is_empty(), "{}: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
        let false_edges: Vec<_> = (self.edges.iter())
            .filter(|edge| known.contains(&edge.to) && edge.hold == Hold::Owns)
            .filter(|edge| !printed.edges.contains(&("owns", edge.from, edge.to)))
            .filter(|edge| !is_between_nodes(type_of(&edge.from), type_of(&edge.to)))
            .map(|edge| format!("{} of {} -> {}", edge.name, type_of(&edge.from), type_of(&edge.to)))
            .collect();
        assert!(
            false_edges.is_empty(),
            "{}: {:#?}",
            false_edges.len(),
            &false_edges[..false_edges.len().min(20)]
        );
        let other: Vec<_> = (self.edges.iter())
            .filter(|edge| edge.hold == Hold::Refers && edge.name != "tail")
            .filter(|edge| !printed.edges.contains(&("refers", edge.from, edge.to)))
            .map(|edge| format!("{} of {} -> {}", edge.name, type_of(&edge.from), type_of(&edge.to)))
            .collect();
        assert!(other.is_empty(), "{}: {:#?}", other.len(), &other[..other.len().min(20)]);
    }
}

/// Programs cannot see which nodes of their trees hold which.
fn is_between_nodes(from: &str, to: &str) -> bool {
    to.contains("::btree::node::") && (from.contains("::btree::node::") || from.ends_with("App"))
}
