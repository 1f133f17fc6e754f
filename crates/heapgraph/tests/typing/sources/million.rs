//! A million blocks in lists and in a table.
use std::collections::HashMap;
use std::sync::Mutex;

struct Node {
    label: String,
    next: Option<Box<Node>>,
    data: Vec<u64>,
}

#[derive(Default)]
struct App {
    lists: Vec<Option<Box<Node>>>,
    names: HashMap<u64, String>,
}

static APP: Mutex<Option<App>> = Mutex::new(None);

fn main() {
    let mut app = App::default();
    for n in 0..1000 {
        let mut list = None;
        for m in 0..300 {
            list = Some(Box::new(Node { label: format!("label {n} {m}"), next: list, data: vec![m; m as usize % 7] }));
        }
        app.lists.push(list);
    }
    app.names = (0..150_000).map(|n| (n, format!("value {n}"))).collect();
    *APP.lock().unwrap() = Some(app);
    println!("ready");
    loop {
        std::thread::park();
        std::hint::black_box(APP.lock().unwrap().as_ref().map(|app| (&app.lists[0].as_ref().unwrap().label, &app.names)));
        if let Some(node) = &APP.lock().unwrap().as_ref().unwrap().lists[0] {
            std::hint::black_box((&node.next, &node.data));
        }
    }
}
