//! What the summary says of programs whose functions have no names, or whose work many callers share.

use crate::made_up::Maker;
use stackglass_profile::symbols::{Language, Missing, ModuleNote};
use stackglass_profile::{Cut, Recording, State, ThreadNumber};
use stackglass_report::Summary;

const START: &str = "c libc.so.6! __libc_start_main_impl > c app! main";
const THREAD: &str = "c libc.so.6! clone3 > c libc.so.6! start_thread";

fn screen(recording: &Recording, rows: Option<usize>) -> String {
    let mut out = Vec::new();
    Summary::new().rows(rows).write(recording, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn verdict(recording: &Recording) -> String {
    screen(recording, None).lines().last().unwrap_or_default().to_owned()
}

fn program(exe: &str) -> (Maker, ThreadNumber) {
    let mut maker = Maker::new(&[exe]);
    let process = maker.process(exe, &[exe]);
    let thread = maker.thread(process, "main");
    (maker, thread)
}

fn awake(maker: &mut Maker, thread: ThreadNumber, stack: &str, ms: u64) {
    let stack = maker.stack(stack);
    maker.sample(thread, stack, State::Awake, ms);
}

#[test]
fn a_small_screen_names_the_caller_of_a_function_without_a_name() {
    let (mut maker, thread) = program("app");
    let z = |start: &str| format!("c libz.so.1! libz.so.1+0x{start}");
    let deflate = format!("{START} > c app! serve > c app! compress > c libz.so.1! deflate > {}", z("57e0"));
    awake(&mut maker, thread, &deflate, 300);
    for part in ["4970", "6120", "7450"] {
        awake(&mut maker, thread, &format!("{deflate} > {}", z(part)), 100);
    }
    for level in 0..20 {
        awake(&mut maker, thread, &format!("{START} > c app! small_{level}"), 10);
    }
    let text = screen(&maker.recording, Some(14));
    let tree: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    assert!(tree.iter().any(|row| row.contains("deflate")), "{text}");
    assert!(tree.iter().any(|row| row.contains("+0x57e0")), "{text}");
}

#[test]
fn the_verdict_names_what_surrounds_functions_without_names() {
    let (mut maker, thread) = program("app");
    let step = |start: &str| format!("c app! app+0x{start}");
    let serve = format!("{START} > c app! serve");
    awake(&mut maker, thread, &format!("{serve} > {} > c libz.so.1! deflate", step("1000")), 480);
    awake(&mut maker, thread, &format!("{serve} > {} > {} > c app! send", step("1000"), step("1100")), 220);
    awake(&mut maker, thread, &format!("{serve} > {}", step("1000")), 60);
    awake(&mut maker, thread, &format!("{serve} > c app! accept"), 240);
    assert_eq!(
        verdict(&maker.recording),
        "100 % of CPU time is under serve: 48 % deflate, 24 % accept, 22 % send"
    );
    // Only the time that has names is an answer.
    awake(&mut maker, thread, &format!("{serve} > {} > {}", step("1000"), step("1200")), 2000);
    assert!(verdict(&maker.recording).contains("app+0x1"), "{}", verdict(&maker.recording));
}

#[test]
fn the_verdict_names_the_process_of_a_function_without_a_name() {
    let (mut maker, idle) = program("git");
    let packing = maker.process("/usr/lib/git-core/git", &["git", "pack-objects", "--keep-true-parents"]);
    let thread = maker.thread(packing, "git");
    awake(&mut maker, idle, &format!("{START} > c git! git+0x1000"), 40);
    awake(&mut maker, thread, &format!("{START} > c git! git+0x2000"), 960);
    assert_eq!(verdict(&maker.recording), "96 % of CPU time is in git+0x2000 itself, in git pack-objects");
}

#[test]
fn parts_without_names_are_those_below_them() {
    let (mut maker, thread) = program("nginx");
    let send = format!("{START} > c nginx! send");
    awake(&mut maker, thread, &format!("{send} > c nginx! nginx+0x1000 > c libz.so.1! deflate"), 600);
    awake(&mut maker, thread, &format!("{send} > c nginx! nginx+0x1000"), 40);
    awake(&mut maker, thread, &format!("{send} > c nginx! write"), 360);
    assert_eq!(verdict(&maker.recording), "100 % of CPU time is under send: 60 % deflate, 36 % write");
}

#[test]
fn time_without_names_is_a_part() {
    let (mut maker, thread) = program("rg");
    let search = format!("{THREAD} > c rg! rg+0x1000");
    awake(&mut maker, thread, &format!("{search} > c libc.so.6! read"), 450);
    awake(&mut maker, thread, &format!("{search} > c rg! rg+0x2000"), 400);
    awake(&mut maker, thread, &format!("{search} > c rg! rg+0x3000 > c libc.so.6! open"), 150);
    let expected = "CPU time splits: 45 % read, 40 % unnamed functions, 15 % open";
    assert_eq!(verdict(&maker.recording), expected);
}

#[test]
fn the_verdict_names_a_function_that_many_callers_share() {
    let (mut maker, thread) = program("app");
    for start in ["1000", "1200"] {
        awake(&mut maker, thread, &format!("{THREAD} > c app! app+0x{start} > c app! compare"), 400);
        awake(&mut maker, thread, &format!("{THREAD} > c app! app+0x{start} > c app! swap_{start}"), 100);
    }
    let shared = "80 % of CPU time is in compare itself, called from several places";
    assert_eq!(verdict(&maker.recording), shared);
    // It is in the table of functions, and says less than where the time splits by name.
    let (mut maker, thread) = program("app");
    for name in ["read", "write"] {
        awake(&mut maker, thread, &format!("{START} > c app! run > c app! {name} > c app! copy"), 400);
    }
    assert!(verdict(&maker.recording).contains("under run: 50 % read, 50 % write"));
}

#[test]
fn parts_that_fit_go_before_words_that_do_not() {
    let (mut maker, thread) = program("app");
    let run = format!("{START} > c app! Perl_runops_standard");
    awake(&mut maker, thread, &format!("{run} > c app! Perl_pp_multideref"), 400);
    awake(&mut maker, thread, &format!("{run} > c app! Perl_pp_split"), 600);
    let expected = "100 % under Perl_runops_standard: 60 % Perl_pp_split, 40 % Perl_pp_multideref";
    assert_eq!(verdict(&maker.recording), expected);
}

#[test]
fn code_without_names_is_that_of_the_runtime() {
    let (mut maker, thread) = program("/usr/bin/java");
    awake(&mut maker, thread, "c ! ?", 800);
    awake(&mut maker, thread, "c libjvm.so! Compile::Compile", 200);
    assert_eq!(
        verdict(&maker.recording),
        "80 % of CPU time is in or under code that java compiled: see the first line"
    );
}

#[test]
fn parts_of_code_without_names_are_the_runtimes() {
    let (mut maker, thread) = program("/usr/bin/java");
    awake(&mut maker, thread, "c ! ?", 540);
    awake(&mut maker, thread, "c libjvm.so! thread_native_entry > c libjvm.so! collect", 260);
    awake(&mut maker, thread, "c libjvm.so! thread_native_entry > c libjvm.so! compile", 200);
    assert_eq!(
        verdict(&maker.recording),
        "CPU time splits: 54 % code that java compiled, 46 % thread_native_entry"
    );
}

#[test]
fn starts_are_an_answer_where_little_has_a_name() {
    let (mut maker, thread) = program("stripped");
    let round = format!("{START} > c stripped! stripped+0x1250");
    awake(&mut maker, thread, &format!("{round} > c stripped! stripped+0x11b0"), 460);
    awake(&mut maker, thread, &format!("{round} > c stripped! stripped+0x11e0"), 330);
    awake(&mut maker, thread, &format!("{round} > c libc.so.6! qsort"), 210);
    let expected = "100 % under stripped+0x1250: 46 % stripped+0x11b0, 33 % stripped+0x11e0";
    assert_eq!(verdict(&maker.recording), expected);
}

#[test]
fn processes_of_one_program_have_a_table() {
    let (mut maker, thread) = program("git");
    for (word, ms) in [("repack", 300), ("pack-objects", 700)] {
        let process = maker.process("/usr/lib/git-core/git", &["git", word]);
        let thread = maker.thread(process, "git");
        for part in 0..20 {
            awake(&mut maker, thread, &format!("{START} > c git! part_{part} > c git! {word}"), ms / 20);
        }
    }
    awake(&mut maker, thread, &format!("{START} > c git! wait"), 1);
    let text = screen(&maker.recording, Some(14));
    assert!(text.lines().count() <= 14 && text.contains("git pack-objects"), "{text}");
}

#[test]
fn the_innermost_of_nearly_all_time_is_listed() {
    let (mut maker, thread) = program("python3");
    let run = format!("{START} > c app! Py_Main > c app! run_file");
    awake(&mut maker, thread, &format!("{START} > c app! Py_Main"), 20);
    awake(&mut maker, thread, &run, 12);
    awake(&mut maker, thread, &format!("{run} > c app! eval"), 570);
    awake(&mut maker, thread, &format!("{run} > c app! eval > c app! call"), 398);
    let text = screen(&maker.recording, None);
    let total = text.lines().find(|line| line.starts_with("in total")).unwrap_or_default();
    assert_eq!(total, "in total  97 % run_file → eval, 40 % call");
}

#[test]
fn a_stripped_library_lacks_only_the_names_that_it_lacks() {
    let (mut maker, thread) = program("app");
    let library = "/usr/lib/libblas.so.3";
    awake(&mut maker, thread, &format!("{START} > c {library}! dgemm_"), 900);
    let (missing, language) = (Missing::Names, Language::Unknown);
    maker.recording.symbols.note(ModuleNote { module: library.into(), missing, language });
    assert!(!screen(&maker.recording, None).contains("stripped"));
    awake(&mut maker, thread, &format!("{START} > c {library}! libblas.so.3+0x1200"), 100);
    let text = screen(&maker.recording, None);
    assert!(text.contains("note: 10 % of") && text.contains("libblas.so.3 is stripped"), "{text}");
}

#[test]
fn stacks_of_go_are_complete() {
    for (outermost, complete) in
        [("runtime.goexit.abi0", true), ("main.main.func1 /srv/main.go:40", true), ("main", false)]
    {
        let (mut maker, thread) = program("app");
        let stack = maker.stack(&format!("c app! {outermost} > c app! main.worker > c app! main.encode"));
        maker.cut_sample(thread, stack, State::Awake, 100, Some(Cut::NO_RULE));
        let text = screen(&maker.recording, None);
        assert_eq!(!text.contains("incomplete stacks"), complete, "{text}");
    }
}

#[test]
fn a_thread_pool_is_one_row_where_jobs_catch_panics() {
    let (mut maker, thread) = program("words");
    let catch = "std::panic::catch_unwind > std::panicking::catch_unwind > std::panicking::do_call > \
        core::panic::unwind_safe::call_once";
    let pool = format!(
        "{THREAD} > std::thread::lifecycle::{{closure}} > {catch} > rayon_core::registry::main_loop > \
         rayon_core::unwind::halt_unwinding > {catch} > rayon_core::job::{{closure}}"
    );
    awake(&mut maker, thread, &format!("{pool} > words::distance"), 600);
    awake(&mut maker, thread, &format!("{pool} > rayon_core::join::join_context > words::distance"), 400);
    let text = screen(&maker.recording, None);
    assert!(text.contains("frames of rayon and std") && !text.contains("join_context"), "{text}");
    assert!(verdict(&maker.recording).contains("in words::distance itself"), "{text}");
}
