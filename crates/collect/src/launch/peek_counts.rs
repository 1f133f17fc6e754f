//! The page in which the processes of a session count requests for peeks.
//!
//! Its contents are hostile: any process that has mapped the page may write any process id into it. Only processes
//! that have really mapped it belong to the session and are sampled.

use crate::session::bus_guard::GuardedMap;
use stackglass_procfs::process;
use stackglass_procfs::status::namespace_pids;
use stackglass_wire::{REQUESTS_FILE, Requests};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The page and its file.
pub struct RequestPage {
    map: GuardedMap,
    path: PathBuf,
    /// Device and inode, as in `/proc/PID/maps`.
    file: String,
}

impl RequestPage {
    /// Creates the page in the folder of a session.
    ///
    /// # Errors
    /// If there is no room.
    pub fn create(folder: &Path) -> io::Result<RequestPage> {
        let path = folder.join(REQUESTS_FILE);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        // Writes the whole page: a full disk is noticed here, not in a signal handler.
        (&file).write_all(&[0; size_of::<Requests>()])?;
        let map = GuardedMap::new(file.as_fd(), size_of::<Requests>())?;
        let meta = file.metadata()?;
        let file = format!("{:02x}:{:02x} {}", libc::major(meta.dev()), libc::minor(meta.dev()), meta.ino());
        Ok(RequestPage { map, path, file })
    }

    /// Takes all requests: process ids of this session, and their number of requests.
    pub fn take(&self) -> Vec<(u32, u32)> {
        // SAFETY: that many bytes are mapped while `self` lives, page-aligned. The type is made of atomics, for which
        // any bytes are a value.
        let requests = unsafe { &*self.map.base().cast::<Requests>() };
        let (mut known, strange): (Vec<_>, Vec<_>) =
            requests.take().partition(|(pid, _)| self.is_mapped_by(*pid) == Some(true));
        if strange.is_empty() {
            return known;
        }
        let others = self.in_other_namespaces(&strange);
        // A process whose mappings cannot be read is refused with a message when it is sampled.
        let closed = |(pid, _): &(u32, u32)| {
            !others.iter().any(|(_, inner, _)| inner == pid) && self.is_mapped_by(*pid).is_none()
        };
        known.extend(strange.iter().filter(|asked| closed(asked)));
        known.extend(others.iter().map(|(pid, _, requests)| (*pid, *requests)));
        known
    }

    /// Whether a process has mapped the page; `None` if its mappings cannot be read.
    fn is_mapped_by(&self, pid: u32) -> Option<bool> {
        let Some(thread) = process::living_thread(pid) else { return Some(false) };
        match fs::read(format!("/proc/{thread}/maps")) {
            Ok(maps) => Some(self.is_in(&maps)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
            Err(_) => Some(false),
        }
    }

    fn is_in(&self, maps: &[u8]) -> bool {
        maps.split(|b| *b == b'\n').any(|line| {
            // Range, rights, offset, device, inode, path. Some file systems show other numbers than stat(2).
            let mut fields = line.splitn(6, |b| *b == b' ').skip(3);
            let (Some(device), Some(inode)) = (fields.next(), fields.next()) else { return false };
            let path = fields.next().unwrap_or(&[]).trim_ascii();
            [device, b" ", inode].concat() == self.file.as_bytes() || path == self.path.as_os_str().as_bytes()
        })
    }

    /// Processes in other pid namespaces: their id here, their id there, and their number of requests.
    fn in_other_namespaces(&self, asked: &[(u32, u32)]) -> Vec<(u32, u32, u32)> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter_map(|pid| {
            let own = namespace_pids(pid).into_iter().skip(1).last()?;
            let (_, requests) = asked.iter().find(|(pid, _)| *pid == own)?;
            (self.is_mapped_by(pid) == Some(true)).then_some((pid, own, *requests))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_page_is_accepted() {
        let place = tempfile::tempdir().unwrap();
        let page = RequestPage::create(place.path()).unwrap();
        // SAFETY: as in `take`.
        let requests = unsafe { &*page.map.base().cast::<Requests>() };
        let mut stranger = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        for pid in [std::process::id(), stranger.id(), u32::MAX, std::process::id()] {
            assert!(requests.add(pid));
        }
        assert_eq!(page.take(), [(std::process::id(), 2)], "this process has mapped it");
        assert_eq!(page.take(), []);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_page_is_known_by_its_file_or_its_path() {
        let place = tempfile::tempdir().unwrap();
        let mut page = RequestPage::create(place.path()).unwrap();
        (page.file, page.path) = ("00:1a 77".into(), "/dev/shm/a b/requests".into());
        assert!(page.is_in(b"7f00-7f01 rw-s 00000000 00:1a 77                         /else\n"));
        assert!(
            page.is_in(
                b"x\n7f00-7f01 rw-s 00000000 00:1b 78                         /dev/shm/a b/requests\n"
            )
        );
        for other in
            [&b""[..], b"7f00-7f01 rw-p 00000000 00:00 0 \n", b"7f00-7f01 rw-s 0 00:1a 777 /requests"]
        {
            assert!(!page.is_in(other));
        }
    }
}
