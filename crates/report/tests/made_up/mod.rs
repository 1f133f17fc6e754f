//! Recordings with known content, made by hand.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod allocating;
pub mod hostile;

use stackglass_profile::symbols::{Language, Missing, ModuleNote};
use stackglass_profile::{
    Cut, End, Frame, Location, Module, Nanos, Process, ProcessIndex, Recording, RecordingInfo, Sample,
    ShortPath, StackId, State, Thread, ThreadNumber,
};
use std::collections::HashMap;

/// Makes recordings from stacks written as text.
pub struct Maker {
    pub recording: Recording,
    /// Next free offset in each module.
    offsets: HashMap<String, u64>,
    locations: HashMap<String, Location>,
    clock: u64,
}

impl Maker {
    pub fn new(command: &[&str]) -> Maker {
        let info = RecordingInfo {
            command: command.iter().map(|word| word.to_string()).collect(),
            delay: Nanos(1_000_000),
            wall: Nanos(3_021_000_000),
            end: Some(End::Exit(0)),
            ..RecordingInfo::default()
        };
        let recording = Recording { info, ..Recording::default() };
        Maker { recording, offsets: HashMap::new(), locations: HashMap::new(), clock: 0 }
    }

    pub fn process(&mut self, exe: &str, arguments: &[&str]) -> ProcessIndex {
        let index = self.recording.processes.len() as u32;
        self.recording.processes.push(Process {
            pid: 4200 + index,
            exe: exe.into(),
            arguments: arguments.iter().map(|word| word.to_string()).collect(),
            ..Process::default()
        });
        ProcessIndex(index)
    }

    pub fn thread(&mut self, process: ProcessIndex, name: &str) -> ThreadNumber {
        self.recording.threads.push(Thread {
            process,
            tid: 4200 + self.recording.threads.len() as u32,
            name: name.into(),
            start: Nanos(0),
            end: None,
            cpu: Nanos(0),
            blocked_signal: false,
        });
        ThreadNumber(self.recording.threads.len() as u32)
    }

    /// Frames are separated by ` > `, outermost first. A frame is `module! function file:line`, with
    /// `c ` before a foreign one and `+ ` before one that is inlined into the frame before it.
    pub fn stack(&mut self, text: &str) -> StackId {
        let mut places: Vec<Vec<&str>> = Vec::new();
        for frame in text.split(" > ").map(str::trim).filter(|frame| !frame.is_empty()) {
            match (frame.strip_prefix("+ "), places.last_mut()) {
                (Some(inlined), Some(place)) => place.push(inlined),
                _ => places.push(vec![frame]),
            }
        }
        let mut stack = StackId(0);
        for place in places {
            let location = self.location(&place);
            stack = self.recording.stacks.extend(stack, location);
        }
        stack
    }

    fn location(&mut self, place: &[&str]) -> stackglass_profile::LocationId {
        let key = place.join(" > ");
        if let Some(location) = self.locations.get(&key) {
            return self.recording.stacks.intern_location(*location);
        }
        let frames: Vec<Frame> =
            place.iter().enumerate().map(|(depth, text)| frame(text, depth > 0)).collect();
        let module = frames[0].module.clone();
        let offset = self.offsets.entry(module.to_string()).or_insert(0x1000);
        *offset += 0x10;
        // Code in no file has no module.
        let module = (!module.is_empty())
            .then(|| self.recording.intern_module(Module { path: module, build_id: [].into() }));
        let location = Location { module, offset: *offset };
        self.locations.insert(key, location);
        let id = self.recording.stacks.intern_location(location);
        for frame in &frames {
            if let Some((prefix, rest)) = short_path(&frame.file) {
                let short = ShortPath { prefix: prefix.into(), rest: rest.into() };
                self.recording.symbols.set_short_path(frame.file.clone(), short);
            }
        }
        if !frames.iter().all(Frame::is_unknown) {
            self.recording.symbols.set(id, frames.into_iter().rev());
        }
        id
    }

    pub fn sample(&mut self, thread: ThreadNumber, stack: StackId, state: State, ms: u64) {
        self.cut_sample(thread, stack, state, ms, None);
    }

    pub fn cut_sample(
        &mut self,
        thread: ThreadNumber,
        stack: StackId,
        state: State,
        ms: u64,
        cut: Option<Cut>,
    ) {
        let hits = if state == State::Asleep { 1 } else { ms as u32 };
        self.raw_sample(thread, stack, state, Nanos(ms * 1_000_000), hits, cut);
    }

    pub fn raw_sample(
        &mut self,
        thread: ThreadNumber,
        stack: StackId,
        state: State,
        time: Nanos,
        hits: u32,
        cut: Option<Cut>,
    ) {
        self.clock += time.0;
        self.recording.push(Sample {
            stack,
            thread,
            task: 0,
            clock: Nanos(self.clock),
            state,
            cut,
            hits,
            time,
            spread: Nanos(0),
        });
    }
}

