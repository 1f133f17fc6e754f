//! What holds for the boxes of every profile under all options: children lie inside their parent, siblings never
//! overlap, and a box is as wide as a count of the raw samples, made here without any tree, says.

use proptest::prelude::*;
use stackglass_flame::{
    AllocationGraph, AllocationRecord, Difference, Flamegraph, Graph, Matcher, Node, NodeId, Span, Status,
    Weight,
};
use stackglass_profile::{Data, Dictionary, Frame};
use stackglass_report::Recur;
use stackglass_report::call_tree::StateFilter;
use std::collections::BTreeMap;
use std::ops::Range;

/// Function, file, line, foreign. The last one starts Julia's shell.
const FRAMES: &[(&str, &str, i64, bool)] = &[
    ("_start", "start.S", 1, true),
    ("std::rt::lang_start", "/rustc/0/library/std/src/rt.rs", 2, false),
    ("demo::main", "main.rs", 3, false),
    ("demo::a", "a.rs", 10, false),
    ("demo::a", "a.rs", 11, false),
    ("demo::b", "b.rs", 12, false),
    ("core::ptr::drop_in_place", "/rustc/0/library/core/src/ptr/mod.rs", 5, false),
    ("malloc", "malloc.c", 20, true),
    ("qsort", "qsort.c", 21, true),
    ("", "", -1, true),
    ("eval_user_input", "/julia/REPL.jl", 30, false),
];

/// Frames with a number below this one are of native programs only.
const NATIVE: usize = FRAMES.len() - 1;

/// An address stands for a function and those inlined into it, innermost first.
type Chains = Vec<Vec<usize>>;

/// Thread, task, state, numbers of chains, leaf first.
type Piece = (u64, u64, u64, Vec<usize>);

#[derive(Clone, Debug)]
struct Profile {
    chains: Chains,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Options {
    c: bool,
    combine: bool,
    recur: Recur,
    norepl: bool,
    pruned: Vec<usize>,
    threads: Option<Vec<u64>>,
    tasks: Option<Vec<u64>>,
    moments: StateFilter,
}

fn profiles(frames: usize) -> impl Strategy<Value = Profile> {
    let chain = prop::collection::vec(0..frames, 1..4);
    prop::collection::vec(chain, 1..14).prop_flat_map(|chains| {
        let stack = prop::collection::vec(0..chains.len(), 0..9);
        let piece = (1..4_u64, 1..4_u64, 1..3_u64, stack);
        prop::collection::vec(piece, 0..40).prop_map(move |pieces| Profile { chains: chains.clone(), pieces })
    })
}

fn options() -> impl Strategy<Value = Options> {
    let picks = || prop::option::weighted(0.3, prop::collection::vec(0..4_u64, 0..3));
    let moments = prop::sample::select(
        &[StateFilter::All, StateFilter::Awake, StateFilter::Asleep, StateFilter::NotOnCpu][..],
    );
    let recur = prop::sample::select(Recur::ALL);
    let pruned = prop::collection::vec(0..FRAMES.len(), 0..3);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>());
    (switches, recur, pruned, picks(), picks(), moments).prop_map(
        |((c, combine, norepl), recur, pruned, threads, tasks, moments)| Options {
            c,
            combine,
            recur,
            norepl,
            pruned,
            threads,
            tasks,
            moments,
        },
    )
}

fn frame(number: usize) -> Frame {
    let (func, file, line, foreign) = FRAMES[number];
    Frame { func: func.into(), file: file.into(), line, foreign, ..Frame::unknown(0) }
}

impl Profile {
    fn source(&self) -> (Data, Dictionary) {
        let mut dictionary = Dictionary::new();
        for (address, chain) in (1..).zip(&self.chains) {
            let last = chain.len() - 1;
            let frames = chain.iter().enumerate().map(|(level, number)| Frame {
                inlined: level < last,
                address: address * 16,
                ..frame(*number)
            });
            dictionary.set(address * 16, frames);
        }
        let mut words = Vec::new();
        for (clock, (thread, task, state, stack)) in (1..).zip(&self.pieces) {
            words.extend(stack.iter().map(|chain| (*chain as u64 + 1) * 16));
            words.extend([*thread, *task, clock, *state, 0, 0]);
        }
        (Data::new(words), dictionary)
    }

    /// Frames of a piece, outermost first.
    fn frames<'a>(&'a self, piece: &'a Piece) -> impl Iterator<Item = usize> + 'a {
        piece.3.iter().rev().flat_map(|chain| self.chains[*chain].iter().rev().copied())
    }
}

