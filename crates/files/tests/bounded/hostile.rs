//! Hostile files: whatever the bytes are, reading them neither panics nor takes memory out
//! of proportion to them. An allocator that counts watches every read here.
//! The inputs that the fuzz targets begin with, or have failed on, are read in every run.

#[path = "../../../../fuzz/checks/folded.rs"]
mod folded;
#[path = "../../../../fuzz/checks/glass.rs"]
mod glass;
#[path = "../../../../fuzz/checks/heap_parts.rs"]
mod heap_parts;
#[path = "../../../../fuzz/checks/heapsnapshot.rs"]
mod heapsnapshot;
#[path = "../../../../fuzz/checks/jlprof.rs"]
mod jlprof;
#[path = "../../../../fuzz/checks/perf_script.rs"]
mod perf_script;

use crate::memory::{self, bounded};
use crate::support::*;
use proptest::prelude::*;
use stackglass_files::{Completeness, GlassReader, GlassWriter, read_from, read_merged, read_tables};
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

/// Memory for each byte of the file at most, and what reading anything takes.
const TIMES: usize = 128;
const BASE: usize = 256 << 10;

fn allowed(bytes: &[u8]) -> usize {
    TIMES * bytes.len() + BASE + (8 << 20).min(256 * bytes.len())
}

/// Reads and checks that memory stays in bounds.
#[track_caller]
fn read_in_bounds(bytes: &[u8]) -> Option<Completeness> {
    let result = bounded(allowed(bytes), || read_from(bytes));
    result.ok().map(|(_, completeness)| completeness)
}

/// The same for the way by the index, which begins at the end of a file.
fn read_tables_in_bounds(bytes: &[u8]) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let _ = bounded(allowed(bytes), || read_tables(file.path(), |_, _| {}));
}

/// Feeds every file of a corpus to what the fuzz target of that name checks.
fn corpus(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files = 0;
    for entry in folder.read_dir().unwrap() {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 1, "{} holds the corpus", folder.display());
}

#[test]
fn what_fuzzing_began_with_or_found() {
    corpus("glass", glass::check);
    corpus("heapsnapshot", heapsnapshot::check);
    corpus("heap_parts", heap_parts::check);
    corpus("jlprof", jlprof::check);
    corpus("folded", folded::check);
    corpus("perf_script", perf_script::check);
}

/// All files of some folders of the project.
fn files_of(folders: &[&str]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in folders {
        for entry in root.join(folder).read_dir().unwrap() {
            files.push(std::fs::read(entry.unwrap().path()).unwrap());
        }
    }
    files.sort();
    files
}

/// A change of some bytes, of four that may be a count, or a cut.
fn change(bytes: &mut Vec<u8>, at: prop::sample::Index, value: u8, how: u8) {
    if bytes.is_empty() {
        return;
    }
    let at = at.index(bytes.len());
    match how {
        0 => bytes[at] = value,
        1 => bytes[at] ^= 1 << (value % 8),
        2 => bytes.truncate(at),
        3 => bytes.iter_mut().skip(at).take(4).for_each(|byte| *byte = value | 0x7f),
        _ => drop(bytes.splice(at..at, vec![value; usize::from(value)])),
    }
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..5u8), 1..5)
}

proptest! {
    #[test]
    fn changed_jlprof(which: prop::sample::Index, changes in changes()) {
        static FILES: LazyLock<Vec<Vec<u8>>> =
            LazyLock::new(|| files_of(&["conformance/flamegraphs/jlprof", "fuzz/corpus/jlprof"]));
        let mut bytes = which.get(&FILES).clone();
        changes.into_iter().for_each(|(at, value, how)| change(&mut bytes, at, value, how));
        jlprof::check(&bytes);
    }

    #[test]
    fn changed_heapsnapshot(which: prop::sample::Index, changes in changes()) {
        static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| files_of(&["fuzz/corpus/heapsnapshot"]));
        let mut bytes = which.get(&FILES).clone();
        changes.into_iter().for_each(|(at, value, how)| change(&mut bytes, at, value, how));
        heapsnapshot::check(&bytes);
    }

    #[test]
    fn changed_heap_parts(which: prop::sample::Index, changes in changes()) {
        static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| files_of(&["fuzz/corpus/heap_parts"]));
        let mut bytes = which.get(&FILES).clone();
        changes.into_iter().for_each(|(at, value, how)| change(&mut bytes, at, value, how));
        heap_parts::check(&bytes);
    }

    #[test]
    fn changed_folded(which: prop::sample::Index, changes in changes(), lines in "([a-c;]{0,9} [0-9]{1,11}\n){0,20}") {
        static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| files_of(&["fuzz/corpus/folded"]));
        let mut bytes = which.get(&FILES).clone();
        bytes.extend(lines.bytes());
        changes.into_iter().for_each(|(at, value, how)| change(&mut bytes, at, value, how));
        folded::check(&bytes);
    }
}

