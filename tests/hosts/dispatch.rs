//! Calls of every kind, each to a separate function, all with the same work. (The functions differ, since the compiler
//! would merge equal ones.)

use std::hint::black_box;

const WORK: u64 = 60_000_000;

trait Virtual {
    fn by_vtable(&self, n: u64) -> u64;
}

trait Generic {
    fn by_generic(&self, n: u64) -> u64;
}

trait Seen {
    fn devirtualised(&self, n: u64) -> u64;
}

struct Thing(u64);
struct Other(u64);

impl Virtual for Thing {
    fn by_vtable(&self, n: u64) -> u64 {
        spin(n) + self.0
    }
}

impl Virtual for Other {
    fn by_vtable(&self, n: u64) -> u64 {
        spin(n) * self.0
    }
}

impl Generic for Thing {
    #[inline(never)]
    fn by_generic(&self, n: u64) -> u64 {
        spin(n) ^ self.0
    }
}

impl Seen for Thing {
    #[inline(never)]
    fn devirtualised(&self, n: u64) -> u64 {
        spin(n) + self.0
    }
}

#[inline(never)]
fn by_pointer(n: u64) -> u64 {
    spin(n) + 7
}

#[inline(never)]
fn by_name(n: u64) -> u64 {
    spin(n) + 9
}

/// A chain of dependent multiplications.
#[inline(never)]
fn spin(n: u64) -> u64 {
    (0..n).fold(1, |x: u64, i| black_box(x.wrapping_mul(31) ^ i)) >> 1
}

// A call at the end would be a tail call, which leaves no return address.

#[inline(never)]
fn call_virtual(thing: &dyn Virtual) -> u64 {
    thing.by_vtable(WORK) + 1
}

#[inline(never)]
fn call_boxed(function: &Box<dyn Fn(u64) -> u64>) -> u64 {
    function(WORK) + 1
}

#[inline(never)]
fn call_pointer(function: fn(u64) -> u64) -> u64 {
    function(WORK) + 1
}

#[inline(never)]
fn call_generic<T: Generic>(thing: &T) -> u64 {
    thing.by_generic(WORK) + 1
}

#[inline(never)]
fn call_seen() -> u64 {
    // The compiler knows the contents of the box.
    let thing: Box<dyn Seen> = Box::new(Thing(black_box(1)));
    thing.devirtualised(WORK) + 1
}

#[inline(never)]
fn call_direct() -> u64 {
    by_name(WORK) + 1
}

fn main() {
    let (thing, other): (&dyn Virtual, &dyn Virtual) = (&Thing(1), &Other(2));
    let added = black_box(3);
    let boxed: Box<dyn Fn(u64) -> u64> = Box::new(move |n| spin(n) + added);
    let x = call_virtual(black_box(thing))
        ^ call_virtual(black_box(other))
        ^ call_boxed(black_box(&boxed))
        ^ call_pointer(black_box(by_pointer))
        ^ call_generic(black_box(&Thing(2)))
        ^ call_seen()
        ^ call_direct();
    black_box(x);
}
