//! Calls that move data in steps come back whole, and calls that wait come back with their own result, through every door.
//!
//! The host `bulk` makes sixteen kinds of such calls and counts those that are short or end with EINTR. A stop of one of its
//! threads inside a call shows there, whatever requested the stop.
#![allow(unsafe_code, reason = "calls a function of a library that is compiled here")]

use ::stackglass as stackglass_crate;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::{Compare, Folder, Language, host, host_with, stackglass};

/// Milliseconds for each kind of call.
const EACH: &str = "250";

fn program() -> std::path::PathBuf {
    host("bulk", Language::C)
}

/// Records the program with these flags.
fn recorded(flags: &[&str]) {
    let mut compare = Compare::of(program()).args(["all", "0", EACH]).each_line(|line| {
        // The numbers of calls differ from run to run.
        (!line.ends_with(" calls")).then(|| line.to_owned())
    });
    for flag in flags {
        compare = compare.flag(flag);
    }
    let did = compare.is_equal().did;
    assert!(did.stdout.ends_with("in all: 0 short, 0 EINTR, 0 other errors\n"), "{}", did.stdout);
}

/// Runs a command again and again while the program runs; `PID` stands for the program. Returns how often it succeeded.
fn attached(words: &[&str]) -> usize {
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name);
    let file = |name: &str| File::create(path(name)).expect("a temporary file can be made");
    let mut program = Command::new(program());
    program.args(["all", "0", EACH]).stdin(Stdio::null()).stdout(file("out")).stderr(file("errors"));
    let mut program = program.spawn().expect("the program can be started");
    let pid = program.id().to_string();
    let begin = Instant::now();
    let mut succeeded = 0;
    while program.try_wait().expect("a child can be waited for").is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{words:?}: the program hangs");
        let mut look = Command::new(stackglass());
        look.args(words.iter().map(|word| if *word == "PID" { pid.as_str() } else { word }));
        look.current_dir(folder.path()).stdin(Stdio::null()).stdout(file("said")).stderr(file("told"));
        succeeded += usize::from(look.status().expect("the command can be started").success());
    }
    let status = program.wait().expect("a child can be waited for");
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap_or_default();
    let printed = read("out");
    assert!(
        status.success() && printed.ends_with("in all: 0 short, 0 EINTR, 0 other errors\n"),
        "{words:?}, {succeeded} times: {status}\n{printed}{}\n{}",
        read("errors"),
        read("told")
    );
    succeeded
}

#[test]
fn recorded_by_the_kernel() {
    recorded(&[]);
}

/// Running threads are signalled in their own code only.
#[test]
fn recorded_from_inside() {
    recorded(&["--sampler=preload"]);
}

/// It has no tasks: the library in the program looks at its threads.
#[test]
fn recorded_by_wall_time() {
    recorded(&["--walltime"]);
}

/// The same calls in a program that links the crate, and profiles itself: this one.
#[test]
fn profiled_by_themselves() {
    let library = host_with("bulk", Language::C, &["-shared", "-fPIC", "-Dmain=bulk_main"]);
    let words = [c"bulk", c"all", c"0", c"250"];
    assert_eq!(words[3].to_str(), Ok(EACH));
    let mut arguments = words.map(|word| word.as_ptr().cast_mut()).to_vec();
    arguments.push(std::ptr::null_mut());
    let path =
        std::ffi::CString::new(library.to_str().expect("the path is text")).expect("a path has no zero byte");
    // SAFETY: the library has no constructors. Its function has the type of `main`, reads its arguments, and does not change them.
    let main: extern "C" fn(i32, *mut *mut std::ffi::c_char) -> i32 = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null(), "{path:?} cannot be opened");
        let main = libc::dlsym(library, c"bulk_main".as_ptr());
        assert!(!main.is_null(), "the library has a main function");
        std::mem::transmute(main)
    };
    stackglass_crate::init(None, Duration::from_micros(100)).expect("a delay that is allowed");
    let status = stackglass_crate::profile!(main(4, arguments.as_mut_ptr()));
    assert_eq!(status, 0, "some calls came back short, see above");
}

#[test]
fn recorded_with_allocations() {
    recorded(&["--allocs"]);
}

#[test]
fn recorded_with_a_heap_snapshot_at_the_end() {
    recorded(&["--allocs", "--heap-at", "exit"]);
}

#[test]
fn attached_to() {
    let times = attached(&[
        "record",
        "--quiet",
        "--delay",
        "100us",
        "--duration",
        "1s",
        "-o",
        "r.glass",
        "--pid",
        "PID",
    ]);
    assert!(times > 0, "nothing was recorded");
}

#[test]
fn peeked_at() {
    assert!(attached(&["peek", "PID", "--duration", "50ms"]) > 0, "no peek succeeded");
}

#[test]
fn its_heap_is_copied_again_and_again() {
    assert!(attached(&["heap", "take", "PID", "-o", "h.heapsnapshot"]) > 0, "no snapshot was taken");
}

#[test]
fn its_tasks_are_asked_for_again_and_again() {
    // It has none; whether that is a failure is not asked here.
    attached(&["tasks", "PID"]);
}