proptest! {
    #[test]
    fn changed_perf_script(
        which: prop::sample::Index,
        changes in changes(),
        lines in "((a 1/2 [0-9].[0-9]: [0-9] e:|\\t[0-9a-f]{1,16} [a-c]{0,3}(\\+0x[0-9])? \\(([a-c]|inlined)\\)|)\n){0,20}",
    ) {
        static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| files_of(&["fuzz/corpus/perf_script"]));
        let mut bytes = which.get(&FILES).clone();
        bytes.extend(lines.bytes());
        changes.into_iter().for_each(|(at, value, how)| change(&mut bytes, at, value, how));
        perf_script::check(&bytes);
    }
}

const HEADER: &[u8; 16] = b"\x8eGLASS\r\n\x01\0\0\0\0\0\0\0";

/// A chunk taken apart.
#[derive(Clone)]
struct Chunk {
    tag: [u8; 4],
    raw: Vec<u8>,
}

fn take_apart(bytes: &[u8]) -> Vec<Chunk> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut chunks = Vec::new();
    let mut at = 16;
    while at + 20 <= bytes.len() - 16 {
        let payload = &bytes[at + 20..at + 20 + word(at + 12)];
        let raw = zstd::bulk::decompress(payload, word(at + 8)).unwrap();
        chunks.push(Chunk { tag: bytes[at..at + 4].try_into().unwrap(), raw });
        at += 20 + payload.len();
    }
    chunks
}

/// A chunk with a right checksum, whatever is in it; `padding` bytes are added as others add them.
fn seal(out: &mut Vec<u8>, tag: [u8; 4], raw: &[u8], declared: usize, padding: usize) {
    let mut payload = zstd::bulk::compress(raw, 3).unwrap();
    if padding > 0 {
        payload.extend(0x184d_2a50_u32.to_le_bytes());
        payload.extend((padding as u32).to_le_bytes());
        payload.resize(payload.len() + padding, 0);
    }
    let mut header = tag.to_vec();
    header.extend(u32::MAX.to_le_bytes());
    header.extend((declared as u32).to_le_bytes());
    header.extend((payload.len() as u32).to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header);
    hasher.update(&payload);
    header.extend(hasher.finalize().to_le_bytes());
    out.extend(header);
    out.extend(payload);
}

fn put_together(chunks: &[Chunk]) -> Vec<u8> {
    let mut out = HEADER.to_vec();
    let mut last = 0;
    for chunk in chunks {
        last = out.len() as u64;
        seal(&mut out, chunk.tag, &chunk.raw, chunk.raw.len(), 1 << 12);
    }
    out.extend(last.to_le_bytes());
    out.extend(b"\n\rSSALG\x8e");
    out
}

/// A small file with every kind of chunk in it.
fn sample_file(steps: &[Step]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.glass");
    let mut recording = beginning("prog");
    let mut writer = GlassWriter::create(&path, &recording.info).unwrap();
    grow(&mut writer, &mut recording, steps);
    end(&mut recording, 3);
    writer.finish(&recording).unwrap();
    std::fs::read(path).unwrap()
}

