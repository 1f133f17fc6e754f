//! Memory as malloc of several versions of glibc leaves it, written by their sources (`malloc/malloc.c`, `malloc/arena.c`).

use stackglass_process_view::core_image::{CoreImage, Mapping, Memory, Thread, ThreadRegisters};

/// What differs between versions.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    pub name: &'static str,
    /// Offsets of `fastbinsY` and `top` in an arena, and its size. Before 2.43 there are fast bins.
    pub arena: (Option<u64>, u64, u64),
    /// Size of `heap_info`.
    pub heap_info: u64,
    /// Size of a cache's chunk, bytes of a counter, lists; whether counters count places.
    pub cache: (u64, u64, u64, bool),
    /// Links are mangled.
    pub mangled: bool,
    /// Offsets of `n_mmaps` and `mmapped_mem` in `mp_`.
    pub parameters: (u64, u64),
}

/// One for each difference.
pub const VERSIONS: [Version; 7] = [
    Version {
        name: "2.26",
        arena: (Some(8), 88, 2192),
        heap_info: 32,
        cache: (0x250, 1, 64, false),
        mangled: false,
        parameters: (40, 56),
    },
    Version {
        name: "2.29",
        arena: (Some(16), 96, 2200),
        heap_info: 32,
        cache: (0x250, 1, 64, false),
        mangled: false,
        parameters: (40, 56),
    },
    Version {
        name: "2.31",
        arena: (Some(16), 96, 2200),
        heap_info: 32,
        cache: (0x290, 2, 64, false),
        mangled: false,
        parameters: (40, 56),
    },
    Version {
        name: "2.34",
        arena: (Some(16), 96, 2200),
        heap_info: 32,
        cache: (0x290, 2, 64, false),
        mangled: true,
        parameters: (40, 56),
    },
    Version {
        name: "2.36",
        arena: (Some(16), 96, 2200),
        heap_info: 48,
        cache: (0x290, 2, 64, false),
        mangled: true,
        parameters: (60, 80),
    },
    Version {
        name: "2.42",
        arena: (Some(16), 96, 2200),
        heap_info: 48,
        cache: (0x300, 2, 76, true),
        mangled: true,
        parameters: (60, 80),
    },
    Version {
        name: "2.43",
        arena: (None, 8, 2112),
        heap_info: 48,
        cache: (0x300, 2, 76, true),
        mangled: true,
        parameters: (68, 88),
    },
];

const DATA: u64 = 0x7f00_0000_0000;
const ARENA: u64 = DATA + 0x1000;
const PARAMETERS: u64 = DATA + 0x2000;
const BREAK: u64 = 0x5555_5555_0000;
const HEAP: u64 = 0x7e00_0000_0000;
const MAPPED: u64 = 0x7d00_0000_0000;
const LOCALS: [u64; 2] = [0x7f10_0000_1800, 0x7f10_0001_1800];
const HEAP_SIZE: u64 = 0x21000;

/// A process: its memory, and what it has.
#[derive(Clone)]
pub struct MadeUp {
    /// Begin and contents of each mapping.
    pub memory: Vec<(u64, Vec<u8>)>,
    /// Live blocks with their usable sizes.
    pub blocks: Vec<(u64, u64)>,
    version: Version,
}

/// What becomes of a chunk.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Live,
    Free,
    /// In the cache, in this list.
    Cached(u64),
    Fast,
}

impl MadeUp {
    pub fn new(version: Version) -> MadeUp {
        let memory = [(DATA, 0x4000), (BREAK, HEAP_SIZE), (HEAP, HEAP_SIZE), (MAPPED, 0x8000)]
            .into_iter()
            .chain(LOCALS.map(|pointer| (pointer & !0xfff, 0x2000)))
            .map(|(start, size)| (start, vec![0; size as usize]));
        let mut made = MadeUp { memory: memory.collect(), blocks: Vec::new(), version };
        let thread_arena = HEAP + version.heap_info;
        let next = |arena: u64| arena + version.arena.1 + 2064;
        made.set(next(ARENA), thread_arena);
        made.set(next(thread_arena), ARENA);
        made.set(HEAP, thread_arena);
        made.set(HEAP + 16, HEAP_SIZE);
        made.arena(ARENA, BREAK, BREAK + HEAP_SIZE, LOCALS[0]);
        let first = (thread_arena + version.arena.2).next_multiple_of(16);
        made.arena(thread_arena, first, HEAP + HEAP_SIZE, LOCALS[1]);
        made.mapped();
        made.blocks.sort_unstable();
        made
    }

