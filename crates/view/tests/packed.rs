//! What is packed, read back as the page reads it.

use proptest::prelude::*;
use stackglass_profile::{
    Cut, Frame, Location, LocationId, Nanos, Recording, Sample, StackId, State, ThreadNumber,
};
use stackglass_report::cut_meaning;
use stackglass_view::{Packed, Page};
use std::collections::HashMap;

mod columns;
mod numbers;

/// The columns of numbers by name.
fn columns(packed: &Packed) -> HashMap<&'static str, Vec<u64>> {
    let all = columns::columns(packed).into_iter().filter(|(name, _)| *name != "strings");
    all.map(|(name, column)| (name, numbers::numbers(&column))).collect()
}

/// The names of frames.
fn names(packed: &Packed, columns: &HashMap<&'static str, Vec<u64>>) -> Vec<String> {
    let mut at = 0;
    for (name, size) in packed.columns().sizes() {
        if *name == "strings" {
            let json = &packed.columns().bytes()[at..at + size];
            let strings: Vec<String> = serde_json::from_slice(json).unwrap();
            return columns["frames.name"].iter().map(|name| strings[*name as usize].clone()).collect();
        }
        at += size;
    }
    panic!("there are no strings");
}

/// The names on the way to each node, outermost first.
fn paths(packed: &Packed, columns: &HashMap<&'static str, Vec<u64>>) -> Vec<Vec<String>> {
    let names = names(packed, columns);
    let mut paths = vec![Vec::new()];
    let mut open: Vec<String> = Vec::new();
    for (left, frame) in columns["nodes.left"].iter().zip(&columns["nodes.frame"]) {
        open.truncate(open.len() - *left as usize);
        open.push(names[*frame as usize].clone());
        paths.push(open.clone());
    }
    paths
}

fn function(name: &str, line: i64, inlined: bool) -> Frame {
    Frame { func: name.into(), line, inlined, foreign: false, ..Frame::unknown(0) }
}

/// A recording with these stacks, given root first by location. Location `n` has the functions `f{n}`, and `inner{n}` inlined into it
/// if `n` is odd; location 0 only starts a program, and 9 has no names.
fn recording(samples: &[(Vec<u8>, u64, u64)]) -> Recording {
    let mut recording = Recording::default();
    recording.info.start = Nanos(1000);
    recording.info.delay = Nanos(1_000_000);
    for number in 0..10_u64 {
        let location = recording.stacks.intern_location(Location { module: None, offset: number });
        match number {
            0 => recording.symbols.set(location, [function("std::rt::lang_start", 1, false)]),
            9 => {}
            _ if number % 2 == 1 => {
                let inner = function(&format!("inner{number}"), 7, true);
                recording.symbols.set(location, [inner, function(&format!("f{number}"), 3, false)]);
            }
            _ => recording.symbols.set(location, [function(&format!("f{number}"), 3, false)]),
        }
    }
    for (stack, clock, time) in samples {
        let leaf_first: Vec<LocationId> = stack.iter().rev().map(|at| LocationId(u32::from(*at))).collect();
        let stack = match leaf_first.is_empty() {
            true => StackId(0),
            false => recording.stacks.intern(&leaf_first),
        };
        recording.samples.push(Sample {
            stack,
            thread: ThreadNumber(1),
            task: 0,
            clock: Nanos(*clock),
            state: State::Awake,
            cut: None,
            hits: 1,
            time: Nanos(*time),
            spread: Nanos(0),
        });
    }
    recording
}

/// The names that a stack has on the page.
fn expected(stack: &[u8]) -> Vec<String> {
    let own = stack.iter().skip_while(|at| **at == 0);
    own.flat_map(|at| match at {
        0 => vec!["std::rt::lang_start".to_owned()],
        9 => vec!["[0x9]".to_owned()],
        at if at % 2 == 1 => vec![format!("f{at}"), format!("inner{at}")],
        at => vec![format!("f{at}")],
    })
    .collect()
}

