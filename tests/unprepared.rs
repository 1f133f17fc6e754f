//! `allocs --pid` of programs that nobody prepared: counts agree with what the program does while it is recorded, and the program does not
//! notice.

#![allow(unsafe_code, reason = "ends a command")]

use stackglass_profile::{AllocationSampling, Recording};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::{Folder, Language, allocations_below, host_with, stackglass};

const FLAGS: [&str; 2] = ["-fno-builtin", "-Wno-alloc-size-larger-than"];

/// A running program that waits for its file `go`.
struct Program {
    folder: Folder,
    child: Child,
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(100), "waited for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Program {
    fn start(arguments: &[&str]) -> Program {
        Program::start_with(&FLAGS, arguments)
    }

    fn start_with(flags: &[&str], arguments: &[&str]) -> Program {
        let folder = Folder::new();
        let mut command = Command::new(host_with("unprepared", Language::C, flags));
        command.args(arguments).current_dir(folder.path()).stdout(Stdio::piped());
        let child = command.spawn().expect("a compiled program");
        let program = Program { folder, child };
        wait_until("it is ready", || program.has("ready"));
        program
    }

    fn has(&self, name: &str) -> bool {
        fs::metadata(self.folder.path().join(name)).is_ok_and(|file| name != "ready" || file.len() > 0)
    }

    fn make(&self, name: &str) {
        fs::write(self.folder.path().join(name), "").expect("a temporary file can be made");
    }

    /// The command, from when it records.
    fn begin(&self, output: &Path) -> Child {
        let mut command = Command::new(stackglass());
        command.args(["allocs", "--duration", "100s", "--json", "--pid", &self.child.id().to_string(), "-o"]);
        let child = command.arg(output).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().expect("the command can be started");
        let call = format!("/proc/{}/syscall", child.id());
        wait_until("the command records", || {
            let waits = format!("{} ", libc::SYS_ppoll);
            let has_ended = child.try_wait().expect("it is a child").is_some();
            has_ended || fs::read_to_string(&call).is_ok_and(|call| call.starts_with(&waits))
        });
        child
    }

    /// Records all that it does.
    fn recorded(self) -> Recording {
        let file = self.folder.path().join("allocs.glass");
        let command = self.begin(&file);
        self.make("go");
        wait_until("it has allocated", || self.has("done"));
        let status = Command::new("kill").args(["-INT", &command.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()));
        let output = command.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (recording, _) = stackglass_files::read(&file).expect("a recording");
        self.ends_well();
        recording
    }

    fn ends_well(mut self) {
        self.make("stop");
        let output = self.child.stdout.take().expect("a pipe");
        assert!(self.child.wait().is_ok_and(|status| status.success()));
        assert_eq!(std::io::read_to_string(output).expect("text"), "whole\n");
    }
}

/// Number, bytes, number alive, and number of temporary blocks.
fn numbers(recording: &Recording, function: &str) -> [u64; 4] {
    let counts = allocations_below(recording, function);
    [counts.count, counts.bytes, counts.live_count(), counts.temporary_count]
}

/// Whether uprobes are allowed here: to root, but not in most containers. Elsewhere, one line must say so.
fn are_allowed() -> bool {
    let program = Program::start(&["0"]);
    let mut command = Command::new(stackglass());
    command.args(["allocs", "--duration", "10ms", "--pid", &program.child.id().to_string()]);
    let output = command.output().expect("the command can be started");
    program.make("go");
    program.ends_well();
    let said = String::from_utf8_lossy(&output.stderr);
    let is_refused = said.contains("uprobes are refused");
    assert!(!is_refused || is_said(&said), "{said}");
    !is_refused
}

fn is_said(said: &str) -> bool {
    said.lines().count() == 1 && said.contains("stackglass run") && said.contains("as root")
}

#[test]
fn each_block_of_a_slow_program_is_counted_at_its_line() {
    if !are_allowed() {
        return;
    }
    assert_counts_are_true(&Program::start(&["4000"]).recorded());
}

/// Those of a program that pauses between calls.
fn assert_counts_are_true(recording: &Recording) {
    assert_eq!(recording.allocations.processes[0].sampling, AllocationSampling::Every);
    assert_eq!(numbers(recording, "leaks"), [60, 6000, 60, 0]);
    assert_eq!(numbers(recording, "churns"), [60, 3840, 0, 60]);
    assert_eq!(numbers(recording, "frees_later"), [40, 4000, 0, 1]);
    // Blocks of 16 bytes and on, doubled ten times.
    assert_eq!(numbers(recording, "grows")[..3], [11, 16 * 2047, 0]);
    assert_eq!(numbers(recording, "aligns")[..3], [30, 4880, 0]);
    assert_eq!(numbers(recording, "fails"), [0; 4]);
    assert_eq!(numbers(recording, "works"), [30, 6000, 30, 0]);
    assert_eq!(numbers(recording, "comes_later"), [20, 6000, 20, 0]);
    assert_eq!(numbers(recording, "of_a_child"), [0; 4]);
}

