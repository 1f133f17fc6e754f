//! Inspects a program before it starts: where it is, and whether a preload library can be loaded into it.
//!
//! Scripts are followed to their interpreter, as execve(2) does (at most five times). The result is advice: the
//! program is started in any case, if possible.

use object::elf::{ET_EXEC, FileHeader64, PT_INTERP};
use object::read::ReadCache;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ReadRef};
use stackglass_wire::{CONTROL_BYTES, STREAM_BYTES};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Largest number of nested interpreters that the kernel follows.
const MOST_INTERPRETERS: usize = 5;
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// A program that can be started.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name as it was given.
    pub name: OsString,
    /// The file that will be executed.
    pub path: PathBuf,
}

/// Why a program cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum NotStartable {
    /// There is no such file (in any folder of `PATH`).
    #[error("{0}: no such program{1}")]
    Missing(String, &'static str),
    /// The file cannot be executed.
    #[error("{0}: {1}")]
    NotExecutable(String, &'static str),
    /// The file in a script's `#!` line cannot be started.
    #[error("{program}: its interpreter {} {why}", interpreter.display())]
    Interpreter {
        /// Name of the script.
        program: String,
        /// The interpreter in its first line.
        interpreter: PathBuf,
        /// The problem with it.
        why: &'static str,
        /// There is no such file.
        missing: bool,
    },
}

impl NotStartable {
    /// The exit status of a shell: 127 for a missing file, 126 for one that is not executable.
    pub fn exit_status(&self) -> i32 {
        match self {
            NotStartable::Missing(..) | NotStartable::Interpreter { missing: true, .. } => 127,
            NotStartable::NotExecutable(..) | NotStartable::Interpreter { .. } => 126,
        }
    }
}

/// Why the preload library cannot be loaded into a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// It has no dynamic loader.
    Static,
    /// Its loader is musl's, which cannot load a library made for glibc.
    Musl,
    /// It gains privileges when it starts, so the loader ignores LD_PRELOAD.
    Privileged,
    /// It is for another CPU, or 32 bits wide.
    Architecture,
    /// Its sanitizer takes over the functions that the preload library needs: it would crash, or report false errors.
    Sanitizer,
    /// Files may not grow to the size that sampling needs: the kernel would kill the program.
    FileSizeLimit,
}

impl Obstacle {
    /// The problem and the remedy; follows the name of the program.
    pub fn advice(self) -> &'static str {
        match self {
            Obstacle::Static => {
                "is statically linked, so the library cannot be loaded into it; \
                 `stackglass record --pid PID` looks at it from outside"
            }
            Obstacle::Musl => {
                "is linked to musl, so the library cannot be loaded into it; \
                 `stackglass record --pid PID` looks at it from outside"
            }
            Obstacle::Privileged => {
                "is set-uid, set-gid or has file capabilities, so loader and kernel keep us out; \
                 run a copy without them (cp it, then record the copy)"
            }
            Obstacle::Architecture => {
                "is not a 64-bit x86 program, so it cannot be sampled; record an x86-64 build of it"
            }
            Obstacle::Sanitizer => {
                "is built with the sanitizer of threads, leaks or memory, so the library is not loaded into it; \
                 `stackglass record` with perf events looks at it from outside"
            }
            Obstacle::FileSizeLimit => {
                "runs under a limit on file sizes that leaves no room for samples; raise it (ulimit -f unlimited)"
            }
        }
    }

    /// The same if the library is needed for allocations alone.
    pub fn advice_on_allocations(self) -> &'static str {
        match self {
            Obstacle::Static => {
                "is statically linked, so its allocations are not recorded, only its time; \
                 link it dynamically, or use the crate"
            }
            Obstacle::Musl => {
                "is linked to musl, so its allocations are not recorded, only its time; \
                 link it to glibc, or use the crate"
            }
            Obstacle::Sanitizer => {
                "is built with the sanitizer of threads, leaks or memory, so its allocations are not recorded, only its time; \
                 build it without them"
            }
            Obstacle::FileSizeLimit => {
                "runs under a limit on file sizes, so its allocations are not recorded, only its time; \
                 raise it (ulimit -f unlimited)"
            }
            Obstacle::Privileged | Obstacle::Architecture => self.advice(),
        }
    }

    /// Whether a program cannot be sampled from outside either.
    pub fn is_the_kernels(self) -> bool {
        matches!(self, Obstacle::Privileged | Obstacle::Architecture)
    }

    /// Whether LD_PRELOAD would harm the program instead of being ignored.
    pub fn forbids_preload(self) -> bool {
        matches!(
            self,
            Obstacle::Musl | Obstacle::Architecture | Obstacle::FileSizeLimit | Obstacle::Sanitizer
        )
    }
}

