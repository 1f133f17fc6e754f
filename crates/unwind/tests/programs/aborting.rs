//! A Rust program that aborts on panic, stepped like stepped.c: generic code, trait objects, closures, sorting with a
//! callback, formatting, collections. The comparison starts at the breakpoint.

use std::collections::HashMap;
use std::hint::black_box;

trait Shape {
    fn area(&self) -> f64;
}

struct Square(f64);
struct Circle(f64);

impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    fn area(&self) -> f64 {
        self.0 * self.0 * std::f64::consts::PI
    }
}

#[inline(never)]
fn recurse(depth: u32, f: &mut dyn FnMut(u32) -> u64) -> u64 {
    if depth == 0 { f(0) } else { black_box(recurse(depth - 1, f)) + f(depth) }
}

#[inline(never)]
fn round(n: u32) -> u64 {
    let shapes: Vec<Box<dyn Shape>> = (0..8)
        .map(|i| -> Box<dyn Shape> { if i % 2 == 0 { Box::new(Square(f64::from(i))) } else { Box::new(Circle(1.0)) } })
        .collect();
    let area: f64 = shapes.iter().map(|s| s.area()).sum();
    let mut words: Vec<String> = (0..20).map(|i| format!("{:>5} {area:.2}", (i * 7919 + n) % 97)).collect();
    words.sort_by(|a, b| b.cmp(a));
    let mut count = HashMap::new();
    for word in &words {
        *count.entry(word.len()).or_insert(0u64) += 1;
    }
    let mut sum = 0;
    recurse(n % 30 + 20, &mut |x| {
        sum += u64::from(x) + count.len() as u64;
        sum
    })
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1);
    black_box(round(0));
    // SAFETY: the debugger's breakpoint; the process is traced.
    unsafe { std::arch::asm!("int3") };
    for n in 0..rounds {
        black_box(round(n));
    }
    std::process::exit(7);
}
