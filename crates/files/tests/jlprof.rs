//! `.jlprof`: files that Julia wrote, or refused, are read, or refused; what we write is laid out
//! as what Julia writes.

use proptest::prelude::*;
use serde_json::Value;
use stackglass_files::jlprof::{JlprofError, read, read_from, write, write_recording, write_to};
use stackglass_files::recording_of;
use stackglass_profile::{Data, Dictionary, Frame};
use std::fs;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/flamegraphs/jlprof")
}

fn cases() -> Vec<Value> {
    let index = fs::read_to_string(folder().join("index.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    index["cases"].as_array().unwrap().clone()
}

/// Integers that do not fit into 64 signed bits are decimal strings.
fn integer(value: &Value) -> i128 {
    value.as_i64().map_or_else(|| value.as_str().unwrap().parse().unwrap(), i128::from)
}

fn frame(func: &str, file: &str, line: i64, foreign: bool, inlined: bool) -> Frame {
    Frame { func: func.into(), file: file.into(), line, foreign, inlined, ..Frame::unknown(0) }
}

type Table = Vec<(u64, Vec<Frame>)>;

fn table_of(dictionary: &Dictionary) -> Table {
    let addresses = dictionary.addresses().into_iter();
    addresses.map(|address| (address, dictionary.get(address).unwrap().to_vec())).collect()
}

fn recorded_table(lidict: &Value) -> Table {
    let entry = |entry: &Value| {
        let frames = entry[1].as_array().unwrap().iter().map(|f| {
            let text = |i: usize| f[i].as_str().unwrap();
            frame(text(0), text(1), f[2].as_i64().unwrap(), f[3] == true, f[4] == true)
        });
        (integer(&entry[0]) as u64, frames.collect())
    };
    let mut table: Table = lidict.as_array().unwrap().iter().map(entry).collect();
    table.sort_by_key(|entry| entry.0);
    table
}

#[test]
fn recorded_files_are_accepted_and_refused_as_recorded() {
    let (mut accepted, mut refused, mut graphs) = (0, 0, 0);
    for case in cases() {
        let file = case["file"].as_str().unwrap();
        let bytes = fs::read(folder().join(file)).unwrap();
        let result = read_from(&bytes[..]);
        let by_name = read(folder().join(file));
        let is_graph = bytes.get(12) == Some(&2);
        if is_graph {
            graphs += 1;
            assert!(matches!(result, Err(JlprofError::Form { found: 2 })), "{file}");
            continue;
        }
        assert_eq!(by_name.is_ok(), case["by_name"]["ok"] == true, "{file} by its name: {by_name:?}");
        match result {
            Ok(samples) => {
                assert_eq!(case["ok"], true, "{file} must be refused");
                let data: Vec<u64> =
                    case["decoded"]["data"].as_array().unwrap().iter().map(|n| integer(n) as u64).collect();
                assert_eq!(samples.data.words(), data, "{file}");
                assert_eq!(
                    table_of(&samples.dictionary),
                    recorded_table(&case["decoded"]["lidict"]),
                    "{file}"
                );
                assert_eq!(samples.magic.is_some(), file.starts_with("magic-"), "{file}");
                accepted += 1;
            }
            Err(error) => {
                assert_eq!(case["ok"], false, "{file} must be accepted: {error}");
                assert!(error.to_string().contains("byte "), "{file}: {error}");
                if let JlprofError::Cut { at, .. } = error {
                    assert_eq!(at, bytes.len() as u64, "{file}");
                }
                refused += 1;
            }
        }
    }
    assert_eq!((accepted, refused, graphs), (19, 35, 34));
}

#[test]
fn refusals_say_what_is_wrong_and_where() {
    let say = |file: &str| read_from(fs::File::open(folder().join(file)).unwrap()).unwrap_err().to_string();
    assert_eq!(say("count-negative.jlprof"), "-1 words at byte 13");
    assert_eq!(say("name-negative.jlprof"), "-1 bytes of a name at byte 57");
    assert_eq!(say("name-nul.jlprof"), "the name at byte 61 has a zero byte in it");
    assert_eq!(
        say("endian-zero.jlprof"),
        "byte 8 should tell the byte order (0x01020304), but is 0x00000000"
    );
    assert_eq!(say("format-3.jlprof"), "form 3 at byte 12: not known; samples have form 1");
    assert_eq!(say("cut-samples-file-part.jlprof"), "ends at byte 72, in the middle of the name of a file");
    let by_name = read(folder().join("magic-png.jlprof")).unwrap_err();
    assert_eq!(by_name.to_string(), "its first bytes are those of a PNG picture");
}

/// A file as a machine of either byte order writes it, made without the crate's own writer.
fn laid_out(words: &[u64], table: &Table, big: bool) -> Vec<u8> {
    let mut out = b"JLPROF\x01\0".to_vec();
    let mut put = |bytes: &[u8]| match big {
        false => out.extend(bytes),
        true => out.extend(bytes.iter().rev()),
    };
    put(&0x0102_0304_u32.to_le_bytes());
    put(&[1]);
    put(&(words.len() as i64).to_le_bytes());
    words.iter().for_each(|word| put(&word.to_le_bytes()));
    put(&(table.len() as i64).to_le_bytes());
    for (address, frames) in table {
        put(&address.to_le_bytes());
        put(&(frames.len() as i32).to_le_bytes());
        for frame in frames {
            for name in [&frame.func, &frame.file] {
                put(&(name.len() as i32).to_le_bytes());
                name.bytes().for_each(|byte| put(&[byte]));
            }
            put(&frame.line.to_le_bytes());
            put(&[frame.foreign.into()]);
            put(&[frame.inlined.into()]);
        }
    }
    out
}

#[test]
fn what_julia_wrote_is_written_again_byte_by_byte() {
    let mut compared = 0;
    for case in cases() {
        let file = case["file"].as_str().unwrap();
        if !file.starts_with("samples-") {
            continue;
        }
        let recorded = fs::read(folder().join(file)).unwrap();
        let samples = read_from(&recorded[..]).unwrap();
        let mut ours = Vec::new();
        let words = samples.data.words();
        write_to(&mut ours, words.len() as u64, words.iter().copied(), &samples.dictionary).unwrap();
        // Julia's table is in the order of its hash tables, ours ascends: in the recorded order it
        // must be the recorded file.
        let head = 8 + 4 + 1 + 8 + 8 * words.len() + 8;
        assert_eq!(ours[..head], recorded[..head], "{file}");
        let entries = |bytes: &[u8]| {
            let mut entries = Vec::new();
            let mut at = head;
            let long = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
            let int = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
            for _ in 0..long(head - 8) {
                let start = at;
                let frames = int(at + 8);
                at += 12;
                for _ in 0..frames {
                    at += 4 + int(at);
                    at += 4 + int(at) + 10;
                }
                entries.push(bytes[start..at].to_vec());
            }
            assert_eq!(at, bytes.len(), "{file}");
            entries.sort();
            entries
        };
        assert_eq!(entries(&ours), entries(&recorded), "{file}");
        compared += 1;
    }
    assert_eq!(compared, 7);
}

#[test]
fn a_recording_of_a_recorded_file_says_the_same() {
    let samples = read(folder().join("samples-recorded.jlprof")).unwrap();
    let recording = recording_of(&samples.data, &samples.dictionary).unwrap();
    let path = tempfile::tempdir().unwrap().keep().join("again.jlprof");
    write_recording(&path, &recording).unwrap();
    let again = read(&path).unwrap();
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let blocks = |data: &Data| -> Vec<(Vec<u64>, u64, u64, u64)> {
        data.blocks().map(|b| (b.addresses.to_vec(), b.thread, b.task, b.state)).collect()
    };
    assert!(blocks(&samples.data).len() > 10);
    assert_eq!(blocks(&again.data), blocks(&samples.data));
    for (address, frames) in table_of(&samples.dictionary) {
        // An address without frames shows the unknown one.
        let frames = if frames.is_empty() { vec![Frame::unknown(0)] } else { frames };
        assert_eq!(again.dictionary.get(address).unwrap(), frames);
    }
}

#[test]
fn a_buffer_without_metadata_is_one_thread() {
    let recording = |words: &[u64]| recording_of(&Data::new(words.to_vec()), &Dictionary::new()).unwrap();
    let two = recording(&[5, 6, 0, 7, 0]);
    assert_eq!((two.samples.len(), two.threads.len()), (2, 1));
    assert_eq!(two.stacks.walk(two.samples[0].stack).count(), 2);
    // No sample ends in these.
    assert!(recording(&[5]).samples.is_empty());
    assert!(recording(&[]).samples.is_empty());
}

#[test]
fn words_that_are_not_as_many_as_announced_leave_no_file() {
    let error = write_to(&mut Vec::new(), 3, [1, 2], &Dictionary::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jlprof");
    let full = stackglass_files::write_whole(&path, |out| {
        write_to(out, 1, [1], &Dictionary::new())?;
        Err(std::io::ErrorKind::StorageFull.into())
    });
    assert!(full.is_err());
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let name = "[^\0]{0,6}";
    (name, name, any::<i64>(), any::<bool>(), any::<bool>())
        .prop_map(|(func, file, line, foreign, inlined)| frame(&func, &file, line, foreign, inlined))
}

fn any_table() -> impl Strategy<Value = Table> {
    prop::collection::btree_map(any::<u64>(), prop::collection::vec(any_frame(), 0..4), 0..6)
        .prop_map(|table| table.into_iter().collect())
}

proptest! {
    #[test]
    fn what_is_written_is_read(words: Vec<u64>, table in any_table()) {
        let mut dictionary = Dictionary::new();
        for (address, frames) in &table {
            dictionary.set(*address, frames.clone());
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jlprof");
        write(&path, &Data::new(words.clone()), &dictionary).unwrap();
        let bytes = fs::read(&path).unwrap();
        prop_assert_eq!(&bytes, &laid_out(&words, &table, false));
        // Read whole, and by a machine of the other byte order.
        for bytes in [bytes, laid_out(&words, &table, true)] {
            let back = read_from(&bytes[..]).unwrap();
            prop_assert_eq!(back.data.words(), &words[..]);
            prop_assert_eq!(table_of(&back.dictionary), table.clone());
            // Cut anywhere: refused at the cut.
            for cut in 0..bytes.len() {
                match read_from(&bytes[..cut]) {
                    Err(JlprofError::Cut { at, .. }) => prop_assert_eq!(at, cut as u64),
                    other => prop_assert!(false, "cut at {}: {:?}", cut, other.map(|s| s.data)),
                }
            }
        }
    }
}