proptest! {
    /// What its own writer makes is within the bounds as well.
    #[test]
    fn honest_files_need_little_memory(steps in steps()) {
        prop_assert!(read_in_bounds(&sample_file(&steps)).unwrap().is_complete());
    }

    /// Changes behind the checksums: the chunks are sealed again, so that only the checks of
    /// what they hold are left.
    #[test]
    fn changed_contents(
        steps in steps(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), 0..5u8), 1..4),
    ) {
        let mut chunks = take_apart(&sample_file(&steps));
        for (chunk, at, value, how) in changes {
            let chunk = chunk.index(chunks.len());
            let raw = &mut chunks[chunk].raw;
            if raw.is_empty() {
                continue;
            }
            let at = at.index(raw.len());
            match how {
                0 => raw[at] = value,
                1 => raw[at] ^= 1 << (value % 8),
                2 => raw.truncate(at),
                3 => {
                    raw.splice(at..at, [0xff; 9].into_iter().chain([1]));
                }
                _ => {
                    let twice = chunks[chunk].clone();
                    chunks.insert(chunk, twice);
                }
            }
        }
        let bytes = put_together(&chunks);
        read_in_bounds(&bytes);
        read_tables_in_bounds(&bytes);
    }

    #[test]
    fn changed_bytes(steps in steps(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = sample_file(&steps);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        read_in_bounds(&bytes);
        read_tables_in_bounds(&bytes);
    }

    #[test]
    fn random_chunks(chunks in prop::collection::vec((0..20usize, prop::collection::vec(any::<u8>(), 0..200)), 0..12)) {
        let tags = [
            b"ABOU", b"STRS", b"PROC", b"THRD", b"TASK", b"MODU", b"LOCS", b"NODE", b"SAMP", b"FRAM", b"SYMB", b"PATH", b"NOTE",
            b"INDX", b"ENDS", b"DISP", b"ALLO", b"MEMO", b"AGRP", b"TYPE",
        ];
        let chunks: Vec<Chunk> = chunks.into_iter().map(|(tag, raw)| Chunk { tag: *tags[tag], raw }).collect();
        read_in_bounds(&put_together(&chunks));
    }
}

fn number(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// A table chunk whose rows are all the same byte in every column.
fn uniform(first: u64, rows: usize, columns: &[u8]) -> Vec<u8> {
    let mut raw = Vec::new();
    number(&mut raw, first);
    number(&mut raw, rows as u64);
    for _ in columns {
        number(&mut raw, rows as u64);
    }
    for byte in columns {
        raw.resize(raw.len() + rows, *byte);
    }
    raw
}

/// Reads a file of one chunk that must be refused for this reason.
#[track_caller]
fn refused(tag: &[u8; 4], raw: &[u8], declared: usize, padding: usize, reason: &str) {
    let mut bytes = HEADER.to_vec();
    seal(&mut bytes, *tag, raw, declared, padding);
    let Some(Completeness::Damaged { at: 16, reason: said }) = read_in_bounds(&bytes) else {
        panic!("not refused at byte 16")
    };
    assert!(said.contains(reason), "{said}");
}

#[test]
fn bombs_are_refused_before_they_go_off() {
    let zeros = vec![0; 8 << 20];
    refused(b"STRS", &zeros, 8 << 20, 0, "declares 8388608 bytes in");
    refused(b"STRS", &zeros, (8 << 20) + 1, 0, "more than 8388608");
    refused(b"STRS", &zeros[..1000], 999, 0, "cannot be unpacked");
    refused(b"STRS", &zeros[..1000], 1001, 0, "holds 1000 bytes but declares 1001");
    // As well packed as is allowed: 8 MiB of empty texts, or of locations, in 32 KiB.
    refused(b"STRS", &zeros, 8 << 20, 1 << 15, "more items than its stored bytes allow");
    refused(b"LOCS", &uniform(0, 4 << 20, &[0, 2])[..8 << 20], 8 << 20, 1 << 15, "more items");
    let mut huge = HEADER.to_vec();
    seal(&mut huge, *b"WHAT", b"", 0, 0);
    huge[16 + 12..16 + 16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read_in_bounds(&huge), Some(Completeness::Damaged { at: 16, .. })));
}

