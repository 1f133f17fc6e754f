//! Starts a copy of the program, makes it hang, asks its tool what the tasks wait for, and compares the answer with the
//! marks in the source.
//!
//! `ask COPY [TIMES]` prints which marked lines the answer has, and the time until it is there. The last answer is kept
//! beside the programs, in `answers/COPY.txt`. `ask polls COPY COUNT` compares the cost of a poll with that of `plain`.

mod polls;

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Requests that hang.
const REQUESTS: usize = 150;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["polls", copy, count] => polls::compare(copy, count),
        [copy] => ask(copy, 5),
        [copy, times] => ask(copy, times.parse()?),
        _ => Err("ask COPY [TIMES], or ask polls COPY COUNT".into()),
    }
}

/// The package of a copy.
fn package(copy: &str) -> String {
    if copy == "plain" { copy.into() } else { format!("with-{copy}") }
}

/// The folder of the programs.
fn programs() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.parent().ok_or("no folder")?.to_owned())
}

/// A running copy, and its open connections, until it is dropped.
struct Hanging {
    child: Child,
    address: String,
    _requests: Vec<TcpStream>,
    traces: PathBuf,
}

impl Hanging {
    fn start(copy: &str) -> Result<Hanging> {
        let traces = std::env::temp_dir().join(format!("await-peers-{}", std::process::id()));
        let mut command = Command::new(programs()?.join(package(copy)));
        // Only the copy `dial9` reads them.
        command.envs([("DIAL9_ENABLED", "true"), ("DIAL9_TASK_DUMP_ENABLED", "true")]);
        command.envs([("DIAL9_ROTATION_SECS", "1"), ("DIAL9_SCHEDULE_PROFILE_ENABLED", "false")]);
        command.env("DIAL9_TRACE_DIR", &traces);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut address)?;
        let address = address.trim().to_owned();
        let mut requests = Vec::new();
        for _ in 0..REQUESTS {
            let mut request = TcpStream::connect(&address)?;
            request.write_all(b"GET /price HTTP/1.1\r\nHost: shop\r\n\r\n")?;
            requests.push(request);
        }
        // dial9 writes its files later.
        std::thread::sleep(Duration::from_secs(if copy == "dial9" { 10 } else { 2 }));
        Ok(Hanging { child, address, _requests: requests, traces })
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.traces);
    }
}

fn ask(copy: &str, times: usize) -> Result<()> {
    let hanging = Hanging::start(copy)?;
    let mut durations = Vec::new();
    let mut answer = String::new();
    for _ in 0..times {
        let start = Instant::now();
        let now = match copy {
            "plain" => stackglass(&hanging),
            "console" => console(),
            "dial9" => dial9(&hanging),
            _ => http(&hanging),
        };
        match now {
            Ok(now) => answer = now,
            Err(error) => {
                eprintln!("no answer: {error}");
                continue;
            }
        }
        durations.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let answers = programs()?.join("answers");
    std::fs::create_dir_all(&answers)?;
    std::fs::write(answers.join(format!("{copy}.txt")), &answer)?;
    let marks = marks(copy)?;
    let (shown, hidden): (Vec<_>, Vec<_>) = marks.iter().partition(|mark| match copy {
        // Its spans have the names of the marks.
        "await-tree" => answer.contains(&format!(" {} [", mark.name)),
        _ => has(&answer, &format!("main.rs:{}", mark.line)),
    });
    println!("{copy}: {} of {} marked lines", shown.len(), marks.len());
    println!("lines not shown: {}", hidden.iter().map(|mark| &*mark.name).collect::<Vec<_>>().join(" "));
    let functions: BTreeSet<&str> = marks.iter().map(|mark| &*mark.function).collect();
    let hidden: Vec<&str> =
        functions.iter().copied().filter(|name| !has(&answer, &format!("::{name}"))).collect();
    println!(
        "{} of {} functions; not shown: {}",
        functions.len() - hidden.len(),
        functions.len(),
        hidden.join(" ")
    );
    durations.sort_by(f64::total_cmp);
    if let [first, .., last] = durations[..] {
        println!("{:.1} ms [{first:.1}, {last:.1}]", durations[durations.len() / 2]);
    }
    println!("{} of {times} questions answered", durations.len());
    Ok(())
}

/// A line that waits.
struct Mark {
    name: String,
    line: usize,
    function: String,
}

/// The marks in the source of a copy.
fn marks(copy: &str) -> Result<Vec<Mark>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package(copy)).join("src/main.rs");
    let mut function = String::new();
    let mut marks = Vec::new();
    for (line, text) in (1..).zip(std::fs::read_to_string(source)?.lines()) {
        if let Some((_, rest)) = text.split_once("fn ")
            && !text.starts_with(' ')
        {
            function = rest.chars().take_while(|&letter| letter.is_alphanumeric() || letter == '_').collect();
        }
        if let Some((_, name)) = text.split_once(" // @") {
            marks.push(Mark { name: name.to_owned(), line, function: function.clone() });
        }
    }
    Ok(marks)
}

/// Whether a text has these words, and the last does not go on.
fn has(text: &str, words: &str) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
    text.match_indices(words).any(|(at, _)| !goes_on(&text[at + words.len()..]))
}

/// The whole command `stackglass tasks`.
fn stackglass(hanging: &Hanging) -> Result<String> {
    let command = std::env::var("STACKGLASS").unwrap_or("stackglass".into());
    let pid = hanging.child.id().to_string();
    let output = Command::new(command).args(["tasks", &pid, "--all"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The answer to a request to the program itself.
fn http(hanging: &Hanging) -> Result<String> {
    let mut stream = TcpStream::connect(&hanging.address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"GET /dump HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// What `tokio-console` gets first, read by an example of the copy.
fn console() -> Result<String> {
    let output = Command::new(programs()?.join("examples/updates")).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The task dumps in the segments that are there so far, read by dial9's own scripts.
fn dial9(hanging: &Hanging) -> Result<String> {
    let toolkit = std::env::var("DIAL9_TOOLKIT").map_err(|_| "DIAL9_TOOLKIT is not set")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../with-dial9/dumps.js");
    // A process writes into a folder of its own.
    let folder = std::fs::read_dir(&hanging.traces)?.next().ok_or("no trace")??.path();
    let output = Command::new("node").args([&script, Path::new(&toolkit), &folder]).output()?;
    if !output.status.success() {
        return Err("the traces cannot be read".into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
