//! Peeks at a process that asks for nothing but `install()`: what it says on standard error, when, and what it does not
//! disturb. Each scenario runs in a child process of this test program.

use stackglass_collect::peeks::request::{PeekOptions, PeekRequest, ResponseEnd};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CHILD: &str = "STACKGLASS_TEST_PEEK_CHILD";

#[inline(never)]
fn spin_for_ever() {
    loop {
        std::hint::black_box(0);
    }
}

#[inline(never)]
fn spin(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::black_box(0);
    }
}

/// True in the child, which then plays the scenario of this name.
fn is_child(name: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|wanted| wanted == name)
}

/// This test program again, as the scenario's child; it is waited for until it says that it is ready.
struct Peeked {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
}

impl Peeked {
    fn start(name: &str) -> Peeked {
        Peeked::start_command(Command::new(std::env::current_exe().unwrap()), name)
    }

    fn start_command(mut command: Command, name: &str) -> Peeked {
        let command = command.args(["--exact", name, "--nocapture"]).env(CHILD, name).env("COLUMNS", "100");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let mut peeked = Peeked { child, errors };
        peeked.until("ready");
        peeked
    }

    fn signal(&self) {
        let sent = Command::new("kill").args(["-USR1", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// What it says up to the line that holds `text`.
    fn until(&mut self, text: &str) -> String {
        let mut all = String::new();
        loop {
            let before = all.len();
            assert_ne!(self.errors.read_line(&mut all).unwrap(), 0, "ended before {text:?}:\n{all}");
            if all[before..].contains(text) {
                return all;
            }
        }
    }

    fn end(mut self) -> String {
        let mut rest = String::new();
        let _ = self.child.kill();
        let _ = self.errors.read_to_string(&mut rest);
        let _ = self.child.wait();
        rest
    }
}

impl Drop for Peeked {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn stacks_come_at_once_and_a_report_although_the_program_never_yields() {
    const NAME: &str = "stacks_come_at_once_and_a_report_although_the_program_never_yields";
    if is_child(NAME) {
        stackglass::peek::install().unwrap();
        let nap = || std::thread::sleep(Duration::from_secs(600));
        std::thread::Builder::new().name("napper".into()).spawn(nap).unwrap();
        eprintln!("ready");
        spin_for_ever();
    }
    let mut peeked = Peeked::start(NAME);
    std::thread::sleep(Duration::from_millis(50));
    let asked = Instant::now();
    peeked.signal();
    let notice = peeked.until("followed by a 1.0 second profile.");
    let stacks = peeked.until("Profile collected.");
    let report = peeked.until("spin_for_ever");
    let took = asked.elapsed();
    assert!(notice.contains(&"=".repeat(86)), "{notice}");
    // The harness's own thread waits for the test's.
    let pid = peeked.child.id();
    let running = |n| stacks.contains(&format!(" {pid} running {n} of 3\n"));
    assert!(running(1) || running(2), "the harness may have woken: {stacks}");
    assert!(stacks.contains("peek::spin_for_ever at ") && stacks.contains("tests/peek.rs:"), "{stacks}");
    assert!(stacks.contains(": on CPU\n") || stacks.contains(": ready\n"), "{stacks}");
    let napper = stacks.lines().find(|line| line.contains("(napper)")).unwrap();
    assert!(napper.ends_with("asleep in clock_nanosleep"), "{napper}");
    let spinner = report.rsplit("Total snapshots: ").next().unwrap();
    let utilization = spinner.split("Utilization: ").nth(1).unwrap().split('%').next().unwrap();
    // What it has waited for a CPU at the very end is not known to be that.
    assert!(utilization.parse::<u32>().unwrap() > 80, "{report}");
    assert!(report.contains("Thread "), "{report}");
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(8), "{took:?}");
    // A second one works as well.
    peeked.signal();
    peeked.until(" of 3\n");
    peeked.until("Profile collected.");
    peeked.until("spin_for_ever");
    peeked.end();
}

#[test]
fn a_second_signal_shows_the_stacks_again_and_no_second_report() {
    const NAME: &str = "a_second_signal_shows_the_stacks_again_and_no_second_report";
    if is_child(NAME) {
        stackglass::peek::install().unwrap();
        eprintln!("ready");
        spin_for_ever();
    }
    let mut peeked = Peeked::start(NAME);
    peeked.signal();
    peeked.until("cmd: ");
    peeked.signal();
    let text = peeked.until("cmd: ") + &peeked.until("Profile collected.");
    assert!(!text.contains("Information request"), "{text}");
    std::thread::sleep(Duration::from_millis(1500));
    let rest = peeked.end();
    assert_eq!(rest.matches("Profile collected.").count(), 0, "{rest}");
}

#[test]
fn a_report_of_ones_own_may_panic() {
    const NAME: &str = "a_report_of_ones_own_may_panic";
    if is_child(NAME) {
        stackglass::peek::install().unwrap();
        stackglass::peek::set_duration(Duration::from_millis(100)).unwrap();
        stackglass::peek::set_report(|recording| {
            let spun = |frame: &stackglass::Frame| frame.func.ends_with("spin_for_ever");
            eprintln!("own report: {}", recording.symbols.frames().iter().any(spun));
            panic!("as a test");
        });
        eprintln!("ready");
        spin_for_ever();
    }
    let mut peeked = Peeked::start(NAME);
    for _ in 0..2 {
        peeked.signal();
        peeked.until("0.1 second profile");
        peeked.until("own report: true");
        peeked.until("the report function of the peek panicked");
    }
    peeked.end();
}

#[test]
fn a_profile_that_runs_is_shown_and_not_disturbed() {
    const NAME: &str = "a_profile_that_runs_is_shown_and_not_disturbed";
    if is_child(NAME) {
        stackglass::peek::install().unwrap();
        stackglass::peek::set_duration(Duration::from_millis(300)).unwrap();
        eprintln!("ready");
        // Begins while a peek goes on, ends while another one does.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        stackglass::peek::request();
        spin(Duration::from_millis(150));
        let began = Instant::now();
        let wall = stackglass::profile!({
            spin(Duration::from_millis(700));
            stackglass::peek::request();
            spin(Duration::from_millis(150));
            began.elapsed()
        });
        spin(Duration::from_millis(400));
        let recording = stackglass::recording();
        // All time of this thread, also what it waited for a CPU, and of the one that waits for the test.
        let time_of = |name: &str| -> u64 {
            let number =
                recording.threads.iter().position(|thread| &*thread.name == name).unwrap() as u32 + 1;
            recording.samples.iter().filter(|s| s.thread.0 == number).map(|s| s.time.0 / 1000).sum()
        };
        let (spun, slept) = (time_of(&NAME[..15]), time_of(&recording.threads[0].name));
        eprintln!("profiled {spun} and {slept} of {}, {} threads", wall.as_micros(), recording.threads.len());
        // The second peek's report.
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.stdin(Stdio::piped());
    let mut peeked = Peeked::start_command(command, NAME);
    let mut stdin = peeked.child.stdin.take().unwrap();
    // The first peek is requested after this moment, the second one at least 850 ms later.
    let began = Instant::now();
    let requested = [began, began + Duration::from_millis(850)];
    stdin.write_all(b"\n").unwrap();
    let (mut lines, mut collected) = (Vec::new(), Vec::new());
    let has = |lines: &[String], text: &str| lines.iter().filter(|line| line.contains(text)).count();
    while has(&lines, "profiled ") == 0 || has(&lines, "In short, ") < 2 {
        let line = peeked.until("\n");
        if line.contains("Profile collected.") {
            collected.push(Instant::now());
        }
        lines.push(line);
    }
    drop(stdin);
    let last = lines.iter().find(|line| line.contains("profiled ")).unwrap().clone();
    let number = |at: usize| last.split([' ', ',']).nth(at).unwrap().parse::<f64>().unwrap();
    // The profile has its own time and nothing of the peeks' before and after it, asleep or not; none of our threads.
    assert!((0.95..1.02).contains(&(number(1) / number(5))), "{last}");
    assert!((0.95..1.02).contains(&(number(3) / number(5))), "{last}");
    assert!(last.ends_with(", 2 threads\n") || last.ends_with(", 2 threads"), "{last}");
    peeked.errors.read_to_string(lines.last_mut().unwrap()).unwrap();
    let text = lines.concat();
    assert_eq!(text.matches("Profile collected.").count(), 2, "{text}");
    // Each of the peeks has seen its 300 ms, whatever the profile did meanwhile, and no more than has passed.
    let reports = text.split("Profile collected.").skip(1);
    for ((report, requested), collected) in reports.zip(requested).zip(collected) {
        let hundred = |line: &&str| line.contains("Total snapshots: ") && line.contains("Utilization: ");
        let counts: Vec<u128> = report
            .lines()
            .filter(hundred)
            .filter_map(|line| line.split("Total snapshots: ").nth(1)?.split('.').next()?.parse().ok())
            .collect();
        let passed = (collected - requested).as_millis();
        assert!(
            counts.iter().filter(|n| (280..=passed).contains(*n)).count() >= 2,
            "{counts:?} {passed}\n{text}"
        );
    }
}

#[test]
fn a_full_buffer_and_an_odd_variable_change_nothing() {
    const NAME: &str = "a_full_buffer_and_an_odd_variable_change_nothing";
    if is_child(NAME) {
        stackglass::peek::install().unwrap();
        stackglass::init(400, None).unwrap();
        eprintln!("ready");
        spin_for_ever();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env("STACKGLASS_PEEK_HEAP_SNAPSHOT", "YES");
    let mut peeked = Peeked::start_command(command, NAME);
    for _ in 0..2 {
        peeked.signal();
        peeked.until("Profile collected.");
        if cfg!(feature = "heap") {
            peeked.until("Saving heap snapshot...");
        } else {
            peeked.until("without its feature `heap`");
        }
    }
    peeked.end();
}

#[test]
fn a_program_that_has_taken_the_signal_keeps_it() {
    const NAME: &str = "a_program_that_has_taken_the_signal_keeps_it";
    if is_child(NAME) {
        let refused = stackglass::peek::install().unwrap_err().to_string();
        eprintln!("ready: {refused}");
        std::thread::sleep(Duration::from_secs(600));
    }
    // Ignored at its start, so it stays.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' USR1; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    let mut peeked = Peeked::start_command(command, NAME);
    peeked.signal();
    std::thread::sleep(Duration::from_millis(300));
    assert!(peeked.child.try_wait().unwrap().is_none(), "it lives on");
    let rest = peeked.end();
    assert!(!rest.contains("Information request"), "{rest}");
}

/// Asks the process for a peek, as `stackglass peek` does.
fn ask(peeked: &Peeked, options: &PeekOptions) -> PeekRequest {
    let request = PeekRequest::new(peeked.child.id(), options).unwrap();
    peeked.signal();
    request
}

/// The complete response.
fn answer(mut request: PeekRequest) -> String {
    let (began, mut text) = (Instant::now(), Vec::new());
    while request.end().is_none() {
        text.extend(request.read_more().unwrap());
        assert!(began.elapsed() < Duration::from_secs(20), "no end: {}", String::from_utf8_lossy(&text));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(request.end(), Some(ResponseEnd::Complete));
    String::from_utf8(text).unwrap()
}

#[test]
fn who_asks_has_his_wishes_and_an_answer_of_his_own() {
    const NAME: &str = "who_asks_has_his_wishes_and_an_answer_of_his_own";
    if is_child(NAME) {
        stackglass::peek::install().unwrap();
        // Long enough for others to ask meanwhile, also on a busy machine.
        stackglass::peek::set_duration(Duration::from_millis(2500)).unwrap();
        eprintln!("ready");
        spin_for_ever();
    }
    let mut peeked = Peeked::start(NAME);
    let own = |columns| PeekOptions { columns: Some(columns), ..PeekOptions::default() };
    let text = answer(ask(&peeked, &own(90)));
    assert!(text.contains("followed by a 2.5 second profile."), "{text}");
    let fast = PeekOptions { duration: Some(Duration::from_millis(300)), ..own(70) };
    let sparse = PeekOptions { delay: Some(Duration::from_millis(20)), ..fast };
    for (options, looks) in [(fast, 200..2500), (sparse, 10..125)] {
        let text = answer(ask(&peeked, &options));
        assert_eq!(text.lines().find(|line| line.chars().count() > 70), None, "{text}");
        // That of the thread that spins, which comes last.
        let count = text.rsplit("Total snapshots: ").next().unwrap().split('.').next().unwrap();
        assert!(looks.contains(&count.parse::<u64>().unwrap()), "{looks:?}: {text}");
        assert!(text.contains("\nIn short"), "{text}");
    }
    // A peek by signal is for standard error; who asks meanwhile waits.
    peeked.signal();
    peeked.until("cmd: ");
    let requests = [ask(&peeked, &fast), ask(&peeked, &fast)];
    let stderr = peeked.until("In short");
    assert!(stderr.contains("Profile collected."), "{stderr}");
    for request in requests {
        let text = answer(request);
        assert!(text.starts_with("stackglass: process "), "{text}");
        let follows = text.split_once("your peek follows in ").and_then(|(_, rest)| rest.split_once(" s"));
        let seconds: f64 = follows.expect("it says when").0.parse().expect("seconds");
        assert!((0.0..=2.5).contains(&seconds), "{text}");
        for part in ["cmd: ", "Profile collected.", "\nIn short"] {
            assert_eq!(text.matches(part).count(), 1, "{text}");
        }
    }
    // And a signal during the peek of one who asked has its own afterwards.
    let request = ask(&peeked, &PeekOptions { duration: Some(Duration::from_millis(600)), ..own(80) });
    std::thread::sleep(Duration::from_millis(300));
    peeked.signal();
    assert_eq!(answer(request).matches("cmd: ").count(), 1);
    let stderr = peeked.until("In short");
    assert_eq!(stderr.matches("Information request received.").count(), 1, "{stderr}");
    let rest = peeked.end();
    assert!(!rest.contains("Information request"), "{rest}");
}

#[test]
fn the_peek_of_who_has_gone_ends_and_leaves_no_thread() {
    const NAME: &str = "the_peek_of_who_has_gone_ends_and_leaves_no_thread";
    if is_child(NAME) {
        stackglass::peek::install().unwrap();
        eprintln!("ready");
        spin_for_ever();
    }
    let peeked = Peeked::start(NAME);
    let threads = || -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", peeked.child.id())).unwrap();
        let name =
            |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let mut names: Vec<String> = tasks.map(|task| name(task.unwrap()).trim().to_owned()).collect();
        names.retain(|name| name.starts_with("stackglass"));
        names
    };
    let wait = |count| {
        let began = Instant::now();
        while threads().len() != count {
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", threads());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for _ in 0..3 {
        let hour = PeekOptions { duration: Some(Duration::from_secs(3600)), ..PeekOptions::default() };
        let request = ask(&peeked, &hour);
        wait(3);
        drop(request);
        wait(1);
        assert_eq!(threads(), ["stackglass-peek"]);
    }
    assert!(!peeked.end().contains("Information request"));
}
