//! For all ways to end a program, its samples are kept and its exit status is unchanged.
#![allow(unsafe_code, reason = "calls the C library")]

use crate::launcher::*;
use stackglass_wire::*;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

/// Time of a process in stacks that contain `work`.
fn work_time(process: &Process, symbols: &Symbols) -> u64 {
    process.threads(symbols).values().map(|t| t.time_in("work")).sum()
}

/// Asserts that the main thread's time is recorded from the start of the image to its last tick. Time whose stack has not
/// arrived may be missing: one tick, or more if the thread is ready to run but not running.
fn assert_recorded_to_the_end(process: &Process, symbols: &Symbols) {
    let lived = process.last_tick.saturating_sub(process.start);
    let missed = process.counter(Counter::MissedTicks) * 1_000_000;
    let on_its_way = process.counter(Counter::SignalsRunning) > process.counter(Counter::StacksRunning);
    let may_miss = missed + if on_its_way { 50_000_000 } else { 5_000_000 };
    let threads = process.threads(symbols);
    let told = threads.get(&1).map_or(0, |main| main.awake + main.asleep);
    assert!(told + may_miss > lived, "{lived} lived, {told} told, {may_miss} may be missing: {threads:#?}");
}

#[test]
fn every_way_to_end() {
    let program = compile("endings", &[]);
    let symbols = Symbols::from_program(&program);
    for (kind, status, signal) in [
        ("return", Some(0), None),
        ("_exit", Some(7), None),
        ("exit_group", Some(8), None),
        ("abort", None, Some(libc::SIGABRT)),
        ("segfault", None, Some(libc::SIGSEGV)),
        ("thread", Some(9), None),
    ] {
        let session = Session::new();
        let run = session.run(session.command(&program).arg(kind));
        assert_eq!((run.status.code(), run.status.signal()), (status, signal), "{kind}: {}", run.stderr);
        let process = &run.processes[0];
        assert!(!process.broken, "{kind}");
        let time = work_time(process, &symbols);
        assert!((250_000_000..700_000_000).contains(&time), "{kind}: {time}");
        assert_recorded_to_the_end(process, &symbols);
    }
}

#[test]
fn a_process_whose_first_thread_has_left_is_sampled_to_its_end() {
    let program = compile("endings", &[]);
    let symbols = Symbols::from_program(&program);
    for text_maps in [false, true] {
        let session = Session::new();
        let mut command = session.command(&program);
        command.args(["leader", "0.1"]).envs(text_maps.then_some(("STACKGLASS_TEST_MAPS", "text")));
        let run = session.run(&mut command);
        assert_eq!(run.status.code(), Some(9), "{}", run.stderr);
        let threads = run.processes[0].threads(&symbols);
        let alone = threads.values().find(|t| t.time_in("alone") > 0).expect("the thread that is left");
        let (work, sleep) = (alone.time_in("alone;alone_work;work"), alone.time_in("alone;alone_asleep"));
        assert!((250_000_000..600_000_000).contains(&work), "{work}: {threads:#?}");
        assert!((150_000_000..400_000_000).contains(&sleep), "{sleep}: {threads:#?}");
    }
}

#[test]
fn a_program_that_closes_every_descriptor_finds_none_of_ours() {
    let program = compile("endings", &[]);
    let session = Session::new();
    let run = session.run(session.command(&program).arg("closing"));
    assert_eq!(run.stdout.trim(), "3", "the lowest free descriptor");
    assert!(work_time(&run.processes[0], &Symbols::from_program(&program)) > 290_000_000);
}

#[test]
fn exec_under_fire() {
    let program = compile("endings", &[]);
    let session = Session::new();
    let run = session.run(session.command(&program).args(["again", "20"]));
    assert_eq!(run.status.code(), Some(6), "{}", run.stderr);
    assert_eq!((run.stdout.trim(), run.stderr.as_str()), ("done", ""));
    assert_eq!(run.processes.len(), 21);
    assert!(run.processes.iter().all(|p| !p.broken && p.pid == run.processes[0].pid));
}

