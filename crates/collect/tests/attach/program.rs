//! A program in C that is compiled, started and looked at.

use stackglass_attach::{AttachMode, Driver, Refusal, Stopped};
use stackglass_collect::attached::Attached;
use stackglass_profile::{Recorder, Recording, RecordingInfo, Sample, State};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A compiled one.
pub struct Compiled {
    path: PathBuf,
}

/// One that runs.
pub struct Program {
    child: Child,
    output: Arc<Mutex<String>>,
}

impl Program {
    /// Compiles it as distributions do: optimised, no frame pointers, with lines.
    pub fn compile(flags: &[&str]) -> Compiled {
        Program::compile_as("attached", flags)
    }

    /// The same, with another name.
    pub fn compile_as(name: &str, flags: &[&str]) -> Compiled {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/attached.c");
        let flags = [&["-O2", "-g1", "-pthread"], flags].concat();
        Compiled { path: whole_programs::compiled("cc", &source, name, &flags) }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    pub fn await_line(&self, line: &str) {
        let start = Instant::now();
        while !self.output().lines().any(|l| l == line) {
            assert!(start.elapsed().as_secs() < 30, "no line {line}: {}", self.output());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn signal(&self, number: i32) {
        // SAFETY: a system call without pointers; the child is not waited for before `self` is dropped.
        assert_eq!(unsafe { libc::kill(self.pid() as i32, number) }, 0);
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    pub fn state(&self) -> char {
        state_of(self.pid())
    }

    /// CPU time of the main thread, ns.
    pub fn cpu(&self) -> u64 {
        self.account(0)
    }

    /// How long the main thread has waited for CPUs, ns.
    pub fn waited(&self) -> u64 {
        self.account(1)
    }

    fn account(&self, number: usize) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.pid())).unwrap();
        text.split(' ').nth(number).unwrap().parse().unwrap()
    }

    /// How often each thread has given up or lost its CPU.
    pub fn switches(&self) -> HashMap<u32, u64> {
        switches_of(self.pid())
    }

    /// Whether it runs, and nobody traces it. Waits a little: the kernel lets go when the tracer has ended.
    pub fn is_untouched(&self) -> bool {
        let start = Instant::now();
        while start.elapsed().as_secs() < 5 {
            let traced = field(self.pid(), self.pid(), "TracerPid") != "0";
            if !traced && matches!(self.state(), 'R' | 'S') {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }
}

impl Compiled {
    /// Starts it; it ends when the value is dropped.
    pub fn start(self, arguments: &[&str]) -> Program {
        let mut command = Command::new(&self.path);
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let output = Arc::new(Mutex::new(String::new()));
        let (mut pipe, all) = (child.stdout.take().unwrap(), output.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = pipe.read(&mut bytes) {
                all.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
            }
        });
        let path = self.path.to_str().unwrap();
        while !path.ends_with(&name_of(child.id())) || !is_loaded(child.id(), path) {
            std::thread::yield_now();
        }
        Program { child, output }
    }
}

/// Whether all of its code is mapped, so that each of its stacks can be unwound.
fn is_loaded(pid: u32, path: &str) -> bool {
    // A main thread that has left shows no mappings.
    if state_of(pid) == 'Z' {
        return true;
    }
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.contains(path) && (maps.contains("/libc.so") || !maps.contains("/ld-linux"))
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn field(pid: u32, tid: u32, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or("").trim().to_owned()
}

pub fn name_of(pid: u32) -> String {
    field(pid, pid, "Name")
}

pub fn state_of(pid: u32) -> char {
    field(pid, pid, "State").chars().next().unwrap_or('?')
}

pub fn switches_of(pid: u32) -> HashMap<u32, u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let tids = tasks.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    tids.map(|tid: u32| {
        let count = |name| field(pid, tid, name).parse::<u64>().unwrap_or(0);
        (tid, count("voluntary_ctxt_switches") + count("nonvoluntary_ctxt_switches"))
    })
    .collect()
}

/// What was seen of a process.
pub struct Seen {
    pub recording: Recording,
    pub stopped: Option<Stopped>,
    /// For how long it was looked at, in seconds.
    pub passed: f64,
}

/// How many stacks were taken while the program ran.
pub fn hits(recording: &Recording) -> u32 {
    recording.samples.iter().filter(|sample| sample.state == State::Awake).map(|sample| sample.hits).sum()
}

fn seconds(recording: &Recording, state: State) -> f64 {
    recording.samples.iter().filter(|s| s.state == state).map(|s| s.time.seconds()).sum()
}

/// How long its threads slept, in seconds.
pub fn asleep(recording: &Recording) -> f64 {
    seconds(recording, State::Asleep)
}

impl Seen {
    /// Looks at it for a while, each millisecond, by ptrace: nothing else can do harm.
    pub fn by_ptrace(pid: u32, time: Duration) -> Seen {
        Seen::until(Driver::Ptrace, pid, time, |_| true)
    }

    /// The same by a driver, by ptrace where the other one is not allowed; and until there is enough, which takes longer on a busy machine.
    pub fn until(driver: Driver, pid: u32, time: Duration, is_enough: impl Fn(&Recording) -> bool) -> Seen {
        Seen::with(driver, pid, time, is_enough, || ()).0
    }

    /// The same, with what is read when it begins and when it ends. Names are read after that, which may take longer than the rest.
    pub fn with<T>(
        driver: Driver,
        pid: u32,
        time: Duration,
        is_enough: impl Fn(&Recording) -> bool,
        read: impl Fn() -> T,
    ) -> (Seen, [T; 2]) {
        let begin = |driver| Attached::begin(pid, Duration::from_millis(1), Some(driver), AttachMode::Brief);
        let mut attached = match begin(driver) {
            Err(Refusal::NoPerf(_)) => begin(Driver::Ptrace).unwrap(),
            begun => begun.unwrap(),
        };
        let mut recorder = Recorder::new(RecordingInfo::default());
        let (start, first) = (Instant::now(), read());
        while attached.stopped().is_none() && (start.elapsed() < time || !is_enough(recorder.recording())) {
            std::thread::sleep(Duration::from_millis(5));
            attached.drain(&mut recorder);
        }
        let (passed, last) = (start.elapsed().as_secs_f64(), read());
        attached.stop();
        attached.drain(&mut recorder);
        let mut recording = recorder.into_recording();
        stackglass_symbols::symbolize(&mut recording, &Default::default(), &mut |_| ());
        (Seen { recording, stopped: attached.stopped(), passed }, [first, last])
    }

    /// Functions of each sample, root first, with the state and what it stands for.
    fn samples(&self) -> impl Iterator<Item = (String, &stackglass_profile::Sample)> {
        self.recording.samples.iter().map(|sample| {
            let recording = &self.recording;
            let mut names: Vec<String> = recording
                .stacks
                .walk(sample.stack)
                .flat_map(|id| recording.symbols.frames_of(id).map(|frame| frame.func.to_string()))
                .collect();
            names.reverse();
            (names.join(";"), sample)
        })
    }

    /// Stacks taken while it ran.
    pub fn stacks(&self) -> BTreeMap<String, u32> {
        let mut stacks = BTreeMap::new();
        for (path, sample) in self.samples().filter(|(_, sample)| sample.state == State::Awake) {
            *stacks.entry(path).or_default() += sample.hits;
        }
        stacks.retain(|_, hits| *hits > 0);
        stacks
    }

    /// How many stacks a function is in.
    pub fn hits(&self, function: &str) -> u32 {
        let has = |path: &str| path.split(';').any(|name| name == function);
        self.samples().filter(|(path, _)| has(path)).map(|(_, sample)| sample.hits).sum()
    }

    /// Threads that were seen asleep in a function.
    pub fn threads_in(&self, function: &str) -> usize {
        let slept = |(path, sample): &(String, &stackglass_profile::Sample)| {
            sample.state == State::Asleep && path.split(';').any(|name| name == function)
        };
        self.samples().filter(slept).map(|(_, sample)| sample.thread).collect::<HashSet<_>>().len()
    }

    /// Stacks that are not whole.
    pub fn cut(&self) -> u32 {
        self.cut_samples().iter().map(|sample| sample.hits).sum()
    }

    /// The samples whose stack is incomplete.
    pub fn cut_samples(&self) -> Vec<&Sample> {
        self.recording.samples.iter().filter(|sample| sample.cut.is_some()).collect()
    }

    pub fn awake(&self) -> f64 {
        seconds(&self.recording, State::Awake)
    }

    pub fn waiting(&self) -> f64 {
        seconds(&self.recording, State::Waiting)
    }

    pub fn asleep(&self) -> f64 {
        asleep(&self.recording)
    }

    /// The time of all threads, in seconds.
    pub fn all(&self) -> f64 {
        self.awake() + self.waiting() + self.asleep()
    }
}
