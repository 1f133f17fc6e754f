//! Calls an allocator in loops, and a method through a vtable.

use std::hint::black_box;

pub trait Shape {
    fn area(&self) -> u64;
}

struct Square(u64);
struct Circle(u64);

impl Shape for Square {
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    fn area(&self) -> u64 {
        self.0 * self.0 * 3
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn drops(names: Vec<String>) -> usize {
    let count = names.len();
    drop(names);
    count
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn by_vtable(shape: &dyn Shape, count: u64) -> u64 {
    (0..count).map(|_| shape.area()).sum()
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn by_pointer(function: fn(u64) -> u64, count: u64) -> u64 {
    (0..count).map(function).sum()
}

fn twice(x: u64) -> u64 {
    x * 2
}

fn main() {
    let names: Vec<String> = (0..100).map(|i| i.to_string()).collect();
    let shapes: [Box<dyn Shape>; 2] = [Box::new(Square(2)), Box::new(Circle(3))];
    let areas: u64 = shapes.iter().map(|shape| by_vtable(&**shape, 3)).sum();
    println!("{} {areas} {}", drops(names), by_pointer(black_box(twice), 5));
}
