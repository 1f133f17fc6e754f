//! The limits of processes: lines of `/proc/PID/limits`.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::{fs, io};

/// How many bytes the stack of the main thread may have; `u64::MAX` without a limit. `None` if it cannot be read.
pub fn stack(pid: u32) -> Option<u64> {
    soft_limit(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?, "Max stack size")
}

/// What the user reads if an error is that this process has too many open files: the reason and the way out.
pub fn too_many_files(error: &io::Error) -> Option<String> {
    if error.raw_os_error() != Some(Errno::MFILE.raw_os_error()) {
        return None;
    }
    // `/proc` cannot be read, for want of a descriptor. Without a limit, there are never too many.
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    Some(format!("too many open files: raise the limit (`ulimit -n`), which is {limit}"))
}

fn soft_limit(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    match rest.split_ascii_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_too_many_files_are_a_matter_of_the_limit() {
        let error = io::Error::from_raw_os_error(Errno::MFILE.raw_os_error());
        let line = too_many_files(&error).expect("there is a way out");
        assert!(line.starts_with("too many open files: raise the limit (`ulimit -n`), which is "), "{line}");
        let refused = io::Error::from_raw_os_error(Errno::PERM.raw_os_error());
        assert_eq!(too_many_files(&refused), None);
    }

    #[test]
    fn the_soft_limit_comes_first() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max stack size            8388608              unlimited            bytes     \n\
                    Max core file size        unlimited            0                    bytes     \n";
        assert_eq!(soft_limit(text, "Max stack size"), Some(8 << 20));
        assert_eq!(soft_limit(text, "Max core file size"), Some(u64::MAX));
        assert_eq!(soft_limit(text, "Max nothing"), None);
        assert!(stack(std::process::id()).is_some());
    }
}