impl Options {
    fn flamegraph(&self) -> Flamegraph {
        let mut flamegraph = Flamegraph::new().c(self.c).combine(self.combine).recur(self.recur);
        flamegraph = flamegraph.norepl(self.norepl).moments(self.moments);
        for number in &self.pruned {
            flamegraph = flamegraph.prune(FRAMES[*number].0, FRAMES[*number].1);
        }
        if let Some(threads) = &self.threads {
            flamegraph = flamegraph.threads(threads.clone());
        }
        if let Some(tasks) = &self.tasks {
            flamegraph = flamegraph.tasks(tasks.clone());
        }
        flamegraph
    }

    fn picks(&self, (thread, task, state, _): &Piece) -> bool {
        let in_list = |list: &Option<Vec<u64>>, id| list.as_ref().is_none_or(|list| list.contains(id));
        let moment = match self.moments {
            StateFilter::All => true,
            StateFilter::Awake => *state == 1,
            StateFilter::Asleep => *state == 2,
            StateFilter::NotOnCpu => *state != 1,
        };
        in_list(&self.threads, thread) && in_list(&self.tasks, task) && moment
    }

    fn prunes(&self, number: usize) -> bool {
        self.pruned
            .iter()
            .any(|pruned| FRAMES[*pruned].0 == FRAMES[number].0 && FRAMES[*pruned].1 == FRAMES[number].1)
    }

    /// Frames on the way to where a sample ends, outermost first: an address that was met before leads back to where
    /// it led then.
    fn folded(&self, profile: &Profile, piece: &Piece) -> Vec<usize> {
        let mut path: Vec<usize> = Vec::new();
        let mut met: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for number in piece.3.iter().rev() {
            let chain = &profile.chains[*number];
            let folds = match self.recur {
                Recur::Off => false,
                Recur::Flat => !FRAMES[chain[0]].3,
                _ => true,
            };
            match met.get(number).filter(|_| folds) {
                Some(earlier) => path.clone_from(earlier),
                None => path.extend(chain.iter().rev()),
            }
            met.insert(*number, path.clone());
        }
        path
    }

    /// Boxes that a sample lies in, outermost first, and how many of them only start the program.
    fn boxes(&self, frames: impl Iterator<Item = usize>) -> (Vec<usize>, usize) {
        let (mut path, mut starts, mut outermost) = (Vec::new(), 0, true);
        for number in frames {
            if self.prunes(number) {
                break;
            }
            outermost &= number < 2;
            if self.c || !FRAMES[number].3 {
                path.push(number);
                starts += usize::from(outermost);
            }
        }
        (path, starts)
    }
}

/// Samples by path of boxes; numbers are those of `FRAMES`.
type Counts = BTreeMap<Vec<usize>, u64>;

/// Counted from the raw samples.
fn expected(profile: &Profile, options: &Options) -> (u64, Counts) {
    let picked: Vec<&Piece> =
        profile.pieces.iter().filter(|piece| options.picks(piece) && !piece.3.is_empty()).collect();
    let paths: Vec<(Vec<usize>, usize)> =
        picked.iter().map(|piece| options.boxes(options.folded(profile, piece).into_iter())).collect();
    // What only starts a program is trimmed, unless there is nothing else.
    let trims = options.norepl && paths.iter().any(|(path, starts)| path.len() > *starts);
    let mut counts = Counts::new();
    for (path, starts) in &paths {
        let shown = if trims { &path[*starts..] } else { &path[..] };
        for len in 1..=shown.len() {
            *counts.entry(shown[..len].to_vec()).or_default() += 1;
        }
    }
    (picked.len() as u64, counts)
}

/// The same from the boxes.
fn drawn(graph: &Graph) -> Counts {
    let mut counts = Counts::new();
    let mut path: Vec<usize> = Vec::new();
    for node in &graph.nodes()[1..] {
        path.truncate(node.depth as usize - 1);
        let drawn = graph.frame(node);
        path.push((0..FRAMES.len()).find(|number| is(drawn, *number)).expect("a frame that was put in"));
        *counts.entry(path.clone()).or_default() += node.span.len();
    }
    counts
}

fn is(drawn: &Frame, number: usize) -> bool {
    let (func, file, line, foreign) = FRAMES[number];
    (&*drawn.func, &*drawn.file, drawn.line, drawn.foreign) == (func, file, line, foreign)
}

