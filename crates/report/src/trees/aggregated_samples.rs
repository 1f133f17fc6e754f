//! The common form of all sources: a trie of distinct stacks, and groups of equal samples.
//!
//! Equal samples are grouped first, so the cost of a report grows with the number of distinct stacks, not with the
//! number of samples. Everything is ordered from the newest sample to the oldest, as in Julia's reports.

use crate::Source;
use crate::trees::siblings::Siblings;
use foldhash::HashMap;
use foldhash::fast::RandomState;
use stackglass_profile::word_buffer::Addresses;
use stackglass_profile::{Address, Data, Dictionary, Frame, Recording, State, snapshots};
use std::hash::BuildHasher;
use std::sync::mpsc;

/// Index into [`AggregatedSamples::addresses`].
pub(crate) type AddressNumber = u32;
/// Index into [`AggregatedSamples::nodes`]; 0 is the root, the empty stack.
pub(crate) type NodeNumber = u32;

/// A node of the trie of stacks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrieNode {
    pub caller: NodeNumber,
    pub address: AddressNumber,
}

/// An address with its frames.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedAddress<'a> {
    pub address: Address,
    /// Innermost first.
    pub frames: Frames<'a>,
    /// The call at this address goes through a vtable or a function pointer.
    pub dispatches: bool,
}

/// The frames of an address, borrowed from the source.
#[derive(Clone, Debug)]
pub(crate) enum Frames<'a> {
    Listed(&'a [Frame]),
    Indexed(&'a [Frame], &'a [u32]),
    Unknown(Box<Frame>),
}

impl ResolvedAddress<'_> {
    /// The address shown for a frame. In a dictionary each frame has its own.
    pub(crate) fn address_of(&self, index: usize) -> u64 {
        match self.frames {
            Frames::Listed(frames) => frames[index].address,
            Frames::Indexed(..) | Frames::Unknown(_) => self.address.0,
        }
    }
}

impl Frames<'_> {
    /// Number of frames.
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

/// Equal samples and their count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleGroup {
    /// Innermost node of the stack.
    pub stack: NodeNumber,
    pub thread: u64,
    pub task: u64,
    /// State word as in Julia's buffer. [`State::Waiting`] keeps its own number, which Julia does not have.
    pub state: u64,
    /// Snapshots.
    pub count: u64,
    /// Position of the oldest sample of the group; the newest of all samples has position 0.
    pub oldest: u64,
}

/// All samples of a source.
#[derive(Clone, Debug, Default)]
pub(crate) struct AggregatedSamples<'a> {
    pub addresses: Vec<ResolvedAddress<'a>>,
    /// The trie. Callers come before callees. The fields of node 0, the root, have no meaning.
    pub nodes: Vec<TrieNode>,
    /// In the order in which they were first met, from the newest sample on.
    pub groups: Vec<SampleGroup>,
    /// Nodes are numbered in the order in which a walk over the groups meets them.
    pub nodes_as_met: bool,
}

