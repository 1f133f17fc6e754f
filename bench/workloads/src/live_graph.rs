//! A heap whose graph is known: a list, a tree, maps, shared values, trait objects, and leaked cycles.
//!
//! A thread looks at the clock all the time, so that the longest pause of the program is known.

use crate::clock::{Ticker, monotonic};
use crate::options::Options;
use crate::parked;
use crate::report::Report;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hint::black_box;
use std::io::Read;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

/// Builds a graph of about 5.6 blocks for each of `--work` (1000) and keeps it for `--seconds`; 0: until standard input ends.
/// `--threads` more threads wait (0). Prints `ready` on stderr.
pub fn run(options: &Options, report: &mut Report) {
    let number = options.work.unwrap_or(1000);
    let app = Box::new(build(number));
    let leaked = number / 10 * 4;
    parked::start(options.threads.unwrap_or(0));
    let stop = AtomicBool::new(false);
    eprintln!("ready");
    let (touched, ticker) = std::thread::scope(|scope| {
        let ticker = scope.spawn(|| Ticker::until(&stop));
        scope.spawn(|| {
            wait(options.seconds);
            stop.store(true, Ordering::Relaxed);
        });
        (walks(&app, &stop), ticker.join().expect("the ticker ends"))
    });
    black_box((&app, touched));
    report.number("leaked", leaked);
    report.number("longest_pause_us", ticker.longest.as_micros());
    report.number("longest_stop_us", ticker.longest_stop.as_micros());
    report.number("fork_us", fork().as_micros());
    let nodes = usize::from(app.tree.is_some());
    report.number("work", nodes + app.map.len() + app.sorted.len() + app.shared.len() + app.values.len());
    // A list is freed by recursion, which would take too deep a stack.
    std::mem::forget(app);
}

/// Walks the list fifty times a second.
fn walks(app: &App, stop: &AtomicBool) -> u64 {
    let mut touched = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut next = &app.list;
        while let Some(node) = next {
            touched ^= node.value;
            next = &node.next;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    touched
}

/// Waits for some seconds; 0: until standard input ends.
pub(crate) fn wait(seconds: f64) {
    if seconds > 0.0 {
        return std::thread::sleep(Duration::from_secs_f64(seconds));
    }
    let mut rest = [0; 64];
    while std::io::stdin().read(&mut rest).is_ok_and(|read| read > 0) {}
}

/// How long fork(2) takes in this program.
fn fork() -> Duration {
    let begin = monotonic();
    // SAFETY: the child does nothing but call `_exit`, which is async-signal-safe.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: async-signal-safe; it has no other condition.
        unsafe { libc::_exit(0) };
    }
    let time = monotonic() - begin;
    assert!(child > 0, "a child can be forked");
    // SAFETY: a null pointer means that no status is written.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    time
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
