//! One at a time: a process can be traced by one other only, and whoever comes second is told before it has begun.
//!
//! An abstract socket's name is the lock: it leaves no file, and it is free again when its holder dies.
//! Source: unix(7).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// How long somebody means to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttachMode {
    /// A peek: others wait for its end.
    Brief,
    /// Until somebody ends it: nobody waits.
    Long,
}

/// The right to trace a process, among all stackglasses.
pub(super) struct TracerLock {
    _names: [Option<UnixListener>; 2],
}

impl TracerLock {
    /// Takes it.
    ///
    /// # Errors
    /// How long whoever has it means to mode. Where there are no such names, nobody waits.
    pub fn take(pid: u32, mode: AttachMode) -> Result<TracerLock, AttachMode> {
        let long = || name(format!("stackglass-stay-{pid}"));
        let Ok(turn) = name(format!("stackglass-look-{pid}")) else {
            return Err(if long().is_err() { AttachMode::Long } else { AttachMode::Brief });
        };
        Ok(TracerLock {
            _names: [turn, if mode == AttachMode::Long { long().unwrap_or(None) } else { None }],
        })
    }
}

/// Takes a name; an error when another has it.
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
