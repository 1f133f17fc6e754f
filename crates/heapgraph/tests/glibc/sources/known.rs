// A Rust program with a heap on four threads.
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Barrier};

fn main() {
    let ready = Arc::new(Barrier::new(5));
    for thread in 0..4_u64 {
        let ready = ready.clone();
        std::thread::spawn(move || {
            let mut names: HashMap<u64, String> = (0..5000).map(|n| (n * 7, format!("{thread} {n}"))).collect();
            let tree: BTreeMap<u64, Box<[u64]>> =
                (0..3000).map(|n| (n, vec![n; n as usize % 40].into())).collect();
            names.retain(|n, _| n % 3 != 0);
            let shared: Vec<Arc<str>> = (0..1000).map(|n| format!("shared {n}").into()).collect();
            let large = vec![1_u8; 3 << 20];
            ready.wait();
            std::hint::black_box((&names, &tree, &shared, &large));
            loop {
                std::thread::park();
            }
        });
    }
    ready.wait();
    println!("ready");
    loop {
        std::thread::park();
    }
}
