//! A heap whose graph is known: a list, a tree, maps, shared values, trait objects, and leaked cycles.
//!
//! A thread looks at the clock all the time, so that the longest pause of the program is known.

use crate::options::Options;
use crate::report::Report;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

struct ListNode {
    value: u64,
    next: Option<Box<ListNode>>,
}

struct TreeNode {
    key: u64,
    smaller: Option<Box<TreeNode>>,
    larger: Option<Box<TreeNode>>,
    label: String,
}

/// One of a pair that hold each other.
struct Member {
    value: u64,
    other: RefCell<Option<Rc<Member>>>,
    payload: Vec<u32>,
}

struct App {
    list: Option<Box<ListNode>>,
    tree: Option<Box<TreeNode>>,
    map: HashMap<u64, Vec<u16>>,
    sorted: BTreeMap<String, u64>,
    shared: Vec<Rc<String>>,
    values: Vec<Box<dyn Debug>>,
}

fn tree(from: u64, to: u64) -> Option<Box<TreeNode>> {
    let key = from + (to - from) / 2;
    (from < to).then(|| {
        Box::new(TreeNode {
            key,
            smaller: tree(from, key),
            larger: tree(key + 1, to),
            label: format!("label {key}"),
        })
    })
}

fn leak(value: u64) {
    let one = Rc::new(Member { value, other: RefCell::new(None), payload: vec![1, 2, 3, 4] });
    let other = Rc::new(Member { value, other: RefCell::new(Some(one.clone())), payload: vec![5] });
    *one.other.borrow_mut() = Some(other);
}

#[inline(never)]
fn build(number: u64) -> App {
    let mut list = None;
    for value in 0..number {
        list = Some(Box::new(ListNode { value, next: list }));
    }
    let name = Rc::new("a shared text".to_owned());
    let value = |n: u64| -> Box<dyn Debug> {
        if n.is_multiple_of(2) { Box::new(n) } else { Box::new(n.to_string()) }
    };
    (0..number / 10).for_each(leak);
    App {
        list,
        tree: tree(0, number),
        map: (0..number).map(|n| (n, vec![n as u16; 3])).collect(),
        sorted: (0..number).map(|n| (format!("key {n}"), n)).collect(),
        shared: (0..number / 10).map(|_| name.clone()).collect(),
        values: (0..number / 10).map(value).collect(),
    }
}

/// Builds a graph of about 5.6 blocks for each of `--work` (1000) and keeps it for `--seconds`. Prints `ready` on stderr.
pub fn run(options: &Options, report: &mut Report) {
    let number = options.work.unwrap_or(1000);
    let app = Box::new(build(number));
    let leaked = number / 10 * 4;
    eprintln!("ready");
    let stop = AtomicBool::new(false);
    let (mut touched, mut longest) = (0, Duration::ZERO);
    std::thread::scope(|scope| {
        let ticker = scope.spawn(|| {
            let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
            while !stop.load(Ordering::Relaxed) {
                let now = Instant::now();
                longest = longest.max(now - last);
                last = now;
            }
            longest
        });
        let end = Instant::now() + Duration::from_secs_f64(options.seconds);
        while Instant::now() < end {
            let mut next = &app.list;
            while let Some(node) = next {
                touched ^= node.value;
                next = &node.next;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        longest = ticker.join().expect("the ticker ends");
    });
    black_box((&app, touched));
    report.number("leaked", leaked);
    report.number("longest_pause_us", longest.as_micros() as u64);
    let nodes = usize::from(app.tree.is_some());
    report.number("work", nodes + app.map.len() + app.sorted.len() + app.shared.len() + app.values.len());
    // A list is freed by recursion, which would take too deep a stack.
    std::mem::forget(app);
}

impl Debug for TreeNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {:?} {:?}", self.key, self.label, self.smaller, self.larger)
    }
}

impl Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {}", self.value, self.payload, self.other.borrow().is_some())
    }
}
