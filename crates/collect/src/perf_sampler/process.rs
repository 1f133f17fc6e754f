//! One process image: its program, its mappings, and its entry in the recording.
//!
//! An image gets an entry with its first sample only. Most forked children exec at once, and what they ran before belongs
//! to the image that follows.

use super::mappings::Mappings;
use super::system::System;
use crate::recording::EventTranslator;
use stackglass_perf::records::Mmap;
use stackglass_procfs::maps::Line;
use stackglass_profile::{Nanos, Process as RecordedProcess, Recorder};
use stackglass_wire::ThreadName;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Time between two readings of the mappings of a process that runs code outside of all known mappings, ns.
const SCAN_EVERY: u64 = 50_000_000;

/// One image of one process.
pub(super) struct Process {
    pub pid: u32,
    pub parent: u32,
    pub start: u64,
    /// A forked child that has not called exec.
    pub forked: bool,
    /// The name that the kernel has for its main thread.
    pub name: ThreadName,
    pub mappings: Mappings,
    /// Threads that have not ended.
    pub threads: u32,
    last_number: u32,
    /// The program's file, if it is known.
    exe: Option<Vec<u8>>,
    translator: Option<EventTranslator>,
    /// The recording has the path of its program.
    is_named: bool,
    /// When its arguments were read.
    described: u64,
    /// The recording was full, or this is a frozen copy, which never runs.
    refused: bool,
    scanned: u64,
    scan_cost: u64,
    /// It has called exec, and was not seen in its own code since. Until the kernel enters the new program, samples have the
    /// registers of the image before.
    begins: bool,
}

impl Process {
    /// An image that begins at `start`, without any mapping.
    pub(super) fn new(pid: u32, parent: u32, start: u64) -> Process {
        Process {
            pid,
            parent,
            start,
            forked: false,
            name: [0; 16],
            mappings: Mappings::default(),
            threads: 0,
            last_number: 0,
            exe: None,
            translator: None,
            is_named: false,
            described: 0,
            refused: false,
            scanned: 0,
            scan_cost: 0,
            begins: false,
        }
    }

    /// The image of a child that this process has forked.
    pub(super) fn forked(&self, pid: u32, start: u64) -> Process {
        Process {
            forked: true,
            name: self.name,
            mappings: self.mappings.forked(),
            exe: self.exe.clone(),
            ..Process::new(pid, self.pid, start)
        }
    }

    /// The image after an exec, without any mapping.
    pub(super) fn exec(&self, start: u64, name: ThreadName) -> Process {
        Process { name, begins: true, ..Process::new(self.pid, self.parent, start) }
    }

    /// Whether a sample with this program counter was taken while exec replaced the image before, whose registers it has.
    pub(super) fn is_between_programs(&mut self, in_user_code: bool, pc: u64) -> bool {
        self.begins &= !in_user_code;
        self.begins && !self.mappings.holds(pc)
    }

    /// What it runs: its file, or its name if that is not known.
    pub(super) fn kind(&self) -> Vec<u8> {
        self.exe.clone().unwrap_or_else(|| self.name.to_vec())
    }

    /// The number of the next thread.
    pub(super) fn next_number(&mut self) -> u32 {
        self.last_number += 1;
        self.last_number
    }

    /// Adds a mapping of code. The first mapped file after an exec is the program.
    pub(super) fn insert(&mut self, map: &Mmap<'_>, files: &mut super::files::Files) {
        if self.exe.is_none() && map.path.first() == Some(&b'/') && !map.path.starts_with(b"//") {
            self.exe = Some(map.path.to_vec());
        }
        self.mappings.insert(self.pid, map, files);
    }

    /// Whether the recording has it.
    pub(super) fn is_recorded(&self) -> bool {
        self.translator.is_some()
    }

    /// The translator of its events, with its current modules; created if needed. `None` if the recording is full.
    pub(super) fn translator(
        &mut self,
        system: &System,
        recorder: &mut Recorder,
    ) -> Option<&mut EventTranslator> {
        if self.translator.is_none() {
            self.refused |= self.forked && system.is_own_copy(self.pid, self.start);
            if self.refused || recorder.is_full() {
                return None;
            }
            let process = self.describe(system);
            self.is_named = process.exe.starts_with('/');
            let link = system.started_as(&process.exe, &String::from_utf8_lossy(self.name_text()));
            self.translator = EventTranslator::from_process(process, link, recorder);
            self.described = system.now();
            self.refused = self.translator.is_none();
            self.mappings.announce((system, self.pid), self.translator.as_mut()?, recorder);
        }
        if !self.is_named {
            self.name(system, recorder);
        }
        let translator = self.translator.as_mut()?;
        if self.mappings.is_unrecorded() {
            self.mappings.announce((system, self.pid), translator, recorder);
        }
        Some(translator)
    }

    /// Names the program of an image whose first stack was taken before its program was mapped.
    fn name(&mut self, system: &System, recorder: &mut Recorder) {
        let Some(exe) = &self.exe else { return };
        let exe: Arc<str> = String::from_utf8_lossy(exe).into();
        let link = system.started_as(&exe, &String::from_utf8_lossy(self.name_text()));
        self.translator
            .iter_mut()
            .for_each(|translator| translator.set_program(exe.clone(), link.clone(), recorder));
        self.is_named = true;
    }

    /// The translator of its events, if the recording has the image.
    pub(super) fn existing_translator(&mut self) -> Option<&mut EventTranslator> {
        self.translator.as_mut()
    }

