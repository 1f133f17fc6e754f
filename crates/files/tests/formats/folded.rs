//! Folded stacks: known lines, refused lines, and round trips.

use proptest::prelude::*;
use stackglass_files::folded::{read_from, write_to};
use stackglass_files::{read, write};
use stackglass_profile::{
    Frame, Location, Module, ModuleIndex, Nanos, Recording, Sample, State, Thread, ThreadNumber,
};
use std::collections::BTreeMap;

fn folded(recording: &Recording) -> String {
    let mut out = Vec::new();
    write_to(&mut out, recording).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn lines_of_other_tools() {
    let text = "main;read_config;[libc.so.6] 3\r\nmain;operator new(unsigned long);malloc 12\n\nmain 1\n\
                main;read_config;[libc.so.6] 2\nidle 99";
    let recording = read_from(text.as_bytes()).unwrap();
    assert_eq!(
        folded(&recording),
        "idle 99\nmain 1\nmain;operator new(unsigned long);malloc 12\nmain;read_config;[libc.so.6] 5\n"
    );
    assert_eq!(recording.stacks.locations().len(), 6);
}

#[test]
fn empty_names_stay_empty() {
    let text = " 1\n;; 4\n;a 3\na; 2\na;;b 5\n";
    let recording = read_from(text.as_bytes()).unwrap();
    assert_eq!(folded(&recording), text);
    let folder = tempfile::tempdir().unwrap();
    let (glass, jlprof) = (folder.path().join("x.glass"), folder.path().join("x.jlprof"));
    write(&glass, &recording).unwrap();
    assert_eq!(folded(&read(&glass).unwrap().0), text);
    stackglass_files::jlprof::write_recording(&jlprof, &recording).unwrap();
    let samples = stackglass_files::jlprof::read(&jlprof).and_then(|content| content.samples()).unwrap();
    let again = stackglass_files::recording_of(&samples.data, &samples.dictionary).unwrap();
    assert_eq!(folded(&again), text);
}

#[test]
fn counts_beyond_32_bits_are_kept() {
    let text = "a;b 12345678901\na 4294967295\n";
    let recording = read_from(text.as_bytes()).unwrap();
    assert_eq!(folded(&recording), "a 4294967295\na;b 12345678901\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.glass");
    write(&path, &recording).unwrap();
    let sum = |r: &Recording| r.samples.iter().map(|s| u64::from(s.hits)).sum::<u64>();
    assert_eq!(sum(&recording), 12345678901 + 4294967295);
    assert!(read(&path).unwrap().1.is_complete());
}

#[test]
fn refusals_say_what_is_wrong_and_where() {
    let say = |text: &str| read_from(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(say("a;b 1\nmain\n"), "line 2 (byte 6) should be `frame;frame;… count`, but has no count");
    assert!(say("a;b 1.5\n").contains("line 1 (byte 0)"));
    assert!(say("a;b -1\n").contains("does not end with a whole number"));
    assert!(say("a 18446744073709551615\n").contains("too large"));
}

#[test]
fn names_are_made_fit_for_a_line() {
    let mut recording = Recording::default();
    recording.info.delay = Nanos(10);
    recording.threads.push(Thread {
        process: Default::default(),
        tid: 1,
        name: "t".into(),
        start: Nanos(0),
        end: None,
        cpu: Nanos(0),
        blocked_signal: false,
    });
    recording.modules.push(Module { path: "/usr/lib/libx.so".into(), build_id: [].into() });
    let at = |module, offset| Location { module, offset };
    let main = recording.stacks.intern_location(at(None, 1));
    let inlined = recording.stacks.intern_location(at(None, 2));
    let nameless = recording.stacks.intern_location(at(Some(ModuleIndex(0)), 0x1f0));
    let frame = |func: &str| Frame { func: func.into(), ..Frame::unknown(0) };
    recording.symbols.set(main, [frame("main")]);
    recording.symbols.set(inlined, [frame("<[u8; 4]>\nf"), frame("outer")]);
    let stack = recording.stacks.intern(&[nameless, inlined, main]);
    recording.push(Sample {
        stack,
        thread: ThreadNumber(1),
        task: 0,
        clock: Nanos(1),
        state: State::Awake,
        cut: None,
        hits: 1,
        time: Nanos(70),
        spread: Nanos(0),
    });
    // Seven delays, whatever the hits; inlined functions after the function they are in.
    assert_eq!(folded(&recording), "main;outer;<[u8: 4]> f;[libx.so] 7\n");
}

proptest! {
    #[test]
    fn what_is_written_is_read(stacks in prop::collection::btree_map("[a-c]?(;([a-c ü]{1,3}[a-c])?){0,4}", 1..u64::MAX >> 20, 0..8)) {
        let text: String = stacks.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect();
        let recording = read_from(text.as_bytes()).unwrap();
        let back: BTreeMap<String, u64> = folded(&recording)
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(stack, count)| (stack.to_owned(), count.parse().unwrap()))
            .collect();
        prop_assert_eq!(back, stacks);
    }

    #[test]
    fn a_line_reads_the_same_whatever_stands_before_it(
        lines in prop::collection::vec("(a|b|ü|;|;| |\u{3000}|\r|!|%){0,8}( [0-9])?", 0..9)
    ) {
        // Bytes that are no UTF-8, and half of a character.
        let bytes = |line: &String| {
            let mut bytes = line.clone().into_bytes();
            for byte in &mut bytes {
                *byte = match *byte { b'!' => 0xff, b'%' => 0xc3, byte => byte };
            }
            bytes.push(b'\n');
            bytes
        };
        let lines: Vec<Vec<u8>> = lines.iter().map(bytes).collect();
        let together = read_from(&lines.concat()[..]).map(|recording| folded(&recording));
        // Between them a line that has nothing in common with any, and counts nothing.
        let apart = read_from(&lines.join(&b"z 0\n"[..])[..]).map(|recording| folded(&recording));
        let what = |error: stackglass_files::folded::FoldedError| match error {
            stackglass_files::folded::FoldedError::Line { what, .. } => what,
            _ => "",
        };
        prop_assert_eq!(together.map_err(what), apart.map_err(what));
    }

    #[test]
    fn anything_is_read_or_refused(bytes: Vec<u8>, lines in "([a-b; 0-9]{0,12}\n){0,9}") {
        let _ = read_from(&bytes[..]);
        if let Ok(recording) = read_from(lines.as_bytes()) {
            folded(&recording);
        }
    }
}
