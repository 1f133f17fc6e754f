//! The lock of the tracer: only one process can trace another, so a second Stackglass finds out before it starts.
//!
//! The lock is the name of an abstract socket. It leaves no file, and it is released when its holder dies. Source:
//! unix(7).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// How long a process stays attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttachMode {
    /// For a peek: others wait for its end.
    Brief,
    /// Until the user ends it: others do not wait.
    Long,
}

/// The right to trace a process, among all instances of Stackglass.
pub(super) struct TracerLock {
    mode: AttachMode,
    _names: [Option<UnixListener>; 2],
}

impl TracerLock {
    /// Takes the lock. On systems without abstract sockets this always succeeds.
    ///
    /// # Errors
    /// The mode of the process that holds the lock.
    pub fn take(pid: u32, mode: AttachMode) -> Result<TracerLock, AttachMode> {
        let long = || name(format!("stackglass-stay-{pid}"));
        let Ok(turn) = name(format!("stackglass-look-{pid}")) else {
            return Err(if long().is_err() { AttachMode::Long } else { AttachMode::Brief });
        };
        Ok(TracerLock {
            mode,
            _names: [turn, if mode == AttachMode::Long { long().unwrap_or(None) } else { None }],
        })
    }

    /// How long the holder stays attached.
    pub fn mode(&self) -> AttachMode {
        self.mode
    }
}

/// Binds a name; an error if another process has bound it, `None` if the system has no such names.
fn name(name: String) -> Result<Option<UnixListener>, ()> {
    match SocketAddr::from_abstract_name(name).and_then(|name| UnixListener::bind_addr(&name)) {
        Ok(name) => Ok(Some(name)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(()),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let first = TracerLock::take(u32::MAX, AttachMode::Brief);
        assert!(first.is_ok());
        assert_eq!(TracerLock::take(u32::MAX, AttachMode::Long).err(), Some(AttachMode::Brief));
        let other = TracerLock::take(u32::MAX - 1, AttachMode::Long);
        assert!(other.is_ok());
        assert_eq!(TracerLock::take(u32::MAX - 1, AttachMode::Brief).err(), Some(AttachMode::Long));
        drop((first, other));
        assert!(TracerLock::take(u32::MAX, AttachMode::Long).is_ok());
    }
}
