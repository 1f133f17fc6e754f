//! A program with values that are held in unusual ways, and others that only seem to be held.
//!
//! - 20 values without a size, in an `Arc` each, are held by a `Waker`. 7 are lost.
//! - 10 leaves are owned by holders that are lost. Their addresses also lie in a block of no known type.

use std::alloc::{Layout, alloc};
use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

struct Leaf {
    numbers: [u64; 3],
}

struct Holder {
    id: u64,
    leaf: Box<Leaf>,
}

static WAKERS: Mutex<Vec<Waker>> = Mutex::new(Vec::new());
static WORDS: AtomicPtr<u64> = AtomicPtr::new(std::ptr::null_mut());

fn lose() {
    for _ in 0..7 {
        black_box(Arc::into_raw(Arc::new(Nothing)));
    }
    // SAFETY: the layout has a size.
    let words = unsafe { alloc(Layout::new::<[u64; 16]>()) }.cast::<u64>();
    for id in 0..10 {
        let leaf = Box::new(Leaf { numbers: [id; 3] });
        // SAFETY: one of the 16 words.
        unsafe { words.add(id as usize).write((&raw const *leaf).expose_provenance() as u64) };
        black_box(Box::into_raw(Box::new(Holder { id, leaf })));
    }
    WORDS.store(words, Ordering::Relaxed);
}

fn main() {
    for _ in 0..20 {
        WAKERS.lock().unwrap().push(Waker::from(Arc::new(Nothing)));
    }
    // Words of a stack that is gone hold nothing.
    std::thread::spawn(lose).join().unwrap();
    eprintln!("ready");
    std::thread::sleep(Duration::from_secs(60));
    let words = WORDS.load(Ordering::Relaxed);
    // SAFETY: all holders are alive, and so are their leaves.
    let leaf = unsafe { &*std::ptr::with_exposed_provenance::<Leaf>(words.read() as usize) };
    let holder = |holder: &Holder| holder.id + holder.leaf.numbers[0];
    println!("{} {} {}", WAKERS.lock().unwrap().len(), leaf.numbers[0], size_of_val(&holder));
}
