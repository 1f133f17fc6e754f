//! Allocates through every container and tells the type of each block. The allocator records return addresses by frame
//! pointers; `main` prints them.
//!
//! A line of the output: `expected types|size of the type|bytes|address,address,…`, innermost address first, relative to
//! the program. Expected types are separated by ` or `.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};

struct Probe;

const MOST: usize = 1 << 13;
const DEEPEST: usize = 40;

#[derive(Clone, Copy)]
struct Record {
    label: &'static str,
    element: usize,
    bytes: usize,
    depth: usize,
    stack: [usize; DEEPEST],
}

static mut RECORDS: [Record; MOST] =
    [Record { label: "", element: 0, bytes: 0, depth: 0, stack: [0; DEEPEST] }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LABEL: Cell<(&'static str, usize)> = const { Cell::new(("", 0)) };
    static END: Cell<usize> = const { Cell::new(0) };
}

#[inline(never)]
fn record(bytes: usize) {
    let (label, element) = LABEL.get();
    if label.is_empty() {
        return;
    }
    let mut frame: *const usize;
    unsafe { std::arch::asm!("mov {}, rbp", out(reg) frame) };
    let mut record = Record { label, element, bytes, depth: 0, stack: [0; DEEPEST] };
    while record.depth < DEEPEST && frame as usize > 4096 && (frame as usize) < END.get() {
        record.stack[record.depth] = unsafe { *frame.add(1) };
        record.depth += 1;
        frame = unsafe { *frame } as *const usize;
    }
    let index = COUNT.fetch_add(1, Ordering::Relaxed);
    assert!(index < MOST);
    unsafe { (&raw mut RECORDS).cast::<Record>().add(index).write(record) };
}

unsafe impl GlobalAlloc for Probe {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record(layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record(size);
        unsafe { System.realloc(block, layout, size) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static PROBE: Probe = Probe;

/// Runs code whose blocks have these types. The first is checked by its size: of an element, a value or an entry.
macro_rules! made {
    ($label:literal, $element:ty, $code:expr) => {{
        LABEL.set(($label, size_of::<$element>()));
        let made = black_box($code);
        LABEL.set(("", 0));
        made
    }};
}

#[derive(Clone, Debug, Default, PartialEq, PartialOrd)]
pub struct Foo {
    a: u64,
    b: u32,
    c: u8,
}

#[derive(Clone, Debug, Default)]
pub struct Bar {
    name: u128,
    other: u64,
}

/// The same layout as the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Left(u32, u32);
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Right(u32, u32);

pub trait Shape {
    fn area(&self) -> f64;
}
pub struct Square(f64);
pub struct Oblong(f64, f64);
impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}
impl Shape for Oblong {
    fn area(&self) -> f64 {
        self.0 * self.1
    }
}

#[derive(Debug)]
pub struct Node<T> {
    value: T,
    next: Option<Box<Node<T>>>,
}

pub struct State {
    names: Vec<String>,
}

/// Allocates without a container.
pub struct Arena(*mut u8);

impl Arena {
    #[inline(never)]
    fn new(bytes: usize) -> Arena {
        Arena(unsafe { std::alloc::alloc(Layout::from_size_align(bytes, 8).unwrap()) })
    }
}

#[inline(never)]
fn lefts(n: u32) -> Vec<Left> {
    let mut all = Vec::new();
    for i in 0..n {
        all.push(Left(i, i));
    }
    all
}

#[inline(never)]
fn rights(n: u32) -> Vec<Right> {
    let mut all = Vec::new();
    for i in 0..n {
        all.push(Right(i, i));
    }
    all.push(Right(1, 2));
    all
}

#[inline(never)]
fn vectors(n: usize) {
    let mut foos = made!("[Foo]", Foo, {
        let mut foos = Vec::new();
        for i in 0..n as u64 {
            foos.push(Foo { a: i, ..Foo::default() });
        }
        foos
    });
    made!("[Foo]", Foo, foos.clone());
    made!("[Foo]", Foo, foos.reserve(10 * n));
    made!("[Foo]", Foo, foos.shrink_to_fit());
    made!("[Foo]", Foo, foos.extend_from_slice(&[Foo::default(), Foo::default()]));
    made!("[Foo]", Foo, foos.resize(5 * n, Foo::default()));
    made!("[Foo]", Foo, foos.split_off(n));
    made!("[Foo]", Foo, foos.to_vec());
    made!("[Foo]", Foo, foos.into_boxed_slice());
    made!("[Bar]", Bar, vec![Bar::default(); n]);
    made!("[Bar]", Bar, Vec::<Bar>::with_capacity(n));
    made!("[u32]", u32, vec![0u32; n]);
    made!("[u32]", u32, vec![7u32; n]);
    made!("[u32] or [u32; 3]", [u32; 1], vec![1, 2, n as u32]);
    made!("[u8]", u8, vec![0u8; n]);
    made!("[u64]", u64, (0..n as u64).collect::<Vec<_>>());
    made!("[u64]", u64, (0..n as u64).filter(|i| i % 3 == 0).collect::<Vec<_>>());
    made!("[u16]", u16, [1u16, 2, 3].iter().copied().chain(0..n as u16).collect::<Vec<u16>>());
    made!("[(u64, char)]", (u64, char), (0..n as u64).zip("abcdefgh".chars()).collect::<Vec<_>>());
    made!("[&str]", &str, "a b c d".split(' ').collect::<Vec<_>>());
    let twice = made!("[Vec<u32>] or [u32]", u32, {
        let mut all = Vec::new();
        for i in 0..n {
            all.push(vec![i as u32; i]);
        }
        all
    });
    made!("[Vec<u32>] or [u32]", u32, twice.clone());
    made!("[Option<Box<Foo>>]", usize, (0..n).map(|_| None).collect::<Vec<Option<Box<Foo>>>>());
    made!("[u32]", u32, twice.concat());
    let numbers: Vec<u64> = (0..40 * n as u64).collect();
    // In place: the block keeps its first type; only the shrinking is an allocation, of the new type.
    made!("[u32]", u32, numbers.into_iter().map(|i| i as u32).collect::<Vec<u32>>());
    made!("[Left]", Left, lefts(n as u32));
    made!("[Right]", Right, rights(n as u32));
    made!("[Left]", Left, lefts(2));
    made!("[u64]", u64, (0..n as u64).collect::<BinaryHeap<_>>());
    let mut many = made!("[u64]", u64, (0..100 * n as u64).rev().collect::<Vec<_>>());
    made!("[u64]", u64, many.sort());
    made!("[(u64, u32)] or [(u64, usize)] or [(u64, u8)] or [(u64, u16)]", (u64, u8), many.sort_by_cached_key(|i| i % 7));
}

#[inline(never)]
fn strings(n: usize) {
    let text = made!("[u8]", u8, "text".to_string());
    made!("[u8]", u8, String::with_capacity(n));
    made!("[u8]", u8, text.clone());
    made!("[u8]", u8, format!("{text} and {n}"));
    made!("[u8]", u8, text.clone() + " more");
    made!("[u8]", u8, text.to_uppercase());
    made!("[u8]", u8, text.repeat(n));
    made!("[u8]", u8, text.replace('t', "xyz"));
    made!("[u8]", u8, n.to_string());
    made!("[u8]", u8, text.chars().rev().collect::<String>());
    made!("[u8]", u8, String::from_utf8_lossy(b"a\xffb").into_owned());
    made!("[u8]", u8, text.as_bytes().to_vec());
    made!("[u8]", u8, ["a", "b"].join(", "));
    made!("[u8]", u8, ["a", "b"].concat());
    made!("[u8]", u8, std::path::Path::new("/a").join("b"));
    made!("[u8]", u8, std::path::PathBuf::from("/a/b"));
    made!("[u8]", u8, std::ffi::OsString::from("abc"));
    made!("[u8]", u8, std::ffi::CString::new("abc").unwrap());
    made!("[u8]", u8, text.clone().into_boxed_str());
    made!("[u8] or str", u8, Box::<str>::from("abc"));
    // With the next one, code may be folded, which makes the types unknown.
    made!("[String] or [u8] or ?", String, "a b c d".split(' ').map(String::from).collect::<Vec<_>>());
    made!("[String] or [u8] or ?", String, "a b c d".split(' ').map(str::to_owned).collect::<Vec<String>>().clone());
    made!("Rc<[u8]> or Rc<str>", u8, Rc::<str>::from("abc"));
    made!("Arc<[u8]> or Arc<str>", u8, Arc::<str>::from("abc"));
    let mut long = String::new();
    made!("[u8]", u8, (0..n).for_each(|i| long.push((b'a' + i as u8 % 26) as char)));
    made!("[u8]", u8, std::fmt::Write::write_fmt(&mut long, format_args!("{n:?} {:?}", (1, "x"))).unwrap());
}

#[inline(never)]
fn boxes(n: usize) {
    made!("Foo", Foo, Box::new(Foo::default()));
    made!("Foo", Foo, Box::new(Foo::default()).clone());
    made!("Bar", Bar, Box::<Bar>::default());
    made!("[u64; 64]", [u64; 64], Box::new([n as u64; 64]));
    made!("[Foo]", Foo, vec![Foo::default(); n].into_boxed_slice().clone());
    made!("Square", Square, Box::new(Square(1.0)) as Box<dyn Shape>).area();
    made!("Oblong", Oblong, Box::new(Oblong(1.0, n as f64)) as Box<dyn Shape>).area();
    made!("boxes::{closure}", usize, Box::new(move || n + 1) as Box<dyn Fn() -> usize>)();
    made!("Node<u32>", Node<u32>, {
        let mut list: Option<Box<Node<u32>>> = None;
        for i in 0..n {
            list = Some(Box::new(Node { value: i as u32, next: list }));
        }
        list
    });
    made!("Node<u8>", Node<u8>, Box::new(Node { value: 1u8, next: None }));
    made!("StringError or [u8]", String, Box::<dyn std::error::Error>::from("bad"));
    made!("Custom or StringError or [u8]", [u64; 3], std::io::Error::other("bad"));
    made!("Box<Foo> or Foo", usize, Box::new(Box::new(Foo::default())));
    made!("Foo", Foo, Box::pin(Foo::default()));
}

#[inline(never)]
fn counted(n: usize) {
    let foo = made!("Rc<Foo>", Foo, Rc::new(Foo::default()));
    let kept = foo.clone();
    let mut changed = kept.clone();
    made!("Rc<Foo>", Foo, Rc::make_mut(&mut changed).a += 1);
    made!("Rc<RefCell<Vec<u8>>>", [u8; 32], Rc::new(std::cell::RefCell::new(Vec::<u8>::new())));
    made!("Arc<Mutex<State>>", Mutex<State>, Arc::new(Mutex::new(State { names: Vec::new() }))).lock().unwrap().names.len();
    made!("Arc<RwLock<u64>>", RwLock<u64>, Arc::new(RwLock::new(5u64)));
    made!("Rc<[u64]> or [u64]", u64, (0..n as u64).collect::<Rc<[u64]>>());
    made!("Rc<[Foo]>", Foo, Rc::<[Foo]>::from(&[Foo::default(), Foo::default()][..]));
    made!("Arc<[u64]> or [u64]", u64, Arc::<[u64]>::from(vec![1u64; n]));
    made!("Rc<Square>", Square, Rc::new(Square(2.0)) as Rc<dyn Shape>).area();
    made!("Arc<Oblong> or Oblong or Arc<dyn Shape>", Oblong, Arc::<dyn Shape>::from(Box::new(Oblong(1.0, 2.0)) as Box<dyn Shape>)).area();
    made!("Rc<Bar>", Bar, Rc::new_cyclic(|_| Bar::default()));
    drop((foo, kept, changed));
}

#[inline(never)]
fn maps(n: usize) {
    let map = made!("HashMap<u64, String> table or [u8]", (u64, String), {
        let mut map = HashMap::new();
        for i in 0..n as u64 {
            map.insert(i, format!("{i}"));
        }
        map
    });
    made!("HashMap<u64, String> table or [u8]", (u64, String), map.clone());
    made!("HashMap<String, Foo> table or [u8]", (String, Foo), {
        let mut map = HashMap::new();
        for i in 0..n {
            map.entry(i.to_string()).or_insert_with(Foo::default).a += 1;
        }
        map
    });
    made!("HashMap<u32, u32> table", (u32, u32), HashMap::<u32, u32>::with_capacity(n));
    made!("HashSet<u64> table", u64, (0..n as u64).collect::<HashSet<_>>());
    made!("HashSet<&str> table", &str, ["a", "b"].into_iter().collect::<HashSet<_>>());
    made!("HashMap<Left, u8> table", (Left, u8), (0..n as u32).map(|i| (Left(i, i), 1)).collect::<HashMap<_, u8>>());
    made!("HashMap<Right, u8> table", (Right, u8), (0..n as u32).map(|i| (Right(i, i), 1)).collect::<HashMap<_, u8>>());
    let tree = made!("BTreeMap<u64, Foo> leaf or BTreeMap<u64, Foo> internal or BTreeMap<u64, Foo> node", (u64, Foo), {
        let mut map = BTreeMap::new();
        for i in 0..20 * n as u64 {
            map.insert(i, Foo::default());
        }
        map
    });
    made!("BTreeMap<u64, Foo> leaf or BTreeMap<u64, Foo> internal or BTreeMap<u64, Foo> node", (u64, Foo), tree.clone());
    made!(
        "BTreeMap<u64, u8> leaf or BTreeMap<u64, u8> internal or BTreeMap<u64, u8> node or [(u64, u8)]",
        u8,
        (0..20 * n as u64).map(|i| (i, 1)).collect::<BTreeMap<u64, u8>>()
    );
    made!("BTreeSet<u32> leaf or BTreeSet<u32> internal or BTreeSet<u32> node or [u32]", u32, (0..20 * n as u32).collect::<BTreeSet<u32>>());
    made!("BTreeMap<String, u8> leaf or BTreeMap<String, u8> node or [u8]", u8, {
        let mut map = BTreeMap::new();
        map.entry(n.to_string()).or_insert(1u8);
        map
    });
    made!("LinkedList<u32> node", u32, (0..n as u32).collect::<LinkedList<_>>());
    made!("[u16]", u16, (0..n as u16).collect::<VecDeque<_>>());
    made!("[Foo]", Foo, {
        let mut queue = VecDeque::new();
        for _ in 0..n {
            queue.push_back(Foo::default());
            queue.push_front(Foo::default());
        }
        queue
    });
    made!("[u8]", u8, (0..n as u8).collect::<VecDeque<_>>());
}

#[inline(never)]
fn others(n: usize) {
    // The allocator is called directly: nothing names a type. "?" is for unknown.
    made!("?", u8, Arena::new(64).0);
    made!("? or [Arena]", usize, (0..n).map(|_| Arena::new(64)).collect::<Vec<_>>());
    made!("?", u8, {
        let mut kept = None;
        kept.get_or_insert_with(|| Arena::new(128)).0
    });
    let (give, take) = made!("*", u8, std::sync::mpsc::channel::<Foo>());
    made!("*", u8, give.send(Foo::default()).unwrap());
    take.recv().unwrap();
    made!("*", u8, std::thread::spawn(move || n).join().unwrap());
}

#[inline(never)]
fn all(n: usize) {
    vectors(n);
    strings(n);
    boxes(n);
    counted(n);
    maps(n);
    others(n);
}

unsafe extern "C" {
    static __ehdr_start: u8;
}

fn main() {
    let top = 0usize;
    END.set(&raw const top as usize + (1 << 12));
    all(std::env::args().count() * 10);
    let base = &raw const __ehdr_start as usize;
    let mut text = String::new();
    for index in 0..COUNT.load(Ordering::Relaxed) {
        let record = unsafe { (&raw const RECORDS).cast::<Record>().add(index).read() };
        let stack: Vec<String> = record.stack[..record.depth].iter().map(|at| format!("{:x}", at.wrapping_sub(base))).collect();
        text += &format!("{}|{}|{}|{}\n", record.label, record.element, record.bytes, stack.join(","));
    }
    print!("{text}");
}
