//! The rows: programs that use signals, processes and threads in many ways.

use crate::normal::{regrtest, sanitizer, shell, valgrind};

/// A script with third-party tools.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub info: &'static str,
    /// A shell condition, and the Debian package to install if it does not hold.
    pub needs: &'static [(&'static str, &'static str)],
    /// Files copied to its folder.
    pub files: &'static [(&'static str, &'static str)],
    /// A bash script that runs once in that folder, not recorded.
    pub prepare: &'static str,
    /// The bash script that runs alone and recorded.
    pub script: &'static str,
    /// Rewrites each line before the comparison.
    pub normal: fn(&str) -> Option<String>,
    /// Longest time of a run in seconds.
    pub patience: u64,
    /// Skipped with `--quick`.
    pub long: bool,
}

const ROW: Row = Row {
    name: "",
    info: "",
    needs: &[],
    files: &[],
    prepare: "",
    script: "",
    normal: shell,
    patience: 120,
    long: false,
};

const BUGS: &str = include_str!("scripts/bugs.c");
const GCC: &[(&str, &str)] = &[("command -v gcc", "gcc")];
const VALGRIND: &[(&str, &str)] = &[("command -v gcc", "gcc"), ("command -v valgrind", "valgrind")];

/// A sanitizer: a program without errors, and the error that it finds.
const fn sanitized(
    name: &'static str,
    info: &'static str,
    prepare: &'static str,
    script: &'static str,
) -> Row {
    Row { name, info, needs: GCC, files: &[("bugs.c", BUGS)], prepare, script, normal: sanitizer, ..ROW }
}

/// One of CPython's test files.
const fn python(name: &'static str, script: &'static str) -> Row {
    const NEEDS: &[(&str, &str)] = &[("python3 -c 'import test.test_signal'", "libpython3-testsuite")];
    let info = "CPython's own tests of this name";
    Row { name, info, needs: NEEDS, script, normal: regrtest, patience: 900, long: true, ..ROW }
}

/// All rows.
pub const ROWS: &[Row] = &[
    Row {
        name: "timeout",
        info: "200 commands under a time limit, and some that reach it",
        script: include_str!("scripts/timeout.sh"),
        ..ROW
    },
    Row {
        name: "make",
        info: "make -j4 of a small project, twice",
        needs: &[("command -v gcc", "gcc"), ("command -v make", "make")],
        files: &[("Makefile", include_str!("scripts/Makefile"))],
        prepare: "for i in $(seq 24); do echo \"int f$i(int x) { return x * $i; }\" > f$i.c; done
            (seq -f 'int f%g(int);' 24; echo '#include <stdio.h>'; echo 'int main(void) { int x = 1;'
             seq -f 'x += f%g(x) %% 97;' 24; echo 'printf(\"%d\\n\", x); return x & 63; }') > main.c",
        script: "make -j4 -s && ./program; echo $?; make -j4 -s; make -s -j4 -k broken; echo $?; make -s clean; ls",
        ..ROW
    },
    Row {
        name: "shell: traps and waits",
        info: "bash: traps, waits that a signal breaks, job control, coprocesses, pipes",
        script: include_str!("scripts/traps.sh"),
        ..ROW
    },
    Row {
        name: "shell: 400 processes",
        info: "sh and bash start many short programs in pipes and substitutions",
        script: include_str!("scripts/processes.sh"),
        ..ROW
    },
    Row {
        name: "coreutils",
        info: "sort, split, dd, tail, tee, nohup, stdbuf, xargs and others",
        script: include_str!("scripts/coreutils.sh"),
        ..ROW
    },
    Row {
        name: "git",
        info: "init, commit, merge, rebase, gc, fsck, clone",
        needs: &[("command -v git", "git")],
        script: include_str!("scripts/git.sh"),
        ..ROW
    },
    Row {
        name: "perl",
        info: "signals, alarms, forks and pipes",
        needs: &[("command -v perl", "perl")],
        files: &[("signals.pl", include_str!("scripts/signals.pl"))],
        script: "perl signals.pl",
        ..ROW
    },
    Row {
        name: "node",
        info: "child processes, workers, signals and timers",
        needs: &[("command -v node", "nodejs")],
        files: &[("processes.js", include_str!("scripts/processes.js"))],
        script: "node processes.js",
        ..ROW
    },
    sanitized(
        "address sanitizer, shared",
        "gcc's default: its library must be the first one",
        "gcc -g -O1 -fsanitize=address -pthread bugs.c -o bugs",
        "./bugs; echo $?; ./bugs overflow; echo $?; ./bugs leak; echo $?; ./bugs fork; echo $?",
    ),
    sanitized(
        "address sanitizer, static",
        "linked into the program",
        "gcc -g -O1 -fsanitize=address -static-libasan -pthread bugs.c -o bugs",
        "./bugs; echo $?; ./bugs overflow; echo $?; ./bugs leak; echo $?; ./bugs fork; echo $?",
    ),
    sanitized(
        "leak sanitizer",
        "stops all threads by ptrace at the end",
        "gcc -g -O1 -fsanitize=leak -pthread bugs.c -o bugs",
        "./bugs; echo $?; ./bugs leak; echo $?; ./bugs fork; echo $?",
    ),
    sanitized(
        "thread sanitizer",
        "its shadow takes most of the address space",
        "gcc -g -O1 -fsanitize=thread -pthread bugs.c -o bugs",
        "./bugs; echo $?; ./bugs race 2>&1 | grep -c 'data race'; ./bugs fork; echo $?",
    ),
    sanitized(
        "undefined behaviour sanitizer",
        "a library and messages",
        "gcc -g -O1 -fsanitize=undefined -pthread bugs.c -o bugs",
        "./bugs; echo $?; ./bugs overflow-int; echo $?; ./bugs fork; echo $?",
    ),
    Row {
        name: "valgrind: memcheck",
        info: "a program in valgrind, with and without mistakes",
        needs: VALGRIND,
        files: &[("bugs.c", BUGS)],
        prepare: "gcc -g -O1 -pthread bugs.c -o bugs",
        script: "for how in well leak overflow fork; do
            valgrind -q --tool=memcheck --leak-check=full --error-exitcode=9 ./bugs $how; echo $?; done",
        normal: valgrind,
        ..ROW
    },
    Row {
        name: "valgrind: callgrind",
        info: "valgrind's own profiler",
        needs: VALGRIND,
        files: &[("bugs.c", BUGS)],
        prepare: "gcc -g -O1 -pthread bugs.c -o bugs",
        script: "valgrind --tool=callgrind --callgrind-out-file=counts ./bugs; echo $?; grep -c ^fn= counts",
        normal: valgrind,
        ..ROW
    },
    python("test_signal", "python3 -m test -v test_signal 2>&1"),
    python("test_subprocess", "python3 -m test -v test_subprocess 2>&1"),
    python("test_threading", "python3 -m test -v test_threading test_thread test_faulthandler 2>&1"),
    python(
        "test_wait",
        "python3 -m test -v test_wait3 test_wait4 test_fork1 test_popen test_pty test_posix 2>&1",
    ),
    python(
        "test_selectors",
        "python3 -m test -v test_eintr test_select test_poll test_epoll test_selectors 2>&1",
    ),
    python("test_multiprocessing", "python3 -m test -v test_multiprocessing_fork 2>&1"),
];