#[test]
fn counts_are_not_accepted() {
    let mut count = Vec::new();
    number(&mut count, 0);
    number(&mut count, 1 << 40);
    refused(b"LOCS", &count, count.len(), 1000, "counts 1099511627776 locations in 0 bytes");
    refused(b"SAMP", &uniform(3, 1, &[0; 8]), 18, 1000, "samples from number 3, expected 0");
    refused(b"SAMP", &uniform(0, 1, &[1; 8]), 18, 1000, "thread 1 of 0");
    refused(b"NODE", &uniform(0, 1, &[0; 2]), 6, 1000, "location 0 of 0");
    refused(b"THRD", &[0, 0, 0, 0, 0, 0, 0, 0], 8, 1000, "a thread of process 0 of 0");
    refused(b"PROC", &[1, 0, 0, 0], 4, 1000, "text 0 of 0");
    refused(b"STRS", &[0, 1, 0xff], 3, 1000, "not UTF-8");
    refused(b"SYMB", &[0, 0], 2, 1000, "names of location 0 of 0");
    refused(b"DISP", &[0], 1, 1000, "calls of a location beyond 0");
    refused(b"ALLO", &[0; 8], 8, 1000, "a list of allocations of process 0 of 0");
    refused(b"MEMO", &uniform(0, 1, &[0; 4]), 10, 1000, "memory of allocating process 0 of 0");
    refused(b"AGRP", &uniform(0, 1, &[0; 15]), 32, 1000, "process 0 of 0");
    refused(b"AGRP", &uniform(1, 1, &[0; 15]), 32, 1000, "allocation groups from number 1, expected 0");
    refused(b"TYPE", &[1], 1, 1000, "type of a stack beyond 0");
    refused(b"TYPE", &[0, 0], 2, 1000, "text 0 of 0");
}

#[test]
fn the_most_items_a_file_may_hold_fit_into_the_bound() {
    // Tables with as many rows as their stored bytes allow, each as costly as it can be.
    let mut bytes = HEADER.to_vec();
    let rows = 1 << 18;
    seal(&mut bytes, *b"LOCS", &uniform(0, rows, &[0, 2]), uniform(0, rows, &[0, 2]).len(), rows);
    // Each node's caller is the one before it, at the same location.
    let nodes = uniform(0, rows, &[0, 0]);
    seal(&mut bytes, *b"NODE", &nodes, nodes.len(), rows);
    // Of the last location alone, which takes the most for the least.
    let mut last = Vec::new();
    number(&mut last, rows as u64 - 1);
    seal(&mut bytes, *b"DISP", &last, last.len(), 0);
    let Some(Completeness::Incomplete { at }) = read_in_bounds(&bytes) else { panic!("it must be read") };
    assert_eq!(at, bytes.len() as u64);
    let mut reader = GlassReader::new(&bytes[..]).unwrap();
    while reader.step(&mut |_| {}).unwrap() {}
    assert_eq!(reader.recording().stacks.nodes().len(), rows);
    assert_eq!(reader.recording().stacks.locations().len(), rows);

    // Texts that are empty, or repeated as arguments of a process.
    let mut bytes = HEADER.to_vec();
    let texts = vec![0; rows];
    seal(&mut bytes, *b"STRS", &texts, texts.len(), rows);
    assert!(matches!(read_in_bounds(&bytes), Some(Completeness::Incomplete { .. })));
    let mut bytes = HEADER.to_vec();
    let mut long = vec![0];
    number(&mut long, 1 << 20);
    long.resize(long.len() + (1 << 20), b'x');
    seal(&mut bytes, *b"STRS", &long, long.len(), 1 << 17);
    let mut process = vec![0, 0, 0, 0, 0, 0, 0];
    number(&mut process, 100_000);
    process.resize(process.len() + 100_001, 0);
    seal(&mut bytes, *b"PROC", &process, process.len(), 1 << 18);
    let Some(Completeness::Damaged { reason, .. }) = read_in_bounds(&bytes) else {
        panic!("100 GB of arguments")
    };
    assert!(reason.contains("more items than its stored bytes allow"), "{reason}");
}

/// A file of one process, this text, and chunks with these rows.
fn of_one_process(chunks: &[(&[u8; 4], Vec<u8>, usize)]) -> Vec<u8> {
    let mut bytes = HEADER.to_vec();
    seal(&mut bytes, *b"STRS", &[0, 0], 2, 100);
    seal(&mut bytes, *b"PROC", &[0; 9], 9, 100);
    for (tag, raw, weight) in chunks {
        let packed = zstd::bulk::compress(raw, 3).unwrap().len();
        seal(&mut bytes, **tag, raw, raw.len(), weight.saturating_sub(packed));
    }
    bytes
}

