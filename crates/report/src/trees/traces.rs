//! The common form of every source: distinct stacks in a trie, and how often each was seen.
//!
//! Equal samples are counted together before anything else happens, so the cost of a report grows
//! with distinct stacks, not with samples. All orders here are those of the samples, newest first,
//! because that is the order in which Julia's reports meet them.

use crate::Source;
use crate::trees::siblings::Siblings;
use foldhash::HashMap;
use foldhash::fast::RandomState;
use stackglass_profile::word_buffer::Addresses;
use stackglass_profile::{Address, Data, Dictionary, Frame, Recording, State, snapshots};
use std::hash::BuildHasher;
use std::sync::mpsc;

/// Number of a place in [`Traces::places`].
pub(crate) type PlaceNumber = u32;
/// Number of a node of the trie; 0 is the root, the empty stack.
pub(crate) type NodeNumber = u32;

/// An address and what it stands for.
#[derive(Clone, Debug)]
pub(crate) struct Place<'a> {
    pub address: Address,
    /// Innermost first.
    pub frames: Frames<'a>,
    /// It ends in a call through a vtable or a function pointer.
    pub dispatches: bool,
}

/// Frames of a place, wherever they are kept.
#[derive(Clone, Debug)]
pub(crate) enum Frames<'a> {
    Listed(&'a [Frame]),
    Indexed(&'a [Frame], &'a [u32]),
    Unknown(Box<Frame>),
}

impl Place<'_> {
    /// Address shown for one of its frames: a dictionary gives each frame its own.
    pub(crate) fn address_of(&self, index: usize) -> u64 {
        match self.frames {
            Frames::Listed(frames) => frames[index].address,
            Frames::Indexed(..) | Frames::Unknown(_) => self.address.0,
        }
    }
}

impl Frames<'_> {
    /// Innermost first.
    pub(crate) fn len(&self) -> usize {
        match self {
            Frames::Listed(frames) => frames.len(),
            Frames::Indexed(_, indices) => indices.len(),
            Frames::Unknown(_) => 1,
        }
    }

    /// The frame with this index, innermost first.
    pub(crate) fn get(&self, index: usize) -> &Frame {
        match self {
            Frames::Listed(frames) => &frames[index],
            Frames::Indexed(frames, indices) => &frames[indices[index] as usize],
            Frames::Unknown(frame) => frame,
        }
    }
}

/// Equal samples, counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Innermost node of the stack.
    pub stack: NodeNumber,
    pub thread: u64,
    pub task: u64,
    /// As in Julia's buffer; samples of recordings that waited for a processor keep their own number.
    pub state: u64,
    /// Snapshots.
    pub count: u64,
    /// Position of the oldest of these samples, counted from the newest of all.
    pub oldest: u64,
}

/// Everything a report counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces<'a> {
    pub places: Vec<Place<'a>>,
    /// Caller and place of each node; a caller comes before what it calls. Node 0 is not used.
    pub nodes: Vec<(NodeNumber, PlaceNumber)>,
    /// In order of first meeting, newest sample first.
    pub runs: Vec<Run>,
    /// Nodes are numbered in the order in which a walk over the runs meets them.
    pub nodes_as_met: bool,
}

