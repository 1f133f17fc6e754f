//! Nanoseconds per frame, compared with framehop on the same stacks: `cargo run --release --example walk_speed`.
//!
//! Both get the same registers and read the same stack by plain loads. Both have walked the stack before, as when a profiler
//! samples a hot loop. The median of many rounds is printed.
#![allow(unsafe_code, reason = "reads the stack by plain loads")]

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Unwinder as _};
use stackglass_unwind::{End, OwnStack, Registers, Scratch, Unwinder};
use std::hint::black_box;
use std::time::Instant;

static UNWINDER: Unwinder = Unwinder::new();
const ROUNDS: usize = 2001;

#[inline(never)]
fn recurse(depth: usize, at_bottom: &mut dyn FnMut()) -> usize {
    if depth == 0 {
        at_bottom();
        return black_box(0);
    }
    recurse(black_box(depth - 1), at_bottom) + black_box(1)
}

/// framehop with the sections of every module of this process.
fn framehop_unwinder() -> UnwinderX86_64<&'static [u8]> {
    let mut unwinder = UnwinderX86_64::new();
    let modules = UNWINDER.modules().expect("refreshed");
    for module in modules.iter() {
        let bytes = |range: std::ops::Range<u64>| {
            // SAFETY: read-only parts of modules that stay loaded, since this program needs them.
            unsafe {
                std::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize)
            }
        };
        let header = module.eh_frame_hdr();
        if header.is_empty() {
            continue;
        }
        let data = module.unwind_data();
        // The header's second word points to .eh_frame, relative to itself; the rest of the segment follows it.
        let at = header.start + 4;
        let offset = i32::from_le_bytes(bytes(at..at + 4).try_into().expect("four bytes"));
        let eh_frame = at.wrapping_add(offset as u64)..data.end;
        let base = module.range().start;
        let section = ExplicitModuleSectionInfo {
            base_svma: base - module.bias(),
            eh_frame_hdr_svma: Some(header.start - module.bias()..header.end - module.bias()),
            eh_frame_hdr: Some(bytes(header.clone())),
            eh_frame_svma: Some(eh_frame.start - module.bias()..eh_frame.end - module.bias()),
            eh_frame: Some(bytes(eh_frame)),
            ..Default::default()
        };
        let name = String::from_utf8_lossy(modules.path(module)).into_owned();
        unwinder.add_module(framehop::Module::new(name, module.range(), base, section));
    }
    unwinder
}

/// Median nanoseconds of one call.
fn median(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_nanos() as u64
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2] as f64
}

fn main() {
    UNWINDER.refresh().expect("the list of modules");
    let framehop = framehop_unwinder();
    let mut cache: CacheX86_64 = CacheX86_64::new();
    let mut scratch = Scratch::new();
    let mut frames = vec![0u64; 4096];
    println!(
        "{:>7} {:>12} {:>10} {:>12} {:>10} {:>12}",
        "frames", "ours", "per frame", "framehop", "per frame", "first walk"
    );
    for depth in [10, 20, 190, 2000] {
        recurse(depth, &mut || {
            let here = Registers::here();
            let range = OwnStack::at(here.sp()).range();
            let start = Instant::now();
            let walk = UNWINDER.walk(
                &here,
                &mut OwnStack::within(range.clone(), here.sp()),
                &mut scratch,
                &mut frames,
            );
            let first = start.elapsed();
            assert_eq!(walk.end, End::Complete);
            let ours = median(|| {
                let mut stack = OwnStack::within(range.clone(), here.sp());
                black_box(UNWINDER.walk(&here, &mut stack, &mut scratch, &mut frames));
            });
            let mut count = 0;
            let theirs = median(|| {
                let mut read = |address: u64| {
                    // SAFETY: inside the mapping of this thread's stack.
                    if range.contains(&address) { Ok(unsafe { *(address as *const u64) }) } else { Err(()) }
                };
                let regs = UnwindRegsX86_64::new(here.pc(), here.sp(), here.rbp().unwrap_or(0));
                let mut walk = framehop.iter_frames(here.pc(), regs, &mut cache, &mut read);
                count = 0;
                while let Ok(Some(frame)) = walk.next() {
                    black_box(frame);
                    count += 1;
                }
            });
            let (n, m) = (walk.len as f64, f64::from(count));
            println!(
                "{:>7} {:>9.0} ns {:>7.1} ns {:>9.0} ns {:>7.1} ns {:>9.1} us",
                walk.len,
                ours,
                ours / n,
                theirs,
                theirs / m,
                first.as_nanos() as f64 / 1000.0
            );
            assert_eq!(count, walk.len as i32, "framehop sees the same number of frames");
        });
    }
}
