//! Walks with a cache against full walks, on stacks that change between any two of them.
#![allow(unsafe_code, reason = "the cache reads the stack of the calling thread")]

use stackglass_unwind::stack_cache::{StackCache, Start};
use stackglass_unwind::{OwnStack, Registers, Scratch, Unwinder};
use std::collections::HashMap;
use std::hint::black_box;

static UNWINDER: Unwinder = Unwinder::new();

struct Walks {
    cache: Box<StackCache>,
    nodes: HashMap<(u32, u64), u32>,
    callers: Vec<(u32, u64)>,
    seed: u64,
    compared: u64,
    new_frames: u64,
    frames: u64,
}

impl Walks {
    fn new() -> Walks {
        // SAFETY: all zeros is an empty cache; the layout is that of the type.
        let cache = unsafe {
            Box::from_raw(std::alloc::alloc_zeroed(std::alloc::Layout::new::<StackCache>()).cast())
        };
        Walks {
            cache,
            nodes: HashMap::new(),
            callers: vec![(0, 0)],
            seed: 1,
            compared: 0,
            new_frames: 0,
            frames: 0,
        }
    }

    fn random(&mut self, end: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.seed >> 33) % end
    }

    #[inline(never)]
    fn compare(&mut self) {
        let here = Registers::here();
        let start = Start { pc: here.pc() + 1, sp: here.sp(), rbp: here.rbp().unwrap() };
        let (nodes, callers) = (&mut self.nodes, &mut self.callers);
        let mut node = |parent, lookup| {
            *nodes.entry((parent, lookup)).or_insert_with(|| {
                callers.push((parent, lookup));
                callers.len() as u32 - 1
            })
        };
        // SAFETY: the registers of this function, which has not returned.
        let walk = unsafe { self.cache.walk(&UNWINDER, start, &mut node) };
        let mut found = Vec::new();
        let mut at = walk.node;
        while at != 0 {
            let (parent, lookup) = self.callers[at as usize];
            found.push(lookup);
            at = parent;
        }
        let mut expected = [0u64; 4096];
        let full = UNWINDER.walk(&here, &mut OwnStack::at(here.sp()), &mut Scratch::new(), &mut expected);
        assert_eq!(found, expected[..full.len], "{walk:?}");
        self.compared += 1;
        self.new_frames += walk.new_frames as u64;
        self.frames += full.len as u64;
    }
}

#[inline(never)]
fn one(walks: &mut Walks, depth: u64) -> u64 {
    let before = [depth; 7];
    step(walks, depth) + black_box(before)[3]
}

#[inline(never)]
fn two(walks: &mut Walks, depth: u64) -> u64 {
    step(walks, depth) + step(walks, depth / 2) + black_box(depth)
}

/// A frame whose size is known at run time only: the rule counts from rbp.
#[inline(never)]
fn realigned(walks: &mut Walks, depth: u64) -> u64 {
    #[repr(align(64))]
    struct Aligned([u64; 8]);
    let place = black_box(Aligned([depth; 8]));
    step(walks, depth) + black_box(&place).0[5]
}

#[inline(never)]
fn step(walks: &mut Walks, depth: u64) -> u64 {
    walks.compare();
    if depth == 0 || walks.random(7) == 0 {
        return 1;
    }
    let answer = match walks.random(4) {
        0 => one(walks, depth - 1),
        1 => two(walks, depth - 1),
        2 => realigned(walks, depth - 1),
        _ => {
            let mut items: Vec<u64> = (0..4).collect();
            let keys = [walks.random(9), walks.random(9), walks.random(9), walks.random(9)];
            items.sort_by_key(|item| {
                walks.compare();
                keys[*item as usize]
            });
            one(walks, depth - 1) + items[0]
        }
    };
    walks.compare();
    answer
}

#[test]
fn walks_with_a_cache_find_the_same_frames() {
    UNWINDER.refresh().unwrap();
    let mut walks = Walks::new();
    for _ in 0..400 {
        black_box(step(&mut walks, 24));
    }
    assert!(walks.compared > 5_000, "{}", walks.compared);
    assert!(
        walks.new_frames * 3 < walks.frames,
        "most frames are compared: {} of {}",
        walks.new_frames,
        walks.frames
    );
}

#[test]
fn a_cache_serves_another_stack_as_well() {
    UNWINDER.refresh().unwrap();
    let mut walks = Walks::new();
    for _ in 0..20 {
        black_box(step(&mut walks, 10));
        std::thread::scope(|scope| {
            scope.spawn(|| black_box(step(&mut walks, 10)));
        });
    }
}
