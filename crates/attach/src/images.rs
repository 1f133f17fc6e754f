//! Reads code and unwind rules of another process and caches them page by page.
//!
//! Cached are only parts of files that are mapped and never written, so they do not change while their module is
//! mapped. The cache is cleared when a module is unmapped. The walker then needs no system calls, which matters while
//! a thread is stopped.

use foldhash::HashMap;
use stackglass_unwind::memory::read_process;
use stackglass_unwind::{Module, ModuleMemory};
use std::cell::RefCell;

const PAGE: u64 = 4096;
/// Largest number of cached pages: 128 MiB.
const MOST: usize = 32 << 10;

/// Page cache of one process.
pub struct Images {
    pid: i32,
    pages: RefCell<HashMap<u64, Box<[u8]>>>,
}

impl Images {
    /// An empty cache.
    pub fn new(pid: u32) -> Images {
        Images { pid: pid as i32, pages: RefCell::default() }
    }

    /// From now on, memory is read by the id of this thread.
    pub fn read_through(&mut self, tid: u32) {
        self.pid = tid as i32;
    }

    /// Clears the cache.
    pub fn forget(&mut self) {
        self.pages.get_mut().clear();
    }
}

impl ModuleMemory for Images {
    fn read(&self, module: &Module, address: u64, into: &mut [u8]) -> usize {
        // Code that was generated at run time may change.
        if module.unwind_data().is_empty() && module.build_id().is_empty() {
            return read_process(self.pid, address, into);
        }
        let mut pages = self.pages.borrow_mut();
        let mut done = 0;
        while done < into.len() {
            let Some(at) = address.checked_add(done as u64) else { break };
            if pages.len() >= MOST {
                pages.clear();
            }
            let page = pages.entry(at / PAGE).or_insert_with(|| fetch(self.pid, at / PAGE * PAGE));
            let rest = page.get((at % PAGE) as usize..).unwrap_or(&[]);
            if rest.is_empty() {
                break;
            }
            let n = rest.len().min(into.len() - done);
            into[done..done + n].copy_from_slice(&rest[..n]);
            done += n;
        }
        done
    }
}

fn fetch(pid: i32, at: u64) -> Box<[u8]> {
    let mut bytes = vec![0; PAGE as usize];
    let n = read_process(pid, at, &mut bytes);
    bytes.truncate(n);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_is_there() {
        let images = Images::new(std::process::id());
        let bytes: Vec<u8> = (0..100_000u32).map(|i| (i * 7 % 251) as u8).collect();
        let at = bytes.as_ptr().addr() as u64;
        let module = Module::from_image(0, |_, _| 0);
        assert!(module.is_none());
        // The reads do not depend on the module.
        let phdr = stackglass_unwind::modules::ProgramHeader { kind: 1, flags: 5, address: 0, size: 10 };
        let made = Module::from_program_headers(0, std::iter::once(phdr), |_, _| 0).unwrap();
        for module in [made, made.with_eh_frame(0..10)] {
            reads_right(&images, &module, at, &bytes);
        }
    }

    fn reads_right(images: &Images, module: &Module, at: u64, bytes: &[u8]) {
        for (from, len) in [(0, 1), (5, 40_000), (16_380, 10), (99_990, 10)] {
            let mut into = vec![0; len];
            assert_eq!(images.read(module, at + from as u64, &mut into), len);
            assert_eq!(into, bytes[from..from + len]);
        }
        let mut into = [0; 8];
        assert_eq!(images.read(module, 0, &mut into), 0);
        assert_eq!(images.read(module, u64::MAX - 3, &mut into), 0);
    }
}