    fn set(&mut self, address: u64, word: u64) {
        let (start, bytes) = self
            .memory
            .iter_mut()
            .find(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&address))
            .unwrap();
        let at = (address - *start) as usize;
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    fn get(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn add(&mut self, address: u64, bytes: u64, by: i64) {
        let mut word = self.get(address & !7);
        let shift = (address & 7) * 8;
        let mask = (1 << (bytes * 8)) - 1;
        let number = (word >> shift & mask).wrapping_add_signed(by) & mask;
        word = word & !(mask << shift) | number << shift;
        self.set(address & !7, word);
    }

    /// An arena with its chunks, and the cache of its thread.
    fn arena(&mut self, arena: u64, first: u64, end: u64, thread_pointer: u64) {
        let Version { arena: (_, top_at, _), cache: (cache_size, counter, lists, counts_places), .. } =
            self.version;
        for bin in 0..127 {
            let pair = arena + top_at + 16 + bin * 16;
            self.set(pair, pair - 16);
            self.set(pair + 8, pair - 16);
        }
        let flag = if arena == ARENA { 0 } else { 4 };
        let cache = first + 16;
        self.set(first + 8, cache_size | 1 | flag);
        if counts_places {
            for list in 0..lists {
                self.add(cache + list * counter, counter, 7);
            }
        }
        self.set(thread_pointer - 0x88, arena);
        self.set(thread_pointer - 0x78, cache);
        let mut chunk = first + cache_size;
        let large = if counts_places { State::Cached(65) } else { State::Free };
        let states = [
            (0x20, State::Live),
            (0x20, State::Cached(0)),
            (0x20, State::Cached(0)),
            (0x410, State::Free),
            (0x90, State::Live),
            (0x30, State::Fast),
            (0x30, State::Fast),
            (0x30, State::Live),
            (0x50, State::Cached(3)),
            (0x800, large),
            (0x40, State::Live),
            (0x900, large),
            (0x1210, State::Live),
        ];
        let mut in_use_before = true;
        for (size, state) in states {
            let state =
                if state == State::Fast && self.version.arena.0.is_none() { State::Live } else { state };
            self.set(chunk + 8, size | u64::from(in_use_before) | flag);
            in_use_before = true;
            match state {
                State::Live => self.blocks.push((chunk + 16, size - 8)),
                State::Free => {
                    self.set(chunk + size, size);
                    in_use_before = false;
                }
                State::Cached(list) => {
                    let head = cache + lists * counter + 8 * list;
                    self.link(chunk + 16, self.get(head));
                    self.set(head, chunk + 16);
                    self.add(cache + list * counter, counter, if counts_places { -1 } else { 1 });
                }
                State::Fast => {
                    let head = arena + self.version.arena.0.unwrap() + 8 * (size / 16 - 2);
                    self.link(chunk + 16, self.get(head));
                    self.set(head, chunk);
                }
            }
            chunk += size;
        }
        self.set(chunk + 8, (end - chunk) | u64::from(in_use_before));
        self.set(arena + top_at, chunk);
    }

    fn link(&mut self, place: u64, to: u64) {
        self.set(place, if self.version.mangled { to ^ place >> 12 } else { to });
    }

    /// Two chunks with mappings of their own, one of them aligned to a page.
    fn mapped(&mut self) {
        self.set(MAPPED + 8, 0x3002);
        self.blocks.push((MAPPED + 16, 0x3000 - 16));
        self.set(MAPPED + 0x3008, 0x5002);
        self.set(MAPPED + 0x3ff0, 0xff0);
        self.set(MAPPED + 0x3ff8, (0x5000 - 0xff0) | 2);
        self.blocks.push((MAPPED + 0x4000, 0x4000));
        let (counts, mapped_bytes) = self.version.parameters;
        let parameters = [(0, 128 << 10), (8, 128 << 10), (16, 128 << 10), (24, 8), (32, 0)];
        for (at, word) in parameters {
            self.set(PARAMETERS + at, word);
        }
        for (place, number) in [(0, 2), (4, 65536), (8, 3), (12, 0)] {
            self.add(PARAMETERS + counts + place, 4, number);
        }
        for (place, word) in [0x8000, 0x9000, BREAK, 64, 1032, 7, 0].into_iter().enumerate() {
            self.set(PARAMETERS + mapped_bytes + 8 * place as u64, word);
        }
    }

    /// The process.
    pub fn image(&self) -> CoreImage {
        let mapping = |(start, bytes): &(u64, Vec<u8>)| Mapping {
            range: *start..start + bytes.len() as u64,
            readable: true,
            writable: true,
            executable: false,
            shared: false,
            offset: 0,
            inode: u64::from(*start == DATA),
            path: match *start {
                DATA => "/lib/libc.so.6".into(),
                BREAK => "[heap]".into(),
                _ => String::new(),
            },
        };
        let mut mappings: Vec<Mapping> = self.memory.iter().map(mapping).collect();
        mappings.sort_by_key(|mapping| mapping.range.start);
        let thread = |pointer: u64| {
            let mut registers = ThreadRegisters::default();
            registers.0[21] = pointer;
            Thread { tid: 1, name: String::new(), registers: Some(registers) }
        };
        CoreImage {
            pid: u32::MAX,
            executable: String::new(),
            mappings,
            threads: LOCALS.map(thread).to_vec(),
            memory: Box::new(self.clone()),
        }
    }
}

impl Memory for MadeUp {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        for (start, bytes) in &self.memory {
            if let Some(at) = address.checked_sub(*start).filter(|at| *at < bytes.len() as u64) {
                let count = into.len().min(bytes.len() - at as usize);
                into[..count].copy_from_slice(&bytes[at as usize..][..count]);
                return count;
            }
        }
        0
    }
}