impl Program {
    /// Finds a program as execvp(3) does: a name with a slash is a path, others are searched for in `PATH`.
    ///
    /// # Errors
    /// If there is none, if this user may not execute it, or if that is true for a script's interpreter.
    pub fn find(name: &OsStr) -> Result<Program, NotStartable> {
        let program = Program::find_file(name)?;
        program.check_interpreters()?;
        Ok(program)
    }

    fn find_file(name: &OsStr) -> Result<Program, NotStartable> {
        let shown = || name.to_string_lossy().into_owned();
        if name.as_bytes().contains(&b'/') {
            let path = PathBuf::from(name);
            return match executable(&path) {
                Ok(()) => Ok(Program { name: name.into(), path }),
                Err(None) => Err(NotStartable::Missing(shown(), "")),
                Err(Some(why)) => Err(NotStartable::NotExecutable(shown(), why)),
            };
        }
        if name.is_empty() {
            return Err(NotStartable::Missing("(an empty name)".into(), ""));
        }
        let folders = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        let mut refused = None;
        for folder in std::env::split_paths(&folders) {
            // An empty entry means the current folder.
            let path =
                if folder.as_os_str().is_empty() { Path::new(".").join(name) } else { folder.join(name) };
            match executable(&path) {
                Ok(()) => return Ok(Program { name: name.into(), path }),
                Err(Some(why)) => refused = Some(why),
                _ => {}
            }
        }
        if let Some(why) = refused {
            return Err(NotStartable::NotExecutable(shown(), why));
        }
        let here = Path::new(name).is_file();
        Err(NotStartable::Missing(
            shown(),
            if here { " in PATH; for the one in this folder write ./ before it" } else { " in PATH" },
        ))
    }

    /// Follows `#!` lines. execve(2) would only report "no such file" although the script exists.
    fn check_interpreters(&self) -> Result<(), NotStartable> {
        for interpreter in self.interpreters() {
            if let Err(why) = executable(&interpreter) {
                return Err(NotStartable::Interpreter {
                    program: self.name.to_string_lossy().into_owned(),
                    interpreter,
                    why: why.unwrap_or("does not exist (see its first line)"),
                    missing: why.is_none(),
                });
            }
        }
        Ok(())
    }

    /// The interpreter of a script, the interpreter of that one, and so on.
    fn interpreters(&self) -> impl Iterator<Item = PathBuf> {
        let next = |path: &PathBuf| {
            let mut start = [0u8; 256];
            let len = File::open(path).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
            interpreter(&start[..len])
        };
        std::iter::successors(next(&self.path), next).take(MOST_INTERPRETERS)
    }

    /// The file that the kernel runs: the program, or the interpreter of a script.
    pub fn executable(&self) -> PathBuf {
        self.interpreters().last().unwrap_or_else(|| self.path.clone())
    }

    /// What keeps the preload library out, if anything.
    pub fn obstacle(&self) -> Option<Obstacle> {
        if file_size_limit() < (STREAM_BYTES + CONTROL_BYTES) as u64 {
            return Some(Obstacle::FileSizeLimit);
        }
        let mut path = self.path.clone();
        for _ in 0..=MOST_INTERPRETERS {
            let Ok(mut file) = File::open(&path) else { return None };
            if gains_rights(&file, &path) {
                return Some(Obstacle::Privileged);
            }
            let mut start = [0u8; 256];
            let len = file.read(&mut start).unwrap_or(0);
            match interpreter(&start[..len]) {
                Some(next) => path = next,
                None if start.starts_with(b"\x7fELF") => return elf_obstacle(&start[..len], file),
                // A script without `#!` is run by the shell.
                None => return None,
            }
        }
        None
    }
}

