//! A small launcher for tests: creates a session, runs a program in it, and reads every stream to its end.
#![allow(unsafe_code, reason = "calls the C library")]
#![allow(dead_code, reason = "each test uses a part")]

use stackglass_wire::stream::{self, Reader};
use stackglass_wire::*;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

/// An event with its words owned.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Start { thread: u32, tid: u32, at: u64, name: String },
    Rename { thread: u32, name: String },
    End { thread: u32, at: u64, cpu: u64, flags: u64 },
    Load { module: u32, bias: u64, low: u64, high: u64, path: String },
    Unload { module: u32 },
    Sample { thread: u32, at: u64, time: u64, state: State, cut: u8, hits: u32, frames: Vec<u64> },
    Repeat { thread: u32, at: u64, time: u64, state: State },
}

/// The events of a process image.
pub struct Process {
    pub pid: u32,
    pub ppid: u32,
    pub image: u32,
    pub state: ProcessState,
    pub exe: String,
    pub start: u64,
    pub last_tick: u64,
    pub sampler_cpu: u64,
    pub counters: BTreeMap<&'static str, u64>,
    pub events: Vec<Told>,
    pub broken: bool,
}

/// Result of a run.
pub struct Run {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub processes: Vec<Process>,
    pub wall: Duration,
}

pub struct Session {
    pub folder: PathBuf,
    /// False simulates a launcher that has ended.
    pub beating: AtomicBool,
    page: &'static SessionPage,
}

struct Stream {
    control: &'static ControlPage,
    reader: Reader<'static>,
    process: Process,
}

static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Maps a file shared; it is never unmapped.
fn map(path: &Path, length: usize) -> Option<*mut u8> {
    use std::os::fd::AsRawFd;
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).ok()?;
    // SAFETY: a new shared mapping of the file's length, at an address of the kernel's choice.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    (at != libc::MAP_FAILED).then_some(at.cast())
}

impl Session {
    pub fn new() -> Session {
        Session::in_folder(Path::new("/dev/shm"))
    }

    pub fn in_folder(parent: &Path) -> Session {
        let n = SESSIONS.fetch_add(1, Relaxed);
        let folder = parent.join(format!("stackglass-test-{}-{n}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
        let file = folder.join(SESSION_FILE);
        std::fs::write(&file, vec![0u8; 4096]).unwrap();
        // SAFETY: the file has 4096 bytes, more than the page; atomics only; never unmapped.
        let page = unsafe { &*map(&file, 4096).unwrap().cast::<SessionPage>() };
        page.delay_ns.store(1_000_000, Relaxed);
        page.stream_bytes.store(STREAM_BYTES as u64, Relaxed);
        page.follow_children.store(1, Relaxed);
        page.launcher.store(std::process::id(), Relaxed);
        page.state.store(SessionState::Sampling as u32, Relaxed);
        page.beat.store(1, Relaxed);
        page.publish();
        Session { folder, beating: AtomicBool::new(true), page }
    }

    pub fn page(&self) -> &'static SessionPage {
        self.page
    }

    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", library()).env(SESSION_ENV, &self.folder);
        command
    }

    pub fn run(&self, command: &mut Command) -> Run {
        self.run_with(command, |_, _| {})
    }

    /// Runs to the end of the program; `meanwhile` is called about every millisecond with its process id.
    pub fn run_with(&self, command: &mut Command, mut meanwhile: impl FnMut(u32, Duration)) -> Run {
        let begun = Instant::now();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Ended(command.spawn().unwrap());
        let pid = child.0.id();
        let (mut out, mut err) = (child.0.stdout.take().unwrap(), child.0.stderr.take().unwrap());
        let out = std::thread::spawn(move || text(&mut out));
        let err = std::thread::spawn(move || text(&mut err));
        let mut streams: HashMap<PathBuf, Stream> = HashMap::new();
        let status = loop {
            if self.beating.load(Relaxed) {
                self.page.beat.fetch_add(1, Relaxed);
            }
            self.drain(&mut streams);
            if let Some(status) = child.0.try_wait().unwrap() {
                break status;
            }
            meanwhile(pid, begun.elapsed());
            std::thread::sleep(Duration::from_millis(1));
        };
        let wall = begun.elapsed();
        let (stdout, stderr) = (out.join().unwrap(), err.join().unwrap());
        self.drain(&mut streams);
        let mut processes: Vec<Process> = streams.into_values().map(Stream::finish).collect();
        processes.sort_by_key(|p| p.start);
        Run { status, stdout, stderr, processes, wall }
    }