impl<'a> AggregatedSamples<'a> {
    pub(crate) fn new(source: Source<'a>) -> AggregatedSamples<'a> {
        match source {
            Source::Recording(recording) => AggregatedSamples::of_recording(recording),
            Source::Data(data, dictionary) => AggregatedSamples::of_data(data, dictionary),
        }
    }

    fn of_recording(recording: &'a Recording) -> AggregatedSamples<'a> {
        let addresses = Addresses::new(recording);
        let symbols = &recording.symbols;
        let resolve = |(index, _): (usize, &stackglass_profile::Location)| {
            let id = stackglass_profile::LocationId(index as u32);
            let address = addresses.of(id);
            let indices = symbols.frame_indices(id);
            let frames = match indices {
                [] => Frames::Unknown(Box::new(Frame::unknown(address.0))),
                _ => Frames::Indexed(symbols.frames(), indices),
            };
            ResolvedAddress { address, frames, dispatches: symbols.dispatches(id) }
        };
        let addresses = recording.stacks.locations().iter().enumerate().map(resolve).collect();
        let root = std::iter::once(TrieNode { caller: 0, address: 0 });
        let nodes = root.chain(
            recording
                .stacks
                .nodes()
                .iter()
                .map(|(caller, location)| TrieNode { caller: caller.0, address: location.0 }),
        );
        let counts = snapshots(recording);
        let mut groups = SampleGroups::new();
        for (sample, count) in recording.samples.iter().zip(counts).rev() {
            if count > 0 {
                let task = recording.task_of(sample).0;
                groups.add(sample.stack.0, u64::from(sample.thread.0), task, sample.state as u64, count);
            }
        }
        AggregatedSamples { addresses, nodes: nodes.collect(), groups: groups.list, nodes_as_met: false }
    }

    fn of_data(data: &'a Data, dictionary: &'a Dictionary) -> AggregatedSamples<'a> {
        let in_turn = || {
            let mut stacks = Vec::new();
            let groups = groups_of(data, |part| stacks.extend(part));
            (groups, Trie::from_stacks(stacks.into_iter()))
        };
        let large = data.words().len() >= LARGE;
        let (mut groups, trie) = large.then(|| in_parallel(data)).flatten().unwrap_or_else(in_turn);
        for group in &mut groups {
            group.stack = trie.ends[group.stack as usize];
        }
        let resolve = |address: u64| ResolvedAddress {
            address: Address(address),
            frames: match dictionary.get(address) {
                Some(frames) => Frames::Listed(frames),
                None => Frames::Unknown(Box::new(Frame::unknown(address))),
            },
            dispatches: dictionary.dispatches(address),
        };
        let addresses = trie.addresses.into_iter().map(resolve).collect();
        AggregatedSamples { addresses, nodes: trie.nodes, groups, nodes_as_met: true }
    }

    /// The first address on the stacks of these groups without a frame.
    pub(crate) fn first_unlisted(&self, groups: &[SampleGroup]) -> Option<u64> {
        let nodes = self.nodes_met(groups.iter().map(|group| group.stack));
        let mut addresses =
            nodes.iter().map(|node| &self.addresses[self.nodes[*node as usize].address as usize]);
        let unknown = |resolved: &&ResolvedAddress| matches!(resolved.frames, Frames::Unknown(_));
        addresses.find(unknown).map(|resolved| resolved.address.0)
    }

    /// The nodes on these stacks, in the order in which a walk from root to leaf over one stack after the other first
    /// meets them. Callers come first.
    pub(crate) fn nodes_met(&self, stacks: impl Iterator<Item = NodeNumber>) -> Vec<NodeNumber> {
        let mut seen = vec![false; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        for stack in stacks {
            let first_new = order.len();
            let mut node = stack;
            while node != 0 && !std::mem::replace(&mut seen[node as usize], true) {
                order.push(node);
                node = self.nodes[node as usize].caller;
            }
            order[first_new..].reverse();
        }
        order
    }

    /// State of the oldest sample.
    pub(crate) fn earliest_state(&self) -> Option<u64> {
        self.groups.iter().max_by_key(|group| group.oldest).map(|group| group.state)
    }

    /// Whether there is a sample of a task profile.
    pub(crate) fn has_task_samples(&self) -> bool {
        self.groups.iter().any(|group| group.state == State::Task.word())
    }
}

/// Buffers with at least this many words are read by two threads.
const LARGE: usize = 1 << 20;

/// Number of distinct stacks that are sent to the other thread at once.
const PART: usize = 512;

/// Number of samples that are looked up together, so that their cache misses overlap.
const GROUP: usize = 32;

/// Groups equal samples while another thread builds the trie. `None` if no thread can be started.
fn in_parallel(data: &Data) -> Option<(Vec<SampleGroup>, Trie)> {
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::channel::<Vec<&[u64]>>();
        let trie = std::thread::Builder::new().name("stacks".to_owned());
        let trie = trie.spawn_scoped(scope, move || Trie::from_stacks(receive.into_iter().flatten())).ok()?;
        // Sending fails only after a panic of the other thread, which is resumed below.
        let groups = groups_of(data, |part| drop(send.send(part)));
        drop(send);
        match trie.join() {
            Ok(trie) => Some((groups, trie)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Groups equal samples. Their `stack` is the number of a distinct stack, not yet a node. The distinct stacks are passed
/// to `part` in order of their numbers.
fn groups_of<'a>(data: &'a Data, mut part: impl FnMut(Vec<&'a [u64]>)) -> Vec<SampleGroup> {
    let hasher = RandomState::default();
    // By hash. On a collision the next free number is used, so that growing the table does not hash stacks again.
    let mut numbers: HashMap<u64, (&[u64], u32)> = HashMap::default();
    let mut new: Vec<&[u64]> = Vec::new();
    let mut groups = SampleGroups::new();
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
            groups.add(stack, block.thread, block.task, block.state, 1);
        }
        if new.len() >= PART {
            part(std::mem::take(&mut new));
        }
    }
    part(new);
    groups.list
}

/// The number of a stack. A stack without a number gets one and is added to `new`.
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

/// The trie of distinct stacks of addresses.
struct Trie {
    /// By address number.
    addresses: Vec<u64>,
    nodes: Vec<TrieNode>,
    /// By stack number: the innermost node.
    ends: Vec<NodeNumber>,
}

impl Trie {
    /// Builds it from stacks, leaf first.
    fn from_stacks<'a>(stacks: impl Iterator<Item = &'a [u64]>) -> Trie {
        let mut nodes = Siblings::new();
        let mut numbers: HashMap<u64, AddressNumber> = HashMap::default();
        let mut addresses = Vec::new();
        let mut ends = Vec::new();
        // The node reached by the outer frames of a stack, which most stacks share with others. One lookup of many
        // frames takes as long as two or three steps down the trie.
        let mut outer_ends: HashMap<&[u64], NodeNumber> = HashMap::default();
        let mut leaf_first: Vec<AddressNumber> = Vec::new();
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
            let mut descend = |from: NodeNumber, leaf_first: &[AddressNumber]| {
                let mut addresses = leaf_first.iter().rev();
                let mut at = from;
                for address in addresses.by_ref() {
                    let known = nodes.len() as u32;
                    at = nodes.child(at, *address);
                    if at == known {
                        break;
                    }
                }
                // Every node below a new node is new.
                addresses.fold(at, |caller, address| nodes.add_child(caller, *address))
            };
            let (inner, new) = leaf_first.split_at(inner.len());
            let from = known.unwrap_or_else(|| {
                let end = descend(0, new);
                outer_ends.insert(outer, end);
                end
            });
            ends.push(descend(from, inner));
        }
        Trie { addresses, nodes: nodes.into_nodes(|caller, address| TrieNode { caller, address }), ends }
    }
}

/// How many outer frames of a stack are looked up at once. Stacks of similar depth use the same number, so that they
/// find each other's frames.
fn outer_frames(depth: usize) -> usize {
    match depth / 4 * 3 {
        0..8 => 0,
        most => 1 << most.ilog2(),
    }
}

/// Groups equal samples.
struct SampleGroups {
    list: Vec<SampleGroup>,
    /// SampleGroups of a stack by kind: below its first one are its others. A run's node is the number after its own.
    family: Siblings,
    /// By stack: the node of its first group, 0 for none.
    first: Vec<u32>,
    /// Numbers of the combinations of thread, task and state. There are few.
    kinds: HashMap<(u64, u64, u64), u32>,
    next: u64,
}

impl SampleGroups {
    fn new() -> SampleGroups {
        let (list, first, kinds) = Default::default();
        SampleGroups { list, family: Siblings::new(), first, kinds, next: 0 }
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
            self.list.push(SampleGroup { stack, thread, task, state, count: 0, oldest });
        }
        let group = &mut self.list[index];
        group.count = group.count.saturating_add(count);
        group.oldest = oldest;
    }
}
