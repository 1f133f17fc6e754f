//! A process that does not run, as the crate `heapgraph` reads it.

use stackglass_heapgraph::image::{Image, Mapping, Memory, Thread};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// `/proc/PID/mem`.
struct ProcMemory(File);

impl Memory for ProcMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            match self.0.read_at(&mut into[done..], address.saturating_add(done as u64)) {
                Ok(0) | Err(_) => break,
                Ok(count) => done += count,
            }
        }
        done
    }
}

/// The image of a process that was stopped by a signal. Its registers are not known.
pub fn of_stopped(pid: u32) -> std::io::Result<Image> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let mappings = maps.lines().filter_map(mapping).collect();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"))?.flatten().filter_map(|entry| {
        let tid = entry.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        Some(Thread { tid, name: name.trim_end().into(), registers: None })
    });
    Ok(Image { pid, mappings, threads: threads.collect(), memory: Box::new(ProcMemory(memory)) })
}

fn mapping(line: &str) -> Option<Mapping> {
    let known = stackglass_procfs::maps::Line::parse(line.as_bytes())?;
    let flags = line.split_ascii_whitespace().nth(1)?.as_bytes();
    let has = |at: usize, flag: u8| flags.get(at) == Some(&flag);
    Some(Mapping {
        range: known.start..known.end,
        readable: has(0, b'r'),
        writable: has(1, b'w'),
        executable: has(2, b'x'),
        shared: has(3, b's'),
        offset: known.offset,
        inode: known.inode,
        path: String::from_utf8_lossy(known.path).into_owned(),
    })
}
