//! Builds known structures, and prints its live blocks and which of them hold which, as it knows them from its own references:
//!
//! - `block ADDRESS SIZE`
//! - `root ADDRESS`: of the `App`
//! - `owns FROM TO`, `weak FROM TO`, `refers FROM TO`: addresses in blocks
//! - `unowned TO`: nothing holds this block
//! - `text TO CONTENTS`
//! - `variable ADDRESS NAME`: a static or thread-local variable; edges from it begin at its address
//!
//! All other blocks have one owner.
#![expect(dead_code, reason = "the test reads the fields from outside of the process")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, RwLock};

/// Records blocks while `RECORDING`.
struct Recorder;

static RECORDING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicUsize = AtomicUsize::new(0);
const MOST: usize = 1 << 18;
static mut BLOCKS: [(usize, usize); MOST] = [(0, 0); MOST];

fn slot(address: usize) -> usize {
    (address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 46
}

unsafe impl GlobalAlloc for Recorder {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe {
            let block = System.alloc(layout);
            if RECORDING.load(Ordering::Relaxed) {
                let mut at = slot(block as usize);
                while BLOCKS[at].0 > 1 {
                    at = (at + 1) % MOST;
                }
                BLOCKS[at] = (block as usize, layout.size());
                COUNT.fetch_add(1, Ordering::Relaxed);
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe {
            if RECORDING.load(Ordering::Relaxed) {
                let mut at = slot(block as usize);
                while BLOCKS[at].0 != 0 && BLOCKS[at].0 != block as usize {
                    at = (at + 1) % MOST;
                }
                if BLOCKS[at].0 != 0 {
                    BLOCKS[at] = (1, 0);
                }
            }
            System.dealloc(block, layout);
        }
    }
}

#[global_allocator]
static RECORDER: Recorder = Recorder;

struct Cons {
    value: Box<u64>,
    next: Option<Box<Cons>>,
}

struct Tree {
    label: String,
    left: Option<Box<Tree>>,
    right: Option<Box<Tree>>,
    /// An address as a number: no pointer.
    number: usize,
}

enum Shape {
    Circle(Box<u64>),
    Polygon { corners: Vec<u16>, name: String },
    Nested(Option<Inner>),
    Number(usize),
    Nothing,
}

enum Inner {
    One(Box<u64>),
    Two(u32, Box<u64>),
    Three,
}

trait Speak {
    fn speak(&self) -> u64;
}

struct Dog(Box<u64>);
struct Cat {
    lives: u8,
    name: String,
}

impl Speak for Dog {
    fn speak(&self) -> u64 {
        *self.0
    }
}

impl Speak for Cat {
    fn speak(&self) -> u64 {
        self.name.len() as u64 + u64::from(self.lives)
    }
}

/// Held by several, with a cycle through `Weak`.
struct Shared {
    parent: RefCell<Weak<Shared>>,
    children: RefCell<Vec<Rc<Shared>>>,
    payload: Cell<Option<Box<u64>>>,
}

union Bits {
    word: usize,
    pointer: *const u64,
}

struct App {
    list: Option<Box<Cons>>,
    tree: Option<Box<Tree>>,
    map: HashMap<String, Box<u64>>,
    set: HashSet<Box<u64>>,
    tiny: HashMap<u8, Box<u64>>,
    empty: HashMap<String, String>,
    btree: BTreeMap<u32, Box<u64>>,
    names: BTreeSet<String>,
    small: BTreeMap<String, u8>,
    shared: Vec<Rc<Shared>>,
    weak: Vec<Weak<Shared>>,
    dropped: std::sync::Weak<Dog>,
    dynamic: Vec<Box<dyn Speak>>,
    counted: Rc<dyn Speak>,
    counted_text: Rc<str>,
    slice: Arc<[Box<u64>]>,
    deque: VecDeque<Box<u64>>,
    straight: VecDeque<Box<u64>>,
    truncated: Vec<Box<u64>>,
    nested: Vec<Vec<Box<u64>>>,
    nothing: Vec<()>,
    unbounded: (Sender<Box<u64>>, Receiver<Box<u64>>),
    bounded: (SyncSender<Box<u64>>, Receiver<Box<u64>>),
    shapes: Vec<Shape>,
    linked: LinkedList<Box<u64>>,
    cell: OnceCell<Box<u64>>,
    no_cell: OnceCell<Box<u64>>,
    once: OnceLock<Box<u64>>,
    no_once: OnceLock<Box<u64>>,
    lazy: LazyLock<Box<u64>>,
    mutex: Mutex<Vec<Box<u64>>>,
    lock: RwLock<Option<Box<u64>>>,
    text: String,
    path: std::path::PathBuf,
    boxed_slice: Box<[Box<u64>]>,
    boxed_text: Box<str>,
    boxed_path: Box<std::path::Path>,
    iterator: std::vec::IntoIter<Box<u64>>,
    heap: BinaryHeap<Box<u64>>,
    array: [Option<Box<u64>>; 3],
    grid: [[Box<u64>; 3]; 2],
    reference: &'static u64,
    fields: &'static [Box<u64>],
    error: std::io::Result<Box<u64>>,
    simple_error: std::io::Result<Box<u64>>,
    function: fn(u64) -> u64,
    closure: Box<dyn Fn() -> u64>,
    bits: Bits,
    number: usize,
}

fn line(kind: &str, from: usize, to: usize) {
    println!("{kind} {from} {to}");
}

fn at<T: ?Sized>(value: &T) -> usize {
    (value as *const T).cast::<u8>() as usize
}

fn owns<A: ?Sized, B: ?Sized>(from: &A, to: &B) {
    line("owns", at(from), at(to));
}

fn unowned<T: ?Sized>(value: &T) {
    println!("unowned {}", at(value));
}

/// A box whose address nobody keeps as a pointer. If it is made after others were dropped, it takes their place.
fn hidden(value: u64) -> usize {
    Box::into_raw(Box::new(value)) as usize
}

fn boxes(range: std::ops::Range<u64>) -> impl Iterator<Item = Box<u64>> {
    range.map(Box::new)
}

fn tree(depth: u32, number: usize) -> Option<Box<Tree>> {
    (depth > 0).then(|| {
        Box::new(Tree {
            label: format!("node at {depth}"),
            left: tree(depth - 1, number),
            right: if depth % 2 == 0 { tree(depth - 1, number) } else { None },
            number,
        })
    })
}

fn print_tree(tree: &Tree) {
    owns(tree, tree.label.as_str());
    for child in [&tree.left, &tree.right].into_iter().flatten() {
        owns(tree, &**child);
        print_tree(child);
    }
}

fn shared(value: u64) -> Rc<Shared> {
    Rc::new(Shared {
        parent: RefCell::default(),
        children: RefCell::default(),
        payload: Cell::new(Some(Box::new(value))),
    })
}

fn twice(value: u64) -> u64 {
    2 * value
}

fn build(hidden_words: &mut Vec<usize>) -> Box<App> {
    let mut list = None;
    for value in 0..1000 {
        list = Some(Box::new(Cons { value: Box::new(value), next: list }));
    }
    let number = hidden(7);
    hidden_words.push(number);

    let mut map: HashMap<String, Box<u64>> =
        (0..3000u64).map(|key| (format!("key number {key}"), Box::new(key))).collect();
    let mut btree: BTreeMap<u32, Box<u64>> = (0..10_000).map(|key| (key, Box::new(u64::from(key)))).collect();
    let mut names: BTreeSet<String> = (0..500).map(|key| format!("name {key}")).collect();
    let mut truncated: Vec<Box<u64>> = boxes(0..1000).collect();
    let mut deque: VecDeque<Box<u64>> = boxes(0..16).collect();
    let (sender, receiver) = channel();
    let (bounded, bounded_receiver) = sync_channel(10);
    boxes(0..100).for_each(|value| sender.send(value).unwrap());
    boxes(0..10).for_each(|value| bounded.try_send(value).unwrap());
    let mut iterator = boxes(0..50).collect::<Vec<_>>().into_iter();
    let mut array: [Option<Box<u64>>; 3] = [const { None }; 3];
    array[1] = Some(Box::new(1));

    // Entries, elements and messages go; new blocks that nobody holds take their place.
    (0..1000u64).for_each(|key| drop(map.remove(&format!("key number {}", key * 2))));
    (0..10_000).filter(|key| key % 3 == 0).for_each(|key| drop(btree.remove(&key)));
    (4000..5000).for_each(|key| drop(btree.remove(&key)));
    (100..300).for_each(|key| drop(names.remove(&format!("name {key}"))));
    truncated.truncate(10);
    for value in 0..10 {
        drop(deque.pop_front());
        if value % 2 == 0 {
            deque.push_back(Box::new(value));
        }
    }
    (0..50).for_each(|_| drop(receiver.recv().unwrap()));
    (0..6).for_each(|_| drop(bounded_receiver.recv().unwrap()));
    boxes(0..3).for_each(|value| bounded.try_send(value).unwrap());
    (0..20).for_each(|_| drop(iterator.next()));
    hidden_words.extend((0..6000).map(hidden));

    let root = shared(1);
    for value in 2..5 {
        let child = shared(value);
        *child.parent.borrow_mut() = Rc::downgrade(&root);
        root.children.borrow_mut().push(child);
    }
    let gone = Arc::new(Dog(Box::new(3)));
    let dropped = Arc::downgrade(&gone);
    drop(gone);
    hidden_words.push(hidden(8));

    let kept: &'static u64 = Box::leak(Box::new(5));
    let fields: &'static [Box<u64>] = Box::leak(boxes(0..3).collect::<Vec<_>>().into_boxed_slice());
    let captured = Box::new(9u64);
    let lazy: LazyLock<Box<u64>> = LazyLock::new(|| Box::new(4));
    let _ = **lazy;
    Box::new(App {
        list,
        tree: tree(12, number),
        map,
        set: boxes(0..20).collect(),
        tiny: (0..2u8).map(|key| (key, Box::new(0))).collect(),
        empty: HashMap::new(),
        btree,
        names,
        small: [("only".to_owned(), 1)].into(),
        shared: vec![root.clone(), root.clone(), root.children.borrow()[0].clone()],
        weak: vec![Rc::downgrade(&root), Weak::new()],
        dropped,
        dynamic: vec![Box::new(Dog(Box::new(1))), Box::new(Cat { lives: 9, name: "Tom".to_owned() })],
        counted: Rc::new(Cat { lives: 7, name: "Felix".to_owned() }),
        counted_text: "counted".into(),
        slice: boxes(0..5).collect(),
        deque,
        straight: boxes(0..3).collect(),
        truncated,
        nested: (0..4).map(|size| boxes(0..size).collect()).collect(),
        nothing: vec![(); 9],
        unbounded: (sender, receiver),
        bounded: (bounded, bounded_receiver),
        shapes: vec![
            Shape::Circle(Box::new(1)),
            Shape::Polygon { corners: vec![1, 2, 3], name: "triangle".to_owned() },
            Shape::Nested(None),
            Shape::Nested(Some(Inner::One(Box::new(2)))),
            Shape::Nested(Some(Inner::Two(4, Box::new(3)))),
            Shape::Nested(Some(Inner::Three)),
            Shape::Number(number),
            Shape::Nothing,
        ],
        linked: boxes(0..30).collect(),
        cell: OnceCell::from(Box::new(1)),
        no_cell: OnceCell::new(),
        once: OnceLock::from(Box::new(2)),
        no_once: OnceLock::new(),
        lazy,
        mutex: Mutex::new(boxes(0..2).collect()),
        lock: RwLock::new(Some(Box::new(6))),
        text: "a text with a capacity".to_owned() + "",
        path: "/some/path".into(),
        boxed_slice: boxes(0..4).collect(),
        boxed_text: "boxed".into(),
        boxed_path: std::path::Path::new("/boxed/path").into(),
        iterator,
        heap: boxes(0..9).collect(),
        array,
        grid: std::array::from_fn(|row| std::array::from_fn(|column| Box::new((3 * row + column) as u64))),
        reference: kept,
        fields,
        error: Err(std::io::Error::other(String::from("an error of the user"))),
        simple_error: Err(std::io::ErrorKind::NotFound.into()),
        function: twice,
        closure: Box::new(move || *captured),
        bits: Bits { word: number },
        number,
    })
}

fn print_structures(app: &App) {
    let mut next = &app.list;
    let mut owner = at(app);
    while let Some(cons) = next {
        line("owns", owner, at(&**cons));
        owns(&**cons, &*cons.value);
        owner = at(&**cons);
        next = &cons.next;
    }
    let top = app.tree.as_ref().unwrap();
    owns(app, &**top);
    print_tree(top);
    owns(app, app.map.iter().next().unwrap().0);
    for (key, value) in &app.map {
        owns(key, key.as_str());
        owns(value, &**value);
    }
    owns(app, app.set.iter().next().unwrap());
    app.set.iter().for_each(|value| owns(value, &**value));
    owns(app, &app.tiny[&0]);
    app.tiny.values().for_each(|value| owns(value, &**value));
    app.btree.values().for_each(|value| owns(value, &**value));
    app.names.iter().for_each(|name| owns(name, name.as_str()));
    app.small.keys().for_each(|name| owns(name, name.as_str()));
    owns(app, app.small.keys().next().unwrap());
    for pointer in &app.shared {
        owns(pointer, &**pointer);
    }
    let root = &app.shared[0];
    owns(app, app.shared.as_slice());
    owns(app, app.weak.as_slice());
    line("weak", at(app.weak.as_slice()), at(&**root));
    line("weak", at(app), app.dropped.as_ptr() as usize);
    owns(&**root, root.children.borrow().as_slice());
    for child in root.children.borrow().iter() {
        owns(child, &**child);
        line("weak", at(&**child), at(&**root));
    }
    owns(app, app.dynamic.as_slice());
    app.dynamic.iter().for_each(|value| owns(value, &**value));
    owns(app, &*app.counted);
    owns(app, &*app.counted_text);
    owns(app, &*app.slice);
    app.slice.iter().for_each(|value| owns(value, &**value));
    for deque in [&app.deque, &app.straight] {
        owns(app, deque.as_slices().0);
        deque.iter().for_each(|value| owns(value, &**value));
    }
    owns(app, app.truncated.as_slice());
    app.truncated.iter().for_each(|value| owns(value, &**value));
    owns(app, app.nested.as_slice());
    for vec in app.nested.iter().skip(1) {
        owns(vec, vec.as_slice());
        vec.iter().for_each(|value| owns(value, &**value));
    }
    owns(app, app.shapes.as_slice());
    for shape in &app.shapes {
        match shape {
            Shape::Circle(value) | Shape::Nested(Some(Inner::One(value) | Inner::Two(_, value))) => {
                owns(shape, &**value);
            }
            Shape::Polygon { corners, name } => {
                owns(shape, corners.as_slice());
                owns(shape, name.as_str());
            }
            _ => (),
        }
    }
    app.linked.iter().for_each(|value| owns(value, &**value));
    owns(app, app.linked.front().unwrap());
    // `LinkedList::tail`.
    line("refers", at(app), at(app.linked.back().unwrap()));
    owns(app, &**app.cell.get().unwrap());
    owns(app, &**app.once.get().unwrap());
    owns(app, &**app.lazy);
    let guard = app.mutex.lock().unwrap();
    owns(app, guard.as_slice());
    guard.iter().for_each(|value| owns(value, &**value));
    owns(app, &**app.lock.read().unwrap().as_ref().unwrap());
    owns(app, app.text.as_str());
    println!("text {} {}", at(app.text.as_str()), app.text);
    owns(app, app.path.as_os_str());
    println!("text {} {}", at(app.path.as_os_str()), app.path.display());
    owns(app, &*app.boxed_slice);
    app.boxed_slice.iter().for_each(|value| owns(value, &**value));
    owns(app, &*app.boxed_text);
    println!("text {} {}", at(&*app.boxed_text), app.boxed_text);
    owns(app, &*app.boxed_path);
    println!("text {} {}", at(&*app.boxed_path), app.boxed_path.display());
    println!("text {} {}", at(&*app.counted_text), app.counted_text);
    owns(app, app.iterator.as_slice());
    app.iterator.as_slice().iter().for_each(|value| owns(value, &**value));
    owns(app, app.heap.as_slice());
    app.heap.iter().for_each(|value| owns(value, &**value));
    owns(app, &**app.array[1].as_ref().unwrap());
    app.grid.iter().flatten().for_each(|value| owns(app, &**value));
    line("refers", at(app), at(app.reference));
    line("refers", at(app), at(app.fields));
    app.fields.iter().for_each(|value| owns(value, &**value));
    owns(app, &*app.closure);
    println!("doubtful {} {}", at(app), app.number);
}

static CACHE: LazyLock<Mutex<Vec<Box<u64>>>> = LazyLock::new(|| Mutex::new(boxes(0..3).collect()));
static SET: OnceLock<String> = OnceLock::new();
static UNSET: OnceLock<String> = OnceLock::new();

thread_local! {
    static LOCAL: RefCell<Vec<Box<u64>>> = RefCell::new(boxes(0..2).collect());
    static EAGER: RefCell<Option<Box<u64>>> = const { RefCell::new(None) };
}

fn set_variables() {
    CACHE.lock().unwrap().pop();
    SET.set("text of a static".to_owned()).unwrap();
    LOCAL.with_borrow_mut(|local| drop(local.pop()));
    EAGER.set(Some(Box::new(3)));
}

fn print_variables() {
    let variable = |address: usize, name: &str| println!("variable {address} {name}");
    variable(&raw const CACHE as usize, "CACHE");
    let guard = CACHE.lock().unwrap();
    owns(&CACHE, guard.as_slice());
    guard.iter().for_each(|value| owns(value, &**value));
    variable(&raw const SET as usize, "SET");
    owns(&SET, SET.get().unwrap().as_str());
    variable(&raw const UNSET as usize, "UNSET");
    // The storage of a thread-local variable begins with its value.
    LOCAL.with(|local| {
        variable(at(local), "LOCAL");
        owns(local, local.borrow().as_slice());
        local.borrow().iter().for_each(|value| owns(value, &**value));
    });
    EAGER.with(|local| {
        variable(at(local), "EAGER");
        owns(local, &**local.borrow().as_ref().unwrap());
    });
}

fn main() {
    println!("start");
    // What `recv` makes for a thread is made.
    let (sender, receiver) = channel();
    sender.send(Box::new(1u64)).unwrap();
    drop(receiver.recv());
    let mut hidden_words = Vec::with_capacity(1 << 14);
    RECORDING.store(true, Ordering::Relaxed);
    let app = Box::leak(build(&mut hidden_words));
    set_variables();
    RECORDING.store(false, Ordering::Relaxed);
    println!("root {}", at(app));
    for index in 0..MOST {
        let (address, size) = unsafe { BLOCKS[index] };
        if address > 1 {
            println!("block {address} {size}");
        }
    }
    hidden_words.iter().for_each(|address| println!("unowned {address}"));
    print_structures(app);
    print_variables();
    println!("ready");
    let _ = std::io::stdin().read_line(&mut String::new());
    std::hint::black_box((app, &hidden_words));
}