    fn drain(&self, streams: &mut HashMap<PathBuf, Stream>) {
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with(PROCESS_FILE_PREFIX)
                && !streams.contains_key(&path)
                && let Some(stream) = Stream::open(&path)
            {
                streams.insert(path, stream);
            }
        }
        for stream in streams.values_mut() {
            stream.drain();
        }
    }
}

/// A program that is killed when a test fails.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn text(from: &mut impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Stream {
    fn open(path: &Path) -> Option<Stream> {
        let length = std::fs::metadata(path).ok()?.size() as usize;
        if length <= CONTROL_BYTES {
            return None;
        }
        let at = map(path, length)?;
        // SAFETY: mapped with `length` bytes, never unmapped, atomics only.
        let (control, ring) = unsafe { stream::view(at, length, (length - CONTROL_BYTES) / 8) }?;
        if !control.is_ready() {
            return None;
        }
        let mut text = [0; TEXT_BYTES];
        let exe = ControlPage::text(&control.exe, &control.exe_len, &mut text);
        let process = Process {
            pid: control.pid.load(Relaxed),
            ppid: control.ppid.load(Relaxed),
            image: 0,
            state: ProcessState::Starting,
            exe: String::from_utf8_lossy(exe).into_owned(),
            start: control.start_ns.load(Relaxed),
            last_tick: 0,
            sampler_cpu: 0,
            counters: BTreeMap::new(),
            events: Vec::new(),
            broken: false,
        };
        Some(Stream { control, reader: Reader::new(control, ring), process })
    }

    fn drain(&mut self) {
        loop {
            match self.reader.read() {
                Ok(Some(event)) => self.process.events.push(owned(&event)),
                Ok(None) => return,
                Err(_) => {
                    self.process.broken = true;
                    return;
                }
            }
        }
    }

    fn finish(mut self) -> Process {
        self.drain();
        let process = &mut self.process;
        process.image = self.control.image.load(Relaxed);
        process.state = self.control.process_state();
        process.last_tick = self.control.last_tick_ns.load(Relaxed);
        process.sampler_cpu = self.control.sampler_cpu_ns.load(Relaxed);
        for counter in Counter::ALL {
            process.counters.insert(counter.label(), self.control.counters.get(*counter));
        }
        self.process
    }
}

fn owned(event: &Event<'_>) -> Told {
    let name =
        |bytes: ThreadName| String::from_utf8_lossy(bytes.split(|b| *b == 0).next().unwrap()).into_owned();
    match *event {
        Event::ThreadStart { thread, tid, at, name: n } => {
            Told::Start { thread: thread.0, tid, at, name: name(n) }
        }
        Event::ThreadRename { thread, name: n, .. } => Told::Rename { thread: thread.0, name: name(n) },
        Event::ThreadEnd { thread, at, cpu, flags } => Told::End { thread: thread.0, at, cpu, flags },
        Event::ModuleLoad { module, bias, low, high, text, build_id_len, path_len, .. } => {
            let from = build_id_len as usize;
            let path = (from..from + path_len as usize).map(|i| text_byte(text, i)).collect();
            Told::Load { module: module.0, bias, low, high, path: String::from_utf8(path).unwrap() }
        }
        Event::ModuleUnload { module, .. } => Told::Unload { module: module.0 },
        Event::Sample { thread, at, time, state, cut, hits, frames, .. } => {
            Told::Sample { thread: thread.0, at, time, state, cut, hits, frames: frames.to_vec() }
        }
        Event::Repeat { thread, at, time, state } => Told::Repeat { thread: thread.0, at, time, state },
        Event::TaskStart { .. } => panic!("no program here has async tasks"),
    }
}

/// The preload library of this test build.
pub fn library() -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    loop {
        assert!(folder.pop(), "the preload library was built beside the tests");
        let library = folder.join("libstackglass_preload.so");
        if library.exists() {
            return library;
        }
    }
}

/// `tests/programs/NAME.c`, compiled with these arguments.
pub fn compile(name: &str, arguments: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
    let usual = ["-O2", "-g", "-fno-omit-frame-pointer", "-fomit-frame-pointer", "-Wall", "-pthread"];
    whole_programs::compiled("cc", &source, name, &[&usual[..], arguments, &["-ldl", "-lm"]].concat())
}