/// An allocator in the executable, beside that of the C library.
#[test]
fn an_allocator_of_the_program_itself_is_counted() {
    if !are_allowed() {
        return;
    }
    let own = [&FLAGS[..], &["-DOWN"]].concat();
    assert_counts_are_true(&Program::start_with(&own, &["4000"]).recorded());
}

/// Only its full table of symbols names `malloc`.
#[test]
fn a_static_program_is_counted() {
    if !are_allowed() {
        return;
    }
    let fixed = [&FLAGS[..], &["-static"]].concat();
    assert_counts_are_true(&Program::start_with(&fixed, &["4000"]).recorded());
}

#[test]
fn what_is_no_program_is_said_to_be_none() {
    let mut command = Command::new(stackglass());
    command.args(["allocs", "--duration", "1s", "--pid", &i32::MAX.to_string()]);
    let output = command.output().expect("the command can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("there is no process"), "{said}");
}

#[test]
fn a_fast_program_is_counted_in_whole_and_its_stacks_are_estimates() {
    if !are_allowed() {
        return;
    }
    let recording = Program::start(&["0"]).recorded();
    let total = recording.allocations.total(stackglass_profile::AllocationKind::Block);
    // What its functions allocate, and what the C library does for a thread and a file.
    let own = [60, 20_000, 40, 11, 30, 30, 20].iter().sum::<u64>();
    assert!((own..own + 30).contains(&total.count), "{total:?}");
    let share = allocations_below(&recording, "churns").count as f64 / total.count as f64;
    assert!(share > 0.9, "{share} of all allocations");
    let process = &recording.allocations.processes[0];
    assert_eq!(process.lost, 0);
    assert!(
        // How many stacks fit into the buffers while they are read depends on the machine.
        matches!(process.sampling, AllocationSampling::Stacks(share) if (0.01..0.95).contains(&share)),
        "{:?}",
        process.sampling
    );
    // The program keeps what is alive at its end. Beside that, it never has more than its largest function needs.
    let alive = total.live_bytes();
    assert!((alive..alive + 50_000).contains(&total.peak_bytes), "{total:?}");
    assert!((process.begin..=process.end).contains(&process.peak_at));
}

#[test]
fn a_program_with_a_filter_goes_on() {
    if !are_allowed() {
        return;
    }
    let recording = Program::start(&["0", "filtered"]).recorded();
    assert!(recording.allocations.total(stackglass_profile::AllocationKind::Block).count > 20_000);
}

/// Events that come and go hold a lock of the kernel that a thread needs as it begins, for 80 ms each.
#[test]
fn threads_that_begin_do_not_wait_for_events() {
    if !are_allowed() {
        return;
    }
    let program = Program::start(&["0", "threads"]);
    for _ in 0..3 {
        let command = program.begin(&program.folder.path().join("allocs.glass"));
        std::thread::sleep(Duration::from_millis(300));
        // SAFETY: two numbers; the child was not reaped, so its id is valid.
        unsafe { libc::kill(command.id() as i32, libc::SIGINT) };
        let output = command.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    program.ends_well();
}

/// The bytes of `malloc` of a process, and its mapping of the C library.
fn code(pid: u32) -> Vec<u8> {
    let maps = stackglass_procfs::maps::read(pid).expect("it runs");
    let is_libc = |path: &str| path.ends_with("/libc.so.6");
    let library =
        maps.iter().find(|map| map.executable && is_libc(&map.path)).expect("a mapping of the C library");
    let mut bytes = vec![0; (library.range.end - library.range.start) as usize];
    let memory = fs::File::open(format!("/proc/{pid}/mem")).expect("own child");
    memory.read_exact_at(&mut bytes, library.range.start).expect("code can be read");
    bytes
}

#[test]
fn nothing_stays_in_the_program() {
    if !are_allowed() {
        return;
    }
    let program = Program::start(&["0"]);
    let before = code(program.child.id());
    for round in 0..4 {
        let file = program.folder.path().join("allocs.glass");
        let mut command = program.begin(&file);
        let changed =
            code(program.child.id()).iter().zip(&before).filter(|(now, before)| now != before).count();
        assert!(changed >= 6, "{changed} bytes are breakpoints");
        let signal = if round % 2 == 0 { libc::SIGKILL } else { libc::SIGINT };
        // SAFETY: two numbers; the child was not reaped, so its id is valid.
        unsafe { libc::kill(command.id() as i32, signal) };
        command.wait().expect("it ends");
        wait_until("its code is as before", || code(program.child.id()) == before);
    }
    program.make("go");
    wait_until("it has allocated", || program.has("done"));
    program.ends_well();
}

#[test]
fn what_is_missing_is_said() {
    let program = Program::start(&["0"]);
    let file = program.folder.path().join("allocs.glass");
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all"]).arg(stackglass());
    command.args(["allocs", "--duration", "1s", "--pid", &program.child.id().to_string(), "-o"]).arg(&file);
    let output = command.output().expect("util-linux");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("stackglass run") && said.contains("as root"),
        "{said}"
    );
    program.make("go");
    program.ends_well();
}