/// Largest size of a file in bytes (`ulimit -f`).
pub(super) fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is live; if the call fails, it keeps the value "no limit".
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}

/// `Err(None)`: it does not exist. `Err(Some(reason))`: it cannot be executed.
fn executable(path: &Path) -> Result<(), Option<&'static str>> {
    let meta = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => Some("permission denied"),
        _ => None,
    })?;
    if meta.is_dir() {
        return Err(Some("is a folder"));
    }
    let Ok(c_path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return Err(None) };
    // SAFETY: `c_path` ends with a zero byte.
    let may = unsafe { libc::access(c_path.as_ptr(), libc::X_OK) } == 0;
    // For root, access(2) succeeds with any x bit; without any, exec fails for root as well.
    if may && meta.permissions().mode() & 0o111 != 0 {
        Ok(())
    } else {
        Err(Some("is not executable (chmod +x?)"))
    }
}

/// The interpreter of a `#!` line.
fn interpreter(start: &[u8]) -> Option<PathBuf> {
    let line = start.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let word = line.trim_ascii().split(|b| *b == b' ' || *b == b'\t').next()?;
    (!word.is_empty()).then(|| PathBuf::from(OsString::from_vec(word.to_vec())))
}

fn gains_rights(file: &File, path: &Path) -> bool {
    let Ok(meta) = file.metadata() else { return false };
    // SAFETY: these have no arguments and cannot fail.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let mode = meta.permissions().mode();
    if (mode & SET_USER != 0 && meta.uid() != user) || (mode & SET_GROUP != 0 && meta.gid() != group) {
        return true;
    }
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both texts end with a zero byte; a null buffer of length 0 requests the size only.
    let capabilities =
        unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) };
    capabilities > 0 && user != 0
}

fn elf_obstacle(start: &[u8], file: File) -> Option<Obstacle> {
    let [_, _, _, _, class, data, ..] = start else { return Some(Obstacle::Architecture) };
    let machine = start.get(18..20).map(|m| u16::from_le_bytes([m[0], m[1]]));
    if *class != object::elf::ELFCLASS64.0
        || *data != object::elf::ELFDATA2LSB.0
        || machine != Some(object::elf::EM_X86_64.0)
    {
        return Some(Obstacle::Architecture);
    }
    let cache = ReadCache::new(file);
    match loader(&cache) {
        Ok(Some(loader)) if loader.windows(7).any(|w| w == b"ld-musl") => Some(Obstacle::Musl),
        Ok(Some(_)) => has_sanitizer(&cache).then_some(Obstacle::Sanitizer),
        Ok(None) => Some(Obstacle::Static),
        // Not a kind of file that is known here: the kernel decides.
        Err(_) => None,
    }
}

/// The loader's path; `None` for a program without one. A loader that is started directly is its own loader.
fn loader<'a, R: ReadRef<'a>>(data: R) -> object::Result<Option<Vec<u8>>> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let mut dynamic = false;
    for segment in header.program_headers(endian, data)? {
        if segment.p_type(endian) == PT_INTERP {
            return Ok(segment.interpreter(endian, data)?.map(<[u8]>::to_vec));
        }
        dynamic |= segment.p_type(endian) == object::elf::PT_DYNAMIC;
    }
    // ld.so itself is a shared object without a loader and obeys LD_PRELOAD. A static-pie program looks the same, but
    // has no interface name (DT_SONAME).
    let is_loader = dynamic && header.e_type(endian) != ET_EXEC && has_soname(header, endian, data)?;
    Ok(is_loader.then(Vec::new))
}

