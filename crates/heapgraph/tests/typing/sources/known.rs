//! A Rust program that prints what its blocks contain.
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock};

#[derive(Default)]
struct Node {
    label: String,
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

enum Value {
    Number(u64),
    Text(String),
    List(Vec<Value>),
    Shared(Arc<Config>),
}

struct Config {
    name: String,
    limits: [u64; 5],
}

trait Shape: Send {
    fn area(&self) -> f64;
    fn say(&self);
}

struct Circle {
    radius: f64,
    name: String,
}

struct Polygon {
    points: Vec<(f64, f64)>,
    name: Box<str>,
    parts: Vec<Box<dyn Shape>>,
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        self.radius * self.radius
    }
    fn say(&self) {
        say(self, "Circle");
        text(&self.name);
    }
}

impl Shape for Polygon {
    fn area(&self) -> f64 {
        self.points.len() as f64
    }
    fn say(&self) {
        say(self, "Polygon");
        say(self.points.as_ptr(), "[(f64, f64)]");
        text(&self.name);
        say(self.parts.as_ptr(), "[Box<dyn Shape>]");
        for part in &self.parts {
            part.say();
        }
    }
}

#[derive(Default)]
struct App {
    root: Option<Box<Node>>,
    names: HashMap<u64, String>,
    index: BTreeMap<String, Vec<u32>>,
    values: Vec<Value>,
    config: Option<Arc<Config>>,
    queue: VecDeque<Box<Circle>>,
    shapes: Vec<Box<dyn Shape>>,
}

static APP: Mutex<Option<App>> = Mutex::new(None);
static ONCE: OnceLock<Box<Config>> = OnceLock::new();
static SLICES: Mutex<Option<(Arc<[Circle]>, Arc<str>)>> = Mutex::new(None);

thread_local! {
    static CACHE: RefCell<Vec<Rc<Node>>> = const { RefCell::new(Vec::new()) };
    static WORDS: RefCell<Option<Rc<[u64]>>> = const { RefCell::new(None) };
}

fn say<T: ?Sized>(at: *const T, contains: &str) {
    println!("{:x} {contains}", at.cast::<u8>() as usize);
}

fn text(text: &str) {
    say(text.as_ptr(), "[u8]");
}

fn config(n: u64) -> Config {
    Config { name: format!("configuration number {n}"), limits: [n; 5] }
}

fn tree(depth: u32) -> Option<Box<Node>> {
    (depth > 0).then(|| {
        Box::new(Node { label: format!("a node at depth {depth}"), left: tree(depth - 1), right: tree(depth - 1) })
    })
}

fn say_tree(node: &Option<Box<Node>>) {
    let Some(node) = node else { return };
    say(&**node, "Node");
    text(&node.label);
    say_tree(&node.left);
    say_tree(&node.right);
}

fn say_config(config: &Config) {
    text(&config.name);
    std::hint::black_box(config.limits);
}

fn say_value(value: &Value) {
    match value {
        Value::Number(number) => drop(std::hint::black_box(*number)),
        Value::Text(value) => text(value),
        Value::List(list) => {
            say(list.as_ptr(), "[Value]");
            list.iter().for_each(say_value);
        }
        // The counters are before it.
        Value::Shared(config) => say(Arc::as_ptr(config).cast::<u64>().wrapping_sub(2), "Arc<Config>"),
    }
}

fn shape(n: u64) -> Box<dyn Shape> {
    if n % 3 > 0 {
        Box::new(Circle { radius: n as f64, name: format!("circle number {n}") })
    } else {
        Box::new(Polygon {
            points: vec![(1.0, 2.0); n as usize + 3],
            name: format!("polygon number {n}").into(),
            parts: (0..n % 5).map(|part| shape(part * 3 + 1)).collect(),
        })
    }
}

fn main() {
    let mut app = App { root: tree(8), ..App::default() };
    let shared = Arc::new(config(0));
    for n in 0..500 {
        app.names.insert(n * 7, format!("the name of entry {n}"));
        app.index.insert(format!("a key for entry {n:04}"), (0..n as u32 % 20 + 3).collect());
        app.queue.push_back(Box::new(Circle { radius: 1.0, name: format!("queued circle {n}") }));
        app.shapes.push(shape(n));
        app.values.push(match n % 4 {
            0 => Value::Number(n),
            1 => Value::Text(format!("the text of value {n}")),
            2 => Value::List((0..5).map(|m| Value::Text(format!("an inner text {n} {m}"))).collect()),
            _ => Value::Shared(shared.clone()),
        });
    }
    // Slots that hold nothing any more.
    app.names.retain(|n, _| n % 3 > 0);
    app.values.truncate(400);
    app.queue.drain(..100);
    app.config = Some(shared.clone());
    let _ = ONCE.set(Box::new(config(9)));
    CACHE.with_borrow_mut(|cache| cache.extend((0..50).map(|n| Rc::new(Node { label: format!("cached node {n}"), ..Node::default() }))));
    let on_the_stack: Vec<Box<dyn Shape>> = (0..40).map(shape).collect();

    say_tree(&app.root);
    app.names.values().for_each(|name| text(name));
    for (key, numbers) in &app.index {
        text(key);
        say(numbers.as_ptr(), "[u32]");
    }
    say(app.values.as_ptr(), "[Value]");
    app.values.iter().for_each(say_value);
    for circle in &app.queue {
        circle.say();
    }
    say(app.shapes.as_ptr(), "[Box<dyn Shape>]");
    app.shapes.iter().for_each(|shape| shape.say());
    say_config(&shared);
    let once = ONCE.get().unwrap();
    say(&**once, "Config");
    say_config(once);
    CACHE.with_borrow(|cache| {
        say(cache.as_ptr(), "[Rc<Node>]");
        for node in cache {
            say(Rc::as_ptr(node).cast::<u64>().wrapping_sub(2), "Rc<Node>");
            text(&node.label);
        }
    });
    let circles: Arc<[Circle]> = (0..5).map(|n| Circle { radius: 1.0, name: format!("a shared circle {n}") }).collect();
    // The counters are before the elements.
    say(circles.as_ptr().cast::<u64>().wrapping_sub(2), "Arc<[Circle]>");
    circles.iter().for_each(|circle| text(&circle.name));
    let name: Arc<str> = "a shared text of some length".into();
    say(name.as_ptr().cast::<u64>().wrapping_sub(2), "Arc<[u8]>");
    *SLICES.lock().unwrap() = Some((circles, name));
    let numbers: Rc<[u64]> = (0..7).collect();
    say(numbers.as_ptr().wrapping_sub(2), "Rc<[u64]>");
    WORDS.with_borrow_mut(|words| *words = Some(numbers));
    println!("stack");
    // Memory of removed values gets another use; the buffer still has pointers to them.
    let mut stale: Vec<Box<dyn Shape>> = (0..300).map(shape).collect();
    stale.truncate(20);
    let reused: Vec<String> = (0..500).map(|n| format!("{n:040}")).collect();
    reused.iter().for_each(|reused| say(reused.as_ptr(), "-[u8]"));
    stale.iter().for_each(|shape| shape.say());
    say(on_the_stack.as_ptr(), "[Box<dyn Shape>]");
    on_the_stack.iter().for_each(|shape| shape.say());
    let area: f64 = on_the_stack.iter().map(|shape| shape.area()).sum();
    *APP.lock().unwrap() = Some(app);
    println!("ready");
    loop {
        std::thread::park();
        std::hint::black_box((&on_the_stack, &stale, &reused, area, &APP));
    }
}
