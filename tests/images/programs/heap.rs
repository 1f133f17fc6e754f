//! A Rust program that says of each of its blocks what it contains and whether something holds it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::io::Write;
use std::rc::Rc;
use std::sync::Mutex;

trait Shape: Send {
    fn size(&self) -> f64;
}

struct Circle {
    radius: f64,
    name: String,
}

struct Polygon {
    points: Vec<f64>,
}

impl Shape for Circle {
    fn size(&self) -> f64 {
        self.radius + self.name.len() as f64
    }
}

impl Shape for Polygon {
    fn size(&self) -> f64 {
        self.points.iter().sum()
    }
}

struct Leaf {
    value: u64,
    next: Option<Box<Leaf>>,
}

/// Members of a cycle that nothing holds.
struct Member {
    other: RefCell<Option<Rc<Member>>>,
    payload: Vec<u32>,
}

#[derive(Default)]
struct State {
    shapes: Vec<Box<dyn Shape>>,
    names: Vec<String>,
    table: HashMap<u32, Box<Leaf>>,
    leaves: Option<Box<Leaf>>,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn say<T: ?Sized>(block: *const T, state: &str, contains: &str) {
    let address = block.cast::<u8>().addr();
    // Standard error has no buffer.
    let _ = writeln!(std::io::stderr(), "block {address:x} {state} {contains}");
}

#[inline(never)]
fn fill() {
    let mut state = State::default();
    for number in 0..12u32 {
        let name = format!("the name with number {number}");
        say(name.as_ptr(), "held", "[u8]");
        if number % 3 == 0 {
            let circle = Box::new(Circle { radius: 1.0, name });
            say(&*circle, "held", "Circle");
            state.shapes.push(circle);
        } else {
            let polygon = Box::new(Polygon { points: vec![0.5; 5] });
            say(&*polygon, "held", "Polygon");
            say(polygon.points.as_ptr(), "held", "[f64]");
            state.shapes.push(polygon);
            state.names.push(name);
        }
        let leaf = Box::new(Leaf { value: number.into(), next: None });
        say(&*leaf, "held", "Leaf");
        state.table.insert(number, leaf);
        let leaf = Box::new(Leaf { value: number.into(), next: state.leaves.take() });
        say(&*leaf, "held", "Leaf");
        state.leaves = Some(leaf);
    }
    say(state.shapes.as_ptr(), "held", "[Box<dyn Shape>]");
    say(state.names.as_ptr(), "held", "[String]");
    *STATE.lock().expect("no other thread has it") = Some(state);
}

#[inline(never)]
fn leak() {
    for _ in 0..3 {
        let mut list = None;
        for value in 0..4 {
            let leaf = Box::new(Leaf { value, next: list });
            say(&*leaf, "leaked", "*");
            list = Some(leaf);
        }
        std::mem::forget(black_box(list));
    }
    for _ in 0..2 {
        let member = || Rc::new(Member { other: RefCell::new(None), payload: vec![7; 9] });
        let (one, other) = (member(), member());
        for member in [&one, &other] {
            // Before the value are its two counts.
            say(Rc::as_ptr(member).wrapping_byte_sub(16), "leaked", "*");
            say(member.payload.as_ptr(), "leaked", "*");
        }
        *one.other.borrow_mut() = Some(other.clone());
        *other.other.borrow_mut() = Some(one);
    }
    for number in 0..2 {
        let name = format!("the name of a lost circle: {number}");
        say(name.as_ptr(), "leaked", "*");
        let lost: Box<dyn Shape> = Box::new(Circle { radius: 2.0, name });
        say(&*lost, "leaked", "Circle");
        std::mem::forget(black_box(lost));
    }
}

/// Overwrites what these functions left on the stack.
#[inline(never)]
fn scrub() {
    let mut bytes = [0u8; 32768];
    black_box(&mut bytes);
}

fn main() {
    fill();
    leak();
    let local: Vec<Leaf> = (0..3).map(|value| Leaf { value, next: None }).collect();
    say(local.as_ptr(), "held", "[Leaf]");
    scrub();
    let _ = writeln!(std::io::stderr(), "ready");
    scrub();
    loop {
        std::thread::park();
        if let Some(state) = &*STATE.lock().expect("no other thread has it") {
            let size: f64 = state.shapes.iter().map(|shape| shape.size()).sum();
            let values: u64 = local.iter().map(|leaf| leaf.value).sum();
            black_box((size, values, state.names.len(), state.table.len()));
        }
    }
}