/// Whether a program is built with a sanitizer that bears no other library before its own.
fn has_sanitizer<'a, R: ReadRef<'a>>(data: R) -> bool {
    const STARTS: [&[u8]; 5] =
        [b"__tsan_init", b"__msan_init", b"__lsan_init", b"__hwasan_init", b"__dfsan_init"];
    let Ok(file) = ElfFile64::<Endianness, R>::parse(data) else { return false };
    file.dynamic_symbols().any(|symbol| symbol.name_bytes().is_ok_and(|name| STARTS.contains(&name)))
}

fn has_soname<'a, R: ReadRef<'a>>(
    header: &FileHeader64<Endianness>,
    endian: Endianness,
    data: R,
) -> object::Result<bool> {
    for segment in header.program_headers(endian, data)? {
        if let Some(entries) = segment.dynamic(endian, data)? {
            return Ok(entries.iter().any(|entry| entry.tag(endian) == object::elf::DT_SONAME));
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let sh = Program::find(OsStr::new("sh")).unwrap();
        assert!(sh.path.is_absolute());
        assert_eq!(sh.obstacle(), None);
        assert_eq!(Program::find(OsStr::new("no-such-program-here")).unwrap_err().exit_status(), 127);
        assert_eq!(Program::find(OsStr::new("./no/such/file")).unwrap_err().exit_status(), 127);
        assert_eq!(Program::find(OsStr::new("/")).unwrap_err().exit_status(), 126);
        assert_eq!(Program::find(OsStr::new("/etc/passwd")).unwrap_err().exit_status(), 126);
        assert_eq!(Program::find(OsStr::new("")).unwrap_err().exit_status(), 127);
    }

    #[test]
    fn interpreters_are_read_from_the_first_line() {
        assert_eq!(interpreter(b"#!/bin/sh\nls"), Some("/bin/sh".into()));
        assert_eq!(interpreter(b"#! /usr/bin/env  python3 -u\n"), Some("/usr/bin/env".into()));
        assert_eq!(interpreter(b"#!\n"), None);
        assert_eq!(interpreter(b"ls"), None);
    }

    #[test]
    fn another_architecture_is_recognised_from_the_header() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let write = |class: u8, machine: u8| {
            let mut bytes = vec![0u8; 64];
            bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
            (bytes[16], bytes[18]) = (2, machine);
            std::fs::write(&path, bytes).unwrap();
            Program { name: "program".into(), path: path.clone() }.obstacle()
        };
        assert_eq!(write(1, 3), Some(Obstacle::Architecture), "i386");
        assert_eq!(write(2, 183), Some(Obstacle::Architecture), "aarch64");
        assert_eq!(write(2, 62), Some(Obstacle::Static), "x86-64 without segments");
    }

    /// A 64-bit program whose only segment is the name of this loader.
    fn elf_with_loader(loader: &str) -> Vec<u8> {
        let mut bytes = vec![0u8; 64 + 56];
        bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
        (bytes[16], bytes[18], bytes[20]) = (3, 62, 1);
        // One program header of 56 bytes follows the 64 bytes of the file header.
        (bytes[32], bytes[52], bytes[54], bytes[56]) = (64, 64, 56, 1);
        (bytes[64], bytes[72]) = (PT_INTERP.0 as u8, 120);
        bytes[96..104].copy_from_slice(&(loader.len() as u64 + 1).to_le_bytes());
        bytes.extend(loader.as_bytes());
        bytes.push(0);
        bytes
    }

    #[test]
    fn the_loader_decides_whether_we_get_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let obstacle = |loader: &str| {
            std::fs::write(&path, elf_with_loader(loader)).unwrap();
            Program { name: "program".into(), path: path.clone() }.obstacle()
        };
        assert_eq!(obstacle("/lib/ld-musl-x86_64.so.1"), Some(Obstacle::Musl));
        assert_eq!(obstacle("/lib64/ld-linux-x86-64.so.2"), None);
        assert!(Obstacle::Musl.forbids_preload() && !Obstacle::Static.forbids_preload());
    }

    #[test]
    fn the_loader_itself_is_no_static_program() {
        let ld = PathBuf::from("/lib64/ld-linux-x86-64.so.2");
        let program = Program { name: ld.clone().into(), path: ld };
        assert_eq!(program.obstacle(), None);
    }
}
