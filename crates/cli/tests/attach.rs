//! Attaching to a running process: `peek PID`, `record --pid` and what is recorded. The program runs on, however stackglass
//! ends.

use crate::support::target::Target;
use crate::support::{Place, end_of, signal, text, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use stackglass_procfs::process::CpuUsage;
use stackglass_profile::{End, State};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use whole_programs::repetitions;

/// The kernel charges a process for its children, which `record` finds only after a while: not at all while it is stopped itself.
#[test]
fn children_that_are_too_short_are_said_to_be_missing() {
    let mut command = Command::new("sh");
    command.args(["-c", "while :; do head -c 1000000 /dev/zero | cksum > /dev/null; done"]);
    let (place, target) = (Place::new(), Target::start(command));
    let mut record = place.stackglass(["record", "--pid", &target.pid(), "-o", "r.glass"]);
    let mut record = record.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    place.await_file("r.glass");
    signal(&record, Signal::STOP);
    let used = || CpuUsage::read(target.0.id()).unwrap().ticks_of_children;
    // As long as nobody looked, and a third of a second.
    let least = used() * 2 + 33;
    wait_until("children to end", || used() >= least);
    signal(&record, Signal::INT);
    signal(&record, Signal::CONT);
    assert_eq!(end_of(&mut record), Some(0));
    let remarks = place.recording("r.glass").info.remarks.join(" ");
    assert!(remarks.contains("child processes that ended used "), "{remarks}");
}

#[test]
fn a_process_is_recorded_by_its_id() {
    let (place, target) = (Place::new(), Target::start_workload());
    let output = place.run(["record", "--pid", &target.pid(), "--duration", "700ms", "-o", "r.glass"]);
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(printed.contains("still running") && printed.contains("recorded to r.glass"), "{printed}");
    let recording = place.recording("r.glass");
    assert_eq!(recording.info.end, Some(End::Running));
    assert_eq!(recording.processes.len(), 1);
    assert_eq!(recording.processes[0].pid.to_string(), target.pid());
    let compute = |id| recording.symbols.frames_of(id).any(|frame| frame.func.ends_with("compute"));
    let mut awake = recording.samples.iter().filter(|sample| sample.state == State::Awake);
    assert!(awake.any(|sample| recording.stacks.walk(sample.stack).any(compute)));
    wait_until("the process to be let go", || target.is_untouched());
}

/// It has no tasks that could be seen from outside: its threads are counted instead.
#[test]
fn a_profile_by_wall_time_of_a_process_without_tasks_has_its_threads() {
    let mut command = Command::new("sleep");
    command.arg("60");
    let (place, target) = (Place::new(), Target::start(command));
    let output =
        place.run(["record", "--walltime", "--pid", &target.pid(), "--duration", "700ms", "-o", "r.glass"]);
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(printed.contains("wall-time profile") && printed.contains("this is a profile"), "{printed}");
    let recording = place.recording("r.glass");
    assert!(recording.samples.iter().all(|sample| sample.state == State::Task));
    let (time, wall) = (recording.samples.iter().map(|sample| sample.time.0).sum::<u64>(), 700_000_000);
    assert!((wall * 9 / 10..wall * 11 / 10).contains(&time), "{time}");
}

/// As a server whose first process only waits for its workers.
#[test]
fn children_are_recorded_or_said_to_be_left_out() {
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 60 & yes > /dev/null & wait"]);
    let (place, target) = (Place::new(), Target::start(command));
    let children = || stackglass_procfs::process::children(target.pid().parse().unwrap());
    let comm = |child: u32| fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
    let named = |name| children().into_iter().filter(|child| comm(*child).trim() == name).count();
    wait_until("two children", || named("sleep") == 1 && named("yes") == 1);
    let yes = children().into_iter().find(|child| comm(*child) == "yes\n").unwrap().to_string();
    let recorded = |flags: &[&str]| {
        let output = place.run([&["record", "--duration", "300ms", "-o", "r.glass"], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let recording = place.recording("r.glass");
        fs::remove_file(place.file("r.glass")).unwrap();
        recording
    };
    let pid = target.pid();
    let alone = recorded(&["--pid", &pid, "--no-children"]);
    let all = recorded(&["--pid", &pid]);
    let two = recorded(&["--pid", &format!("{pid},{yes}"), "--no-children"]);
    let peek = place.run(["peek", &pid, "--duration", "300ms"]);
    for child in children() {
        kill_process(Pid::from_raw(child as i32).unwrap(), Signal::KILL).unwrap();
    }
    let remarks = alone.info.remarks.join(" ");
    assert!(
        remarks.contains("2 child processes of the program are not in this recording (sleep, yes)"),
        "{remarks}"
    );
    // What is said of a sampler inside a program is not true of this one.
    let counters = &alone.processes[0].counters;
    let ways: Vec<&String> = counters.keys().filter(|label| label.starts_with("sampler: ")).collect();
    assert!(matches!(ways[..], [way] if way.contains("every thread, which stop none")), "{ways:?}");
    assert_eq!((alone.processes.len(), two.processes.len(), all.processes.len()), (1, 2, 3));
    for recording in [&two, &all] {
        let ran = |sample: &&stackglass_profile::Sample| {
            let thread = recording.thread(sample.thread).unwrap();
            sample.state == State::Awake
                && recording.processes[thread.process.0 as usize].pid.to_string() == yes
        };
        // Beside other tests, it has a part of a CPU only.
        assert!(recording.samples.iter().filter(ran).map(|sample| sample.hits).sum::<u32>() > 10);
    }
    assert!(!all.info.remarks.join(" ").contains("not in this recording"), "{:?}", all.info.remarks);
    let said = text(&peek.stderr);
    assert!(
        said.contains("1 child process ran meanwhile and is not shown: yes ") && said.contains(&yes),
        "{said}"
    );
}

#[test]
fn processes_are_recorded_by_name() {
    let place = Place::new();
    let program = place.file("worker-of-test");
    fs::copy("/bin/sleep", &program).unwrap();
    let targets = [(); 2].map(|()| {
        let mut command = Command::new(&program);
        command.arg("60");
        Target::start(command)
    });
    let output = place.run(["record", "--name", "worker-of-test", "--duration", "100ms", "-o", "r.glass"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let mut found: Vec<String> =
        place.recording("r.glass").processes.iter().map(|process| process.pid.to_string()).collect();
    let mut expected = targets.each_ref().map(Target::pid).to_vec();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    for (flag, value) in [("--name", "no-such-worker"), ("--cgroup", "no-such-group")] {
        let output = place.run(["record", flag, value, "--duration", "100ms", "-o", "r.glass"]);
        assert_eq!(output.status.code(), Some(125));
        assert!(text(&output.stderr).contains(value), "{}", text(&output.stderr));
    }
}

#[test]
fn a_key_ends_the_recording_and_not_the_process() {
    let (place, target) = (Place::new(), Target::start_workload());
    let mut child = place
        .stackglass(["record", "--pid", &target.pid(), "-o", "r.glass"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    place.await_file("r.glass");
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, Signal::INT);
    assert_eq!(end_of(&mut child), Some(0));
    assert!(!place.recording("r.glass").samples.is_empty());
    wait_until("the process to be let go", || target.is_untouched());
}

#[test]
fn a_peek_shows_threads_at_once_and_then_the_profile() {
    let (place, target) = (Place::new(), Target::start_workload());
    let start = Instant::now();
    let mut child =
        place.stackglass(["peek", &target.pid(), "--duration", "2s"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let head = lines.by_ref().find(|line| line.starts_with("cmd: ")).unwrap();
    assert!(head.contains(&format!(" {} running ", target.pid())), "{head}");
    let at_once = start.elapsed();
    let rest: Vec<String> = lines.collect();
    assert_eq!(end_of(&mut child), Some(0));
    assert!(at_once < start.elapsed() && start.elapsed() >= Duration::from_secs(2), "{at_once:?}");
    let rest = rest.join("\n");
    assert!(rest.contains("compute") && rest.contains("asleep in "), "{rest}");
    assert!(rest.contains("Profile collected. A report will print now."), "{rest}");
    assert!(rest.contains("Total snapshots: ") && rest.contains("Utilization: "), "{rest}");
    wait_until("the process to be let go", || target.is_untouched());
}

#[test]
fn whoever_kills_us_does_not_harm_the_process() {
    let (place, target) = (Place::new(), Target::start_workload());
    let mut random = 88172645463325252u64;
    for round in 0..repetitions(50) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut child = place
            .stackglass_without_perf([
                "peek",
                &target.pid(),
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
        while !target.is_untouched() {
            assert!(start.elapsed().as_secs() < 5, "round {round}: a thread stands or is traced");
        }
    }
    let threads = target.threads();
    let cpu =
        |tid: &String| fs::read_to_string(format!("/proc/{}/task/{tid}/schedstat", target.pid())).unwrap();
    let before: Vec<String> = threads.iter().map(cpu).collect();
    std::thread::sleep(Duration::from_millis(300));
    assert!(threads.iter().map(cpu).zip(before).any(|(now, before)| now != before), "nothing runs any more");
}

#[test]
fn a_process_that_is_killed_meanwhile_is_told() {
    let (place, mut target) = (Place::new(), Target::start_workload());
    let mut child = place
        .stackglass(["peek", &target.pid(), "--duration", "30s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("cmd: ")));
    target.0.kill().unwrap();
    let start = Instant::now();
    let printed: Vec<String> = lines.collect();
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(10));
    let line = text(&output.stderr);
    assert!(line.contains(&format!("stackglass: process {} ended after ", target.pid())), "{line}");
    assert_eq!(line.matches(" ended ").count(), 1, "{line}");
    assert!(printed.iter().any(|line| line.contains("Total snapshots: ")), "{printed:?}");
    assert_eq!(output.status.code(), Some(125));
}

#[test]
fn five_hundred_threads_take_no_longer() {
    let script = "import threading,time\n\
                  for i in range(500): threading.Thread(target=time.sleep,args=(120,),daemon=True).start()\n\
                  print(flush=True)\nwhile True: pass";
    let mut command = Command::new("python3");
    command.args(["-c", script]);
    let (place, target) = (Place::new(), Target::start(command));
    wait_until("all threads", || target.threads().len() == 501);
    let start = Instant::now();
    let output = place.run(["peek", &target.pid()]);
    let took = start.elapsed();
    let printed = text(&output.stdout);
    assert!(printed.contains(" of 501\n"), "{}", &printed[..printed.len().min(500)]);
    assert!(printed.contains("500 threads: ") && printed.contains("asleep in clock_nanosleep"));
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
    let target = Target::start(command);
    let map = format!("/tmp/perf-{}.map", target.pid());
    wait_until("the compiler", || fs::read_to_string(&map).is_ok_and(|text| text.contains("JS:*fib")));
    for driver in ["ptrace", "perf"] {
        let output =
            place.run(["peek", &target.pid(), "--duration", "500ms", "--driver", driver, "--cols", "400"]);
        let printed = text(&output.stdout);
        assert!(printed.contains("JS:fib") && printed.contains("Builtins_JSEntry"), "{driver}: {printed}");
        assert!(printed.contains("node::Start"), "{driver}: {printed}");
    }
    let _ = fs::remove_file(map);
}

#[test]
fn a_thread_is_taken_for_its_process() {
    let (place, target) = (Place::new(), Target::start_workload());
    wait_until("threads", || target.threads().len() > 1);
    let thread = target.threads().into_iter().find(|tid| *tid != target.pid()).unwrap();
    let output = place.run(["peek", &thread, "--duration", "50ms"]);
    assert!(
        text(&output.stdout).contains(&format!(" {} running ", target.pid())),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_stopped_peek_leaves_nothing_behind() {
    let (place, target) = (Place::new(), Target::start_workload());
    let mut child = place
        .stackglass(["peek", &target.pid(), "--duration", "30s"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("cmd: ")));
    // Ctrl-C: the report of the samples so far.
    kill_process(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
    assert!(lines.any(|line| line.contains("Total snapshots: ")));
    assert_eq!(end_of(&mut child), Some(0));
    wait_until("the process to be let go", || target.is_untouched());
}

#[test]
fn a_program_that_execs_has_the_stacks_of_before_under_the_name_of_before() {
    let place = Place::new();
    let go = place.path().join("go");
    let mut command = Command::new("sh");
    // It executes `sleep` while it is sampled, when the test asks for it.
    command.args(["-c", "while [ ! -e \"$0\" ]; do i=$((i+1)); done; exec sleep 60"]).arg(&go);
    let target = Target::start(command);
    let mut peek = place.stackglass(["peek", &target.pid(), "--duration", "4s"]);
    let mut peek = peek.stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = String::new();
    // The stacks come first, and the profile begins.
    for line in BufReader::new(peek.stdout.take().unwrap()).lines().map_while(Result::ok) {
        printed += &format!("{line}\n");
        if line.contains("Thread 1 (sh)") && !go.exists() {
            std::thread::sleep(Duration::from_millis(1500));
            fs::write(&go, "").unwrap();
        }
    }
    peek.wait().unwrap();
    let before = printed.find("Thread 1 (sh)").unwrap_or_else(|| panic!("{printed}"));
    assert!(printed.contains("(sleep"), "{printed}");
    let report = &printed[printed.find("Profile collected").unwrap()..];
    let of_sh = report.split("Thread ").find(|part| part.starts_with("1 (sh")).unwrap();
    assert!(of_sh.contains("Utilization: ") && !of_sh.contains("nanosleep"), "{before}: {report}");
    let of_sleep = report.split("Thread ").find(|part| part.starts_with("2 (sleep")).unwrap();
    assert!(!of_sleep.contains("evaltree") && !of_sleep.contains("dash+"), "{report}");
}

#[test]
fn an_exec_at_any_moment_leaves_nobody_standing() {
    let place = Place::new();
    for driver in ["perf", "ptrace"] {
        let rounds = repetitions(24);
        for round in 0..rounds {
            let mut command = Command::new("sh");
            // The shell sleeps and wakes before it executes another program, which ends by itself.
            let script = format!(
                "sleep 0.{}; exec sh -c 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'",
                100 + 72 * round / rounds
            );
            command.args(["-c", &script]).stdout(Stdio::null()).current_dir(place.path());
            let mut child = command.spawn().unwrap();
            let words = ["record", "-q", "--delay", "250us", "--driver", driver];
            let mut look = match driver {
                "ptrace" => place.stackglass_without_perf(words),
                _ => place.stackglass(words),
            };
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
