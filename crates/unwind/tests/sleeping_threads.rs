//! Threads that sleep in a system call, walked without waking them: only pc and sp are known, and `rbp` is recovered. Walks are
//! compared with a later walk from a signal handler in the same thread, with all registers.
#![allow(unsafe_code, reason = "calls the C library")]

#[path = "support/signals.rs"]
mod signals;

use signals::on_signal;
use stackglass_unwind::{Cut, End, OwnStack, ProcessStack, Registers, Scratch, Unwinder};
use std::cell::UnsafeCell;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

static UNWINDER: Unwinder = Unwinder::new();

struct FromHandler {
    scratch: UnsafeCell<Scratch>,
    frames: UnsafeCell<[u64; 256]>,
    len: AtomicUsize,
    done: AtomicBool,
}
// SAFETY: one signal at a time is sent, and its result read after `done`.
unsafe impl Sync for FromHandler {}
static TRUTH: FromHandler = FromHandler {
    scratch: UnsafeCell::new(Scratch::new()),
    frames: UnsafeCell::new([0; 256]),
    len: AtomicUsize::new(0),
    done: AtomicBool::new(false),
};

unsafe extern "C" fn handler(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid context; TRUTH is this handler's until `done`.
    unsafe {
        let registers = Registers::of_signal(&*context.cast());
        let frames = &mut *TRUTH.frames.get();
        let mut stack = OwnStack::at(registers.sp());
        let walk = UNWINDER.walk(&registers, &mut stack, &mut *TRUTH.scratch.get(), frames);
        let len = if walk.end == End::Complete { walk.len } else { 0 };
        TRUTH.len.store(len, Ordering::Relaxed);
    }
    TRUTH.done.store(true, Ordering::Release);
}

/// pc and sp of a thread blocked in a system call.
fn blocked_at(thread: i32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall")).ok()?;
    let fields: Vec<&str> = text.split_whitespace().collect();
    let number = |field: &str| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok();
    (fields.len() == 9).then(|| Some((number(fields[8])?, number(fields[7])?)))?
}

/// As [`walk_asleep`]; the stack must be complete.
fn check(name: &str, sleep: impl FnOnce() + Send + 'static) {
    assert_eq!(walk_asleep(name, sleep), End::Complete, "{name}");
}

/// Walks a thread that sleeps in `sleep`, and compares with the walk of its handler. All frames must be right; if the walk
/// is complete, no frame may be missing.
fn walk_asleep(name: &str, sleep: impl FnOnce() + Send + 'static) -> End {
    let id = Arc::new(AtomicI32::new(0));
    let told = Arc::clone(&id);
    // The threads stay asleep until the test's process ends.
    thread::spawn(move || {
        // SAFETY: no arguments.
        told.store(unsafe { libc::gettid() }, Ordering::SeqCst);
        sleep();
    });
    let give_up = Instant::now() + Duration::from_secs(10);
    let (thread, pc, sp) = loop {
        thread::sleep(Duration::from_millis(5));
        let thread = id.load(Ordering::SeqCst);
        if thread != 0
            && let Some((pc, sp)) = blocked_at(thread)
        {
            thread::sleep(Duration::from_millis(20));
            if blocked_at(thread) == Some((pc, sp)) {
                break (thread, pc, sp);
            }
        }
        assert!(Instant::now() < give_up, "{name}: the thread does not fall asleep");
    };

    let mut frames = [0u64; 256];
    let mut buffer = [0u8; 8192];
    let mut stack = ProcessStack::new(std::process::id() as i32, &mut buffer);
    let walk = UNWINDER.walk(&Registers::new(pc, sp, None), &mut stack, &mut Scratch::new(), &mut frames);

    TRUTH.done.store(false, Ordering::SeqCst);
    // SAFETY: a signal to a thread of this process that sleeps.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGURG) };
    while !TRUTH.done.load(Ordering::Acquire) {
        assert!(Instant::now() < give_up, "{name}: no signal");
        thread::yield_now();
    }
    // SAFETY: the handler is done.
    let truth = unsafe { &(&*TRUTH.frames.get())[..TRUTH.len.load(Ordering::Relaxed)] };
    assert!(truth.len() > 4, "{name}: the handler's own walk is complete");
    // The innermost frame may differ: the signal's is the system call if it is restarted.
    let wanted = if walk.end == End::Complete { truth.len() } else { walk.len };
    assert_eq!(frames[1..walk.len], truth[1..wanted], "{name}: {:?}", walk.end);
    println!("{name}: {} of {} frames, {:?}", walk.len, truth.len(), walk.end);
    walk.end
}

fn install_handler() {
    UNWINDER.refresh().unwrap();
    on_signal(libc::SIGURG, libc::SA_RESTART, handler);
}

