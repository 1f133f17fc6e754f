//! What the summary must say, whatever the recording looks like: one test for each promise.

mod made_up;

use made_up::Maker;
use stackglass_profile::symbols::{Missing, ModuleNote};
use stackglass_profile::{End, Nanos, Recording, State, ThreadNumber};
use stackglass_report::Summary;

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
    text[start..].split_whitespace().collect::<Vec<_>>().join(" ")
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
    maker.recording.info.kernel_cpu = Some(Nanos(220_000_000));
    maker.recording.info.own_cpu = Nanos(20_000_000);
    let text = screen(&maker.recording, 80);
    assert!(text.lines().next().unwrap().contains("50.0 of 200 ms CPU sampled"), "{text}");
    let unseen = text.lines().find(|line| line.ends_with("[unaccounted]")).unwrap();
    assert_eq!(unseen.split_whitespace().next(), Some("75.0"), "{unseen}");
    assert!(line(&text, "own time").starts_with("own time  25 % work"), "{text}");
    let notes = notes(&text);
    assert!(
        notes.contains("counted 200 ms of CPU time") && notes.contains("50.0 ms were sampled"),
        "{notes}"
    );
    assert!(notes.contains("static, musl") && notes.contains("change of user"), "{notes}");
    // All of it within what starting and ending takes, or accounted for by sampling itself.
    for (kernel, own) in [(59, 0), (70, 20)] {
        maker.recording.info.kernel_cpu = Some(Nanos(kernel * 1_000_000));
        maker.recording.info.own_cpu = Nanos(own * 1_000_000);
        let text = screen(&maker.recording, 80);
        assert!(text.contains("50.0 ms CPU (") && !text.contains("sampled"), "{text}");
    }
}

#[test]
fn a_program_that_cannot_be_sampled_has_its_time() {
    let mut recording = Maker::new(&["static"]).recording;
    recording.info.kernel_cpu = Some(Nanos(400_000_000));
    let text = screen(&recording, 80);
    assert!(text.lines().next().unwrap().contains("0 of 400 ms CPU sampled"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("100.0") && line.ends_with("[unaccounted]")), "{text}");
    assert!(notes(&text).contains("nothing was sampled: it is in programs"), "{text}");
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
}

#[test]
fn the_state_goes_before_the_command() {
    let long = "a-server-with-a-long-name";
    let (mut maker, thread) = program(&[long, "--listen", "127.0.0.1:8080"]);
    awake(&mut maker, thread, &format!("{CPP} > c app! work"), 50);
    maker.recording.info.end = Some(End::Running);
    for cols in [60, 80, 120] {
        let text = screen(&maker.recording, cols);
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("a-server") && first.ends_with("still running"), "{first}");
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
fn installed_programs_have_packages() {
    for (path, package) in [("/usr/bin/tool", true), ("/home/me/tool", false)] {
        for missing in [Missing::Names, Missing::DebugInfo] {
            let (mut maker, thread) = program(&[path]);
            awake(&mut maker, thread, &format!("c {path}! work"), 50);
            maker.recording.symbols.note(ModuleNote { module: path.into(), missing });
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
        text.lines().skip_while(|line| !line.contains("own ms")).filter(|l| l.contains(name)).count()
    };
    assert_eq!((shown("[libasm.so]"), shown("↻")), (2, 0), "{text}");
    let at = |name: &str| text.find(name).unwrap_or_else(|| panic!("no {name} in\n{text}"));
    let tree = &text[at("    %")..];
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
        notes(&screen(&maker.recording, 80))
    };
    let node = note("/usr/bin/node", "libc.so.6");
    assert!(node.contains("such as node generates at run time (--interpreted-frames-native-stack"), "{node}");
    assert!(node.contains("--perf-basic-prof") && !node.contains("-XX"), "{node}");
    for java in [note("/usr/lib/jvm/bin/java", "libc.so.6"), note("/srv/launcher", "/x/libjvm.so")] {
        assert!(java.contains("-XX:+PreserveFramePointer") && !java.contains("perf-basic"), "{java}");
    }
    for other in [note("/srv/server", "libc.so.6"), note("/usr/bin/nodeless", "libssl.so.3")] {
        assert!(other.contains("generated at run time, or in a library loaded just before"), "{other}");
        assert!(!other.contains("JIT") && !other.contains("node"), "{other}");
    }
}
