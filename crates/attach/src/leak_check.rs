//! Programs that check for leaks when they exit, as AddressSanitizer and LeakSanitizer do.
//!
//! The check stops all threads by ptrace. If they are traced already, the check fails and the program exits with
//! status 1, losing unwritten output. So such programs are not traced unless the check is off.

use stackglass_procfs::Status;
use stackglass_procfs::elf_names::{contains, section_contains};
use std::fs::{self, File};
use std::path::Path;

/// Libraries and functions that contain the check, as they appear in a table of dynamic names.
const NAMES: [&[u8]; 5] =
    [b"libasan.so", b"liblsan.so", b"libclang_rt.asan", b"libclang_rt.lsan", b"__lsan_do_leak_check"];

/// Why a process must not be traced; `None` if it may be.
pub fn obstacle(pid: u32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let exe = Path::new("/proc").join(pid.to_string()).join("exe");
    if is_off(&environment) || !checks(&exe) {
        return None;
    }
    let name = Status::read(pid)?.name;
    Some(text(&name))
}

/// Why a program that will be started here must not be traced; `None` if it may be.
pub fn obstacle_of(program: &Path) -> Option<String> {
    let own = fs::read("/proc/self/environ").unwrap_or_default();
    let name = program.file_name()?.to_string_lossy().into_owned();
    (!is_off(&own) && checks(program)).then(|| text(&name))
}

fn text(name: &str) -> String {
    format!(
        "{name} checks for leaks at its end, which fails under ptrace: it is not sampled; \
         ASAN_OPTIONS=detect_leaks=0 turns the check off"
    )
}

fn is_off(environment: &[u8]) -> bool {
    environment.split(|b| *b == 0).any(|variable| {
        (variable.starts_with(b"ASAN_OPTIONS=") || variable.starts_with(b"LSAN_OPTIONS="))
            && contains(variable, b"detect_leaks=0")
    })
}

fn checks(program: &Path) -> bool {
    File::open(program).is_ok_and(|file| section_contains(file, ".dynstr", &NAMES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_is_off_where_the_environment_says_so() {
        assert!(is_off(b"A=1\0ASAN_OPTIONS=verbosity=0:detect_leaks=0\0"));
        assert!(is_off(b"LSAN_OPTIONS=detect_leaks=0\0"));
        assert!(!is_off(b"ASAN_OPTIONS=detect_leaks=1\0") && !is_off(b"") && !is_off(b"detect_leaks=0\0"));
    }

    #[test]
    fn other_programs_have_no_check() {
        assert!(!checks(Path::new("/bin/sh")) && !checks(Path::new("/etc/passwd")));
        assert_eq!(obstacle(std::process::id()), None);
    }
}