/// CPU time of a process, ns. 0 if it is gone.
fn cpu_time(pid: u32) -> u64 {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: the C library writes to two live words.
    let is_known = unsafe {
        libc::clock_getcpuclockid(pid as i32, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    if is_known { time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 } else { 0 }
}

/// Kills the program at a different moment of its own time in each round; everything up to the last tick must be recorded.
fn killed_at_random(rounds: u32) {
    let program = compile("endings", &[]);
    let symbols = Symbols::from_program(&program);
    for round in 0..rounds {
        let session = Session::new();
        let at = (20_000 + (round as u64).wrapping_mul(7919) % 90_000) * 1000;
        let mut killed = false;
        let run = session.run_with(session.command(&program).args(["forever"]), |pid, _| {
            if !killed && cpu_time(pid) >= at {
                killed = true;
                // SAFETY: a child of this process, not yet reaped.
                unsafe { libc::kill(pid as i32, libc::SIGKILL) };
            }
        });
        assert_eq!(run.status.signal(), Some(libc::SIGKILL));
        assert!(!run.processes[0].broken);
        assert_recorded_to_the_end(&run.processes[0], &symbols);
    }
}

#[test]
fn killed_at_random_moments() {
    killed_at_random(8);
}

#[test]
#[ignore = "long: a hundred programs killed at random moments"]
fn killed_a_hundred_times() {
    killed_at_random(100);
}

#[test]
fn no_session_no_trace() {
    let program = compile("endings", &[]);
    let session = Session::new();
    // No folder, a page that is not ready, a meaningless variable.
    for folder in ["/nowhere/at/all", "/dev/null", "relative", "/"] {
        let run = session.run(session.command(&program).args(["_exit", "0.01"]).env(SESSION_ENV, folder));
        assert_eq!(run.status.code(), Some(7));
        assert_eq!((run.stderr.as_str(), run.processes.len()), ("", 0), "{folder}");
    }
    let mut command = session.command(&program);
    let run = session.run(command.args(["_exit", "0.01"]).env_remove(SESSION_ENV));
    assert_eq!((run.status.code(), run.stderr.as_str(), run.processes.len()), (Some(7), "", 0));
}

#[test]
fn a_session_that_cannot_be_written_to_costs_one_line() {
    let program = compile("endings", &[]);
    let session = Session::new();
    // A full disk: a separate file system, too small for a stream.
    let small = session.folder.join("small");
    std::fs::create_dir(&small).unwrap();
    let c_path = std::ffi::CString::new(small.to_str().unwrap()).unwrap();
    // SAFETY: strings that end with a zero byte.
    let mounted = unsafe {
        libc::mount(
            c"none".as_ptr(),
            c_path.as_ptr(),
            c"tmpfs".as_ptr(),
            0,
            c"size=64k,mode=700".as_ptr().cast(),
        ) == 0
    };
    if mounted {
        std::fs::copy(session.folder.join(SESSION_FILE), small.join(SESSION_FILE)).unwrap();
        let run = session.run(session.command(&program).args(["_exit", "0.05"]).env(SESSION_ENV, &small));
        let states: Vec<_> = std::fs::read_dir(&small).unwrap().flatten().map(|e| e.file_name()).collect();
        // SAFETY: as above.
        unsafe { libc::umount(c_path.as_ptr()) };
        assert_eq!(run.status.code(), Some(7), "{}", run.stderr);
        assert!(run.stderr.lines().count() <= 1, "{}", run.stderr);
        assert!(states.len() <= 2, "{states:?}");
    } else {
        // Without root: a folder that is not writable has the same effect.
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&session.folder, std::fs::Permissions::from_mode(0o500)).unwrap();
        let run = session.run(session.command(&program).args(["_exit", "0.05"]));
        std::fs::set_permissions(&session.folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(run.status.code(), Some(7));
        assert_eq!(run.stderr.lines().count(), 1);
        assert!(run.stderr.starts_with("stackglass: "), "{}", run.stderr);
    }
}

#[test]
fn a_limit_on_file_sizes_ends_nothing() {
    let program = compile("endings", &[]);
    let symbols = Symbols::from_program(&program);
    // Kilobytes: nothing fits; the control page fits; a small stream fits; all of it fits.
    for (limit, sampled) in [("0", false), ("16", false), ("512", true), ("8192", true)] {
        let session = Session::new();
        let mut shell = session.command(std::path::Path::new("/bin/bash"));
        // The shell is not tested: it sets the limit before the library is loaded.
        let script = format!(r#"ulimit -f {limit}; exec "$0" _exit 0.2"#);
        let library = shell.get_envs().find(|(name, _)| *name == "LD_PRELOAD").and_then(|(_, v)| v).unwrap();
        let script = format!(r#"export LD_PRELOAD="{}"; {script}"#, library.to_str().unwrap());
        let run = session.run(shell.env_remove("LD_PRELOAD").args(["-c", &script]).arg(&program));
        assert_eq!(run.status.code(), Some(7), "{limit}: {} {}", run.status, run.stderr);
        if sampled {
            assert_eq!(run.stderr, "", "{limit}");
            assert!(work_time(&run.processes[0], &symbols) > 150_000_000, "{limit}");
        } else {
            assert!(
                run.stderr.contains("runs unsampled") && run.stderr.contains("ulimit -f"),
                "{}",
                run.stderr
            );
            assert_eq!((run.stderr.lines().count(), run.processes.len()), (1, 0), "{limit}: {}", run.stderr);
        }
    }
}

#[test]
fn orders_are_obeyed_waiting_sampling_stopped() {
    let program = compile("endings", &[]);
    let session = Session::new();
    let page = session.page();
    page.state.store(SessionState::Waiting as u32, Relaxed);
    let run = session.run_with(session.command(&program).args(["_exit", "0.9"]), |_, since| {
        let state = match since.as_millis() {
            0..300 => SessionState::Waiting,
            300..600 => SessionState::Sampling,
            _ => SessionState::Stopped,
        };
        page.state.store(state as u32, Relaxed);
    });
    assert_eq!(run.status.code(), Some(7));
    let process = &run.processes[0];
    assert_eq!(process.state, ProcessState::Stopped);
    let time = work_time(process, &Symbols::from_program(&program));
    assert!((250_000_000..350_000_000).contains(&time), "{time}");
}

#[test]
#[ignore = "long: a launcher counts as gone after five seconds"]
fn a_launcher_that_is_gone_is_noticed() {
    let program = compile("endings", &[]);
    let session = Session::new();
    let run = session.run_with(session.command(&program).args(["_exit", "7"]), |_, since| {
        session.beating.store(since < Duration::from_secs(1), Relaxed);
    });
    assert_eq!(run.status.code(), Some(7));
    let process = &run.processes[0];
    assert_eq!(process.state, ProcessState::Stopped);
    let time = work_time(process, &Symbols::from_program(&program));
    assert!((5_500_000_000..6_600_000_000).contains(&time), "{time}");
}
