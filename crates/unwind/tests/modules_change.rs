//! Libraries that are opened and closed during walks: the list follows, modules keep their numbers, handlers never crash, and
//! complete stacks have no wrong frames.
#![allow(unsafe_code, reason = "calls the C library")]

#[path = "support/signals.rs"]
mod signals;

use signals::on_signal;
use stackglass_unwind::{Cut, End, OwnStack, Registers, Scratch, Unwinder, Walk};
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

static UNWINDER: Unwinder = Unwinder::new();
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner())
}

type Callback = extern "C" fn();
type CallBack = extern "C" fn(Callback, i64) -> i64;

/// A library whose function calls back below `depth` of its frames.
fn build(folder: &Path) -> CString {
    let source = folder.join("plugin.c");
    let library = folder.join("libplugin.so");
    let text = "static volatile long sink;\n\
        __attribute__((noinline)) long call_back(void (*f)(void), long depth) {\n\
          if (depth) return sink = call_back(f, depth - 1) + 1;\n\
          f();\n  for (long i = 0; i < 2000; i++) sink += i;\n  return sink;\n}\n";
    std::fs::write(&source, text).unwrap();
    let status = Command::new("cc")
        .args(["-O2", "-fomit-frame-pointer", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status()
        .expect("cc, the C compiler that also links Rust programs");
    assert!(status.success());
    CString::new(library.to_str().unwrap()).unwrap()
}

struct Plugin(*mut c_void);

impl Plugin {
    fn open(path: &CString) -> Plugin {
        // SAFETY: loads the library built above, which has no initialisers.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Plugin(handle)
    }

    fn function(&self) -> CallBack {
        // SAFETY: the library's function of that name has that type.
        unsafe { std::mem::transmute::<*mut c_void, CallBack>(libc::dlsym(self.0, c"call_back".as_ptr())) }
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; no thread is in its code.
        assert_eq!(unsafe { libc::dlclose(self.0) }, 0);
    }
}

/// The id of each loaded module by address, and the generation.
fn snapshot() -> (BTreeMap<u64, u32>, u64) {
    let modules = UNWINDER.modules().unwrap();
    (modules.iter().map(|m| (m.range().start, m.id())).collect(), modules.generation())
}

static SEEN: Mutex<Option<(Vec<u64>, Walk)>> = Mutex::new(None);

extern "C" fn walk_here() {
    let here = Registers::here();
    let mut frames = vec![0; 128];
    let walk = UNWINDER.walk(&here, &mut OwnStack::at(here.sp()), &mut Scratch::new(), &mut frames);
    frames.truncate(walk.len);
    *SEEN.lock().unwrap() = Some((frames, walk));
}

#[test]
fn a_library_comes_and_goes() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path());
    UNWINDER.refresh().unwrap();
    assert!(!UNWINDER.refresh().unwrap(), "nothing has changed");
    let (before, generation) = snapshot();

    let plugin = Plugin::open(&path);
    black_box(plugin.function()(walk_here, 10));
    let (_, unknown) = SEEN.lock().unwrap().take().unwrap();
    assert_eq!(unknown.end, End::Cut(Cut::NoModule), "not in the list yet");

    assert!(UNWINDER.refresh().unwrap());
    let (with, generation_with) = snapshot();
    assert_eq!(generation_with, generation + 1);
    let new: Vec<_> = with.iter().filter(|(at, _)| !before.contains_key(at)).collect();
    assert_eq!(new.len(), 1);
    assert!(before.values().all(|id| id != new[0].1), "a different number");
    assert!(before.iter().all(|(at, id)| with.get(at) == Some(id)), "the others keep theirs");
    let start = *new[0].0;
    {
        let modules = UNWINDER.modules().unwrap();
        let module = modules.iter().find(|m| m.range().start == start).unwrap();
        assert_eq!(modules.path(module), path.as_bytes());
        assert!(!module.is_pinned(), "it can be closed");
        assert!(!module.build_id().is_empty() && module.bias() == start);
        let pinned = |part: &str| {
            modules.iter().any(|m| m.is_pinned() && String::from_utf8_lossy(modules.path(m)).contains(part))
        };
        assert!(pinned("/libc.so") && pinned("/ld-linux") && pinned("vdso") && pinned("modules_change"));
    }

    black_box(plugin.function()(walk_here, 10));
    let (frames, walk) = SEEN.lock().unwrap().take().unwrap();
    assert_eq!(walk.end, End::Complete);
    let modules = UNWINDER.modules().unwrap();
    let inside =
        frames.iter().filter(|f| modules.find(**f).is_some_and(|m| m.range().start == start)).count();
    assert_eq!(inside, 11);
    drop(modules);

    drop(plugin);
    assert!(UNWINDER.refresh().unwrap());
    let (after, generation_after) = snapshot();
    assert_eq!((after, generation_after), (before, generation + 2));
}

struct Handlers {
    scratch: UnsafeCell<Scratch>,
    frames: UnsafeCell<[u64; 128]>,
}
// SAFETY: signals go to one thread, which does not interrupt its handler.
unsafe impl Sync for Handlers {}
static HANDLERS: Handlers =
    Handlers { scratch: UnsafeCell::new(Scratch::new()), frames: UnsafeCell::new([0; 128]) };
static ENDS: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

unsafe extern "C" fn handler(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid context; only this thread uses HANDLERS.
    let walk = unsafe {
        let registers = Registers::of_signal(&*context.cast());
        let mut stack = OwnStack::at(registers.sp());
        UNWINDER.walk(&registers, &mut stack, &mut *HANDLERS.scratch.get(), &mut *HANDLERS.frames.get())
    };
    ENDS[usize::from(walk.end.code())].fetch_add(1, Ordering::Relaxed);
}

extern "C" fn nothing() {}

#[test]
fn walks_go_on_while_libraries_are_opened_and_closed() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path());
    UNWINDER.refresh().unwrap();
    on_signal(libc::SIGURG, libc::SA_RESTART, handler);
    let stop = AtomicBool::new(false);
    let thread = AtomicU64::new(0);
    let opened = AtomicU64::new(0);
    let walks = || ENDS.iter().map(|end| end.load(Ordering::Relaxed)).sum::<u64>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: no arguments.
            thread.store(unsafe { libc::gettid() } as u64, Ordering::SeqCst);
            while !stop.load(Ordering::Relaxed) {
                let plugin = Plugin::open(&path);
                let deadline = Instant::now() + Duration::from_millis(2);
                while Instant::now() < deadline {
                    black_box(plugin.function()(nothing, 20));
                }
                opened.fetch_add(1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                UNWINDER.refresh().unwrap();
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        while thread.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        // As many as are needed to judge, however few a busy machine lets happen in a second.
        while opened.load(Ordering::Relaxed) <= 500 || walks() <= 5000 {
            // SAFETY: a signal to a thread of this process, alive until `stop`.
            unsafe {
                libc::syscall(libc::SYS_tgkill, libc::getpid(), thread.load(Ordering::SeqCst), libc::SIGURG)
            };
            std::thread::sleep(Duration::from_micros(100));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let ends: Vec<u64> = ENDS.iter().map(|e| e.load(Ordering::Relaxed)).collect();
    println!("{opened:?} times opened and closed; walks by how they ended: {ends:?}");
    let total: u64 = ends.iter().sum();
    // A library not yet or no longer in the list gives a cut stack. All other stacks must be complete.
    let honest = ends[0] + ends[Cut::NoModule as usize] + ends[Cut::NoRule as usize];
    assert!(total - honest <= total / 200, "{ends:?}");
    assert!(ends[0] * 2 > total, "{ends:?}");
}
