//! Memory of a process with async tasks: whatever its words say, the reader of await stacks returns, and it does not panic.
//!
//! The process is the fuzz target itself, started a second time, and its types are its own. A change replaces one of the words
//! that the reader looks at, so that inputs mean something only with the program that they were found with.

use stackglass_awaits::Process;
use stackglass_layouts::{Layouts, Wanted};
use stackglass_process_view::core_image::{CoreImage, Mapping, Memory, Thread};
use stackglass_process_view::modules::{self, LoadedModule};
use stackglass_profile::Module;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

const PAGE: usize = 4096;
/// Bytes of a change: a word, the kind of its new value, and that value.
const CHANGE: usize = 9;

/// A copy of a process with tasks.
pub struct Host {
    pid: u32,
    mappings: Vec<Mapping>,
    pages: Arc<HashMap<u64, Box<[u8]>>>,
    modules: Vec<LoadedModule>,
    layouts: Layouts,
    /// Addresses of the words that the reader looks at.
    words: Vec<u64>,
    tasks: usize,
}

/// The copy with changes.
struct Changed {
    pages: Arc<HashMap<u64, Box<[u8]>>>,
    changes: HashMap<u64, u64>,
    /// Pages that are read one by one, which are those of tasks and of code.
    read: Arc<Mutex<BTreeSet<u64>>>,
}

impl Memory for Changed {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        if into.len() == PAGE {
            self.read.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
        }
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            let from = at as usize % PAGE;
            let count = (PAGE - from).min(into.len() - done);
            let Some(page) = self.pages.get(&(at - from as u64)) else { break };
            into[done..done + count].copy_from_slice(&page[from..from + count]);
            done += count;
        }
        let end = address.saturating_add(done as u64);
        for (&word, changed) in &self.changes {
            for (at, byte) in (word..).zip(changed.to_le_bytes()) {
                if (address..end).contains(&at) {
                    into[(at - address) as usize] = byte;
                }
            }
        }
        done
    }
}

impl Host {
    /// Copies a process that runs this `executable` and whose tasks all wait.
    ///
    /// # Panics
    /// If it has no tasks.
    pub fn copy(pid: u32, executable: &str) -> Host {
        let mappings = stackglass_procfs::maps::read(pid).expect("the host has mappings");
        let memory = File::open(format!("/proc/{pid}/mem")).expect("the memory can be read");
        let mut pages = HashMap::new();
        for mapping in &mappings {
            for address in mapping.range.clone().step_by(PAGE) {
                let mut page = vec![0; PAGE];
                if memory.read_exact_at(&mut page, address).is_ok() {
                    pages.insert(address, page.into());
                }
            }
        }
        let mut host = Host {
            pid,
            mappings,
            pages: Arc::new(pages),
            modules: Vec::new(),
            layouts: Layouts::default(),
            words: Vec::new(),
            tasks: 0,
        };
        let read = Arc::default();
        host.modules = modules::find(&host.image(HashMap::new(), &read), executable);
        let module = |module: &LoadedModule| Module {
            path: module.path.clone().into(),
            build_id: module.module.build_id().into(),
        };
        let files: Vec<Module> = host.modules.iter().map(module).collect();
        let options = stackglass_symbols::Options::default();
        host.layouts = Layouts::read_with_locals(&files, &options, &[], &|_, _| 0, Wanted::Coroutines).0;
        let read = Arc::default();
        host.tasks = host.read(HashMap::new(), &read);
        assert!(host.tasks > 0, "the host has tasks");
        for &page in read.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let Some(bytes) = host.pages.get(&page) else { continue };
            let words = (page..).step_by(8).zip(bytes.chunks_exact(8));
            host.words.extend(words.filter(|(_, word)| **word != [0; 8]).map(|(address, _)| address));
        }
        host
    }

    /// Tasks of the unchanged process.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    fn image(&self, changes: HashMap<u64, u64>, read: &Arc<Mutex<BTreeSet<u64>>>) -> CoreImage {
        let thread = Thread { tid: self.pid, name: String::new(), registers: None };
        let memory = Changed { pages: Arc::clone(&self.pages), changes, read: Arc::clone(read) };
        CoreImage {
            pid: self.pid,
            executable: String::new(),
            mappings: self.mappings.clone(),
            threads: vec![thread],
            memory: Box::new(memory),
        }
    }

    fn read(&self, changes: HashMap<u64, u64>, read: &Arc<Mutex<BTreeSet<u64>>>) -> usize {
        let process = Process {
            image: &self.image(changes, read),
            modules: &self.modules,
            layouts: &self.layouts,
            locals: &[],
            tids: &[],
            wrapped: &[],
        };
        stackglass_awaits::tasks(&process).tasks.len()
    }

    fn word(&self, number: &[u8]) -> u64 {
        let number = number.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte));
        self.words[number % self.words.len()]
    }

    fn value(&self, address: u64) -> u64 {
        let page = self.pages.get(&(address & !(PAGE as u64 - 1)));
        let word = page.and_then(|page| page.get(address as usize % PAGE..)?.first_chunk());
        word.map_or(0, |word| u64::from_le_bytes(*word))
    }
}

/// Reads the tasks of a changed process.
pub fn check(host: &Host, bytes: &[u8]) {
    let mut changes = HashMap::new();
    for bytes in bytes.chunks(CHANGE).take(32) {
        let mut change = [0; CHANGE];
        change[..bytes.len()].copy_from_slice(bytes);
        let (word, kind, value) = (host.word(&change[..4]), change[4], &change[5..]);
        let small = i32::from_le_bytes([value[0], value[1], value[2], value[3]]);
        let new = match kind % 6 {
            0 => i64::from(small) as u64,
            // A word from elsewhere, such as a pointer or a vtable.
            1 => host.value(host.word(value)),
            // A pointer to one of the words.
            2 => host.word(value),
            3 => host.value(word).wrapping_add(i64::from(small) as u64),
            4 => host.value(word) ^ (1 << (value[0] % 64)),
            _ => u64::from(small.unsigned_abs()) << 32,
        };
        changes.insert(word, new);
    }
    host.read(changes, &Arc::default());
}
