//! Processes, threads, namespaces and filters: a recorded program can do all that it can do alone, and ends as it does
//! alone. Each program runs alone and recorded with the shortest delay; output and exit status must be equal.

use std::ops::Range;
use whole_programs::{Compare, Language, host};

fn compare(name: &str, how: &str) -> Compare {
    Compare::new(host(name, Language::C)).args([how])
}

/// Time of a function that works for 300 ms by its own CPU clock, ns.
const OF_300_MS: Range<u64> = 270_000_000..331_000_000;

/// CPU time of a function in the recording, ms.
fn millis(equal: &whole_programs::Equal, program: &str, function: &str) -> u64 {
    equal.seen(program).functions.get(function).copied().unwrap_or(0) / 1_000_000
}

macro_rules! leaving {
    ($($name:ident: $how:literal => $printed:literal, $code:literal;)*) => { $(
        #[test]
        fn $name() {
            let equal = compare("leaving", $how).times(3).is_equal();
            equal.did($printed, $code);
            if !$how.starts_with("alone") {
                equal.seen("leaving").has_time("last_work", OF_300_MS);
            }
        }
    )* }
}

leaving! {
    the_only_thread_leaves_by_pthread_exit: "alone" => "", 0;
    the_only_thread_leaves_by_raw_exit: "alone-raw" => "", 6;
    the_last_thread_returns_after_the_first_left: "first" => "the first thread is Z\n", 0;
    the_last_thread_leaves_by_raw_exit: "first-raw" => "the first thread is Z\n", 7;
    the_last_thread_ends_the_process: "first-group" => "the first thread is Z\n", 8;
    the_first_thread_left_by_raw_exit: "bare" => "the first thread is Z\n", 0;
    all_threads_left_by_raw_exit: "bare-raw" => "the first thread is Z\n", 7;
    a_child_whose_first_thread_left: "child" => "the first thread is Z\nchild 0\n", 0;
    a_child_whose_threads_left_by_raw_exit: "child-raw" => "the first thread is Z\nchild 7\n", 0;
}

#[test]
fn forked_children_of_a_single_threaded_program_use_the_loader() {
    let equal = compare("loading", "1000").is_equal();
    equal.did("1000 of 1000 well, 0 hung\n", 0);
    let millis = millis(&equal, "loading", "between_forks");
    assert!(millis >= 100, "it is seen: {millis} ms");
}

#[test]
fn a_new_user_namespace() {
    let equal = compare("kernel", "newuser").is_equal();
    assert!(millis(&equal, "kernel", "work_in_namespace") >= 15, "what follows is seen");
}

#[test]
fn namespaces_that_only_single_threaded_programs_may_enter() {
    compare("kernel", "setns").is_equal();
}

#[test]
fn a_limit_on_locked_memory_has_room_for_the_program_alone() {
    compare("kernel", "mlockall").is_equal().did(
        "mlockall: granted\nanother 1 MiB: granted\nanother 8 MiB: Resource temporarily unavailable\n",
        0,
    );
}

#[test]
fn a_filter_for_all_threads() {
    compare("kernel", "tsync").times(3).is_equal().did("a filter for all threads: 0\n", 0);
}

#[test]
fn a_thread_in_strict_mode() {
    let equal = compare("kernel", "strict").times(5).is_equal();
    equal.did("strict thread lives\n", 0);
    assert!(equal.seen("kernel").functions.contains_key("strict"), "it is seen");
}

#[test]
fn a_thread_behind_a_filter_that_kills() {
    let equal = compare("kernel", "filter").times(3).is_equal();
    equal.did("filtered thread lives\n", 0);
    assert!(millis(&equal, "kernel", "work_under_filter") >= 170, "it is seen");
}

#[test]
fn a_namespace_of_processes_made_by_the_program() {
    let equal = compare("kernel", "newpid").is_equal();
    equal.seen("kernel").has_time("work_in_namespace", OF_300_MS);
}

/// The recorded program is `unshare`, and `sh` inside has process id 1.
#[test]
fn a_namespace_of_processes_made_by_unshare() {
    let script = "echo $$ $PPID; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sh -c 'exit 5'; exit $?";
    let unshare = ["-Urpf", "--mount-proc", "sh", "-c", script];
    let equal = Compare::new("unshare").args(unshare).is_equal();
    equal.did("1 0\n", 5);
    let shell = std::fs::canonicalize("/bin/sh").expect("there is a shell");
    let shell = shell.file_name().expect("a program has a name").to_string_lossy().into_owned();
    assert!(equal.seen(&shell).hits > 100, "it is seen: {:#?}", equal.seen(&shell));
}

#[test]
fn fibres_on_stacks_of_one_page() {
    let equal = Compare::new(host("fibres", Language::C)).times(3).is_equal();
    equal.did("6400 switches\n", 0);
    equal.seen("fibres").has_share("small_fibre_work", 0.8, 1.0);
}

#[test]
fn children_by_vfork_that_reset_signals() {
    let equal = compare("borrowed", "exec").times(3).is_equal();
    equal.did("21 children ended well, 0 exit handlers ran, handled 1\n", 0);
    equal.seen("borrowed").has_time("work_after_vfork", OF_300_MS);
}

#[test]
fn a_child_by_vfork_that_runs_the_exit_handlers() {
    let equal = compare("borrowed", "exit").times(3).is_equal();
    equal.did("22 children ended well, 1 exit handlers ran, handled 1\n", 0);
    equal.seen("borrowed").has_time("work_after_vfork", OF_300_MS);
}

/// malloc and stdio use no locks as long as there was never a second thread.
#[test]
fn the_c_library_knows_that_there_is_one_thread() {
    let equal = Compare::new(host("single", Language::C)).is_equal();
    equal.did("at start 1\nafter work 1\nin a child 1\nwith a thread 0\n", 0);
    equal.seen("single").has_share("allocate_and_print", 0.8, 1.0);
}
