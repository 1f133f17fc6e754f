//! Walks of the calling thread from known call chains: the whole chain, in order, to the outermost frame.
#![allow(unsafe_code, reason = "calls the C library")]

use stackglass_unwind::{Cut, End, OwnStack, Registers, Scratch, Unwinder, Walk};
use std::hint::black_box;
use std::sync::Mutex;

static UNWINDER: Unwinder = Unwinder::new();

#[inline(never)]
fn walk_here(frames: &mut [u64]) -> Walk {
    let here = Registers::here();
    UNWINDER.walk(&here, &mut OwnStack::at(here.sp()), &mut Scratch::new(), frames)
}

/// Calls itself without a tail call, then walks.
#[inline(never)]
fn recurse(depth: usize, frames: &mut [u64]) -> Walk {
    if depth == 0 {
        return black_box(walk_here(frames));
    }
    let walk = recurse(black_box(depth) - 1, frames);
    black_box(walk)
}

/// The longest run of equal neighbours: the recursive call's return address.
fn longest_run(frames: &[u64]) -> usize {
    frames.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0)
}

#[test]
fn recursion_is_seen_to_its_exact_depth() {
    UNWINDER.refresh().unwrap();
    let mut frames = vec![0u64; 4096];
    for depth in [0, 1, 20, 200, 2000] {
        let walk = recurse(depth, &mut frames);
        assert_eq!(walk.end, End::Complete, "depth {depth}");
        assert!(longest_run(&frames[..walk.len]) >= depth.max(1));
        // One frame each, plus the innermost frame and the callers of the test.
        let base = recurse(0, &mut frames);
        assert_eq!(walk.len, base.len + depth);
    }
}

#[test]
fn deeper_than_the_room_is_cut_and_says_so() {
    UNWINDER.refresh().unwrap();
    let mut frames = vec![0u64; 4096];
    let walk = std::thread::Builder::new()
        .stack_size(64 << 20)
        .spawn(move || recurse(100_000, &mut frames))
        .unwrap()
        .join()
        .unwrap();
    assert_eq!(walk, Walk { len: 4096, end: End::Cut(Cut::Depth) });
}

#[test]
fn a_callback_through_the_c_library_is_crossed() {
    UNWINDER.refresh().unwrap();
    static SEEN: Mutex<Option<(Vec<u64>, Walk)>> = Mutex::new(None);
    unsafe extern "C" fn compare(_: *const libc::c_void, _: *const libc::c_void) -> libc::c_int {
        let mut frames = vec![0u64; 256];
        let walk = recurse(0, &mut frames);
        frames.truncate(walk.len);
        *SEEN.lock().unwrap() = Some((frames, walk));
        0
    }
    let mut items = [3u32, 1, 2];
    // SAFETY: three items of four bytes; the comparison accepts any of them.
    unsafe { libc::qsort(items.as_mut_ptr().cast(), 3, 4, Some(compare)) };
    let (frames, walk) = SEEN.lock().unwrap().take().unwrap();
    assert_eq!(walk.end, End::Complete);
    let modules = UNWINDER.modules().unwrap();
    let through_libc = frames
        .iter()
        .position(|f| modules.find(*f).is_some_and(|m| modules.path(m).windows(7).any(|w| w == b"libc.so")));
    assert!(
        through_libc.is_some_and(|at| at >= 2 && at + 2 < frames.len()),
        "qsort lies between callback and test"
    );
}

#[test]
fn the_kernels_library_is_named_as_its_mapping() {
    UNWINDER.refresh().unwrap();
    let modules = UNWINDER.modules().unwrap();
    // SAFETY: no pointers.
    let vdso = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let paths: Vec<&[u8]> =
        modules.iter().filter(|m| m.range().contains(&vdso)).map(|m| modules.path(m)).collect();
    assert_eq!(paths, [b"[vdso]"]);
    assert_eq!(modules.iter().filter(|m| modules.path(m) == b"[vdso]").count(), 1);
}
