//! Core images of real processes: a process is stopped, and read while it is.

use stackglass_process_view::core_image::{CoreImage, Memory, Thread, ThreadRegisters};
use stackglass_procfs::maps;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a command; panics with its messages if it fails.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Compiles a program.
pub fn build(folder: &Path, source: &Path, compiler: &str, flags: &[&str]) -> PathBuf {
    let path = folder.join(source.file_stem().unwrap());
    run(Command::new(compiler).arg(source).args(flags).arg("-o").arg(&path));
    path
}

/// A process that is killed at the end.
pub struct Process {
    child: Child,
    registers: PathBuf,
}

impl Process {
    /// Starts a program and waits until it prints `ready`. `registers` is the program that prints registers.
    pub fn start(command: &mut Command, registers: &Path) -> Process {
        Process::start_with_lines(command, registers).0
    }

    /// The same, with the lines before.
    pub fn start_with_lines(command: &mut Command, registers: &Path) -> (Process, Vec<String>) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let printed = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
        let mut is_ready = false;
        let lines = printed.take_while(|line| {
            is_ready = line == "ready";
            !is_ready
        });
        let lines = lines.collect();
        let process = Process { child, registers: registers.to_owned() };
        assert!(is_ready, "{command:?} is not ready");
        (process, lines)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: &str) {
        run(Command::new("kill").arg(signal).arg(self.pid().to_string()));
    }

    /// Waits until all threads sleep.
    pub fn settle(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        let mut times = 0;
        while times < 5 {
            assert!(Instant::now() < end, "threads do not go to sleep");
            let sleep = self.threads().iter().all(|thread| self.state(*thread) == Some('S'));
            times = if sleep { times + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Stops all threads.
    pub fn stop(&self) {
        self.signal("-STOP");
        let end = Instant::now() + Duration::from_secs(60);
        while !self.threads().iter().all(|thread| self.state(*thread) == Some('T')) {
            assert!(Instant::now() < end, "the process does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn threads(&self) -> Vec<u32> {
        let entries = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let mut threads: Vec<u32> =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        threads.sort_by_key(|thread| (*thread != self.pid(), *thread));
        threads
    }

    fn state(&self, thread: u32) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{}/task/{thread}/stat", self.pid())).ok()?;
        stat.rsplit(") ").next()?.chars().next()
    }

    /// The process, which must be stopped.
    pub fn image(&self) -> CoreImage {
        let ids = self.threads();
        let printed = run(Command::new(&self.registers).args(ids.iter().map(u32::to_string)));
        let mut threads = Vec::new();
        for line in printed.lines() {
            let mut numbers = line.split(' ').map(|number| number.parse::<u64>().unwrap());
            let tid = numbers.next().unwrap() as u32;
            let registers = ThreadRegisters(std::array::from_fn(|_| numbers.next().unwrap()));
            threads.push(Thread { tid, name: String::new(), registers: Some(registers) });
        }
        assert_eq!(threads.len(), ids.len());
        CoreImage {
            pid: self.pid(),
            executable: stackglass_procfs::process::executable(self.pid()).display().to_string(),
            mappings: maps::read(self.pid()).unwrap(),
            threads,
            memory: Box::new(ProcessMemory::open(self.pid())),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct ProcessMemory {
    memory: File,
    pages: File,
}

impl ProcessMemory {
    fn open(pid: u32) -> ProcessMemory {
        let open = |name| File::open(format!("/proc/{pid}/{name}")).unwrap();
        ProcessMemory { memory: open("mem"), pages: open("pagemap") }
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            match self.memory.read_at(&mut into[done..], address + done as u64) {
                Ok(0) | Err(_) => break,
                Ok(more) => done += more,
            }
        }
        done
    }

    fn resident(&self, address: u64, pages: &mut [bool]) {
        let mut entries = vec![0; pages.len() * 8];
        let read = self.pages.read_at(&mut entries, address / 4096 * 8).unwrap_or(0);
        for (page, entry) in pages.iter_mut().zip(entries[..read].chunks_exact(8)) {
            // Present, or swapped out.
            *page = entry[7] & 0xc0 != 0;
        }
    }
}
