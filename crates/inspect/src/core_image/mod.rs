//! The core image of a frozen process, or of the own one (`own`).

mod not_copied;
pub(crate) mod own;
mod written;

use not_copied::NotCopied;
use stackglass_attach::frozen::{FrozenProcess, FrozenThread, ProcessMemory};
use stackglass_process_view::core_image::{CoreImage, Mapping, Memory, Thread, ThreadRegisters, Written};
use std::sync::{Mutex, PoisonError, RwLock};
use written::{Elsewhere, Source, Usages};

struct FrozenMemory {
    pid: u32,
    is_copy: bool,
    memory: ProcessMemory,
    not_copied: NotCopied,
    /// Looked up when it is needed first.
    usages: Mutex<Option<Usages>>,
    /// More memory that is not read in the copy.
    elsewhere: RwLock<Vec<Elsewhere>>,
}

impl FrozenMemory {
    /// What is read elsewhere than in the copy, or `None`.
    fn read_elsewhere(&self, address: u64, into: &mut [u8]) -> Option<usize> {
        let elsewhere = self.elsewhere.read().unwrap_or_else(PoisonError::into_inner);
        let found = elsewhere.iter().find(|other| other.range.contains(&address))?;
        let process = self.not_copied.memory().unwrap_or(&self.memory);
        let most = (found.range.end - address).min(into.len() as u64) as usize;
        Some(found.source.read(process, address, address - found.range.start, &mut into[..most]))
    }
}

impl Memory for FrozenMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        if let Some(read) = self.read_elsewhere(address, into) {
            return read;
        }
        match self.not_copied.contains(address) {
            true => self.not_copied.read(address, into),
            false => self.memory.read(address, into),
        }
    }

    fn resident(&self, address: u64, pages: &mut [bool]) {
        let elsewhere = self.elsewhere.read().unwrap_or_else(PoisonError::into_inner);
        let is_elsewhere = elsewhere.iter().any(|other| other.range.contains(&address));
        match is_elsewhere || self.not_copied.contains(address) {
            true => pages.fill(true),
            false => self.memory.resident(address, pages),
        }
    }

    fn written(&self, mapping: &Mapping) -> Written {
        let mut usages = self.usages.lock().unwrap_or_else(PoisonError::into_inner);
        let usages = usages.get_or_insert_with(|| Usages::read(self.pid));
        let of_process = self.not_copied.memory().unwrap_or(&self.memory);
        let is_lacking =
            self.is_copy && (self.not_copied.contains(mapping.range.start) || usages.is_wiped(mapping));
        let memory = if is_lacking { of_process } else { &self.memory };
        let (written, source) = if mapping.shared {
            let (written, file) = usages.shared(self.pid, mapping, of_process);
            (written, file.map(|file| Source::File(file, mapping.offset)))
        } else {
            let written = usages.private(mapping, memory, !is_lacking);
            (written, (is_lacking && usages.is_wiped(mapping)).then_some(Source::Process))
        };
        if let Some(source) = source {
            let mut elsewhere = self.elsewhere.write().unwrap_or_else(PoisonError::into_inner);
            elsewhere.push(Elsewhere { range: mapping.range.clone(), source });
        }
        written
    }
}

/// The core image of a process. Its memory can be read as long as that value lives.
pub fn from_frozen(process: &FrozenProcess) -> CoreImage {
    let thread = |thread: &FrozenThread| Thread {
        tid: thread.tid,
        name: thread.name.clone(),
        registers: thread.registers.map(ThreadRegisters),
    };
    let not_copied = match process.is_copy() {
        true => NotCopied::find(process.pid(), process.mappings(), process.given_back()),
        false => NotCopied::default(),
    };
    let memory = FrozenMemory {
        // The main thread may have ended.
        pid: stackglass_procfs::process::living_thread(process.pid()).unwrap_or(process.pid()),
        is_copy: process.is_copy(),
        memory: process.memory().clone(),
        not_copied,
        usages: Mutex::default(),
        elsewhere: RwLock::default(),
    };
    let mut mappings = process.mappings().to_vec();
    mappings.extend_from_slice(&memory.not_copied.excluded);
    mappings.sort_by_key(|mapping| mapping.range.start);
    CoreImage {
        pid: process.pid(),
        executable: stackglass_procfs::process::executable(process.pid()).display().to_string(),
        mappings,
        threads: process.threads().iter().map(thread).collect(),
        memory: Box::new(memory),
    }
}