fn frame(text: &str, inlined: bool) -> Frame {
    let (foreign, text) = text.strip_prefix("c ").map_or((false, text), |text| (true, text));
    let (module, text) = text.split_once("! ").unwrap_or(("/home/me/demo/target/release/demo", text));
    let (func, place) = text.split_once(' ').unwrap_or((text, ""));
    let (file, line) = place.rsplit_once(':').unwrap_or(("", "-1"));
    let mut frame = Frame::unknown(0);
    if func == "?" {
        frame.module = module.into();
        return frame;
    }
    let krate = func.split("::").next().filter(|_| func.contains("::") && !foreign).unwrap_or("");
    (frame.func, frame.file, frame.line) = (func.into(), file.into(), line.parse().unwrap());
    (frame.foreign, frame.inlined) = (foreign, inlined);
    (frame.module, frame.krate) = (module.into(), krate.into());
    frame
}

fn short_path(file: &str) -> Option<(&'static str, &str)> {
    let rest = file.strip_prefix("/home/me/demo/").map(|rest| ("@demo", rest));
    rest.or_else(|| file.strip_prefix("/rustc/0/library/std/").map(|rest| ("@std", rest)))
        .or_else(|| file.strip_prefix("/rustc/0/library/core/").map(|rest| ("@core", rest)))
        .or_else(|| file.strip_prefix("/rustc/0/library/alloc/").map(|rest| ("@alloc", rest)))
}

const MAIN: &str = "c libc.so.6! __libc_start_main_impl csu/libc-start.c:360 > c libc.so.6! __libc_start_call_main > \
    c main > std::rt::lang_start /rustc/0/library/std/src/rt.rs:205 > \
    std::sys::backtrace::__rust_begin_short_backtrace /rustc/0/library/std/src/sys/backtrace.rs:166 > \
    demo::main /home/me/demo/src/main.rs:LINE";

const WORKER: &str = "c libc.so.6! clone3 > c libc.so.6! start_thread nptl/pthread_create.c:442 > \
    std::sys::thread::unix::Thread::new::thread_start /rustc/0/library/std/src/sys/thread/unix.rs:114 > \
    core::ops::function::FnOnce::call_once{{vtable.shim}} /rustc/0/library/core/src/ops/function.rs:253 > \
    demo::pool::Pool::run /home/me/demo/src/pool.rs:LINE";

/// A program that renders and hashes on two workers, waits, recurses and calls into C.
pub fn demo() -> Recording {
    let mut maker = Maker::new(&["target/release/demo", "--frames", "200"]);
    let process =
        maker.process("/home/me/demo/target/release/demo", &["target/release/demo", "--frames", "200"]);
    let main = maker.thread(process, "demo");
    let workers: Vec<ThreadNumber> = (1..=4).map(|n| maker.thread(process, &format!("worker-{n}"))).collect();
    let at = |text: &str, line: u32| text.replace("LINE", &line.to_string());
    let file = "/home/me/demo/src";

    let load = at(MAIN, 12);
    let load = format!(
        "{load} > demo::load::read_scene {file}/load.rs:31 > serde_json::de::from_str /home/me/.cargo/registry/src/index.crates.io-0/serde_json-1.0.140/src/de.rs:2730"
    );
    let parse = "serde_json::de::Deserializer::parse_value /home/me/.cargo/registry/src/index.crates.io-0/serde_json-1.0.140/src/de.rs:900";
    for depth in 1..=6 {
        let nested = vec![parse; depth].join(" > ");
        let stack = maker.stack(&format!("{load} > {nested}"));
        maker.sample(main, stack, State::Awake, 40);
        let stack = maker.stack(&format!("{load} > {nested} > alloc::raw_vec::RawVecInner::finish_grow /rustc/0/library/alloc/src/raw_vec.rs:800 > c libc.so.6! malloc malloc/malloc.c:3300 > c libc.so.6! _int_malloc malloc/malloc.c:4000"));
        maker.sample(main, stack, State::Awake, 7);
    }
    let join = at(MAIN, 30)
        + " > std::thread::JoinHandle::join /rustc/0/library/std/src/thread/join_handle.rs:149 > c libc.so.6! pthread_join nptl/pthread_join_common.c:105 > c libc.so.6! __futex_abstimed_wait_common64 nptl/futex-internal.c:57";
    let join = maker.stack(&join);
    maker.sample(main, join, State::Asleep, 2700);

    let render = at(WORKER, 41) + &format!(" > demo::render::render_frame {file}/render.rs:88");
    let blocks = [
        (
            "demo::hash::hash_block {file}/hash.rs:41 > + core::num::u64::rotate_left /rustc/0/library/core/src/num/uint_macros.rs:231",
            700,
        ),
        ("demo::hash::hash_block {file}/hash.rs:44", 310),
        (
            "demo::encode::encode {file}/encode.rs:7 > c libc.so.6! __memcpy_avx_unaligned_erms sysdeps/x86_64/multiarch/memmove-vec-unaligned-erms.S:314",
            420,
        ),
        (
            "demo::encode::encode {file}/encode.rs:19 > std::io::impls::Write::write_all /rustc/0/library/std/src/io/impls.rs:80 > std::io::buffered::bufwriter::BufWriter::flush_buf /rustc/0/library/std/src/io/buffered/bufwriter.rs:160 > c libc.so.6! write sysdeps/unix/sysv/linux/write.c:26",
            130,
        ),
        ("c ZSTD_compressBlock_fast zstd/lib/compress/zstd_fast.c:120", 96),
        ("demo::encode::checksum_of_everything_that_was_written {file}/encode.rs:207", 9),
        ("demo::encode::rare {file}/encode.rs:301", 3),
    ];
    for (worker, share) in workers.iter().zip([10_u64, 8, 3]) {
        for (text, ms) in &blocks {
            let stack = maker.stack(&format!("{render} > {}", text.replace("{file}", file)));
            maker.sample(*worker, stack, State::Awake, (ms * share / 10).max(1));
        }
    }
    let wait = at(WORKER, 36)
        + " > std::sync::poison::condvar::Condvar::wait /rustc/0/library/std/src/sync/poison/condvar.rs:190 > std::sys::sync::condvar::futex::Condvar::wait /rustc/0/library/std/src/sys/sync/condvar/futex.rs:50 > c libc.so.6! syscall sysdeps/unix/sysv/linux/x86_64/syscall.S:38";
    let wait = maker.stack(&wait);
    for (worker, ms) in workers.iter().zip([1300, 1650, 2500, 3000]) {
        maker.sample(*worker, wait, State::Asleep, ms);
    }
    let nameless = maker.stack("c /usr/lib/x86_64-linux-gnu/libcrypto.so.3! ?");
    maker.cut_sample(workers[0], nameless, State::Awake, 55, Some(Cut(3)));
    maker.recording
}

