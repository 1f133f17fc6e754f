//! The file of a stored image: compressed by zstd, a head of lines, and then the bytes that they announce.
//!
//! Lines begin with a word: `program PATH`, `map LINE` (as in `/proc/PID/maps`), `thread TID REGISTERS NAME`, and then, each with its
//! bytes behind the head, in this order: `page ADDRESS`, `file LENGTH`, `source LENGTH`, `said LENGTH`. An empty line ends the head.

use stackglass_process_view::core_image::{Mapping, Thread, ThreadRegisters};
use stackglass_procfs::maps;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Best compression: images are written rarely.
const LEVEL: i32 = 22;

/// A core image in a file.
#[derive(Clone, Default)]
pub struct StoredImage {
    /// The path of the program where it ran.
    pub program: String,
    /// Its mappings by address.
    pub mappings: Vec<Mapping>,
    /// Its threads; the first is the main thread.
    pub threads: Vec<Thread>,
    /// Pages of its memory by address.
    pub pages: BTreeMap<u64, Box<[u8]>>,
    /// The bytes of the program's file.
    pub file: Vec<u8>,
    /// Its source.
    pub source: String,
    /// The lines that it printed: what it knows of itself.
    pub said: String,
}

impl StoredImage {
    /// Reads an image of the folder `stored`.
    ///
    /// # Panics
    /// If there is none, or it has another form: it is a file of these tests.
    pub fn read(name: &str) -> StoredImage {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("stored").join(name);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let bytes = zstd::decode_all(&bytes[..]).expect("it is compressed");
        StoredImage::parse(&bytes).unwrap_or_else(|| panic!("{} has another form", path.display()))
    }

    fn parse(bytes: &[u8]) -> Option<StoredImage> {
        let end = bytes.windows(2).position(|two| two == b"\n\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut rest = &bytes[end + 2..];
        let mut take = |length: usize| {
            let (taken, behind) = rest.split_at_checked(length)?;
            rest = behind;
            Some(taken.to_vec())
        };
        let mut image = StoredImage::default();
        for line in head.lines() {
            let (word, about) = line.split_once(' ')?;
            match word {
                "program" => image.program = about.to_owned(),
                "map" => image.mappings.extend(maps::parse(about.as_bytes())),
                "thread" => image.threads.push(parse_thread(about)?),
                "page" => {
                    let address = u64::from_str_radix(about, 16).ok()?;
                    image.pages.insert(address, take(PAGE)?.into());
                }
                "file" => image.file = take(about.parse().ok()?)?,
                "source" => image.source = String::from_utf8(take(about.parse().ok()?)?).ok()?,
                "said" => image.said = String::from_utf8(take(about.parse().ok()?)?).ok()?,
                _ => return None,
            }
        }
        rest.is_empty().then_some(image)
    }

    /// The bytes of the file.
    ///
    /// # Panics
    /// If the compressor fails.
    pub fn encode(&self) -> Vec<u8> {
        let mut head = String::new();
        let mut line = |text: String| writeln!(head, "{text}").expect("text grows");
        line(format!("program {}", self.program));
        self.mappings.iter().for_each(|mapping| line(format!("map {}", map_line(mapping))));
        self.threads.iter().for_each(|thread| line(format!("thread {}", thread_line(thread))));
        self.pages.keys().for_each(|address| line(format!("page {address:x}")));
        line(format!("file {}", self.file.len()));
        line(format!("source {}", self.source.len()));
        line(format!("said {}\n", self.said.len()));
        let mut bytes = head.into_bytes();
        self.pages.values().for_each(|page| bytes.extend_from_slice(page));
        bytes.extend_from_slice(&self.file);
        bytes.extend_from_slice(self.source.as_bytes());
        bytes.extend_from_slice(self.said.as_bytes());
        zstd::encode_all(&bytes[..], LEVEL).expect("memory is compressed")
    }
}

/// As the kernel writes it.
fn map_line(mapping: &Mapping) -> String {
    let flag = |is_set, letter| if is_set { letter } else { '-' };
    let Mapping { range, offset, inode, path, .. } = mapping;
    format!(
        "{:x}-{:x} {}{}{}{} {offset:x} 00:00 {inode} {path}",
        range.start,
        range.end,
        flag(mapping.readable, 'r'),
        flag(mapping.writable, 'w'),
        flag(mapping.executable, 'x'),
        if mapping.shared { 's' } else { 'p' },
    )
}

fn thread_line(thread: &Thread) -> String {
    let hexadecimal = |registers: ThreadRegisters| registers.0.map(|word| format!("{word:x}")).join(",");
    let registers = thread.registers.map_or_else(|| "-".to_owned(), hexadecimal);
    format!("{} {registers} {}", thread.tid, thread.name)
}

fn parse_thread(line: &str) -> Option<Thread> {
    let mut words = line.splitn(3, ' ');
    let tid = words.next()?.parse().ok()?;
    let registers = match words.next()? {
        "-" => None,
        text => {
            let words: Option<Vec<u64>> =
                text.split(',').map(|word| u64::from_str_radix(word, 16).ok()).collect();
            Some(ThreadRegisters(words?.try_into().ok()?))
        }
    };
    Some(Thread { tid, name: words.next()?.to_owned(), registers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_parsed() {
        let maps = b"1000-3000 r-xp 00001000 fd:00 11 /bin/a program\n4000-5000 rw-s 00000000 00:00 0 \n";
        let thread = |tid, registers| Thread { tid, name: "a thread".to_owned(), registers };
        let image = StoredImage {
            program: "/bin/a program".to_owned(),
            mappings: maps::parse(maps),
            threads: vec![thread(7, None), thread(8, Some(ThreadRegisters([u64::MAX; 27])))],
            pages: BTreeMap::from([(0x2000, [7; PAGE].into()), (0x4000, [0; PAGE].into())]),
            file: b"\n\nELF".to_vec(),
            source: "fn main() {}".to_owned(),
            said: "block 10\n\n".to_owned(),
        };
        let bytes = zstd::decode_all(&image.encode()[..]).expect("it is compressed");
        let parsed = StoredImage::parse(&bytes).expect("it has the form");
        assert_eq!((parsed.program, parsed.mappings), (image.program, image.mappings));
        assert_eq!((parsed.threads, parsed.pages), (image.threads, image.pages));
        assert_eq!((parsed.file, parsed.source, parsed.said), (image.file, image.source, image.said));
        for length in 0..bytes.len() {
            assert!(StoredImage::parse(&bytes[..length]).is_none(), "{length} bytes");
        }
    }
}