/// Only one test at a time uses the handler's memory.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn stacks_of_c_functions_with_frame_pointers() {
    let _alone = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().unwrap();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/sleepers.c");
    let settings: [&[&str]; 4] = [
        &["-O0"],
        &["-O2", "-fno-omit-frame-pointer"],
        &[
            "-O2",
            "-fno-omit-frame-pointer",
            "-fstack-protector-all",
            "-fstack-clash-protection",
            "-fcf-protection",
        ],
        &["-O1", "-fno-omit-frame-pointer", "-fno-schedule-insns2"],
    ];
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let fd = ends[0];
    let mut complete = 0;
    for (number, options) in settings.into_iter().enumerate() {
        let library = folder.path().join(format!("libsleepers{number}.so"));
        let status = std::process::Command::new("cc")
            .args(options)
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status();
        assert!(status.expect("cc, the C compiler that also links Rust programs").success());
        let path = std::ffi::CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: loads the library just built; the function has that type.
        let sleep_in = unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
            assert!(!handle.is_null());
            let function = libc::dlsym(handle, c"sleep_in".as_ptr());
            std::mem::transmute::<*mut libc::c_void, extern "C" fn(i32, i32) -> i64>(function)
        };
        install_handler();
        check(&format!("{options:?} plain"), move || _ = sleep_in(0, fd));
        for (which, name) in [(1, "much to keep"), (2, "large frame")] {
            let end = walk_asleep(&format!("{options:?} {name}"), move || _ = sleep_in(which, fd));
            complete += usize::from(end == End::Complete);
        }
        // No prologue gives the size of this frame. `rbp` may be unknown, or confirmed otherwise, but never wrong.
        let end = walk_asleep(&format!("{options:?} variable frame"), move || _ = sleep_in(3, fd));
        assert!(matches!(end, End::Complete | End::Cut(Cut::RbpUnknown)));
    }
    // Compilers schedule different instructions between the pushes; with gcc 12, all eight are complete.
    assert!(complete >= 6, "{complete} of 8");
}

#[test]
fn stacks_of_sleeping_threads_without_waking_them() {
    let _alone = ONE_AT_A_TIME.lock();
    install_handler();

    let long = Duration::from_secs(3600);
    check("thread::park", thread::park);
    check("thread::park_timeout", move || thread::park_timeout(long));
    check("thread::sleep", move || thread::sleep(long));
    let mutex = Arc::new(Mutex::new(()));
    let held = Box::leak(Box::new(Arc::clone(&mutex))).lock().unwrap();
    check("Mutex::lock", move || drop(mutex.lock()));
    std::mem::forget(held);
    let pair = (Mutex::new(()), Condvar::new());
    check("Condvar::wait", move || drop(pair.1.wait(pair.0.lock().unwrap())));
    let pair = (Mutex::new(()), Condvar::new());
    check("Condvar::wait_timeout", move || drop(pair.1.wait_timeout(pair.0.lock().unwrap(), long)));
    let (sender, receiver) = mpsc::channel::<()>();
    std::mem::forget(sender);
    check("Receiver::recv", move || receiver.recv().unwrap());
    let (sender, receiver) = mpsc::channel::<()>();
    std::mem::forget(sender);
    check("Receiver::recv_timeout", move || receiver.recv_timeout(long).unwrap());

    let mut ends = [0; 2];
    // SAFETY: room for two descriptors; the first becomes a file of its own.
    let mut pipe = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        std::fs::File::from_raw_fd(ends[0])
    };
    let fd = pipe.as_raw_fd();
    check("File::read", move || drop(pipe.read(&mut [0])));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    check("TcpListener::accept", move || drop(listener.accept()));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    check("UdpSocket::recv_from", move || drop(socket.recv_from(&mut [0; 16])));
    let child = std::process::Command::new("sleep")
        .arg("3")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    check("Child::wait", move || drop({ child }.wait()));
    check("JoinHandle::join", move || {
        thread::spawn(thread::park).join().unwrap();
    });

    // The C library's functions, called without std in between.
    // SAFETY: a complete structure, and a descriptor that stays open.
    check("poll", move || unsafe {
        let mut wait = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        libc::poll(&raw mut wait, 1, -1);
    });
    // SAFETY: a complete structure.
    check("nanosleep", || unsafe {
        let time = libc::timespec { tv_sec: 3600, tv_nsec: 0 };
        libc::nanosleep(&time, std::ptr::null_mut());
    });
    // SAFETY: room for one event; all zeros are valid.
    check("epoll_wait", || unsafe {
        let mut event: libc::epoll_event = std::mem::zeroed();
        libc::epoll_wait(libc::epoll_create1(0), &raw mut event, 1, -1);
    });
    // SAFETY: both are initialised and outlive the calls.
    check("pthread_cond_wait", || unsafe {
        let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
        let mut condition = libc::PTHREAD_COND_INITIALIZER;
        libc::pthread_mutex_lock(&raw mut mutex);
        libc::pthread_cond_wait(&raw mut condition, &raw mut mutex);
    });
    // SAFETY: initialised before it is used.
    check("sem_wait", || unsafe {
        let mut semaphore: libc::sem_t = std::mem::zeroed();
        libc::sem_init(&raw mut semaphore, 0, 0);
        libc::sem_wait(&raw mut semaphore);
    });
    // SAFETY: an empty set is all zeros; the descriptor stays open.
    check("select", move || unsafe {
        let mut set: libc::fd_set = std::mem::zeroed();
        libc::FD_SET(fd, &raw mut set);
        libc::select(fd + 1, &raw mut set, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    });
}