#[test]
fn allocations_of_nothing_are_refused() {
    let said = |chunks: &[(&[u8; 4], Vec<u8>, usize)]| match read_in_bounds(&of_one_process(chunks)) {
        Some(Completeness::Damaged { reason, .. }) => reason,
        other => panic!("not refused: {other:?}"),
    };
    let group = |column: usize| {
        let mut columns = [0; 15];
        columns[column] = 2;
        vec![(b"AGRP", uniform(0, 1, &columns), 1000)]
    };
    assert!(said(&group(0)).contains("process 1 of 1"));
    assert!(said(&group(1)).contains("stack 1 of 0"));
    assert!(said(&group(2)).contains("thread 2 of 0"));
    let mut rate = vec![0, 0, 0, 1];
    number(&mut rate, f64::NAN.to_bits());
    rate.extend([0; 3]);
    assert!(said(&[(b"ALLO", rate, 100)]).contains("impossible sampling rate"));
    assert!(said(&[(b"ALLO", vec![0, 0, 0, 9, 0, 0, 0, 0], 100)]).contains("sampling of allocations 9"));
    // A kind of a later version is skipped, and its rows count.
    let mut later = [0; 15];
    later[4] = 7;
    let rows = (b"AGRP", uniform(0, 3, &later), 100);
    let (recording, _) =
        read_from(&of_one_process(&[rows, (b"AGRP", uniform(3, 1, &[0; 15]), 100)])[..]).unwrap();
    assert_eq!(recording.allocations.groups.len(), 1);
}

#[test]
fn the_most_allocations_a_file_may_hold_fit_into_the_bound() {
    for rows in [1 << 16, (1 << 16) + 1, 3 << 15] {
        let file = of_one_process(&[(b"AGRP", uniform(0, rows, &[0; 15]), 3 * rows)]);
        assert!(matches!(read_in_bounds(&file), Some(Completeness::Incomplete { .. })));
        let mut types = vec![0; 2 * rows];
        types.iter_mut().step_by(2).skip(1).for_each(|difference| *difference = 1);
        let nodes = uniform(0, rows, &[0, 0]);
        let file = of_one_process(&[
            (b"LOCS", uniform(0, 1, &[0, 2]), 1),
            (b"NODE", nodes, rows),
            (b"TYPE", types, rows),
            (b"ALLO", vec![0; 8 * rows], 3 * rows),
            (b"MEMO", uniform(0, rows, &[0; 4]), rows),
        ]);
        assert!(
            matches!(read_in_bounds(&file), Some(Completeness::Incomplete { at }) if at == file.len() as u64)
        );
    }
    let lean = of_one_process(&[(b"AGRP", uniform(0, 1 << 16, &[0; 15]), 1 << 16)]);
    let Some(Completeness::Damaged { reason, .. }) = read_in_bounds(&lean) else { panic!("too many groups") };
    assert!(reason.contains("more items than its stored bytes allow"), "{reason}");
}

/// A chunk of slices with these numbers, and one change with these columns.
fn slice(numbers: &[u8], change: &[u8; 6]) -> Vec<u8> {
    let mut raw = vec![0, 1, numbers.len() as u8, 1, 1, 1, 1, 1, 1];
    raw.extend(numbers);
    raw.extend(change);
    raw
}

#[test]
fn slices_of_nothing_are_refused() {
    let said = |chunks: &[(&[u8; 4], Vec<u8>, usize)]| match read_in_bounds(&of_one_process(chunks)) {
        Some(Completeness::Damaged { reason, .. }) => reason,
        other => panic!("not refused: {other:?}"),
    };
    let key = |column: usize, byte: u8| {
        let mut columns = [0; 6];
        columns[column] = byte;
        (b"ASKY", uniform(0, 1, &columns), 1000)
    };
    assert!(said(&[key(0, 2)]).contains("process 1 beyond 0"));
    assert!(said(&[key(1, 2)]).contains("stack 1 beyond 0"));
    assert!(said(&[key(2, 1)]).contains("thread 1 beyond 0"));
    assert!(said(&[key(4, 2)]).contains("kind of allocation 2"));
    assert!(said(&[(b"ASPR", vec![0, 1, 0, 0, 0], 100)]).contains("a slice of process 1 of 1"));
    assert!(said(&[(b"ASPR", vec![1, 0, 0, 0, 0], 100)]).contains("from number 1, expected 0"));
    assert!(said(&[(b"ASPR", vec![0, 0, 0, 9, 0], 100)]).contains("sampling of allocations 9"));
    let one = |numbers: &[u8], key: u8| slice(numbers, &[key, 2, 0, 0, 0, 0]);
    assert!(said(&[(b"ASLI", one(&[0, 9, 1], 0), 100)]).contains("key 0 of 0"));
    let of_slice = |raw: Vec<u8>| said(&[key(0, 0), (b"ASLI", raw, 100)]);
    assert!(of_slice(one(&[0, 9, 1], 1)).contains("key -1 of 1"));
    assert!(of_slice(one(&[0, 9, 2], 0)).contains("a slice of 2 of 1 changes"));
    assert!(of_slice(one(&[0, 9, 0], 0)).contains("1 changes in no slice"));
    let again = [key(0, 0), (b"ASLI", one(&[20, 9, 1], 0), 100), (b"ASLI", one(&[4, 9, 1], 0), 100)];
    assert!(said(&again).contains("from number 0, expected 1"));
    let earlier = slice(&[20, 9, 1, 1, 2, 0], &[0, 2, 0, 0, 0, 0]);
    assert!(of_slice(earlier).contains("a slice of 0 of 0 changes"));
}

