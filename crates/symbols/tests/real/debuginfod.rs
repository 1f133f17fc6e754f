//! Debug files from a server on this machine.

use crate::program::Program;
use crate::program::frames;
use object::Object;
use stackglass_profile::symbols::Missing;
use stackglass_symbols::{Debuginfod, Options};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the server does with a request.
#[derive(Clone)]
enum Behaviour {
    /// Sends these bytes for this path, and 404 for others.
    Has(String, Vec<u8>),
    /// Accepts, and sends nothing.
    Silent,
    Broken,
}

struct Server {
    url: String,
    /// The paths that were asked for.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(behaviour: Behaviour) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        // It ends with the test's process.
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                seen.lock().unwrap().push(path_of(&stream));
                let path = seen.lock().unwrap().last().cloned().unwrap_or_default();
                let (status, body) = match &behaviour {
                    Behaviour::Silent => {
                        kept.push(stream);
                        continue;
                    }
                    Behaviour::Broken => ("500 Internal Server Error", &b"broken"[..]),
                    Behaviour::Has(file, bytes) if *file == path => ("200 OK", &bytes[..]),
                    Behaviour::Has(..) => ("404 Not Found", &b"no"[..]),
                };
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                // A client that has enough closes the connection.
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
            }
        });
        Server { url, requests }
    }

    fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn path_of(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
    first.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// A stripped program with a build id, its debug file, and the address and lines of a place in it.
struct Stripped {
    program: Program,
    id: String,
    debug: Vec<u8>,
    address: u64,
    lines: Vec<i64>,
}

fn stripped() -> Stripped {
    let program = Program::build("known.c", "gcc", &["-O2", "-g", "-Wl,--build-id"]);
    let answer = program.says("method");
    program.tool("objcopy", &["--only-keep-debug", "program", "apart"]);
    let apart = program.path.with_file_name("apart");
    let debug = std::fs::read(&apart).unwrap();
    std::fs::remove_file(apart).unwrap();
    program.tool("strip", &["program"]);
    let bytes = std::fs::read(&program.path).unwrap();
    let id = object::File::parse(&*bytes).unwrap().build_id().unwrap().expect("a build id");
    let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
    Stripped { program, id, debug, address: answer.address, lines: answer.lines }
}

impl Stripped {
    fn path(&self) -> String {
        format!("/buildid/{}/debuginfo", self.id)
    }

    fn options(&self, servers: &[&Server]) -> Options {
        let debuginfod = Debuginfod {
            urls: servers.iter().map(|server| server.url.clone()).collect(),
            cache: self.program.folder.path().join("cache"),
            patience: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            largest: 64 << 20,
        };
        Options { debuginfod: Some(debuginfod), ..Options::default() }
    }

    /// The lines of the place, why names are missing, and the message.
    fn symbolize(&self, options: &Options) -> (Vec<i64>, Vec<Missing>, Option<String>) {
        let (frames, missing, outcome) = frames(&self.program.path, self.address, options);
        (frames.iter().map(|frame| frame.line).collect(), missing, outcome.debuginfod)
    }
}

#[test]
fn a_debug_file_is_fetched_once() {
    let stripped = stripped();
    let empty = Server::start(Behaviour::Has(String::new(), Vec::new()));
    let server = Server::start(Behaviour::Has(stripped.path(), stripped.debug.clone()));
    let options = stripped.options(&[&empty, &server]);
    let (lines, missing, message) = stripped.symbolize(&options);
    assert_eq!((lines, missing), (stripped.lines.clone(), vec![]));
    let message = message.expect("a line on the download");
    assert!(message.starts_with("debug information of program fetched by debuginfod ("), "{message}");
    assert_eq!((empty.requests(), server.requests()), (1, 1));
    let cached = stripped.program.folder.path().join("cache").join(&stripped.id).join("debuginfo");
    assert_eq!(std::fs::read(cached).unwrap(), stripped.debug);
    let (lines, _, message) = stripped.symbolize(&options);
    assert_eq!((lines, message), (stripped.lines.clone(), None), "from the cache");
    assert_eq!((empty.requests(), server.requests()), (1, 1));
}

#[test]
fn without_settings_no_server_is_asked() {
    let stripped = stripped();
    let (_, missing, message) = stripped.symbolize(&Options::default());
    assert_eq!((missing, message), (vec![Missing::Names], None));
}

#[test]
fn what_no_server_has_is_not_asked_for_again_soon() {
    let stripped = stripped();
    let server = Server::start(Behaviour::Has(String::new(), Vec::new()));
    for _ in 0..2 {
        let (_, missing, message) = stripped.symbolize(&stripped.options(&[&server]));
        assert_eq!((missing, message), (vec![Missing::Names], None));
        assert_eq!(server.requests(), 1);
    }
}

#[test]
fn servers_that_fail_are_named_and_cost_little_time() {
    let stripped = stripped();
    let closed = Server { url: "http://127.0.0.1:9".into(), requests: Arc::default() };
    let silent = Server::start(Behaviour::Silent);
    let broken = Server::start(Behaviour::Broken);
    let begin = Instant::now();
    let (_, missing, message) = stripped.symbolize(&stripped.options(&[&closed, &silent, &broken]));
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    assert_eq!(missing, [Missing::Names]);
    let message = message.expect("a line on the failure");
    assert!(message.starts_with("debuginfod failed ("), "{message}");
    for server in [&closed, &silent, &broken] {
        assert!(message.contains(&server.url), "{message}");
    }
    let cache = stripped.program.folder.path().join("cache");
    let files = |folder: &std::path::Path| std::fs::read_dir(folder).map_or(0, Iterator::count);
    assert_eq!(files(&cache.join(&stripped.id)), 0, "nothing is known of the file");
}

#[test]
fn a_file_that_is_too_large_or_another_programs_is_not_used() {
    let stripped = stripped();
    let server = Server::start(Behaviour::Has(stripped.path(), stripped.debug.clone()));
    let mut options = stripped.options(&[&server]);
    options.debuginfod.as_mut().unwrap().largest = stripped.debug.len() as u64 - 1;
    let (_, missing, message) = stripped.symbolize(&options);
    assert_eq!(missing, [Missing::Names]);
    assert!(message.is_some_and(|message| message.contains("DEBUGINFOD_MAXSIZE")));

    let other = Program::build("stripped.c", "gcc", &["-O2", "-g", "-Wl,--build-id"]);
    let other = Server::start(Behaviour::Has(stripped.path(), std::fs::read(&other.path).unwrap()));
    let (_, missing, _) = stripped.symbolize(&stripped.options(&[&other]));
    assert_eq!(missing, [Missing::Names], "its build id differs");
}
