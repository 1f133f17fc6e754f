//! A program whose allocator is chosen by a cfg: `bump` has one of its own, `system` wraps the C library's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub struct Own;

#[cfg(bump)]
#[repr(align(4096))]
struct Arena(std::cell::UnsafeCell<[u8; 1 << 20]>);
#[cfg(bump)]
unsafe impl Sync for Arena {}
#[cfg(bump)]
static ARENA: Arena = Arena(std::cell::UnsafeCell::new([0; 1 << 20]));
static USED: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Own {
    #[cfg(bump)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size().wrapping_add(layout.align());
        let at = USED.fetch_add(size, Relaxed);
        if at + size > 1 << 20 {
            return std::ptr::null_mut();
        }
        let start = ARENA.0.get() as usize + at;
        ((start + layout.align() - 1) & !(layout.align() - 1)) as *mut u8
    }
    #[cfg(not(bump))]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        USED.fetch_add(layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !cfg!(bump) {
            unsafe { System.dealloc(block, layout) }
        }
    }
}

#[cfg(any(bump, system))]
#[global_allocator]
static ALLOCATOR: Own = Own;

fn main() {
    let all: Vec<String> = (0..10).map(|number| format!("item {number}")).collect();
    println!("{} {}", all.len(), USED.load(Relaxed));
}
