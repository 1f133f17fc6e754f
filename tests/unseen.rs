//! All that a program can read about itself is as it is alone: environment, signals, descriptors, mappings, threads,
//! limits, credentials. The same holds for its debugger.

use std::process::Command;
use whole_programs::{Compare, Language, host};

/// The size of its descriptor table is not compared. It depends on the descriptors of the parent, and a shell as launcher
/// (python3 may be a script) has one at 255.
fn visible() -> Compare {
    let program = Compare::new(host("visible", Language::C));
    program.each_line(|line| (!line.starts_with("FDSize:")).then(|| line.to_owned()))
}

#[test]
fn nothing_of_ours_is_in_the_program() {
    let equal = visible().variable("LD_BIND_NOW", "1").variable("MALLOC_ARENA_MAX", "1").times(3).is_equal();
    let printed = &equal.did.stdout;
    assert_eq!(printed.matches("11 threads, single-threaded 0").count(), 2, "{printed}");
    assert!(!printed.to_lowercase().contains("stackglass:"), "{printed}");
}

/// The command ignores SIGPIPE, like every Rust program, and needs SIGCHLD.
#[test]
fn ignored_signals_stay_ignored() {
    let most = "PIPE,CHLD,INT,QUIT,HUP,TERM,USR1,USR2,URG,WINCH,TTOU,ALRM,IO,XFSZ";
    for (signals, mask) in [("PIPE", 0x1000), ("CHLD", 0x1_0000), (most, 0)] {
        let ignore = format!("--ignore-signal={signals}");
        let equal = visible().before(&["env", &ignore]).is_equal();
        let masks: Vec<u64> = equal
            .did
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("SigIgn:\t"))
            .map(|mask| u64::from_str_radix(mask, 16).expect("a mask is a number"))
            .collect();
        assert!(masks.len() == 2 && masks.iter().all(|own| *own != 0 && own & mask == mask), "{masks:x?}");
    }
}

#[test]
fn blocked_signals_stay_blocked() {
    let script = "import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execvp(sys.argv[1], sys.argv[1:])";
    let equal = visible().before(&["python3", "-c", script]).is_equal();
    assert!(equal.did.stdout.contains("SigBlk:\tfffffffe7ffbfeff"), "{}", equal.did.stdout);
}

#[test]
fn limits_stay_as_low_as_they_are() {
    let script = "ulimit -S -n 64; ulimit -S -s 512; ulimit -S -l 64; exec \"$@\"";
    let equal = visible().before(&["sh", "-c", script, "sh"]).is_equal();
    assert!(equal.did.stdout.contains("limit 7: 40 "), "{}", equal.did.stdout);
}

#[test]
fn a_cleared_environment_stays_empty() {
    let program = host("visible", Language::C);
    let equal = Compare::new("env").args(["-i".as_ref(), program.as_os_str()]).is_equal();
    assert!(!equal.did.stdout.contains("variable "), "{}", equal.did.stdout);
}

/// The program inherits the descriptors of the command's parent; closed ones stay closed.
#[test]
fn descriptors_are_handed_on() {
    let script = "exec 7</dev/null 9>&1; exec \"$@\"";
    let equal = visible().before(&["bash", "-c", script, "sh"]).is_equal();
    assert!(equal.did.stdout.contains("fd 7 -> /dev/null\n"), "{}", equal.did.stdout);
    let script = "exec 0<&-; exec \"$@\"";
    let equal = visible().before(&["bash", "-c", script, "sh"]).is_equal();
    assert!(!equal.did.stdout.contains("fd 0 "), "{}", equal.did.stdout);
}

/// Priority, CPUs and umask: the program inherits them through the command.
#[test]
fn what_is_inherited_is_handed_on() {
    let before = ["sh", "-c", "umask 027; exec nice -n 5 taskset -c 0 \"$@\"", "sh"];
    let equal = visible().before(&before).is_equal();
    let printed = &equal.did.stdout;
    assert!(printed.contains("Umask:\t0027") && printed.contains("priority 5,"), "{printed}");
    assert!(printed.contains("1 processors"), "{printed}");
}

/// Only process ids differ between two runs.
fn without_numbers(line: &str) -> Option<String> {
    let numbers = |word: &str| match word.trim_matches(|c: char| !c.is_ascii_digit()) {
        digits if digits.len() >= 2 => word.replace(digits, "N"),
        _ => word.to_owned(),
    };
    Some(match line.contains("process") || line.contains("Thread") || line.contains("LWP") {
        true => line.split(' ').map(numbers).collect::<Vec<_>>().join(" "),
        false => line.to_owned(),
    })
}

/// The output of the program goes elsewhere: two processes write to one file in any order.
#[test]
fn a_debugger_shows_the_program_alone() {
    let script = "gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'break nothing' -ex 'run > printed' -ex bt \
        -ex 'thread apply all -q print 1' -ex 'info signals SIGURG' -ex 'info sharedlibrary' -ex continue \
        --args \"$@\"; echo $?; cat printed";
    let gdb = Compare::new("sh").args(["-c", script, "sh"]).args([host("single", Language::C)]);
    let equal = gdb.each_line(without_numbers).is_equal();
    let printed = &equal.did.stdout;
    assert!(
        printed.contains("with a thread 0") && printed.contains("hit Breakpoint 1, nothing"),
        "{printed}"
    );
    assert!(!printed.contains("libstackglass"), "{printed}");
}

/// A tracer stops the program at each system call. The program's reads of the clock may vary.
#[test]
fn a_tracer_sees_the_programs_own_calls() {
    let script = "strace -f -qq -c -U name,calls -S name -o calls \"$@\"; cat calls";
    let equal = Compare::new("sh")
        .args(["-c", script, "sh"])
        .args([host("borrowed", Language::C).as_os_str(), "exec".as_ref()])
        .each_line(|line| {
            let varies = line.starts_with("clock_gettime") || line.starts_with("total");
            (!varies).then(|| line.to_owned())
        })
        .is_equal();
    assert!(equal.did.stdout.contains("execve"), "{}", equal.did.stdout);
}

/// A program that signals its process group also signals the command, which passes signals on.
#[test]
fn a_signal_to_the_own_process_group_comes_once() {
    let script = "trap 'echo term' TERM; trap 'echo int' INT; trap 'echo hup' HUP; trap 'echo usr1' USR1
        for signal in TERM INT HUP USR1; do kill -$signal 0; sleep 0.3; done; echo done";
    let sh = Compare::new("sh").args(["-c", script]).before(&["setsid", "-w"]);
    sh.is_equal().did("term\nint\nhup\nusr1\ndone\n", 0);
}

/// Entries without a sign or a name, equal names, and the order of all: nothing changes but the variables of Stackglass.
#[test]
fn an_odd_environment_stays_as_it_is() {
    let program = host("environment", Language::C);
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let seen = |door: &[&str]| {
        let mut command = Command::new(&program);
        if !door.is_empty() {
            command.arg(whole_programs::stackglass()).args(door).arg("--");
        }
        let output = command.arg(&program).current_dir(&folder).output().expect("it starts");
        assert!(output.status.success(), "{door:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let plain = seen(&[]);
    assert!(plain.starts_with(b"[Z=1]\n[A=1]\n[A=2]\n[no sign]\n"));
    let doors: [&[&str]; 6] = [
        &["run"],
        &["run", "--allocs"],
        &["record"],
        &["record", "--allocs"],
        &["record", "--sampler", "preload"],
        &["record", "--walltime"],
    ];
    for door in doors {
        assert_eq!(String::from_utf8_lossy(&seen(door)), String::from_utf8_lossy(&plain), "{door:?}");
    }
}
