//! `.glass`: plain bytes, or contents of chunks with valid checksums and compression, so that inputs reach the code behind
//! those checks.

use super::memory::bounded;
use stackglass_files::{read_from, write};
use stackglass_profile::{AllocationKind, Recording};

const TAGS: [&[u8; 4]; 24] = [
    b"ABOU", b"STRS", b"PROC", b"THRD", b"MODU", b"LOCS", b"NODE", b"SAMP", b"FRAM", b"SYMB", b"PATH",
    b"NOTE", b"INDX", b"ENDS", b"????", b"TASK", b"DISP", b"ALLO", b"MEMO", b"AGRP", b"TYPE", b"ASPR",
    b"ASKY", b"ASLI",
];

/// If the first byte is even, the rest is a file. If it is odd, chunks follow: a tag's number, two bytes of length
/// (little-endian), and the contents.
pub fn check(bytes: &[u8]) {
    let Some((how, rest)) = bytes.split_first() else { return };
    let file = if how % 2 == 0 { rest.to_vec() } else { sealed(rest) };
    let allowed = 128 * file.len() + (256 << 10) + (256 * file.len()).min(8 << 20);
    let Ok((recording, _)) = bounded(allowed, || read_from(&file[..])) else { return };
    // A recording that is read can be written, and is equal when read again.
    let written = tempfile(|path| {
        write(path, &recording).expect("what was read fits together");
        stackglass_files::read(path).expect("what was written is a recording")
    });
    assert!(written.1.is_complete(), "{}", written.1);
    assert_eq!(written.0.samples.len(), recording.samples.len());
    assert_eq!(written.0.stacks.nodes(), recording.stacks.nodes());
    assert_eq!(written.0.allocations.processes, recording.allocations.processes);
    assert_eq!(written.0.allocations.groups.len(), recording.allocations.groups.len());
    let sum = |recording: &Recording| recording.allocations.total(AllocationKind::Block);
    assert_eq!(sum(&written.0), sum(&recording));
    let bytes = |recording: &Recording| {
        let slices = recording.allocations.slices.slices().iter();
        let changes = slices.flat_map(|slice| &slice.changes);
        changes.fold(0i64, |sum, change| sum.wrapping_add(change.bytes))
    };
    assert_eq!(bytes(&written.0), bytes(&recording));
    assert_eq!(written.0.allocations.slices.keys(), recording.allocations.slices.keys());
    assert_eq!(written.0.symbols.allocated_types(), recording.symbols.allocated_types());
}

fn tempfile<T>(work: impl FnOnce(&std::path::Path) -> T) -> T {
    // In memory if possible, since a fuzzer writes many files.
    let shm = std::path::Path::new("/dev/shm");
    let folder = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
    let path =
        folder.join(format!("stackglass-fuzz-{}-{:?}", std::process::id(), std::thread::current().id()));
    let result = work(&path);
    let _ = std::fs::remove_file(&path);
    result
}

fn sealed(mut rest: &[u8]) -> Vec<u8> {
    let mut file = b"\x8eGLASS\r\n\x01\0\0\0\0\0\0\0".to_vec();
    while let [tag, low, high, following @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(following.len());
        let (raw, next) = following.split_at(length);
        rest = next;
        let mut payload = zstd::bulk::compress(raw, 1).expect("compressing needs memory only");
        // Room for as many items as there are bytes, as a skippable frame.
        payload.extend(0x184d_2a50_u32.to_le_bytes());
        payload.extend((8 * raw.len() as u32).to_le_bytes());
        payload.resize(payload.len() + 8 * raw.len(), 0);
        let mut header = TAGS[usize::from(*tag) % TAGS.len()].to_vec();
        header.extend(u32::MAX.to_le_bytes());
        header.extend((raw.len() as u32).to_le_bytes());
        header.extend((payload.len() as u32).to_le_bytes());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header);
        hasher.update(&payload);
        header.extend(hasher.finalize().to_le_bytes());
        file.extend(header);
        file.extend(payload);
    }
    file
}
