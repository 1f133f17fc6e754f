//! What a small program allocates: `cargo run --release -p stackglass --example allocs`

use stackglass::allocs;
use std::collections::HashMap;

#[global_allocator]
static ALLOCATOR: stackglass::Alloc = stackglass::Alloc::system();

fn count_words(text: &str) -> HashMap<String, Vec<usize>> {
    let mut lines: HashMap<String, Vec<usize>> = HashMap::new();
    for (n, line) in text.lines().enumerate() {
        for word in line.split_whitespace() {
            lines.entry(word.to_owned()).or_default().push(n);
        }
    }
    lines
}

fn main() {
    let text = include_str!("../src/lib.rs");
    let words = allocs::profile!(sample_rate = 1.0, count_words(text));
    allocs::print();
    println!("\n{} words; some of what they were made of:", words.len());
    for alloc in allocs::fetch().allocs.iter().take(10) {
        println!("{alloc}");
    }
}
