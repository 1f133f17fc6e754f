//! `peek PID` and `record --pid` on programs that know nothing of us: what is shown, what is refused and why, and
//! that the program goes on whatever becomes of us.

mod support;

use rustix::process::{Signal, kill_process};
use stackglass_profile::{End, State};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Place, end_of, signal, stackglass, text, wait_until};

/// A program that works, and is ended when the value is dropped.
struct Stranger(Child);

impl Stranger {
    /// The workload of the demonstration: several threads, busy and asleep.
    fn busy() -> Stranger {
        let mut command = Command::new(stackglass());
        command.args(["demo-workload", "--time", "120s"]);
        Stranger::start(command)
    }

    fn start(mut command: Command) -> Stranger {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let stranger = Stranger(child);
        // Between fork and exec it is still us.
        let name = |pid: &str| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        wait_until("the program", || {
            name(&stranger.pid()) != name("self") && !name(&stranger.pid()).is_empty()
        });
        stranger
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn status(&self, tid: &str, field: &str) -> String {
        let text = fs::read_to_string(format!("/proc/{}/task/{tid}/status", self.pid())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or("").trim().to_owned()
    }

    fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        tasks.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Nobody traces any thread, and none stands.
    fn is_untouched(&self) -> bool {
        self.threads().iter().all(|tid| {
            matches!(self.status(tid, "State").chars().next(), Some('R' | 'S' | 'D') | None)
                && matches!(self.status(tid, "TracerPid").as_str(), "0" | "")
        })
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The line on standard error of a command that must fail.
fn refusal(output: &std::process::Output) -> String {
    assert_eq!(output.status.code(), Some(125), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    let line = text(&output.stderr);
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

#[test]
fn a_process_is_recorded_by_its_id() {
    let (place, stranger) = (Place::new(), Stranger::busy());
    let output = place.run(["record", "--pid", &stranger.pid(), "--duration", "700ms", "-o", "r.glass"]);
    let shown = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("still running") && shown.contains("recorded to r.glass"), "{shown}");
    let recording = place.recording("r.glass");
    assert_eq!(recording.about.end, Some(End::Running));
    assert_eq!(recording.processes.len(), 1);
    assert_eq!(recording.processes[0].pid.to_string(), stranger.pid());
    let compute = |id| recording.symbols.frames_of(id).any(|frame| frame.func.ends_with("compute"));
    let mut awake = recording.samples.iter().filter(|sample| sample.state == State::Awake);
    assert!(awake.any(|sample| recording.stacks.walk(sample.stack).any(compute)));
    wait_until("the process to be let go", || stranger.is_untouched());
}

#[test]
fn a_key_ends_the_recording_and_not_the_process() {
    let (place, stranger) = (Place::new(), Stranger::busy());
    let mut child = place
        .stackglass(["record", "--pid", &stranger.pid(), "-o", "r.glass"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    place.await_file("r.glass");
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, Signal::INT);
    assert_eq!(end_of(&mut child), Some(0));
    assert!(!place.recording("r.glass").samples.is_empty());
    wait_until("the process to be let go", || stranger.is_untouched());
}

#[test]
fn a_peek_shows_threads_at_once_and_then_the_profile() {
    let (place, stranger) = (Place::new(), Stranger::busy());
    let start = Instant::now();
    let mut child = place
        .stackglass(["peek", &stranger.pid(), "--duration", "2s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let head = lines.by_ref().find(|line| line.starts_with("cmd: ")).unwrap();
    assert!(head.contains(&format!(" {} running ", stranger.pid())), "{head}");
    let at_once = start.elapsed();
    let rest: Vec<String> = lines.collect();
    assert_eq!(end_of(&mut child), Some(0));
    assert!(at_once < start.elapsed() && start.elapsed() >= Duration::from_secs(2), "{at_once:?}");
    let rest = rest.join("\n");
    assert!(rest.contains("compute") && rest.contains("asleep in "), "{rest}");
    assert!(rest.contains("Profile collected. A report will print now."), "{rest}");
    assert!(rest.contains("Total snapshots: ") && rest.contains("Utilization: "), "{rest}");
    wait_until("the process to be let go", || stranger.is_untouched());
}

#[test]
fn whoever_kills_us_does_not_harm_the_process() {
    let (place, stranger) = (Place::new(), Stranger::busy());
    let mut random = 88172645463325252u64;
    for round in 0..50 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut child = place
            .stackglass([
                "peek",
                &stranger.pid(),
                "--duration",
                "10s",
                "--delay",
                "200us",
                "--driver",
                "ptrace",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(random % 120_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let start = Instant::now();
        while !stranger.is_untouched() {
            assert!(start.elapsed().as_secs() < 5, "round {round}: a thread stands or is traced");
        }
    }
    let threads = stranger.threads();
    let cpu =
        |tid: &String| fs::read_to_string(format!("/proc/{}/task/{tid}/schedstat", stranger.pid())).unwrap();
    let before: Vec<String> = threads.iter().map(cpu).collect();
    std::thread::sleep(Duration::from_millis(300));
    assert!(threads.iter().map(cpu).zip(before).any(|(now, before)| now != before), "nothing runs any more");
}

#[test]
fn a_process_that_is_killed_meanwhile_is_told() {
    let (place, mut stranger) = (Place::new(), Stranger::busy());
    let mut child = place
        .stackglass(["peek", &stranger.pid(), "--duration", "30s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("cmd: ")));
    stranger.0.kill().unwrap();
    let start = Instant::now();
    let shown: Vec<String> = lines.collect();
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(10));
    let line = text(&output.stderr);
    assert!(line.contains(&format!("stackglass: process {} ended after ", stranger.pid())), "{line}");
    assert_eq!(line.matches(" ended ").count(), 1, "{line}");
    assert!(shown.iter().any(|line| line.contains("Total snapshots: ")), "{shown:?}");
    assert_eq!(output.status.code(), Some(125));
}

#[test]
fn five_hundred_threads_take_no_longer() {
    let script = "import threading,time\n\
                  for i in range(500): threading.Thread(target=time.sleep,args=(120,),daemon=True).start()\n\
                  print(flush=True)\nwhile True: pass";
    let mut command = Command::new("python3");
    command.args(["-c", script]);
    let (place, stranger) = (Place::new(), Stranger::start(command));
    wait_until("all threads", || stranger.threads().len() == 501);
    let start = Instant::now();
    let output = place.run(["peek", &stranger.pid()]);
    let took = start.elapsed();
    let shown = text(&output.stdout);
    assert!(shown.contains(" of 501\n"), "{}", &shown[..shown.len().min(500)]);
    assert!(shown.contains("500 threads: ") && shown.contains("asleep in clock_nanosleep"));
    assert!(took < Duration::from_millis(2500), "{took:?}");
}

#[test]
fn code_made_at_run_time_does_not_hide_what_called_it() {
    let script = "function fib(n){return n<2?n:fib(n-1)+fib(n-2)} for(;;)fib(20)";
    let mut command = Command::new("node");
    command.args(["--perf-basic-prof", "-e", script]);
    let place = Place::new();
    // Node writes the names of its code into its folder.
    command.current_dir(place.path());
    let stranger = Stranger::start(command);
    let map = format!("/tmp/perf-{}.map", stranger.pid());
    wait_until("the compiler", || fs::read_to_string(&map).is_ok_and(|text| text.contains("JS:*fib")));
    for driver in ["ptrace", "perf"] {
        let output =
            place.run(["peek", &stranger.pid(), "--duration", "500ms", "--driver", driver, "--cols", "400"]);
        let shown = text(&output.stdout);
        assert!(shown.contains("JS:*fib") && shown.contains("Builtins_JSEntry"), "{driver}: {shown}");
        assert!(shown.contains("node::Start"), "{driver}: {shown}");
    }
    let _ = fs::remove_file(map);
}

#[test]
fn what_cannot_be_looked_at_is_refused_in_one_line() {
    let place = Place::new();
    assert!(refusal(&place.run(["peek", "99999999"])).contains("there is no process 99999999"));
    let own = std::process::id().to_string();
    // This test is another process, so it is no special case.
    assert_eq!(place.run(["peek", &own, "--duration", "50ms"]).status.code(), Some(0));
    let usage = place.run(["peek", "server"]);
    assert_eq!(usage.status.code(), Some(2));
    assert!(text(&usage.stderr).contains("expected a process id"));
    let walltime = place.run(["record", "--pid", "1", "--walltime"]);
    assert_eq!(walltime.status.code(), Some(2));
    let line = text(&walltime.stderr);
    assert!(
        line.lines().count() == 1 && line.contains("start it with `stackglass record --walltime"),
        "{line}"
    );
    for arguments in [&["record", "--pid", "1", "--", "true"][..], &["record", "--pid", "1", "--no-children"]]
    {
        assert_eq!(place.run(arguments).status.code(), Some(2));
    }
}

#[test]
fn a_process_that_is_traced_names_its_tracer() {
    let mut command = Command::new("sh");
    command.args(["-c", "while :; do :; done"]);
    let (place, stranger) = (Place::new(), Stranger::start(command));
    let pid = stranger.pid();
    let mut first = place
        .stackglass(["record", "-q", "--pid", &pid, "--driver", "ptrace"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the first one", || stranger.status(&pid, "TracerPid") != "0");
    let line = refusal(&place.run(["peek", &pid, "--driver", "ptrace"]));
    assert!(line.contains(&format!("is traced by stackglass (pid {})", first.id())), "{line}");
    // Perf events look past a tracer, where they are allowed.
    let output = place.run(["peek", &pid, "--duration", "300ms", "--driver", "perf"]);
    match output.status.code() {
        Some(0) => assert!(text(&output.stdout).contains("Total snapshots: ")),
        _ => {
            assert!(text(&output.stderr).contains("perf events are refused here"), "{}", text(&output.stderr))
        }
    }
    first.kill().unwrap();
    first.wait().unwrap();
    wait_until("the process to be let go", || stranger.is_untouched());
}

#[test]
fn another_users_process_names_its_owner() {
    if !rustix::process::geteuid().is_root() {
        let place = Place::new();
        return assert!(refusal(&place.run(["peek", "1"])).contains("belongs to root"));
    }
    let (place, stranger) = (Place::new(), Stranger::busy());
    // A copy that others may execute, in a folder that they may enter.
    let copy = place.file("stackglass");
    fs::copy(stackglass(), &copy).unwrap();
    fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let as_nobody = |pid: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy);
        command.args(["peek", pid, "--duration", "50ms"]).output().unwrap()
    };
    assert!(refusal(&as_nobody(&stranger.pid())).contains("belongs to root (user id 0): use sudo"));
    // One's own needs no permission, but of Yama.
    let mut own = Command::new("setpriv");
    own.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sleep", "120"]);
    let own = Stranger::start(own);
    wait_until("sleep", || own.status(&own.pid(), "Name") == "sleep");
    let output = as_nobody(&own.pid());
    let yama =
        fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.trim() != "0");
    assert_eq!(output.status.code(), Some(if yama { 125 } else { 0 }), "{}", text(&output.stderr));
    assert!(yama || text(&output.stdout).contains("asleep in clock_nanosleep"));
}

#[test]
fn a_thread_is_taken_for_its_process() {
    let (place, stranger) = (Place::new(), Stranger::busy());
    wait_until("threads", || stranger.threads().len() > 1);
    let thread = stranger.threads().into_iter().find(|tid| *tid != stranger.pid()).unwrap();
    let output = place.run(["peek", &thread, "--duration", "50ms"]);
    assert!(
        text(&output.stdout).contains(&format!(" {} running ", stranger.pid())),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_stopped_peek_leaves_nothing_behind() {
    let (place, stranger) = (Place::new(), Stranger::busy());
    let mut child = place
        .stackglass(["peek", &stranger.pid(), "--duration", "30s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("cmd: ")));
    // Ctrl-C: the report of what there is.
    kill_process(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
    assert!(lines.any(|line| line.contains("Total snapshots: ")));
    assert_eq!(end_of(&mut child), Some(0));
    wait_until("the process to be let go", || stranger.is_untouched());
}

#[test]
fn a_program_that_execs_has_the_stacks_of_before_under_the_name_of_before() {
    let mut command = Command::new("sh");
    // It begins to run sleep while it is looked at.
    command.args(["-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; exec sleep 60"]);
    let (place, stranger) = (Place::new(), Stranger::start(command));
    let output = place.run(["peek", &stranger.pid(), "--duration", "4s"]);
    let shown = text(&output.stdout);
    let before = shown.find("Thread 1 (sh)").unwrap_or_else(|| panic!("{shown}"));
    assert!(shown.contains("(sleep"), "{shown}");
    let report = &shown[shown.find("Profile collected").unwrap()..];
    let of_sh = report.split("Thread ").find(|part| part.starts_with("1 (sh")).unwrap();
    assert!(of_sh.contains("Utilization: ") && !of_sh.contains("nanosleep"), "{before}: {report}");
    let of_sleep = report.split("Thread ").find(|part| part.starts_with("2 (sleep")).unwrap();
    assert!(!of_sleep.contains("evaltree") && !of_sleep.contains("dash+"), "{report}");
}

#[test]
fn a_closed_stdout_is_a_failure() {
    let (place, stranger) = (Place::new(), Stranger::busy());
    let mut closed = Command::new("sh");
    closed.args(["-c", "exec \"$0\" peek \"$1\" --duration 50ms >&-"]).arg(stackglass()).arg(stranger.pid());
    assert!(refusal(&closed.current_dir(place.path()).output().unwrap()).contains("stdout is closed"));
    let null =
        place.stackglass(["peek", &stranger.pid(), "--duration", "50ms"]).stdout(Stdio::null()).status();
    assert_eq!(null.unwrap().code(), Some(0));
}

#[test]
fn an_exec_at_any_moment_leaves_nobody_standing() {
    let place = Place::new();
    for driver in ["perf", "ptrace"] {
        for round in 0..24 {
            let mut command = Command::new("sh");
            // The shell sleeps and wakes before it becomes another program, which ends by itself.
            let script = format!(
                "sleep 0.{}; exec sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'",
                100 + 3 * round
            );
            command.args(["-c", &script]).stdout(Stdio::null()).current_dir(place.path());
            let mut child = command.spawn().unwrap();
            let mut look = place.stackglass(["record", "-q", "--delay", "250us", "--driver", driver]);
            look.args(["-o", "e.glass", "--pid", &child.id().to_string()]).stderr(Stdio::null());
            let mut look = look.spawn().unwrap();
            let until = Instant::now() + Duration::from_secs(20);
            while child.try_wait().unwrap().is_none() {
                if Instant::now() > until {
                    let state =
                        fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
                    let _ = (look.kill(), child.kill());
                    panic!("{driver}, round {round}: it does not end: {state}");
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            look.wait().unwrap();
        }
    }
}

#[test]
fn two_who_trace_take_turns() {
    let (place, stranger) = (Place::new(), Stranger::busy());
    let start = || {
        let mut command = place.stackglass(["peek", "--driver", "ptrace", "--duration", "400ms"]);
        command.arg(stranger.pid()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let ended: Vec<_> =
        [start(), start()].into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    for output in &ended {
        let (report, said) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{said}");
        // What is not looked at must not look like sleep: the workload has threads that never sleep.
        assert!(report.contains("In short, of each thread's time"), "{report}");
    }
    let waited = ended.iter().filter(|output| text(&output.stderr).contains("your peek follows")).count();
    assert_eq!(waited, 1, "{ended:?}");
    assert!(stranger.is_untouched());
}
