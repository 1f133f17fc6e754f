//! The limits of processes: lines of `/proc/PID/limits`.

use std::fs;

/// How many bytes the stack of the main thread may have; `u64::MAX` without a limit. `None` if it cannot be read.
pub fn stack(pid: u32) -> Option<u64> {
    soft_limit(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?, "Max stack size")
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