/// A frame in words.
fn name(frame: &Frame) -> String {
    format!("{}:{}", frame.func, frame.line)
}

/// Every box inside its parent and beside its siblings; `sorted` are the branches in order of their spans.
fn assert_geometry(graph: &Graph, sorted: bool) -> Result<(), TestCaseError> {
    let nodes = graph.nodes();
    prop_assert_eq!(graph.root().end as usize, nodes.len());
    for (number, parent) in (0..).zip(nodes) {
        prop_assert!(parent.end > number && parent.end <= graph.root().end);
        let mut taken: Vec<Range<i64>> = Vec::new();
        for child in graph.children(number) {
            let child = &nodes[child as usize];
            prop_assert_eq!(child.depth, parent.depth + 1);
            prop_assert!(child.end <= parent.end);
            let (start, stop) = (child.span.start(), child.span.stop());
            prop_assert!(
                start >= parent.span.start() && stop <= parent.span.stop(),
                "{child:?} in {parent:?}"
            );
            prop_assert!(stop >= start, "{child:?} is empty");
            taken.push(start..stop + 1);
        }
        if number > 0 || sorted {
            prop_assert!(taken.is_sorted_by_key(|span| span.start), "{taken:?}");
        }
        taken.sort_by_key(|span| span.start);
        let beside = taken.windows(2).all(|pair| pair[0].end <= pair[1].start);
        prop_assert!(beside, "siblings overlap: {taken:?}");
    }
    prop_assert_eq!(graph.own().iter().sum::<u64>(), graph.root().span.len());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn boxes_are_as_wide_as_samples_say(profile in profiles(NATIVE), options in options()) {
        let (data, dictionary) = profile.source();
        let (samples, counts) = expected(&profile, &options);
        match options.flamegraph().graph((&data, &dictionary)) {
            Err(error) => prop_assert!(!data.has_meta() && !data.is_empty(), "{error}"),
            Ok(made) => match made.graph {
                None => prop_assert_eq!(samples, 0),
                Some(graph) => {
                    prop_assert_eq!(graph.root().span.len(), samples);
                    assert_geometry(&graph, true)?;
                    prop_assert_eq!(drawn(&graph), counts);
                }
            },
        }
    }

    #[test]
    fn boxes_lie_inside_and_beside_each_other(profile in profiles(FRAMES.len()), options in options()) {
        let (data, dictionary) = profile.source();
        let graph = options.flamegraph().graph((&data, &dictionary)).ok().and_then(|made| made.graph);
        if let Some(graph) = graph {
            // Where Julia's shell goes, what it calls is appended to the outermost boxes.
            let shell = FRAMES.len() - 1;
            let moved = options.norepl && profile.chains.iter().flatten().any(|number| *number == shell);
            assert_geometry(&graph, !moved)?;
        }
    }

    #[test]
    fn a_filter_keeps_branches_that_match(
        profile in profiles(FRAMES.len()), options in options(), wanted in 0..FRAMES.len(), bits in any::<bool>(),
    ) {
        let (data, dictionary) = profile.source();
        let graph = |flamegraph: Flamegraph| flamegraph.graph((&data, &dictionary)).ok();
        let Some(whole) = graph(options.flamegraph()).and_then(|made| made.graph) else { return Ok(()) };
        let matches = move |graph: &Graph, node: &Node| match bits {
            true => node.status.any(Status::MEMORY),
            false => is(graph.frame(node), wanted),
        };
        let filtered = graph(options.flamegraph().filter(Matcher::test(matches))).unwrap();
        let nodes = whole.nodes();
        let hits: Vec<NodeId> =
            (0..).zip(nodes).filter(|(_, node)| matches(&whole, node)).map(|(number, _)| number).collect();
        prop_assert_eq!(filtered.warning.is_some(), hits.is_empty());
        let kept = (0..).zip(nodes).filter(|(number, _)| {
            let below = |hit: &NodeId| *hit > 0 && whole.branch(*hit).contains(number);
            let above = |hit: &NodeId| whole.branch(*number).contains(hit);
            *number == 0 || hits.is_empty() || hits.iter().any(|hit| below(hit) || above(hit))
        });
        let kept: Vec<_> = kept.map(|(_, node)| (node.span, node.status, whole.frame(node))).collect();
        let filtered = filtered.graph.unwrap();
        let found: Vec<_> =
            filtered.nodes().iter().map(|node| (node.span, node.status, filtered.frame(node))).collect();
        prop_assert_eq!(found, kept);
        for (number, node) in (0..).zip(filtered.nodes()) {
            prop_assert!(node.end > number && node.end as usize <= filtered.nodes().len());
        }
    }

    #[test]
    fn upside_down_and_differences_hold_the_same_samples(
        one in profiles(NATIVE), other in profiles(NATIVE), options in options(),
    ) {
        let graph = |profile: &Profile| {
            let (data, dictionary) = profile.source();
            options.flamegraph().graph((&data, &dictionary)).ok().and_then(|made| made.graph)
        };
        let (Some(one), Some(other)) = (graph(&one), graph(&other)) else { return Ok(()) };
        let inverted = one.inverted();
        assert_geometry(&inverted, true)?;
        let own: Vec<u64> = one.own();
        prop_assert_eq!(inverted.root().span.len(), one.root().span.len());
        let mut by_function = BTreeMap::<String, u64>::new();
        for (node, own) in one.nodes().iter().zip(&own).skip(1).filter(|(_, own)| **own > 0) {
            *by_function.entry(format!("{:?}", one.frame(node))).or_default() += own;
        }
        let outermost: BTreeMap<String, u64> = inverted
            .children(0)
            .map(|child| &inverted.nodes()[child as usize])
            .map(|node| (format!("{:?}", inverted.frame(node)), node.span.len()))
            .collect();
        prop_assert_eq!(outermost, by_function);

        let difference = Difference::new(&one, &other, 1.0, 1.0);
        let (before, after) = (difference.changes(&one), difference.changes(&other));
        prop_assert_eq!((before.len(), after.len()), (one.nodes().len(), other.nodes().len()));
        prop_assert_eq!(before[0].before, one.root().span.len() as f64);
        prop_assert_eq!(after[0], before[0]);
        prop_assert_eq!(after[0].after, other.root().span.len() as f64);
    }

    #[test]
    fn allocations_are_as_wide_as_their_bytes(
        profile in profiles(NATIVE), options in options(), sizes in prop::collection::vec(0..1000_u64, 40), bytes: bool,
    ) {
        let weight = if bytes { Weight::Bytes } else { Weight::Count };
        let stacks: Vec<Vec<Frame>> = profile.pieces.iter().map(|piece| {
            let mut frames: Vec<Frame> = profile.frames(piece).map(frame).collect();
            frames.reverse();
            frames
        }).collect();
        let record = |(stack, size)| AllocationRecord { stack, size, type_name: "demo::main" };
        let records = stacks.iter().map(Vec::as_slice).zip(sizes.iter().copied()).map(record);
        let made = AllocationGraph::new(options.flamegraph(), weight).graph(records);
        let mut total = 0;
        let mut counts = BTreeMap::<Vec<String>, u64>::new();
        for (piece, size) in profile.pieces.iter().zip(&sizes) {
            let weight = if bytes { *size } else { 1 };
            total += weight;
            // A hidden frame is never pruned here, as in the reference.
            let shown: Vec<usize> = profile.frames(piece).filter(|n| options.c || !FRAMES[*n].3).collect();
            let pruned = shown.iter().position(|number| options.prunes(*number));
            let mut path: Vec<String> =
                shown[..pruned.unwrap_or(shown.len())].iter().map(|number| name(&frame(*number))).collect();
            if pruned.is_none() {
                path.push("demo::main:0".into());
            }
            for len in 1..=path.len() {
                *counts.entry(path[..len].to_vec()).or_default() += weight;
            }
        }
        let Some(graph) = made.graph else {
            prop_assert_eq!(total, 0);
            return Ok(());
        };
        prop_assert_eq!(graph.root().span.len(), total);
        let mut drawn = BTreeMap::new();
        let mut path = Vec::new();
        for (number, node) in (0..).zip(graph.nodes()) {
            if number > 0 {
                path.truncate(node.depth as usize - 1);
                path.push(name(graph.frame(node)));
                *drawn.entry(path.clone()).or_default() += node.span.len();
            }
            let spans = graph.children(number).map(|child| graph.nodes()[child as usize].span);
            // An allocation of no bytes has a box without width.
            let spans: Vec<Span> = spans.filter(|span| !span.is_empty()).collect();
            let inside = |span: &Span| span.start() >= node.span.start() && span.stop() <= node.span.stop();
            prop_assert!(spans.iter().all(inside), "{spans:?} in {node:?}");
            prop_assert!(spans.windows(2).all(|pair| pair[0].stop() < pair[1].start()), "{spans:?}");
        }
        prop_assert_eq!(drawn, counts);
    }
}