/// Names of functions by address, from `nm`.
pub struct Symbols {
    by_address: BTreeMap<u64, String>,
}

impl Symbols {
    pub fn from_program(program: &Path) -> Symbols {
        let output = Command::new("nm").arg("--defined-only").arg(program).output().expect("nm");
        let by_address = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                let kind = words.next()?;
                "tTwW".contains(kind).then_some((address, words.next()?.to_string()))
            })
            .collect();
        Symbols { by_address }
    }

    pub fn name(&self, address: u64) -> &str {
        self.by_address.range(..=address).next_back().map_or("?", |(_, name)| name)
    }
}

/// The results of a thread.
#[derive(Default, Debug, Clone)]
pub struct Thread {
    pub tid: u32,
    pub name: String,
    pub started: u64,
    pub ended: Option<u64>,
    pub cpu: u64,
    pub flags: u64,
    pub awake: u64,
    pub asleep: u64,
    pub hits: u64,
    /// Time by stack: names of the program's functions, outermost first, and whether asleep.
    pub stacks: BTreeMap<(String, bool), u64>,
    /// Time by cut reason.
    pub cuts: BTreeMap<u8, u64>,
}

impl Process {
    /// Sums by thread; functions outside the program are removed from stacks.
    pub fn threads(&self, symbols: &Symbols) -> BTreeMap<u32, Thread> {
        let mut threads: BTreeMap<u32, Thread> = BTreeMap::new();
        let mut last: HashMap<u32, (String, u8)> = HashMap::new();
        let mut modules: BTreeMap<u64, (u64, u64, bool)> = BTreeMap::new();
        for event in &self.events {
            match event {
                Told::Load { bias, low, high, path, .. } => {
                    modules.insert(*low, (*high, *bias, *path == self.exe));
                }
                Told::Unload { .. } => {}
                Told::Start { thread, tid, at, name } => {
                    let entry = threads.entry(*thread).or_default();
                    (entry.tid, entry.started, entry.name) = (*tid, *at, name.clone());
                }
                Told::Rename { thread, name } => threads.get_mut(thread).unwrap().name = name.clone(),
                Told::End { thread, at, cpu, flags } => {
                    let entry = threads.get_mut(thread).unwrap();
                    (entry.ended, entry.cpu, entry.flags) = (Some(*at), *cpu, *flags);
                }
                Told::Sample { thread, time, state, cut, hits, frames, .. } => {
                    let names: Vec<&str> = frames
                        .iter()
                        .rev()
                        .filter_map(|frame| {
                            let (_, (high, bias, own)) = modules.range(..=*frame).next_back()?;
                            (*own && frame < high).then(|| symbols.name(frame - bias))
                        })
                        .collect();
                    let stack = names.join(";");
                    last.insert(*thread, (stack.clone(), *cut));
                    let entry = threads.get_mut(thread).expect("a thread is told before its stacks");
                    entry.hits += *hits as u64;
                    entry.add(stack, *cut, *time, *state);
                }
                Told::Repeat { thread, time, state, .. } => {
                    let (stack, cut) = last[thread].clone();
                    threads.get_mut(thread).unwrap().add(stack, cut, *time, *state);
                }
            }
        }
        threads
    }

    pub fn counter(&self, which: Counter) -> u64 {
        self.counters[which.label()]
    }
}

impl Thread {
    fn add(&mut self, stack: String, cut: u8, time: u64, state: State) {
        match state {
            State::Awake => self.awake += time,
            State::Task => panic!("no session here is of a wall-time profile"),
            State::Asleep | State::Waiting => self.asleep += time,
        }
        *self.stacks.entry((stack, state != State::Awake)).or_default() += time;
        *self.cuts.entry(cut).or_default() += time;
    }

    /// Time of stacks that contain `part`.
    pub fn time_in(&self, part: &str) -> u64 {
        self.stacks.iter().filter(|((stack, _), _)| stack.contains(part)).map(|(_, time)| time).sum()
    }
}

/// Whether `a` is within `share` of `b`.
pub fn close(a: f64, b: f64, share: f64) -> bool {
    (a - b).abs() <= b.abs() * share
}
