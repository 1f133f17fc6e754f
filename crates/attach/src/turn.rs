//! One at a time: a process can be traced by one other only, and whoever comes second is told before it has begun.
//!
//! An abstract socket's name is the lock: it leaves no file, and it is free again when its holder dies.
//! Source: unix(7).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// How long somebody means to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stay {
    /// A peek: others wait for its end.
    Brief,
    /// Until somebody ends it: nobody waits.
    Long,
}

/// The right to trace a process, among all stackglasses.
pub(super) struct Turn {
    _names: [Option<UnixListener>; 2],
}

impl Turn {
    /// Takes it.
    ///
    /// # Errors
    /// How long whoever has it means to stay. Where there are no such names, nobody waits.
    pub fn take(pid: u32, stay: Stay) -> Result<Turn, Stay> {
        let long = || name(format!("stackglass-stay-{pid}"));
        let Ok(turn) = name(format!("stackglass-look-{pid}")) else {
            return Err(if long().is_err() { Stay::Long } else { Stay::Brief });
        };
        Ok(Turn { _names: [turn, if stay == Stay::Long { long().unwrap_or(None) } else { None }] })
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
        let first = Turn::take(u32::MAX, Stay::Brief);
        assert!(first.is_ok());
        assert_eq!(Turn::take(u32::MAX, Stay::Long).err(), Some(Stay::Brief));
        let other = Turn::take(u32::MAX - 1, Stay::Long);
        assert!(other.is_ok());
        assert_eq!(Turn::take(u32::MAX - 1, Stay::Brief).err(), Some(Stay::Long));
        drop((first, other));
        assert!(Turn::take(u32::MAX, Stay::Long).is_ok());
    }
}
