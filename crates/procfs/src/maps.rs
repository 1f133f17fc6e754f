//! The mappings of processes: lines of `/proc/PID/maps`.

use std::ops::Range;
use std::{fs, io};

/// A mapping of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping<P = String> {
    /// Its addresses.
    pub range: Range<u64>,
    /// The memory may be read.
    pub readable: bool,
    /// The memory may be written.
    pub writable: bool,
    /// The memory may be executed.
    pub executable: bool,
    /// Writes are shared with other processes.
    pub shared: bool,
    /// Offset in the file.
    pub offset: u64,
    /// Inode of the file, 0 if there is none.
    pub inode: u64,
    /// Path of the file, a name in brackets, or empty.
    pub path: P,
}

/// A mapping as a line of `/proc/PID/maps` describes it. The path is a part of the line.
pub type Line<'a> = Mapping<&'a [u8]>;

impl<'a> Line<'a> {
    /// Bytes of the mapping.
    pub fn size(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Parses one line, without its line feed; `None` if it has another form.
    pub fn parse(line: &'a [u8]) -> Option<Line<'a>> {
        let mut rest = line;
        let mut field = || {
            rest = rest.trim_ascii_start();
            let end = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
            let (field, behind) = rest.split_at(end);
            rest = behind;
            std::str::from_utf8(field).ok()
        };
        let (start, end) = field()?.split_once('-')?;
        let flags = field()?;
        let offset = field()?;
        field()?; // device
        let inode = field()?;
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        Some(Line {
            range: hexadecimal(start)?..hexadecimal(end)?,
            readable: flags.as_bytes().first() == Some(&b'r'),
            writable: flags.as_bytes().get(1) == Some(&b'w'),
            executable: flags.as_bytes().get(2) == Some(&b'x'),
            shared: flags.as_bytes().get(3) == Some(&b's'),
            offset: hexadecimal(offset)?,
            inode: inode.parse().ok()?,
            path: rest.trim_ascii(),
        })
    }
}

/// The mappings of the process with the thread `tid`, by address.
///
/// # Errors
/// If `/proc/TID/maps` cannot be read.
pub fn read(tid: u32) -> io::Result<Vec<Mapping>> {
    Ok(parse(&fs::read(format!("/proc/{tid}/maps"))?))
}

/// The mappings that a text in the form of `/proc/PID/maps` describes. Lines of another form are left out.
///
/// ```
/// let maps = stackglass_procfs::maps::parse(b"1000-2000 r-xp 00000000 fd:00 11 /bin/program\n");
/// assert!(maps[0].executable && maps[0].path == "/bin/program");
/// ```
pub fn parse(text: &[u8]) -> Vec<Mapping> {
    let mapping = |line: Line| {
        let Mapping { range, readable, writable, executable, shared, offset, inode, path } = line;
        let path = String::from_utf8_lossy(path).into_owned();
        Mapping { range, readable, writable, executable, shared, offset, inode, path }
    };
    text.split(|byte| *byte == b'\n').filter_map(Line::parse).map(mapping).collect()
}

/// The mapping with this address, of a list by address.
pub fn at(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let behind = mappings.partition_point(|mapping| mapping.range.start <= address);
    mappings.get(behind.checked_sub(1)?).filter(|mapping| mapping.range.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parsed_with_blanks_in_its_path() {
        let line = Line::parse(b"7f00-7f10 r-xp 00021000 fe:00 79       /opt/a b/lib (deleted)").unwrap();
        let path = &b"/opt/a b/lib (deleted)"[..];
        assert_eq!(
            line,
            Line {
                range: 0x7f00..0x7f10,
                readable: true,
                writable: false,
                executable: true,
                shared: false,
                offset: 0x21000,
                inode: 79,
                path
            }
        );
        assert_eq!(line.size(), 0x10);
        let anonymous = Line::parse(b"7f00-7f10 rw-p 00000000 00:00 0 ").unwrap();
        assert!(anonymous.writable && !anonymous.executable && !anonymous.shared);
        assert!(anonymous.path.is_empty());
        assert!(
            Line::parse(b"7f00-7f10 -w-s 00000000 00:00 0 ")
                .is_some_and(|line| line.shared && !line.readable)
        );
        for other in [&b""[..], b"nonsense", b"-- r 0", b"7f00-7f10 r-xp 0 fe:00"] {
            assert_eq!(Line::parse(other), None);
        }
    }
}
