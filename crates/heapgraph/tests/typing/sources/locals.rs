//! A Rust program whose data is held by local variables of the functions on its stack. It prints what its blocks contain.
//!
//! Some variables are moved away or destroyed, and their blocks have other owners now.
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::rc::Rc;

struct Config {
    sessions: HashMap<u64, Session>,
    title: String,
    root: Option<Box<Node>>,
}

struct Session {
    user: String,
    history: Vec<Event>,
    parent: Option<Rc<Group>>,
}

enum Event {
    Login(u64),
    Message(String),
    Batch(Vec<Event>),
}

struct Group {
    name: String,
    members: Vec<u32>,
}

struct Node {
    label: String,
    left: Option<Box<Node>>,
    right: Option<Box<Node>>,
}

struct Pair {
    one: Box<Node>,
    number: u64,
}

fn say<T: ?Sized>(at: *const T, contains: &str) {
    println!("{:x} {contains}", at.cast::<u8>() as usize);
}

fn text(text: &str) {
    say(text.as_ptr(), "[u8]");
}

fn node(depth: u32) -> Box<Node> {
    let below = || (depth > 0).then(|| node(depth - 1));
    Box::new(Node { label: format!("a node at depth {depth}"), left: below(), right: below() })
}

fn say_node(node: &Node) {
    say(node, "Node");
    text(&node.label);
    for below in [&node.left, &node.right].into_iter().flatten() {
        say_node(below);
    }
}

fn event(n: u64) -> Event {
    match n % 3 {
        0 => Event::Login(n),
        1 => Event::Message(format!("the message of event {n}")),
        _ => Event::Batch((0..3).map(|m| Event::Message(format!("an inner message {n} {m}"))).collect()),
    }
}

fn say_event(event: &Event) {
    match event {
        Event::Login(number) => drop(black_box(*number)),
        Event::Message(message) => text(message),
        Event::Batch(events) => {
            say(events.as_ptr(), "[Event]");
            events.iter().for_each(say_event);
        }
    }
}

fn config() -> Config {
    let group = Rc::new(Group { name: "the name of the group".into(), members: vec![1; 40] });
    let session = |n: u64| Session {
        user: format!("the name of user {n}"),
        history: (0..n % 7 + 2).map(event).collect(),
        parent: (n % 2 == 0).then(|| group.clone()),
    };
    Config {
        sessions: (0..400).map(|n| (n * 3, session(n))).collect(),
        title: "the title of the configuration".to_owned(),
        root: Some(node(7)),
    }
}

/// Blocks are freed, and have other contents after that.
#[inline(never)]
fn stale() -> Vec<Pair> {
    let names: Vec<String> = (0..60).map(|n| format!("a name that goes away {n}")).collect();
    let numbers: Vec<[u64; 3]> = vec![[7; 3]; 60];
    let boxes: Vec<Box<[u64; 6]>> = (0..60).map(|n| Box::new([n; 6])).collect();
    drop((black_box(names), black_box(numbers), black_box(boxes)));
    (0..60).map(|number| Pair { one: node(0), number }).collect()
}

#[inline(never)]
fn serve(config: &mut Config, queue: Vec<Box<Event>>) {
    config.title.push('!');
    let local: BTreeMap<String, Vec<u16>> =
        (0..50).map(|n| (format!("a key for {n:020}"), vec![n; 20])).collect();
    // Moved away: its blocks belong to `moved`.
    let first: Vec<Group> = (0..30).map(|n| Group { name: format!("group number {n:010}"), members: vec![n; 9] }).collect();
    let mut moved = black_box(first);
    moved.push(Group { name: "one more".to_owned(), members: Vec::new() });
    // Destroyed: others use its blocks.
    let gone: Vec<Vec<u64>> = (0..30).map(|n| vec![n; 12]).collect();
    drop(gone);
    let instead: Vec<Box<[u32; 24]>> = (0..30).map(|n| Box::new([n; 24])).collect();
    let pairs = stale();
    for (key, numbers) in &local {
        text(key);
        say(numbers.as_ptr(), "[u16]");
    }
    for event in &queue {
        say(&**event, "Event");
        say_event(event);
    }
    say(queue.as_ptr(), "[Box<Event>]");
    say(moved.as_ptr(), "[Group]");
    for group in &moved {
        text(&group.name);
        if !group.members.is_empty() {
            say(group.members.as_ptr(), "[u32]");
        }
    }
    say(instead.as_ptr(), "[Box<[u32; 24]>]");
    instead.iter().for_each(|numbers| say(&**numbers, "[u32; 24]"));
    say(pairs.as_ptr(), "[Pair]");
    pairs.iter().for_each(|pair| {
        say_node(&pair.one);
        black_box(pair.number);
    });
    println!("ready");
    loop {
        std::thread::park();
        black_box((&config.title, &local, &moved, &queue, &instead, &pairs));
    }
}

fn main() {
    let mut config = config();
    for session in config.sessions.values() {
        text(&session.user);
        say(session.history.as_ptr(), "[Event]");
        session.history.iter().for_each(say_event);
        if let Some(group) = &session.parent {
            say(Rc::as_ptr(group).cast::<u64>().wrapping_sub(2), "Rc<Group>");
            text(&group.name);
            say(group.members.as_ptr(), "[u32]");
        }
    }
    say_node(config.root.as_ref().unwrap());
    let queue = (0..100).map(|n| Box::new(event(n))).collect();
    serve(&mut config, queue);
}