proptest! {
    /// Each sample has the names of its stack, and its time at its clock.
    #[test]
    fn samples_have_their_stacks(
        samples in prop::collection::vec((prop::collection::vec(0..10_u8, 1..7), 1000..1_000_000_u64, 0..5000_u64), 0..60)
    ) {
        let packed = Packed::new(recording(&samples), "test");
        let columns = columns(&packed);
        let paths = paths(&packed, &columns);
        let mut sorted: Vec<_> = samples.iter().collect();
        sorted.sort_by_key(|(_, clock, _)| *clock);
        let mut clock = 1000;
        for (i, (stack, expected_clock, time)) in sorted.into_iter().enumerate() {
            clock += columns["samples.clock"][i];
            prop_assert_eq!(clock, *expected_clock);
            prop_assert_eq!(columns["samples.time"][i], *time);
            prop_assert_eq!(&paths[columns["samples.node"][i] as usize], &expected(stack));
        }
        // No node is there twice.
        let mut unique = paths.clone();
        unique.sort();
        unique.dedup();
        prop_assert_eq!(unique.len(), paths.len());
    }
}

#[test]
fn time_without_a_stack_is_named() {
    let packed = Packed::new(recording(&[(Vec::new(), 2000, 500)]), "test");
    let columns = columns(&packed);
    let path = &paths(&packed, &columns)[columns["samples.node"][0] as usize];
    assert_eq!(path, &["[fork, exec and exit]"]);
}

/// The page says why stacks are incomplete, in the words of the reports. Those that begin where programs start are complete.
#[test]
fn incomplete_stacks_have_their_reasons() {
    let stacks = [vec![2], vec![0, 2], vec![4], vec![2, 4], vec![]];
    let samples: Vec<_> = (1..).zip(stacks).map(|(number, stack)| (stack, 1000 * number, 500)).collect();
    let mut recording = recording(&samples);
    let cuts = [Some(Cut::NO_RULE), Some(Cut::NO_RULE), Some(Cut::DEPTH), None, Some(Cut::SHORT)];
    for (sample, cut) in recording.samples.iter_mut().zip(cuts) {
        sample.cut = cut;
    }
    let packed = Packed::new(recording.clone(), "test");
    let [no_rule, depth, short] = [Cut::NO_RULE, Cut::DEPTH, Cut::SHORT].map(|cut| u64::from(cut.0));
    assert_eq!(columns(&packed)["samples.cut"], [no_rule, 0, depth, 0, short]);
    let head: serde_json::Value = serde_json::from_str(packed.head()).unwrap();
    let reason = |cut: Cut| {
        let (meaning, remedy) = cut_meaning(cut);
        serde_json::json!({ "number": cut.0, "meaning": meaning, "remedy": remedy })
    };
    assert_eq!(
        head["cuts"],
        serde_json::json!([reason(Cut::DEPTH), reason(Cut::NO_RULE), reason(Cut::SHORT)])
    );
    recording.samples.iter_mut().for_each(|sample| sample.cut = None);
    assert!(!columns(&Packed::new(recording, "test")).contains_key("samples.cut"));
}

/// Names cannot end a script or begin another one, and the policy allows only those of the page.
#[test]
fn names_are_no_markup() {
    let mut recording = recording(&[(vec![2], 2000, 500)]);
    recording.info.command = vec!["</script><script>alert(1)</script>".to_owned()];
    recording.symbols.set(LocationId(2), [function("</script><img src=x>", 1, false)]);
    let packed = Packed::new(recording, "</title><script>alert(2)</script>");
    let mut page = Vec::new();
    Page::new(&packed).write_to(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_eq!(
        page.matches("<script").count(),
        4,
        "the head, the first picture, the script of the page, and the columns"
    );
    assert_eq!(page.matches("</script>").count(), 4);
    assert!(!page.contains("alert(2)</script>"));
    let policy =
        page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-") && !policy.contains("unsafe"));
}