    /// The process has called exec at `at`: arguments that were read later belong to the next image.
    pub(super) fn forget_arguments_since(&mut self, at: u64, recorder: &mut Recorder) {
        if let Some(translator) = self.translator.as_ref().filter(|_| self.described > at) {
            recorder.process_mut(translator.index()).arguments.clear();
        }
    }

    /// The image has ended at `at`.
    pub(super) fn end(&mut self, at: u64, recorder: &mut Recorder) {
        if let Some(translator) = &mut self.translator {
            translator.ended(Nanos(at), recorder);
        }
    }

    /// Whether it runs another file than the known one, which means that it has called exec.
    pub(super) fn has_another_file(&self, system: &System) -> bool {
        // Folders may have other names in the root folder of the process.
        let last = |path: &[u8]| path.rsplit(|b| *b == b'/').next().map(<[u8]>::to_vec);
        let link = system.executable(self.pid);
        let link = link.as_os_str().as_bytes();
        let known = self.exe.as_ref().map(|exe| exe.strip_suffix(b" (deleted)").unwrap_or(exe));
        known.is_some_and(|exe| !link.is_empty() && last(exe) != last(link))
    }

    fn name_text(&self) -> &[u8] {
        &self.name[..self.name.iter().position(|b| *b == 0).unwrap_or(self.name.len())]
    }

    fn describe(&self, system: &System) -> RecordedProcess {
        let exe = self.exe.clone().unwrap_or_default();
        // The process may have called exec since, or may have ended. Its arguments are right only if the file is the same.
        let link = system.executable(self.pid);
        let same = link.as_os_str().as_bytes() == exe || exe.is_empty();
        let arguments = match same && !link.as_os_str().is_empty() {
            true => system.arguments(self.pid),
            false => Vec::new(),
        };
        let path = if exe.is_empty() { link.as_os_str().as_bytes().to_vec() } else { exe };
        let exe: Arc<str> = match path.is_empty() {
            true => String::from_utf8_lossy(self.name_text()).into(),
            false => String::from_utf8_lossy(&path).into(),
        };
        RecordedProcess {
            pid: self.pid,
            parent: self.parent,
            exe,
            arguments,
            start: Nanos(self.start),
            end: None,
            forked: self.forked,
            counters: Default::default(),
        }
    }

    /// Reads all mappings, because a walk met code in none, unless that was done a moment ago. Whether there are new ones.
    pub(super) fn scan(&mut self, system: &System, files: &mut super::files::Files) -> bool {
        let now = system.now();
        if now < self.scanned + SCAN_EVERY + self.scan_cost * 20 {
            return false;
        }
        self.scanned = now;
        let Some(text) = system.maps(self.pid) else { return false };
        let mut changed = false;
        for line in text.split(|b| *b == b'\n') {
            let Some(map) = executable(line).filter(|map| !self.mappings.holds(map.start)) else { continue };
            self.mappings.insert(self.pid, &map, files);
            changed = true;
        }
        self.scan_cost = system.now().saturating_sub(now);
        changed
    }
}

/// The mapping that a line of `/proc/PID/maps` names, if it is of code.
fn executable(line: &[u8]) -> Option<Mmap<'_>> {
    let line = Line::parse(line).filter(|line| line.executable && line.path != b"[vsyscall]")?;
    let path = if line.path.is_empty() { &b"//anon"[..] } else { line.path };
    let (start, len, offset, inode) = (line.range.start, line.size(), line.offset, line.inode);
    Some(Mmap { start, len, offset, build_id: &[], inode, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_lines_of_maps_are_read() {
        let line = b"7ffff7de0000-7ffff7f00000 r-xp 00020000 fe:00 79 /lib/a b.so";
        let map = executable(line).unwrap();
        assert_eq!((map.start, map.len, map.offset, map.inode), (0x7fff_f7de_0000, 0x12_0000, 0x20000, 79));
        assert_eq!(map.path, b"/lib/a b.so");
        let line = b"7ffff7f00000-7ffff7f01000 r-xp 00000000 00:00 0 ";
        assert_eq!(executable(line).unwrap().path, b"//anon");
        for other in [&b"7ffff7de0000-7ffff7f00000 r--p 00020000 fe:00 79 /lib/x"[..], b"", b"x-y r-xp 0 0 0"]
        {
            assert!(executable(other).is_none());
        }
    }

    #[test]
    fn registers_of_the_image_before_are_known() {
        let mut image = Process::new(1, 0, 0).exec(5, [0; 16]);
        assert!(image.is_between_programs(false, 0x1000));
        let map = Mmap { start: 0x1000, len: 0x1000, offset: 0, build_id: &[], inode: 0, path: b"//anon" };
        image.insert(&map, &mut super::super::files::Files::default());
        assert!(!image.is_between_programs(false, 0x1000) && image.is_between_programs(false, 0x3000));
        // From here on, other code is code that no record told of.
        assert!(!image.is_between_programs(true, 0x1000) && !image.is_between_programs(false, 0x3000));
        assert!(!Process::new(1, 0, 0).is_between_programs(false, 0x3000));
    }

    #[test]
    fn own_mappings_are_found_by_a_scan() {
        let (mut process, mut files) = (Process::new(std::process::id(), 1, 0), Default::default());
        let me = (own_mappings_are_found_by_a_scan as *const ()).addr() as u64;
        assert!(!process.mappings.holds(me));
        let system = System::default();
        assert!(process.scan(&system, &mut files) && process.mappings.holds(me));
        (process.scanned, process.scan_cost) = (0, 0);
        assert!(!process.scan(&system, &mut files), "nothing new");
        let child = process.forked(77, 5);
        assert!(child.forked && child.parent == process.pid && child.mappings.holds(me));
        assert!(!process.exec(6, [0; 16]).mappings.holds(me));
    }
}