/// A shell that started two compilers and a linker.
pub fn build() -> Recording {
    let mut maker = Maker::new(&["sh", "-c", "make"]);
    let shell = maker.process("/usr/bin/dash", &["sh", "-c", "make"]);
    let thread = maker.thread(shell, "sh");
    let wait = maker.stack("c dash! main main.c:144 > c dash! waitproc jobs.c:1180 > c libc.so.6! wait4 sysdeps/unix/sysv/linux/wait4.c:30");
    maker.sample(thread, wait, State::Asleep, 3000);
    let start = maker.stack("c dash! main main.c:120 > c dash! init init.c:70");
    maker.sample(thread, start, State::Awake, 4);
    for (unit, ms) in [("parser.c", 900), ("render.c", 1400)] {
        let process = maker.process("/usr/libexec/cc1", &["/usr/libexec/cc1", "-O2", unit]);
        let thread = maker.thread(process, "cc1");
        for (pass, part) in [("execute_pass_list passes.cc:2610", 7), ("c_parse_file c-parser.cc:26900", 3)] {
            let stack = maker.stack(&format!(
                "c cc1! main main.cc:39 > c cc1! toplev::main toplev.cc:2300 > c cc1! {pass}"
            ));
            maker.sample(thread, stack, State::Awake, ms * part / 10);
        }
    }
    let process = maker.process("/usr/bin/ld.bfd", &["ld", "-o", "app"]);
    let thread = maker.thread(process, "ld");
    let stack = maker.stack("c ld.bfd! main ldmain.c:500 > c ld.bfd! bfd_elf_final_link elflink.c:12200");
    maker.sample(thread, stack, State::Awake, 210);
    maker.recording
}

/// A recording with every defect that a note is written for.
pub fn troubled() -> Recording {
    let mut maker = Maker::new(&["server"]);
    let process = maker.process("/srv/server", &["server"]);
    let main = maker.thread(process, "server");
    let stacks = [
        ("server! server::main /srv/src/main.rs:3 > server! server::handle", None),
        ("c /usr/lib/libssl.so.3! ?", Some(Cut(3))),
        ("c ! ?", Some(Cut(2))),
        ("server! server::main /srv/src/main.rs:3 > server! server::deep /srv/src/main.rs:9", Some(Cut(1))),
    ];
    for (text, cut) in stacks {
        let stack = maker.stack(text);
        maker.cut_sample(main, stack, State::Awake, 250, cut);
    }
    let recording = &mut maker.recording;
    for (module, missing) in [
        ("server", Missing::DebugInfo),
        ("/usr/lib/libssl.so.3", Missing::Names),
        ("/gone.so", Missing::File),
    ] {
        recording.symbols.note(ModuleNote { module: module.into(), missing, language: Language::Rust });
    }
    recording.processes[0].exe = "server".into();
    recording.threads[0].blocked_signal = true;
    let counters = [("ticks", 900), ("missed ticks", 100), ("events lost: stream full", 77)];
    recording.processes[0].counters = counters.map(|(label, count)| (label.to_owned(), count)).into();
    recording.info.full = true;
    recording.info.capacity = 10_000_000;
    recording.info.kernel_cpu = Some(Nanos(2_000_000_000));
    recording.info.end = Some(End::Signal(11));
    recording.info.remarks.push("the setuid program `sudo` was run without sampling".to_owned());
    maker.recording
}