#[test]
fn the_most_slices_a_file_may_hold_fit_into_the_bound() {
    for rows in [1 << 16, (1 << 16) + 1, 3 << 15] {
        let keys = (b"ASKY", uniform(0, rows, &[0; 6]), 3 * rows);
        let processes = (b"ASPR", [vec![0], vec![0; 4 * rows]].concat(), 3 * rows);
        // One change in each slice, as short and as long as there are.
        for length in [0, 100_000_000] {
            let mut slices = Vec::new();
            for _ in 0..rows {
                slices.push(0);
                number(&mut slices, length);
                slices.push(1);
            }
            let mut raw = Vec::new();
            [0, rows as u64, slices.len() as u64].into_iter().for_each(|n| number(&mut raw, n));
            (0..6).for_each(|_| number(&mut raw, rows as u64));
            raw.extend(slices);
            (0..6).for_each(|_| raw.extend(vec![0; rows]));
            let file = of_one_process(&[keys.clone(), processes.clone(), (b"ASLI", raw, 3 * rows)]);
            let read = read_in_bounds(&file);
            assert!(
                matches!(read, Some(Completeness::Incomplete { at }) if at == file.len() as u64),
                "{read:?}"
            );
            let (mut recording, _) = read_from(&file[..]).unwrap();
            bounded(allowed(&file), || recording.allocations.sum_up_slices());
        }
    }
}

/// A process, a thread, and this many samples of it, each of another task, so that none is merged; one byte a sample.
fn samples_of_tasks(samples: u64) -> Vec<u8> {
    let mut bytes = HEADER.to_vec();
    seal(&mut bytes, *b"STRS", &[0, 0], 2, 100);
    seal(&mut bytes, *b"PROC", &[0; 9], 9, 100);
    seal(&mut bytes, *b"THRD", &[0; 8], 8, 100);
    let mut columns: [Vec<u8>; 8] = Default::default();
    for task in 1..=samples {
        for (column, byte) in [(0, 1), (1, 0), (2, 2), (3, 0), (4, 0x19)] {
            columns[column].push(byte);
        }
        number(&mut columns[6], task);
    }
    let mut raw = Vec::new();
    number(&mut raw, 0);
    number(&mut raw, samples);
    columns.iter().for_each(|column| number(&mut raw, column.len() as u64));
    raw.extend(columns.concat());
    let packed = zstd::bulk::compress(&raw, 3).unwrap().len();
    seal(&mut bytes, *b"SAMP", &raw, raw.len(), (samples as usize).saturating_sub(packed));
    bytes
}

#[test]
fn the_most_samples_a_file_may_hold_fit_into_the_bound() {
    // Where tables have just been made larger, they are emptiest.
    for samples in [1 << 18, (1 << 18) + 1, (7 << 15) + 1, 3 << 17] {
        let bytes = samples_of_tasks(samples);
        assert!(matches!(read_in_bounds(&bytes), Some(Completeness::Incomplete { .. })));
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let (merged, _) =
            bounded(allowed(&bytes) + TIMES * bytes.len(), || read_merged(file.path(), |_, _| {})).unwrap();
        assert_eq!(merged.samples.len() as u64, samples);
    }
}
