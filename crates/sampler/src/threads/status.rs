//! What a thread's `status` file says of its signals and of the system calls it may make (proc_pid_status(5)).

use stackglass_proc_text::numbers::{decimal, hexadecimal};

/// The seccomp state of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Confinement {
    /// `Seccomp`: 0 for none, 1 for strict, 2 for filters.
    mode: u64,
    /// `Seccomp_filters` (since Linux 5.9).
    filters: u64,
}

impl Confinement {
    /// Reads a status file. Kernels without seccomp have no such lines.
    pub fn parse(status: &[u8]) -> Confinement {
        let number = |name: &[u8]| decimal(line_of(status, name)?);
        Confinement {
            mode: number(b"Seccomp:").unwrap_or(0),
            filters: number(b"Seccomp_filters:").unwrap_or(0),
        }
    }

    /// Whether nothing is forbidden.
    pub fn is_free(self) -> bool {
        self.mode == 0
    }

    /// Whether everything that `other` may do is known to be allowed here as well.
    pub fn is_no_stricter_than(self, other: Confinement) -> bool {
        self.is_free() || self.mode == 2 && self == other
    }
}

/// The mask of blocked signals, from the line `SigBlk:` of a status file.
pub fn blocked_signals(status: &[u8]) -> Option<u64> {
    let mask = line_of(status, b"SigBlk:")?;
    hexadecimal(mask.strip_prefix(b"0x").unwrap_or(mask))
}

/// The value of the line that begins with `name`.
fn line_of<'a>(status: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    status.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(name)).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read() {
        assert_eq!(blocked_signals(b"Name:\tx\nSigBlk:\t0000000000400000\nSigIgn:\t0\n"), Some(1 << 22));
        assert_eq!(blocked_signals(b"Name:\tx\n"), None);
    }

    #[test]
    fn a_thread_with_more_filters_than_the_sampler_is_stricter() {
        let parse = |mode, filters| {
            Confinement::parse(
                format!("Name:\tx\nSeccomp:\t{mode}\nSeccomp_filters:\t{filters}\n").as_bytes(),
            )
        };
        let (free, ours, strict, more) = (parse(0, 0), parse(2, 1), parse(1, 0), parse(2, 2));
        assert_eq!(Confinement::parse(b"Name:\tx\n"), free);
        assert!(free.is_no_stricter_than(ours) && ours.is_no_stricter_than(ours));
        assert!(
            !strict.is_no_stricter_than(ours)
                && !more.is_no_stricter_than(ours)
                && !ours.is_no_stricter_than(free)
        );
    }
}
