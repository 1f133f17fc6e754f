//! Attaching that is refused, with the reason in one line, or that has to wait for another tracer.

use crate::support::target::Target;
use crate::support::{Place, stackglass, text, wait_until};
use std::fs;
use std::process::{Command, Stdio};

/// The line on stderr of a command that must fail.
fn refusal(output: &std::process::Output) -> String {
    assert_eq!(output.status.code(), Some(125), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    let line = text(&output.stderr);
    assert_eq!(line.lines().count(), 1, "{line}");
    line
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
    for arguments in
        [&["record", "--pid", "1", "--", "true"][..], &["record", "--pid", "1", "--name", "init"]]
    {
        assert_eq!(place.run(arguments).status.code(), Some(2));
    }
}

#[test]
fn a_process_that_is_traced_names_its_tracer() {
    let mut command = Command::new("sh");
    command.args(["-c", "while :; do :; done"]);
    let (place, target) = (Place::new(), Target::start(command));
    let pid = target.pid();
    let mut first = place
        .stackglass_without_perf(["record", "-q", "--pid", &pid, "--driver", "ptrace"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the first one", || target.status(&pid, "TracerPid") != "0");
    let line =
        refusal(&place.stackglass_without_perf(["peek", &pid, "--driver", "ptrace"]).output().unwrap());
    assert!(line.contains(&format!("is traced by stackglass (pid {})", first.id())), "{line}");
    // Perf events work beside a tracer, if they are allowed.
    let output = place.run(["peek", &pid, "--duration", "300ms", "--driver", "perf"]);
    match output.status.code() {
        Some(0) => assert!(text(&output.stdout).contains("Total snapshots: ")),
        _ => {
            assert!(text(&output.stderr).contains("perf events are refused here"), "{}", text(&output.stderr))
        }
    }
    first.kill().unwrap();
    first.wait().unwrap();
    wait_until("the process to be let go", || target.is_untouched());
}

#[test]
fn another_users_process_names_its_owner() {
    if !rustix::process::geteuid().is_root() {
        let place = Place::new();
        return assert!(refusal(&place.run(["peek", "1"])).contains("belongs to root"));
    }
    let (place, target) = (Place::new(), Target::start_workload());
    // A copy in a public folder, executable by all.
    let copy = place.file("stackglass");
    fs::copy(stackglass(), &copy).unwrap();
    fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let as_nobody = |pid: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy);
        command.args(["peek", pid, "--duration", "50ms"]).output().unwrap()
    };
    assert!(refusal(&as_nobody(&target.pid())).contains("belongs to root (user id 0): use sudo"));
    // A process of the same user needs only the permission of Yama.
    let mut own = Command::new("setpriv");
    own.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sleep", "120"]);
    let own = Target::start(own);
    wait_until("sleep", || own.status(&own.pid(), "Name") == "sleep");
    let output = as_nobody(&own.pid());
    let yama =
        fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.trim() != "0");
    assert_eq!(output.status.code(), Some(if yama { 125 } else { 0 }), "{}", text(&output.stderr));
    assert!(yama || text(&output.stdout).contains("asleep in clock_nanosleep"));
}

#[test]
fn a_closed_stdout_is_a_failure() {
    let (place, target) = (Place::new(), Target::start_workload());
    let mut closed = Command::new("sh");
    closed.args(["-c", "exec \"$0\" peek \"$1\" --duration 50ms >&-"]).arg(stackglass()).arg(target.pid());
    let failed = closed.current_dir(place.path()).output().unwrap();
    assert_eq!(failed.status.code(), Some(125), "{}", text(&failed.stderr));
    assert_eq!(text(&failed.stderr), "stackglass: stdout is closed: the peek cannot be printed\n");
    let null = place.stackglass(["peek", &target.pid(), "--duration", "50ms"]).stdout(Stdio::null()).status();
    assert_eq!(null.unwrap().code(), Some(0));
}

#[test]
fn who_comes_while_another_traces_waits() {
    let (place, target) = (Place::new(), Target::start_workload());
    let start = || {
        let mut command = place.stackglass_without_perf(["peek", "--driver", "ptrace", "--duration", "2s"]);
        command.arg(target.pid()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let first = start();
    wait_until("the first to trace", || !target.is_untouched());
    let later = start().wait_with_output().unwrap();
    assert!(later.status.success(), "{}", text(&later.stderr));
    assert!(text(&later.stderr).contains("your peek follows"), "{}", text(&later.stderr));
    assert!(text(&later.stdout).contains("In short, of each thread's time"), "{}", text(&later.stdout));
    assert!(first.wait_with_output().unwrap().status.success());
}

#[test]
fn two_who_trace_take_turns() {
    let (place, target) = (Place::new(), Target::start_workload());
    let start = || {
        let mut command =
            place.stackglass_without_perf(["peek", "--driver", "ptrace", "--duration", "400ms"]);
        command.arg(target.pid()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let ended: Vec<_> =
        [start(), start()].into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    for output in &ended {
        let (report, message) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{message}");
        // Time without sampling must not appear as sleep: the workload has threads that never sleep.
        assert!(report.contains("In short, of each thread's time"), "{report}");
    }
    let waited = ended.iter().filter(|output| text(&output.stderr).contains("your peek follows")).count();
    assert_eq!(waited, 1, "{ended:?}");
    assert!(target.is_untouched());
}
