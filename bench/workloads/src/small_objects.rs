//! Small objects of every container of the standard library: nodes, texts, maps, sets, queues, shared values.

use crate::options::Options;
use crate::report::Report;
use crate::spin::{Limit, Shuffle};
use std::collections::{BTreeMap, HashMap, HashSet, LinkedList, VecDeque};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Default)]
struct Node {
    value: u64,
    smaller: Option<Box<Node>>,
    larger: Option<Box<Node>>,
}

impl Node {
    fn insert(place: &mut Option<Box<Node>>, value: u64) {
        match place {
            None => *place = Some(Box::new(Node { value, ..Node::default() })),
            Some(node) if value < node.value => Node::insert(&mut node.smaller, value),
            Some(node) => Node::insert(&mut node.larger, value),
        }
    }
}

struct Shared {
    name: String,
    others: Vec<Rc<Shared>>,
}

fn nodes(order: &mut Shuffle) -> u64 {
    let mut root = None;
    for _ in 0..20_000 {
        Node::insert(&mut root, order.below(u64::MAX));
    }
    black_box(root).map_or(0, |node| node.value & 1)
}

fn maps(order: &mut Shuffle) -> usize {
    let mut texts: HashMap<u64, String> = HashMap::new();
    let mut lists: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for _ in 0..20_000 {
        let key = order.below(50_000);
        texts.entry(key).or_insert_with(|| format!("value-{key}"));
        lists.entry(order.below(8_000)).or_default().push(key);
    }
    let names: HashSet<String> = (0..10_000).map(|i| format!("name{}", i % 3_000)).collect();
    black_box(texts).len() + black_box(lists).len() + black_box(names).len()
}

fn shared(order: &mut Shuffle) -> usize {
    let mut all: Vec<Rc<Shared>> = Vec::new();
    for i in 0..10_000_u64 {
        let others = if i > 2 { vec![all[order.below(i) as usize].clone()] } else { Vec::new() };
        all.push(Rc::new(Shared { name: i.to_string(), others }));
    }
    let bytes: Vec<Arc<[u8]>> = (0..10_000).map(|i| Arc::from(vec![i as u8; i % 64])).collect();
    let longest = black_box(&all).iter().map(|one| one.name.len() + one.others.len()).max();
    longest.unwrap_or(0) + black_box(bytes).len()
}

fn queues() -> usize {
    let mut queue = VecDeque::new();
    for i in 0..20_000_u32 {
        queue.push_back(Box::new(i));
        if queue.len() > 500 {
            black_box(queue.pop_front());
        }
    }
    let list: LinkedList<(u32, u32)> = (0..10_000).map(|i| (i, i + 1)).collect();
    let words = "the quick brown fox jumps over the lazy dog".split(' ').cycle();
    let mut words: Vec<String> = words.take(10_000).map(str::to_uppercase).collect();
    words.sort();
    black_box(list).len() + black_box(words).len()
}

/// Makes and drops all of them, `--work` times.
pub fn run(options: &Options, report: &mut Report) {
    let (mut limit, mut order) = (Limit::from_options(options), Shuffle::new(options.seed));
    let mut made = 0;
    while limit.go_on() {
        made += nodes(&mut order) as usize + maps(&mut order) + shared(&mut order) + queues();
    }
    report.number("made", made);
}
