//! What the summary must say, whatever the recording looks like: one test for each promise.

use crate::made_up::Maker;
use stackglass_profile::symbols::{Language, Missing, ModuleNote};
use stackglass_profile::{End, Nanos, Recording, State, TASK_SNAPSHOTS, ThreadNumber};
use stackglass_report::call_tree::StateFilter;
use stackglass_report::{BUFFER_FULL, HotKey, HotTable, Report, Summary};

const CPP: &str =
    "c libc.so.6! __libc_start_main_impl > c libc.so.6! __libc_start_call_main > c app! main m.cc:9";

fn screen(recording: &Recording, cols: usize) -> String {
    let mut out = Vec::new();
    Summary::new().cols(cols).write(recording, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn line<'t>(text: &'t str, start: &str) -> &'t str {
    text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start} in\n{text}"))
}

/// One process with one thread.
fn program(command: &[&str]) -> (Maker, ThreadNumber) {
    let mut maker = Maker::new(command);
    let process = maker.process(command[0], command);
    let thread = maker.thread(process, "main");
    (maker, thread)
}

fn awake(maker: &mut Maker, thread: ThreadNumber, stack: &str, ms: u64) {
    let stack = maker.stack(stack);
    maker.sample(thread, stack, State::Awake, ms);
}

/// All notes, without line breaks.
fn notes(text: &str) -> String {
    let start = text.find("note:").unwrap_or(text.len());
    let end = text[start..].find("\n\n").map_or(text.len(), |end| start + end);
    text[start..end].split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_hottest_in_total_are_listed() {
    let (mut maker, thread) = program(&["app"]);
    let throw = format!("{CPP} > c app! thrower::go m.cc:4");
    let unwind = "c libstdc++.so.6! __cxa_throw > c libgcc_s.so.1! _Unwind_RaiseException";
    awake(&mut maker, thread, &format!("{throw} > {unwind}"), 690);
    let personality = "c libstdc++.so.6! __gxx_personality_v0";
    awake(&mut maker, thread, &format!("{throw} > {unwind} > {personality}"), 130);
    awake(&mut maker, thread, &throw, 29);
    awake(&mut maker, thread, "c ! ? > c app! main m.cc:9 > c app! thrower::go m.cc:4", 1);
    awake(&mut maker, thread, &format!("{CPP} > c app! count m.cc:7"), 150);
    let text = screen(&maker.recording, 120);
    let total = line(&text, "in total");
    assert_eq!(total, "in total  85 % thrower::go, 82 % __cxa_throw, 15 % count, 13 % __gxx_personality_v0");
}

#[test]
fn one_entry_says_what_callers_and_callee_have_in_common() {
    let (mut maker, thread) = program(&["app"]);
    awake(
        &mut maker,
        thread,
        &format!("{CPP} > c app! big > c app! mid > c app! leaf > c libm.so.6! sin"),
        590,
    );
    awake(&mut maker, thread, &format!("{CPP} > c app! other"), 410);
    assert_eq!(
        line(&screen(&maker.recording, 80), "in total"),
        "in total  59 % big → mid → leaf, 41 % other"
    );
    assert_eq!(line(&screen(&maker.recording, 40), "in total"), "in total  59 % leaf, 41 % other");
}

#[test]
fn functions_that_call_each_other_in_turn_stay_listed() {
    let (mut maker, thread) = program(&["app"]);
    let stack = format!("{CPP} > c app! even > c app! odd > c app! even > c app! odd");
    awake(&mut maker, thread, &stack, 900);
    awake(&mut maker, thread, &format!("{CPP} > c app! other"), 100);
    for everything in [false, true] {
        let mut out = Vec::new();
        Summary::new().everything(everything).write(&maker.recording, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let total = line(&text, "in total");
        assert!(total.contains("90 %") && total.contains("odd") && total.contains("even"), "{total}");
    }
}

#[test]
fn what_the_kernel_counted_and_nobody_saw_has_its_share() {
    let (mut maker, thread) = program(&["app"]);
    awake(&mut maker, thread, &format!("{CPP} > c app! work"), 50);
    maker.recording.info.kernel_cpu = Some(Nanos(200_000_000));
    // The recorder is no process of the program.
    maker.recording.info.own_cpu = Nanos(150_000_000);
    let text = screen(&maker.recording, 80);
    assert!(line(&text, "app").contains("50.0 of 200 ms CPU sampled"), "{text}");
    let unseen = text.lines().find(|line| line.ends_with("[unaccounted]")).unwrap();
    assert_eq!(unseen.split_whitespace().next(), Some("75.0"), "{unseen}");
    assert!(line(&text, "own time").starts_with("own time  25 % work"), "{text}");
    let notes = notes(&text);
    assert!(
        notes.contains("counted 200 ms of CPU time") && notes.contains("50.0 ms were sampled"),
        "{notes}"
    );
    assert!(notes.contains("static, musl") && notes.contains("change of user"), "{notes}");
    // All of it within what starting and ending takes.
    maker.recording.info.kernel_cpu = Some(Nanos(59_000_000));
    let text = screen(&maker.recording, 80);
    assert!(text.contains("50.0 ms CPU (") && !text.contains("sampled"), "{text}");
}

#[test]
fn a_program_that_cannot_be_sampled_has_its_time() {
    let mut recording = Maker::new(&["static"]).recording;
    recording.info.kernel_cpu = Some(Nanos(400_000_000));
    let text = screen(&recording, 80);
    assert!(line(&text, "static").contains("0 of 400 ms CPU sampled"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("100.0") && line.ends_with("[unaccounted]")), "{text}");
    assert!(
        notes(&text).contains("nothing was sampled; where it was used is not known: possible are programs"),
        "{text}"
    );
}

#[test]
fn a_full_buffer_is_the_only_reason_given() {
    let (mut maker, thread) = program(&["app"]);
    awake(&mut maker, thread, &format!("{CPP} > c app! work"), 50);
    maker.recording.info.kernel_cpu = Some(Nanos(200_000_000));
    maker.recording.info.full = true;
    let text = screen(&maker.recording, 80);
    assert!(text.contains("50.0 of 200 ms CPU sampled") && text.contains("[unaccounted]"), "{text}");
    assert!(
        notes(&text).contains("the buffer was full") && !notes(&text).contains("the rest is in"),
        "{text}"
    );
    // The full report says so as well.
    let warnings = |recording: &Recording| Report::new().write(recording, &mut Vec::new()).unwrap().warnings;
    assert_eq!(warnings(&maker.recording).last().map(String::as_str), Some(BUFFER_FULL));
    maker.recording.info.full = false;
    assert!(!warnings(&maker.recording).iter().any(|warning| warning == BUFFER_FULL));
}

#[test]
fn the_state_goes_before_the_command() {
    let long = "a-server-with-a-long-name";
    let (mut maker, thread) = program(&[long, "--listen", "127.0.0.1:8080"]);
    awake(&mut maker, thread, &format!("{CPP} > c app! work"), 50);
    maker.recording.info.end = Some(End::Running);
    for cols in [60, 80, 120] {
        let text = screen(&maker.recording, cols);
        let first = line(&text, "a-server");
        assert!(first.ends_with("still running"), "{first}");
    }
}

#[test]
fn no_processor_time_no_processes() {
    let (mut maker, thread) = program(&["app"]);
    maker.process("app", &["app"]);
    let wait = maker.stack(&format!("{CPP} > c libc.so.6! nanosleep"));
    maker.sample(thread, wait, State::Asleep, 1000);
    let text = screen(&maker.recording, 80);
    assert!(text.contains("No CPU time was sampled") && !text.contains("process\n"), "{text}");
    assert!(!text.contains("together"), "{text}");
}

#[test]
fn wall_time_profiles_without_task_snapshots_explain_no_cpu_time() {
    let (mut maker, _) = program(&["app"]);
    maker.recording.info.kernel_cpu = Some(Nanos(200_000_000));
    maker.recording.processes[0].counters.insert(TASK_SNAPSHOTS.into(), 0);
    let text = screen(&maker.recording, 80);
    assert!(text.contains("No task was seen.") && text.contains("wall-time profile"), "{text}");
    assert!(text.contains("\n0 samples of tasks\n") && !text.contains("CPU"), "{text}");
}

#[test]
fn installed_programs_have_packages() {
    for (path, package) in [("/usr/bin/tool", true), ("/home/me/tool", false)] {
        for missing in [Missing::Names, Missing::DebugInfo] {
            let (mut maker, thread) = program(&[path]);
            let work = if missing == Missing::Names { "tool+0x1200" } else { "work" };
            awake(&mut maker, thread, &format!("c {path}! {work}"), 50);
            maker.recording.symbols.note(ModuleNote {
                module: path.into(),
                missing,
                language: Language::Rust,
            });
            let notes = notes(&screen(&maker.recording, 80));
            assert_eq!(notes.contains("-dbgsym"), package, "{notes}");
            assert_eq!(notes.contains("line-tables-only"), !package, "{notes}");
        }
    }
}

/// Functions without symbols, called after their starts.
const STRIPPED: &str = "c libc.so.6! __libc_start_main > c app! main";

#[test]
fn functions_called_after_their_starts_are_functions() {
    let (mut maker, thread) = program(&["app"]);
    let alpha = "c app! app+0x1190";
    awake(&mut maker, thread, &format!("{STRIPPED} > c app! app+0x1230 > {alpha}"), 300);
    awake(&mut maker, thread, &format!("{STRIPPED} > c app! app+0x1250 > {alpha}"), 200);
    let walk = "c app! app+0x1280";
    awake(&mut maker, thread, &format!("{STRIPPED} > {walk} > {walk} > {walk} > c app! app+0x1200"), 500);
    let text = screen(&maker.recording, 80);
    assert_eq!(line(&text, "own time"), "own time  50 % app+0x1190, 50 % app+0x1200", "{text}");
    let tree: Vec<String> = text
        .lines()
        .skip_while(|line| !line.starts_with("    %"))
        .skip(1)
        .map(|line| line.split_whitespace().filter(|word| *word != "├" && *word != "└" && *word != "│"))
        .map(|words| words.collect::<Vec<_>>().join(" "))
        .take_while(|line| !line.is_empty())
        .collect();
    let expected = [
        "100.0 1000 1000 main app",
        "50.0 500 500 app+0x1280 ↻",
        "50.0 500 500 500 app+0x1200",
        "30.0 300 300 app+0x1230",
        "30.0 300 300 300 app+0x1190",
        "20.0 200 200 app+0x1250",
        "20.0 200 200 200 app+0x1190",
    ];
    assert_eq!(tree, expected, "{text}");
}

#[test]
fn code_that_may_be_any_function_is_not_recursive() {
    let (mut maker, thread) = program(&["app"]);
    let (nameless, callback) = ("c libasm.so! ?", "c app! callback");
    // A run of it is one line; what it calls stays where it was called.
    let stack =
        format!("{CPP} > {nameless} > {nameless} > {callback} > {nameless} > {nameless} > c app! leaf");
    awake(&mut maker, thread, &stack, 600);
    awake(&mut maker, thread, &format!("{CPP} > {nameless} > c app! other"), 400);
    let text = screen(&maker.recording, 80);
    let shown = |name: &str| {
        let tree = text.lines().skip_while(|line| !line.contains("own ms"));
        tree.take_while(|line| !line.is_empty()).filter(|line| line.contains(name)).count()
    };
    assert_eq!((shown("[libasm.so]"), shown("↻")), (2, 0), "{text}");
    let at = |name: &str| text.find(name).unwrap_or_else(|| panic!("no {name} in\n{text}"));
    let tree = &text[at("    %")..at("own time")];
    assert!(tree.find("leaf") > tree.find("callback"), "{text}");
    assert!(tree.lines().any(|line| line.starts_with(" 40.0") && line.contains("└ other")), "{text}");
}

#[test]
fn advice_fits_the_runtime() {
    let note = |exe: &str, library: &str| {
        let mut maker = Maker::new(&["app"]);
        let process = maker.process(exe, &["app"]);
        let thread = maker.thread(process, "main");
        let stack = maker.stack("c ! ?");
        maker.cut_sample(thread, stack, State::Awake, 100, Some(stackglass_profile::Cut(2)));
        awake(&mut maker, thread, &format!("{CPP} > c {library}! work"), 10);
        // Names of some functions do not make stacks complete.
        let unnamed = screen(&maker.recording, 80);
        let stack = maker.stack("c ! interpreted");
        maker.cut_sample(thread, stack, State::Awake, 100, Some(stackglass_profile::Cut(2)));
        let named = screen(&maker.recording, 80);
        assert!(!named.starts_with("To see"), "{named}");
        assert!(unnamed.matches("-XX:+PreserveFramePointer").count() < 2, "said once:\n{unnamed}");
        (unnamed, notes(&named))
    };
    let (hint, node) = note("/usr/bin/node", "libc.so.6");
    assert!(hint.starts_with("To see JavaScript functions, run node with --perf-basic-prof\n"), "{hint}");
    assert!(
        node.contains(
            "generates, without unwind tables: callers are found by frame pointers; to have all, run node"
        ),
        "{node}"
    );
    // The first line says it.
    assert!(!notes(&hint).contains("generates") && !hint.contains("incomplete stacks"), "{hint}");
    assert!(!node.contains("-XX"), "{node}");
    for (hint, java) in [note("/usr/lib/jvm/bin/java", "libc.so.6"), note("/srv/launcher", "/x/libjvm.so")] {
        assert!(hint.starts_with("To see Java methods"), "{hint}");
        assert!(java.contains("-XX:+PreserveFramePointer") && !java.contains("perf-basic"), "{java}");
    }
    for (hint, other) in [note("/srv/server", "libc.so.6"), note("/usr/bin/nodeless", "libssl.so.3")] {
        assert!(!hint.contains("To see"), "{hint}");
        assert!(other.contains("generated at run time, or in a library loaded just before"), "{other}");
        assert!(!other.contains("JIT") && !other.contains("node"), "{other}");
    }
}

/// The start of a worker thread of an executor, with frames of it.
const TOKIO: &str = "c libc.so.6! clone3 > c libc.so.6! start_thread > std::sys::thread::unix::Thread::new::thread_start > \
    tokio::runtime::blocking::pool::Inner::run > std::thread::local::LocalKey::with > \
    tokio::runtime::scheduler::multi_thread::worker::run";

/// The names in the tree, with the percentages before them.
fn tree(text: &str) -> Vec<String> {
    let rows = text.lines().skip_while(|line| !line.contains("own ms")).skip(1);
    rows.take_while(|line| !line.is_empty())
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let name = words.iter().skip(1).filter(|word| {
                !word.chars().all(|c| c.is_ascii_digit() || c == '.') && !["│", "├", "└"].contains(word)
            });
            format!("{} {}", words[0], name.copied().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

#[test]
fn executors_are_one_row_until_the_programs_code_begins() {
    let (mut maker, thread) = program(&["shop"]);
    let poll = "tokio::runtime::task::core::Core::poll > core::future::future::Future::poll";
    awake(&mut maker, thread, &format!("{TOKIO} > {poll} > shop::price shop.rs:3"), 600);
    awake(&mut maker, thread, &format!("{TOKIO} > {poll} > tokio::runtime::x > shop::serve shop.rs:9"), 300);
    awake(&mut maker, thread, &format!("{TOKIO} > tokio::runtime::park::park > c libc.so.6! epoll_wait"), 60);
    awake(&mut maker, thread, &format!("{TOKIO} > tokio::runtime::steal"), 40);
    let text = screen(&maker.recording, 80);
    assert!(text.contains("⋯ 7 to 9 frames of tokio and std"), "{text}");
    // What the executor does itself has its function.
    let rows = tree(&text);
    assert_eq!(
        rows[1..],
        [
            "60.0 shop::price shop.rs:3",
            "30.0 shop::serve shop.rs:9",
            "6.0 epoll_wait libc.so.6",
            "4.0 tokio::runtime::steal",
        ]
    );
    assert!(line(&text, "in total").starts_with("in total  60 % shop::price, 30 % shop::serve"), "{text}");
    assert!(line(&text, "own time").contains("4.0 % steal"), "{text}");
    let mut out = Vec::new();
    Summary::new().everything(true).write(&maker.recording, &mut out).unwrap();
    let all = String::from_utf8(out).unwrap();
    assert!(all.contains("pool::Inner::run") && !all.contains("frames of tokio"), "{all}");
}

fn verdict(recording: &Recording, cols: usize) -> String {
    screen(recording, cols).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn the_verdict_names_where_the_time_splits() {
    let (mut maker, thread) = program(&["app"]);
    let run = format!("{CPP} > c app! run > c app! step");
    awake(&mut maker, thread, &format!("{run} > c app! parse"), 500);
    awake(&mut maker, thread, &format!("{run} > c app! print"), 400);
    awake(&mut maker, thread, &format!("{CPP} > c app! other"), 100);
    assert_eq!(verdict(&maker.recording, 80), "90 % of CPU time is under step: 50 % parse, 40 % print");
    assert_eq!(verdict(&maker.recording, 50), "90 % under step: 50 % parse, 40 % print");
    assert_eq!(verdict(&maker.recording, 40), "90 % under step: 50 % parse, 40 % print");
}

#[test]
fn main_is_no_verdict() {
    let (mut maker, thread) = program(&["app"]);
    awake(&mut maker, thread, &format!("{CPP} > c app! parse"), 550);
    awake(&mut maker, thread, &format!("{CPP} > c app! print"), 450);
    assert_eq!(verdict(&maker.recording, 80), "CPU time splits under main: 55 % parse, 45 % print");
    let (mut maker, thread) = program(&["app"]);
    awake(&mut maker, thread, &format!("{CPP} > c app! only > c app! chain"), 990);
    awake(&mut maker, thread, CPP, 10);
    assert_eq!(verdict(&maker.recording, 80), "99 % of CPU time is in chain itself, called from only");
    let (mut maker, thread) = program(&["app"]);
    awake(&mut maker, thread, CPP, 100);
    assert_eq!(verdict(&maker.recording, 80), "100 % of CPU time is in main itself");
    let (mut maker, thread) = program(&["app"]);
    let threads = "c libc.so.6! clone3 > c libc.so.6! start_thread";
    for name in ["a", "b", "c"] {
        awake(&mut maker, thread, &format!("{threads} > c app! {name}"), 50);
    }
    let none = "no function has half of CPU time: 33 % a, 33 % b, 33 % c";
    assert_eq!(verdict(&maker.recording, 80), none);
}

#[test]
fn the_verdict_names_the_caller_of_a_library() {
    let (mut maker, thread) = program(&["app"]);
    let library = "/root/.cargo/registry/src/index/json-1.0/src/de.rs";
    let start = "c libc.so.6! __libc_start_main_impl > demo::main main.rs:3";
    let read = format!("{start} > demo::load main.rs:9 > json::de::from_str {library}:5");
    awake(&mut maker, thread, &format!("{read} > json::de::number {library}:70"), 450);
    awake(&mut maker, thread, &format!("{read} > json::de::text {library}:90"), 450);
    awake(&mut maker, thread, start, 100);
    assert_eq!(
        verdict(&maker.recording, 110),
        "90 % of CPU time is under json::de::from_str, called from demo::load: 45 % number, 45 % text"
    );
}

#[test]
fn a_small_screen_keeps_the_heaviest_and_folds_what_only_passes_time_on() {
    let (mut maker, thread) = program(&["app"]);
    let chain: Vec<String> = (0..20).map(|level| format!("c app! pass_{level}")).collect();
    let chain = format!("{CPP} > {}", chain.join(" > "));
    for (leaf, ms) in [("heavy", 500), ("half", 250), ("quarter", 125)] {
        awake(&mut maker, thread, &format!("{chain} > c app! {leaf}"), ms);
    }
    for leaf in 0..25 {
        awake(&mut maker, thread, &format!("{chain} > c app! small_{leaf}"), 5);
    }
    let mut out = Vec::new();
    Summary::new().rows(Some(20)).write(&maker.recording, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.lines().count() <= 20, "{text}");
    let rows = tree(&text);
    let has = |row: &str| rows.iter().any(|shown| shown == row);
    assert!(has("50.0 heavy") && has("25.0 half") && has("12.5 quarter"), "{text}");
    assert!(rows.iter().any(|row| row.starts_with("100.0 ⋯ pass_19")), "{text}");
    assert!(text.contains("lines of up to 0.5 % hidden, "), "{text}");
}

#[test]
fn the_first_line_says_what_shows_python_functions() {
    let first = |exe: &str, shares: [u64; 2]| {
        let mut maker = Maker::new(&["app"]);
        let process = maker.process(exe, &["app"]);
        let interpreter = maker.thread(process, "main");
        let process = maker.process("/usr/bin/sort", &["sort"]);
        let other = maker.thread(process, "main");
        let path = format!(
            "c {exe}! _PyEval_EvalFrameDefault > c {exe}! {}+0x1200",
            exe.rsplit('/').next().unwrap()
        );
        awake(&mut maker, interpreter, &format!("{CPP} > {path}"), shares[0]);
        awake(&mut maker, other, &format!("{CPP} > c sort! compare"), shares[1]);
        for missing in [Missing::Names, Missing::DebugInfo] {
            let note = ModuleNote { module: exe.into(), missing, language: Language::C };
            maker.recording.symbols.note(note);
        }
        let text = screen(&maker.recording, 80);
        let hinted = text.starts_with("To see");
        assert_eq!(hinted, !notes(&text).contains("stripped"), "one of them:\n{text}");
        text.lines().next().unwrap_or_default().to_owned()
    };
    let new = "To see Python functions, set PYTHONPERFSUPPORT=1 in its environment.";
    for exe in ["/usr/bin/python3.12", "/srv/python3", "/usr/bin/python3.13"] {
        assert_eq!(first(exe, [500, 500]), new, "{exe}");
    }
    assert!(first("/usr/bin/python3.11", [100, 0]).contains("use Python 3.12 or later"));
    assert!(!first("/usr/bin/python3.12", [50, 950]).contains("To see"), "little of the time");
    assert!(!first("/usr/bin/pythonic", [500, 500]).contains("To see"));
}

#[test]
fn the_loop_of_the_interpreter_does_not_hide_python_functions() {
    let (mut maker, thread) = program(&["python3.12"]);
    let python = |name: &str| {
        format!(
            "c python3.12! py_trampoline_evaluator > c ! py::{name}:/srv/app.py > c python3.12! _PyEval_EvalFrameDefault"
        )
    };
    let outer = format!("{CPP} > {} > {}", python("<module>"), python("outer"));
    awake(&mut maker, thread, &format!("{outer} > {}", python("inner")), 600);
    awake(&mut maker, thread, &format!("{outer} > {} > c python3.12! list_sort", python("sorter")), 400);
    let text = screen(&maker.recording, 80);
    assert!(!text.contains("_PyEval") && !text.contains("trampoline"), "{text}");
    assert!(line(&text, "own time").contains("60 % py::inner"), "{text}");
    let at = |name: &str| text.find(name).unwrap_or_else(|| panic!("no {name} in\n{text}"));
    assert!(at("py::outer") < at("py::inner") && at("py::sorter") < at("list_sort"), "{text}");
    assert!(text.contains("under py::outer"), "the verdict:\n{text}");
}

#[test]
fn samples_without_times_are_counted() {
    let mut maker = Maker::new(&[]);
    let process = maker.process("", &[]);
    let thread = maker.thread(process, "");
    for (stack, hits) in [("main > run > parse", 2000), ("main > run > print", 900), ("main", 30)] {
        let stack = maker.stack(stack);
        maker.sample(thread, stack, State::Awake, 0);
        let last = maker.recording.samples.last_mut().unwrap();
        (last.hits, last.time) = (hits, Nanos(0));
    }
    (maker.recording.info.delay, maker.recording.info.wall) = (Nanos(0), Nanos(0));
    let mut out = Vec::new();
    Summary::new().rows(Some(24)).file("old.folded").write(&maker.recording, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("    %      own  samples  function"), "{text}");
    assert!(text.contains("\n100.0       30     2930  main"), "main is no start of Rust here:\n{text}");
    assert!(text.contains("old.folded  2930 samples in 1 thread, without times\n"), "{text}");
    assert!(text.ends_with("68 % of all samples are in parse itself, called from run\n"), "{text}");
    assert!(![" ms", "CPU", "wall"].iter().any(|word| text.contains(word)), "{text}");
}

/// Containers of C++ are inlined into the code that uses them; their headers are not the reader's.
#[test]
fn lines_of_other_languages_are_those_of_ones_own_code() {
    let (mut maker, thread) = program(&["app"]);
    let header = "c app! std::__cxx11::basic_string::compare /usr/include/c++/12/bits/basic_string.h:3142";
    awake(&mut maker, thread, &format!("{CPP} > c app! count /home/me/words.cc:7 > {header}"), 80);
    awake(&mut maker, thread, &format!("{CPP} > c app! words /home/me/words.cc:6"), 20);
    let text = screen(&maker.recording, 80);
    assert!(line(&text, "lines").contains("80 % me/words.cc:7, 20 % me/words.cc:6"), "{text}");
    for (start, own, library) in [
        (
            CPP,
            "c app! read /home/me/read.cc:7",
            "c app! nlohmann::basic_json::parse /usr/include/nlohmann/json.hpp:603",
        ),
        (
            "c app! runtime.goexit /opt/go/src/runtime/asm_amd64.s:1594 > c app! runtime.main /opt/go/src/runtime/proc.go:250",
            "c app! main.read /home/me/read.go:7",
            "c app! encoding/json.Unmarshal /opt/go/src/encoding/json/decode.go:108 > \
             c app! runtime.mallocgc /opt/go/src/runtime/malloc.go:842",
        ),
        (
            "c app! main.main /home/me/read.go:3",
            "c app! main.read /home/me/read.go:7",
            "c app! github.com/a/b.F /root/go/pkg/mod/github.com/a/b@v1.2.0/f.go:2",
        ),
        (
            "c app! start.callMain /opt/zig/lib/std/start.zig:700",
            "c app! main.read /home/me/read.zig:7",
            "c app! mem.sort /opt/zig/lib/std/mem.zig:671",
        ),
    ] {
        let (mut maker, thread) = program(&["app"]);
        awake(&mut maker, thread, &format!("{start} > {own} > {library}"), 100);
        let text = screen(&maker.recording, 80);
        assert!(line(&text, "lines").contains("100 % me/read"), "{text}");
        let lines = HotTable::new(maker.recording, HotKey::Line, StateFilter::Awake);
        assert!(lines.rows[0].name.starts_with("/home/me/read"), "{}", lines.rows[0].name);
        assert_eq!(lines.rows[0].own, lines.total);
    }
    // On a narrow screen, names are whole.
    let narrow = screen(&maker.recording, 40);
    assert!(
        narrow.lines().any(|line| line.starts_with(" 80.0  80.0  ") && line.contains("count")),
        "{narrow}"
    );
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
}
