//! Programs that fork, clone and exec: every child runs as it does alone, and is recorded.
#![allow(unsafe_code, reason = "calls the C library")]

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use whole_programs::{Language, Record, host, workloads};

#[test]
fn children_by_fork_clone_and_vfork_live_on() {
    let outcome = Record::new(host("processes", Language::C)).run();
    outcome.program_did("forked 21 cloned 22 vforked 0\n", 0);
    let seen = outcome.seen("processes");
    seen.is_true(300);
    let millis = |function: &str| seen.functions.get(function).copied().unwrap_or(0) / 1_000_000;
    seen.has_time("parent_work", 390_000_000..431_000_000);
    seen.has_time("forked_work", 270_000_000..321_000_000);
    // The C library does not know children of the bare system call. They are not touched.
    assert!(millis("cloned_work") <= 320, "{seen:#?}");
}

#[test]
fn only_the_program_itself_without_children() {
    let outcome = Record::new(host("processes", Language::C)).flag("--no-children").run();
    outcome.program_did("forked 21 cloned 22 vforked 0\n", 0);
    let seen = outcome.seen("processes");
    assert_eq!(seen.processes, 1);
    assert!(
        seen.functions.contains_key("parent_work") && !seen.functions.contains_key("forked_work"),
        "{seen:#?}"
    );
}

#[test]
fn a_child_that_outlives_its_parent_lives_on() {
    let record = Record::new(host("processes", Language::C));
    let file = record.folder().join("orphan.txt");
    let outcome = record.args(["orphan".as_ref(), file.as_os_str()]).run();
    outcome.program_did("parent leaves\n", 0);
    outcome.recording();
    // The child has its time from nobody: on a busy machine it takes a while.
    for _ in 0..6000 {
        if std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(std::fs::read_to_string(&file).ok().as_deref(), Some("well\n"));
}

#[test]
fn execs_under_fire() {
    let outcome = Record::new(host("processes", Language::C)).args(["generations", "30"]).run();
    outcome.program_did("last generation\n", 17);
    let seen = outcome.seen("processes");
    assert_eq!(seen.processes, 31, "{seen:#?}");
    seen.is_true(300).has_share("generation_work", 0.7, 1.0);
}

#[test]
fn many_forks() {
    let outcome = Record::new(workloads()).args(["forks", "--work", "100"]).run();
    assert!(outcome.stdout.contains("\"ended_well\": 100"), "{}", outcome.stdout);
    assert_eq!(outcome.code(), 0);
    let seen = outcome.seen("workloads");
    // A child lives for four milliseconds: with other load, it may end before its sampler runs.
    assert!((85..=101).contains(&seen.processes), "{seen:#?}");
}

#[test]
fn many_programs() {
    let outcome = Record::new(workloads()).args(["execs", "--work", "40"]).run();
    assert!(outcome.stdout.contains("\"ended_well\": 40"), "{}", outcome.stdout);
    assert_eq!(outcome.code(), 0);
    let seen = outcome.seen("workloads");
    // Some are recorded before they exec.
    assert_eq!(seen.processes - seen.forked, 41, "{seen:#?}");
    assert!(seen.hits >= 50 && seen.whole as f64 > 0.98 * seen.hits as f64, "{seen:#?}");
}

#[test]
fn what_a_shell_starts_is_the_real_work() {
    let script = format!("{} chain --work 1500 > /dev/null; exit 23", workloads().display());
    let outcome = Record::new("sh").args(["-c", &script]).run();
    outcome.program_did("", 23);
    outcome.seen("workloads").is_true(150).has_share("chain_root", 0.9, 1.0);
}

/// Many servers start children like this, as another user.
#[test]
fn children_that_become_another_user_run_as_they_do_alone() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("only root can become another user: nothing is tested");
        return;
    }
    // A folder from which user `nobody` can start it.
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("other_user");
    std::fs::copy(host("other_user", Language::C), &program).unwrap();
    // For any umask.
    let before = ["sh", "-c", "umask 077; exec \"$@\"", "sh"];
    let outcome = Record::new(&program).args([&program]).before(&before).run();
    outcome.program_did("child 33\n", 0);
    assert!(!outcome.stderr.contains("preload"), "the loader is content: {}", outcome.stderr);
    let seen = outcome.seen("other_user");
    let millis = seen.functions.get("master_work").copied().unwrap_or(0) / 1_000_000;
    assert!((270..=320).contains(&millis), "{seen:#?}");
}

/// Rights belong to threads. The C library ends a program in which the answers of threads differ.
#[test]
fn a_thread_that_changes_its_own_rights_is_the_only_one() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("only root can become another user: nothing is tested");
        return;
    }
    let program = host("own_rights", Language::C);
    for how in ["keep", "bits", "bare", "bare-capset"] {
        let alone =
            std::process::Command::new(&program).arg(how).output().expect("the program can be started");
        let printed = String::from_utf8_lossy(&alone.stdout).into_owned();
        assert!(alone.status.success() && printed.starts_with(how), "{alone:?}");
        for flag in ["--sampler=preload", "--walltime", "--allocs"] {
            let outcome = Record::new(&program).args([how]).flag(flag).run();
            outcome.program_did(&printed, 0);
            // Only the sampler inside ends, and says so.
            if flag == "--sampler=preload" {
                let remarks = outcome.recording().info.remarks.join(" ");
                assert!(remarks.contains("has changed the rights of one of its threads"), "{how}: {remarks}");
            }
        }
    }
}
