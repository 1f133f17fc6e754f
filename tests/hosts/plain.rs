//! A Rust program without dependencies: threads, a caught panic, a closure.
use std::hint::black_box;

#[inline(never)]
fn rust_work(milliseconds: u64) -> u64 {
    let mut x = 1u64;
    for _ in 0..milliseconds * 500_000 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x)
}

#[inline(never)]
fn panicking_work() {
    rust_work(10);
    panic!("as planned");
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let other = std::thread::Builder::new().name("other".into()).spawn(|| rust_work(500)).unwrap();
    let caught = (0..20).filter(|_| std::panic::catch_unwind(panicking_work).is_err()).count();
    rust_work(300);
    other.join().unwrap();
    println!("{caught} panics caught");
    std::process::exit(11);
}
