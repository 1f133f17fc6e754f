//! Asks samplers to let a process go while it is copied: only one thread can trace another.
//!
//! The request is the name of an abstract socket. It leaves no file, and it ends with the process that made it. A sampler
//! looks for the name now and then, by a call that fails while there is none. Source: unix(7).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// Time between two attempts while another copy is being taken.
const RETRY: Duration = Duration::from_millis(2);

/// A request to let a process go. It ends when this is dropped.
pub(super) struct CopyRequest {
    _name: Option<UnixDatagram>,
}

impl CopyRequest {
    /// Makes the request. Waits for others that are made for the same process, at most until `until`; `None` if that was not
    /// enough. On systems without abstract sockets there are no requests.
    pub(super) fn make(pid: u32, until: Instant) -> Option<CopyRequest> {
        loop {
            match name(pid).and_then(|name| UnixDatagram::bind_addr(&name)) {
                Ok(name) => return Some(CopyRequest { _name: Some(name) }),
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    return Some(CopyRequest { _name: None });
                }
                Err(_) if Instant::now() < until => std::thread::sleep(RETRY),
                Err(_) => return None,
            }
        }
    }
}

/// Whether another thread or command asks that a process is detached, to copy it.
pub(crate) fn is_wanted(pid: u32) -> bool {
    let connect = || UnixDatagram::unbound()?.connect_addr(&name(pid)?);
    connect().is_ok()
}

fn name(pid: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("stackglass-copy-{pid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_seen_while_it_lasts() {
        let pid = u32::MAX - 7;
        assert!(!is_wanted(pid));
        let request = CopyRequest::make(pid, Instant::now());
        assert!(request.is_some() && is_wanted(pid) && !is_wanted(pid - 1));
        assert!(CopyRequest::make(pid, Instant::now()).is_none());
        drop(request);
        assert!(!is_wanted(pid) && CopyRequest::make(pid, Instant::now()).is_some());
    }
}