impl<'a> Traces<'a> {
    pub(crate) fn new(source: Source<'a>) -> Traces<'a> {
        match source {
            Source::Recording(recording) => Traces::of_recording(recording),
            Source::Data(data, dictionary) => Traces::of_data(data, dictionary),
        }
    }

    fn of_recording(recording: &'a Recording) -> Traces<'a> {
        let addresses = Addresses::new(recording);
        let symbols = &recording.symbols;
        let place = |(index, _): (usize, &stackglass_profile::Location)| {
            let id = stackglass_profile::LocationId(index as u32);
            let address = addresses.of(id);
            let indices = symbols.frame_indices(id);
            let frames = match indices {
                [] => Frames::Unknown(Box::new(Frame::unknown(address.0))),
                _ => Frames::Indexed(symbols.frames(), indices),
            };
            Place { address, frames, dispatches: symbols.dispatches(id) }
        };
        let places = recording.stacks.locations().iter().enumerate().map(place).collect();
        let root = std::iter::once((0, 0));
        let nodes =
            root.chain(recording.stacks.nodes().iter().map(|(caller, location)| (caller.0, location.0)));
        let counts = snapshots(recording);
        let mut runs = Runs::new();
        for (sample, count) in recording.samples.iter().zip(counts).rev() {
            if count > 0 {
                let task = recording.task_of(sample).0;
                runs.add(sample.stack.0, u64::from(sample.thread.0), task, sample.state as u64, count);
            }
        }
        Traces { places, nodes: nodes.collect(), runs: runs.list, nodes_as_met: false }
    }

    fn of_data(data: &'a Data, dictionary: &'a Dictionary) -> Traces<'a> {
        let in_turn = || {
            let mut stacks = Vec::new();
            let runs = runs_of(data, |part| stacks.extend(part));
            (runs, Trie::of(stacks.into_iter()))
        };
        let large = data.words().len() >= LARGE;
        let (mut runs, trie) = large.then(|| together(data)).flatten().unwrap_or_else(in_turn);
        for run in &mut runs {
            run.stack = trie.ends[run.stack as usize];
        }
        let place = |address: u64| Place {
            address: Address(address),
            frames: match dictionary.get(address) {
                Some(frames) => Frames::Listed(frames),
                None => Frames::Unknown(Box::new(Frame::unknown(address))),
            },
            dispatches: dictionary.dispatches(address),
        };
        let places = trie.addresses.into_iter().map(place).collect();
        Traces { places, nodes: trie.nodes, runs, nodes_as_met: true }
    }

    /// The first address of a stack in use that nothing is known of.
    pub(crate) fn first_unlisted(&self, runs: &[Run]) -> Option<u64> {
        let nodes = self.nodes_met(runs.iter().map(|run| run.stack));
        let mut places = nodes.iter().map(|node| &self.places[self.nodes[*node as usize].1 as usize]);
        let unknown = |place: &&Place| matches!(place.frames, Frames::Unknown(_));
        places.find(unknown).map(|place| place.address.0)
    }

    /// Nodes on these stacks, callers first, in the order in which a walk over the stacks from
    /// root to leaf first meets them.
    pub(crate) fn nodes_met(&self, stacks: impl Iterator<Item = NodeNumber>) -> Vec<NodeNumber> {
        let mut seen = vec![false; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        for stack in stacks {
            let first_new = order.len();
            let mut node = stack;
            while node != 0 && !std::mem::replace(&mut seen[node as usize], true) {
                order.push(node);
                node = self.nodes[node as usize].0;
            }
            order[first_new..].reverse();
        }
        order
    }

    /// State of the earliest sample of all.
    pub(crate) fn earliest_state(&self) -> Option<u64> {
        self.runs.iter().max_by_key(|run| run.oldest).map(|run| run.state)
    }

    /// True when some sample is of a task profile.
    pub(crate) fn has_task_samples(&self) -> bool {
        self.runs.iter().any(|run| run.state == State::Task.word())
    }
}

/// Words from which on a second thread is worth its start.
const LARGE: usize = 1 << 20;

/// Distinct stacks are handed over in parts of this many.
const PART: usize = 512;

/// So many samples are looked up together: they do not wait for each other's memory.
const GROUP: usize = 32;

/// Finds equal samples and counts them while another thread makes the trie. `None` when there is no
/// other thread to be had.
fn together(data: &Data) -> Option<(Vec<Run>, Trie)> {
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::channel::<Vec<&[u64]>>();
        let trie = std::thread::Builder::new().name("stacks".to_owned());
        let trie = trie.spawn_scoped(scope, move || Trie::of(receive.into_iter().flatten())).ok()?;
        // Nobody takes a part only after a panic there, which is passed on below.
        let runs = runs_of(data, |part| drop(send.send(part)));
        drop(send);
        match trie.join() {
            Ok(trie) => Some((runs, trie)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Equal samples, with the numbers of their distinct stacks in place of nodes. The stacks go to
/// `part` in order of their numbers.
fn runs_of<'a>(data: &'a Data, mut part: impl FnMut(Vec<&'a [u64]>)) -> Vec<Run> {
    let hasher = RandomState::default();
    // By hash, or by the number after that when another stack has it: growing does not read the stacks again.
    let mut numbers: HashMap<u64, (&[u64], u32)> = HashMap::default();
    let mut new: Vec<&[u64]> = Vec::new();
    let mut runs = Runs::new();
    let mut blocks = data.blocks();
    let mut group = Vec::with_capacity(GROUP);
    let mut found = Vec::with_capacity(GROUP);
    loop {
        group.clear();
        group.extend(blocks.by_ref().take(GROUP).map(|block| (hasher.hash_one(block.addresses), block)));
        if group.is_empty() {
            break;
        }
        found.clear();
        found.extend(group.iter().map(|(hash, _)| numbers.get(hash).copied()));
        for ((hash, block), found) in group.iter().zip(&found) {
            let stack = match found {
                Some((known, number)) if *known == block.addresses => *number,
                _ => number_of(&mut numbers, *hash, block.addresses, &mut new),
            };
            runs.add(stack, block.thread, block.task, block.state, 1);
        }
        if new.len() >= PART {
            part(std::mem::take(&mut new));
        }
    }
    part(new);
    runs.list
}

/// The number of a stack, which is in `new` when it was not known.
fn number_of<'a>(
    numbers: &mut HashMap<u64, (&'a [u64], u32)>,
    mut hash: u64,
    addresses: &'a [u64],
    new: &mut Vec<&'a [u64]>,
) -> u32 {
    let next = numbers.len() as u32;
    loop {
        let (known, number) = *numbers.entry(hash).or_insert((addresses, next));
        if number == next {
            new.push(addresses);
            return next;
        }
        if known == addresses {
            return number;
        }
        hash = hash.wrapping_add(1);
    }
}

/// Distinct stacks of addresses.
struct Trie {
    /// By place.
    addresses: Vec<u64>,
    nodes: Vec<(NodeNumber, PlaceNumber)>,
    /// By the number of a stack: its innermost node.
    ends: Vec<NodeNumber>,
}

impl Trie {
    /// Of stacks given leaf first.
    fn of<'a>(stacks: impl Iterator<Item = &'a [u64]>) -> Trie {
        let mut nodes = Siblings::new();
        let mut numbers: HashMap<u64, PlaceNumber> = HashMap::default();
        let mut addresses = Vec::new();
        let mut ends = Vec::new();
        // Where the outer frames of a stack lead, which are nearly always those of others as well: one
        // look-up of many frames takes the time of two or three steps down.
        let mut outer_ends: HashMap<&[u64], NodeNumber> = HashMap::default();
        let mut leaf_first: Vec<PlaceNumber> = Vec::new();
        for stack in stacks {
            let (inner, outer) = stack.split_at(stack.len() - outer_frames(stack.len()));
            let known = if outer.is_empty() { Some(0) } else { outer_ends.get(outer).copied() };
            let new = if known.is_some() { inner } else { stack };
            leaf_first.clear();
            leaf_first.extend(new.iter().map(|address| {
                *numbers.entry(*address).or_insert_with(|| {
                    addresses.push(*address);
                    addresses.len() as u32 - 1
                })
            }));
            let mut descend = |from: NodeNumber, leaf_first: &[PlaceNumber]| {
                let mut places = leaf_first.iter().rev();
                let mut at = from;
                for place in places.by_ref() {
                    let known = nodes.len() as u32;
                    at = nodes.child(at, *place);
                    if at == known {
                        break;
                    }
                }
                // Below a new node all is new.
                places.fold(at, |caller, place| nodes.add_child(caller, *place))
            };
            let (inner, new) = leaf_first.split_at(inner.len());
            let from = known.unwrap_or_else(|| {
                let end = descend(0, new);
                outer_ends.insert(outer, end);
                end
            });
            ends.push(descend(from, inner));
        }
        Trie { addresses, nodes: nodes.into_parents_and_keys(), ends }
    }
}

/// How many of a stack's frames are looked up at once: the same for stacks of about the same depth, so that
/// they share them.
fn outer_frames(depth: usize) -> usize {
    match depth / 4 * 3 {
        0..8 => 0,
        most => 1 << most.ilog2(),
    }
}

/// Counts equal samples.
struct Runs {
    list: Vec<Run>,
    /// Runs of a stack by kind: below its first one are its others. A run's node is the number after its own.
    family: Siblings,
    /// By stack: the node of its first run; 0: none.
    first: Vec<u32>,
    /// Numbers of the combinations of thread, task and state: there are few.
    kinds: HashMap<(u64, u64, u64), u32>,
    next: u64,
}

impl Runs {
    fn new() -> Runs {
        let (list, first, kinds) = Default::default();
        Runs { list, family: Siblings::new(), first, kinds, next: 0 }
    }

    fn add(&mut self, stack: NodeNumber, thread: u64, task: u64, state: u64, count: u64) {
        let oldest = self.next;
        self.next += 1;
        let new = self.kinds.len() as u32;
        let kind = *self.kinds.entry((thread, task, state)).or_insert(new);
        if self.first.len() <= stack as usize {
            self.first.resize(stack as usize + 1, 0);
        }
        let first = &mut self.first[stack as usize];
        let node = match *first {
            0 => {
                *first = self.family.lone(kind);
                *first
            }
            first if self.family.key(first) == kind => first,
            first => self.family.child(first, kind),
        };
        let index = node as usize - 1;
        if index == self.list.len() {
            self.list.push(Run { stack, thread, task, state, count: 0, oldest });
        }
        let run = &mut self.list[index];
        run.count = run.count.saturating_add(count);
        run.oldest = oldest;
    }
}
