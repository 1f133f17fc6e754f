//! Tasks of a process whose memory is corrupt: lists with cycles, vtables that are none, huge lengths, random states.
//!
//! The process and its types are real. Words of its memory are replaced while they are read, other ones for each seed. Whatever
//! is found then, the reader must return soon and must not panic.

use proptest::prelude::*;
use stackglass_awaits::Process;
use stackglass_layouts::{Layouts, Wanted};
use stackglass_process_view::core_image::{CoreImage, Mapping, Memory, Thread};
use stackglass_process_view::modules::{self, LoadedModule};
use stackglass_profile::Module;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use whole_programs::{Background, awaits};

const PAGE: u64 = 4096;

/// Memory with wrong words in it.
#[derive(Clone)]
struct Corrupt {
    memory: Arc<File>,
    mappings: Arc<Vec<Mapping>>,
    seed: u64,
    /// One of so many words is wrong; 0 for none.
    rarity: u64,
    /// Code and constants may be wrong as well.
    everywhere: bool,
}

impl Corrupt {
    fn plain(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let count = ((PAGE - at % PAGE) as usize).min(into.len() - done);
            match self.memory.read_at(&mut into[done..done + count], at) {
                Ok(read) if read > 0 => done += read,
                _ => break,
            }
        }
        done
    }

    /// What the word at an address reads as, if it is wrong.
    fn wrong(&self, address: u64) -> Option<u64> {
        let random = mixed(self.seed ^ address);
        if self.rarity == 0 || !random.is_multiple_of(self.rarity) {
            return None;
        }
        let mapping = stackglass_procfs::maps::at(&self.mappings, address)?;
        if !mapping.writable && !self.everywhere {
            return None;
        }
        let other = mixed(random);
        Some(match other % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => address,
            3 => address & !127,
            4 => other,
            5 => 1 << (other >> 58),
            // Some other word of the same mapping, such as a pointer or a vtable.
            _ => {
                let size = mapping.range.end - mapping.range.start;
                let mut bytes = [0; 8];
                self.plain(mapping.range.start + (other >> 3) % size / 8 * 8, &mut bytes);
                u64::from_le_bytes(bytes)
            }
        })
    }
}

impl Memory for Corrupt {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let read = self.plain(address, into);
        let mut word = address & !7;
        while word < address.saturating_add(read as u64) {
            if let Some(wrong) = self.wrong(word) {
                for (number, byte) in wrong.to_le_bytes().into_iter().enumerate() {
                    let at = (word + number as u64).wrapping_sub(address);
                    if at < read as u64 {
                        into[at as usize] = byte;
                    }
                }
            }
            word += 8;
        }
        read
    }
}

/// Numbers that look random (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A process that stands still, and its types.
struct Host {
    child: Background,
    modules: Vec<LoadedModule>,
    layouts: Layouts,
    memory: Corrupt,
}

impl Host {
    fn start(what: &str) -> Host {
        let mut child = Background::start(Command::new(awaits()).arg(what).stdout(Stdio::piped()));
        let lines = BufReader::new(child.stdout.take().expect("the output is a pipe")).lines();
        assert!(lines.map_while(Result::ok).any(|line| line == "READY"));
        let pid = child.id();
        let stopped = Command::new("kill").arg("-STOP").arg(pid.to_string()).status();
        assert!(stopped.expect("kill starts").success());
        let memory = Corrupt {
            memory: Arc::new(File::open(format!("/proc/{pid}/mem")).expect("the memory can be read")),
            mappings: Arc::new(stackglass_procfs::maps::read(pid).expect("the host has mappings")),
            seed: 0,
            rarity: 0,
            everywhere: false,
        };
        let executable = awaits().display().to_string();
        let modules = modules::find(&image(pid, &memory), &executable);
        let module = |module: &LoadedModule| Module {
            path: module.path.clone().into(),
            build_id: module.module.build_id().into(),
        };
        let files: Vec<Module> = modules.iter().map(module).collect();
        let options = stackglass_symbols::Options::default();
        let layouts = Layouts::read_with_locals(&files, &options, &[], &|_, _| 0, Wanted::Coroutines).0;
        Host { child, modules, layouts, memory }
    }

    /// The number of tasks that are found.
    fn tasks(&self, seed: u64, rarity: u64, everywhere: bool) -> usize {
        let memory = Corrupt { seed, rarity, everywhere, ..self.memory.clone() };
        let image = image(self.child.id(), &memory);
        let begin = Instant::now();
        let dump = stackglass_awaits::tasks(&Process {
            image: &image,
            modules: &self.modules,
            layouts: &self.layouts,
            locals: &[],
            tids: &[],
            wrapped: &[],
        });
        assert!(begin.elapsed() < Duration::from_secs(60), "it took {:?}", begin.elapsed());
        dump.tasks.len()
    }
}

fn image(pid: u32, memory: &Corrupt) -> CoreImage {
    let thread = Thread { tid: pid, name: String::new(), registers: None };
    CoreImage {
        pid,
        executable: String::new(),
        mappings: memory.mappings.to_vec(),
        threads: vec![thread],
        memory: Box::new(memory.clone()),
    }
}

fn corrupt(what: &str) {
    let host = Host::start(what);
    assert!(host.tasks(0, 0, false) > 10, "an intact process has its tasks");
    let cases = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) };
    proptest!(cases, |(seed: u64, rarity in 0u32..14, everywhere: bool)| {
        host.tasks(seed, 2 << rarity, everywhere);
    });
}

#[test]
fn shapes() {
    corrupt("shapes");
}

#[test]
fn cycles() {
    corrupt("cycles");
}
