//! Changes to the finished library, so that loaders other than that of the building machine accept it.
//!
//! A linker records what the machine's glibc offers. The layout of ELF files is in elf(5), that of symbol versions in the
//! Linux Standard Base, "Symbol Versioning".

/// Tags of dynamic entries.
const NEEDED: u64 = 1;
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const DEBUG: u64 = 21;
const GNU_HASH: u64 = 0x6fff_fef5;
const VERSION_OF_SYMBOL: u64 = 0x6fff_fff0;
const VERSIONS: u64 = 0x6fff_fffe;

/// The oldest glibc that Rust programs run with is 2.17.
const OLDEST_MINOR: u32 = 17;
/// The version that functions have since the beginning of glibc on x86-64.
const FIRST: &str = "GLIBC_2.2.5";
/// Functions that glibc 2.34 moved to another library, with a new version. The old one still exists.
const MOVED: [&str; 12] = [
    "dladdr",
    "dlopen",
    "dlsym",
    "pthread_attr_setstacksize",
    "pthread_create",
    "pthread_detach",
    "pthread_getspecific",
    "pthread_join",
    "pthread_key_create",
    "pthread_key_delete",
    "pthread_once",
    "pthread_setspecific",
];

/// Makes all changes.
pub fn serve_others(elf: &mut [u8]) {
    drop_needed_loader(elf);
    accept_old_versions(elf);
}

/// Removes glibc's dynamic linker from the list of needed libraries. A glibc program has it anyway. The loader of another
/// C library (musl), which inherits the environment, would not find it and refuse to start the program. The entry becomes
/// a `DT_DEBUG`, which loaders ignore in libraries.
fn drop_needed_loader(elf: &mut [u8]) {
    let file = File::read(elf);
    let named = |entry: &Entry| entry.tag == NEEDED && file.string(elf, entry.value).starts_with("ld-linux");
    for at in file.entries.iter().filter(|entry| named(entry)).map(|entry| entry.at).collect::<Vec<_>>() {
        elf[at..at + 16].fill(0);
        elf[at] = DEBUG as u8;
    }
}

/// Makes a glibc older than the machine's accept the library, from 2.17 on. Versions that only weak symbols need become
/// weak as well: the symbol is then null, as the standard library expects. Functions that only moved get their first version.
/// Any other function keeps its version.
fn accept_old_versions(elf: &mut [u8]) {
    let file = File::read(elf);
    let Some(mut library) = file.place(VERSIONS) else { return };
    loop {
        let mut versions = vec![library + u32_at(elf, library + 8) as usize];
        while let next @ 1.. = u32_at(elf, versions[versions.len() - 1] + 12) {
            versions.push(versions[versions.len() - 1] + next as usize);
        }
        let first =
            versions.iter().find(|at| file.string(elf, u32_at(elf, **at + 8).into()) == FIRST).copied();
        for at in versions {
            let minor = minor_version(file.string(elf, u32_at(elf, at + 8).into()));
            if minor.is_none_or(|minor| minor <= OLDEST_MINOR) {
                continue;
            }
            let strong = file.strong_symbols(elf, u16_at(elf, at + 6));
            if strong.is_empty() {
                // VER_FLG_WEAK.
                elf[at + 4] |= 2;
            } else if let Some(first) = first
                && strong.iter().all(|name| MOVED.contains(&name.as_str()))
            {
                // Hash and name; the number by which symbols refer to it stays.
                elf.copy_within(first..first + 4, at);
                elf.copy_within(first + 8..first + 12, at + 8);
            }
        }
        match u32_at(elf, library + 12) {
            0 => return,
            next => library += next as usize,
        }
    }
}

/// 34 of `GLIBC_2.34`.
fn minor_version(name: &str) -> Option<u32> {
    name.strip_prefix("GLIBC_2.")?.split('.').next()?.parse().ok()
}

/// A dynamic entry and its place.
struct Entry {
    at: usize,
    tag: u64,
    value: u64,
}

/// A library: what is loaded where (file offset, address, size), and its dynamic entries.
struct File {
    loaded: Vec<(u64, u64, u64)>,
    entries: Vec<Entry>,
}

impl File {
    fn read(elf: &[u8]) -> File {
        let headers = u64_at(elf, 32) as usize;
        let headers = (0..u16_at(elf, 56).into()).map(|i: usize| headers + i * usize::from(u16_at(elf, 54)));
        let mut file = File { loaded: Vec::new(), entries: Vec::new() };
        for at in headers {
            let (offset, address, size) = (u64_at(elf, at + 8), u64_at(elf, at + 16), u64_at(elf, at + 32));
            match u32_at(elf, at) {
                1 => file.loaded.push((offset, address, size)),
                2 => {
                    let list = (offset as usize..).step_by(16);
                    let entry = |at| Entry { at, tag: u64_at(elf, at), value: u64_at(elf, at + 8) };
                    file.entries = list.map(entry).take_while(|entry| entry.tag != 0).collect();
                }
                _ => {}
            }
        }
        file
    }

    /// File offset of the table that this tag leads to.
    fn place(&self, tag: u64) -> Option<usize> {
        let address = self.entries.iter().find(|entry| entry.tag == tag)?.value;
        let holds = |(_, start, size): &&(u64, u64, u64)| (*start..start + size).contains(&address);
        self.loaded.iter().find(holds).map(|(offset, start, _)| (address - start + offset) as usize)
    }

    fn string<'a>(&self, elf: &'a [u8], offset: u64) -> &'a str {
        let start = self.place(STRINGS).expect("a library has names") + offset as usize;
        let text = elf[start..].split(|byte| *byte == 0).next().unwrap_or_default();
        str::from_utf8(text).expect("names of the C library are ASCII")
    }

    /// Undefined symbols of this version that the loader must find. Undefined symbols come before those that the hash
    /// table lists.
    fn strong_symbols(&self, elf: &[u8], version: u16) -> Vec<String> {
        let table = |tag| self.place(tag).expect("a library has tables of symbols");
        let undefined = 0..u32_at(elf, table(GNU_HASH) + 4) as usize;
        let is_strong = |symbol: usize| elf[symbol + 4] >> 4 != 2;
        undefined
            .filter(|i| u16_at(elf, table(VERSION_OF_SYMBOL) + 2 * i) & 0x7fff == version)
            .map(|i| table(SYMBOLS) + 24 * i)
            .filter(|symbol| is_strong(*symbol))
            .map(|symbol| self.string(elf, u32_at(elf, symbol).into()).to_owned())
            .collect()
    }
}

fn u16_at(elf: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([elf[at], elf[at + 1]])
}

fn u32_at(elf: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(elf[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(elf: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(elf[at..at + 8].try_into().expect("eight bytes"))
}
