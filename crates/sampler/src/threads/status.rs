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

/// What a thread does with a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SignalState {
    /// Its mask has the signal, as in the handler of this signal.
    pub is_blocked: bool,
    /// The signal was sent to it and not delivered. Signals to the whole process do not count.
    pub is_pending: bool,
}

impl SignalState {
    /// Reads a status file; `None` if it does not tell.
    pub fn parse(status: &[u8], signal: i32) -> Option<SignalState> {
        let has = |name| {
            let mask = line_of(status, name)?;
            let mask = hexadecimal(mask.strip_prefix(b"0x").unwrap_or(mask))?;
            Some(mask >> (signal - 1) & 1 == 1)
        };
        Some(SignalState { is_blocked: has(b"SigBlk:")?, is_pending: has(b"SigPnd:")? })
    }

    /// The signal waits because the thread blocks it.
    pub fn is_held_back(self) -> bool {
        self.is_blocked && self.is_pending
    }
}

/// The value of the line that begins with `name`.
fn line_of<'a>(status: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    status.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(name)).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_was_delivered_is_not_held_back() {
        let state = |pending: &str| {
            let masks = "ShdPnd:\t400000\nSigBlk:\t0000000000400000\nSigIgn:\t0\n";
            SignalState::parse(format!("Name:\tx\nSigPnd:\t{pending}\n{masks}").as_bytes(), 23).unwrap()
        };
        assert!(state("0000000000600000").is_held_back());
        let in_handler = state("0000000000200000");
        assert!(in_handler.is_blocked && !in_handler.is_held_back());
        assert_eq!(SignalState::parse(b"Name:\tx\nSigPnd:\t0\n", 23), None);
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
