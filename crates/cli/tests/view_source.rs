//! `view --with-source --with-asm`: sources and instructions in a page.

use crate::support::Place;
use crate::support::samples::recorded;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

fn head_of(page: &str) -> Value {
    let head = page.split("id=\"head\">").nth(1).unwrap().split("</script>").next().unwrap();
    serde_json::from_str(head).unwrap()
}

/// What `view -o` says, and the head of its page.
fn page(place: &Place, file: &str, flags: &[&str]) -> (String, Value) {
    let output = place.run([&["view", file, "-o", "page.html"], flags].concat());
    assert!(output.status.success());
    (
        String::from_utf8(output.stderr).unwrap(),
        head_of(&fs::read_to_string(place.file("page.html")).unwrap()),
    )
}

#[test]
fn sources_and_instructions_are_in_a_file_on_request_only() {
    let place = recorded();
    let (message, head) = page(&place, "r.glass", &[]);
    assert!(!message.contains("source file") && !message.contains("disassembled"), "{message}");
    assert_eq!((&head["sources"]["texts"], &head["code"]), (&0.into(), &Value::Null));
    assert!(head["sources"]["files"].as_u64() > Some(0), "lines have their times nevertheless");
    let (message, head) = page(&place, "r.glass", &["--with-source", "--with-asm"]);
    let texts = head["sources"]["texts"].as_u64().unwrap();
    let functions = head["code"]["functions"].as_u64().unwrap();
    assert!(texts > 0 && functions > 0, "{head}");
    assert!(message.contains(&format!(", {texts} source file")), "{message}");
    assert!(message.contains(&format!(", {functions} disassembled function")), "{message}");
}

#[test]
fn a_served_page_has_both() {
    let place = recorded();
    let mut view = place.stackglass(["view", "r.glass", "--no-open"]);
    let mut view = view.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(view.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let (host, path) = address.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let head = head_of(&page);
    assert!(
        head["sources"]["texts"].as_u64() > Some(0) && head["code"]["functions"].as_u64() > Some(0),
        "{head}"
    );
    view.kill().unwrap();
    view.wait().unwrap();
}

/// The recording may be somebody else's: what it names becomes part of a page that is sent on.
#[test]
fn a_recording_cannot_bring_other_files_into_a_page() {
    let place = recorded();
    let (_, before) = page(&place, "r.glass", &["--with-source"]);
    for (name, is_read) in [("id_rsa", false), (".env", false), ("key.pem", false), ("mine.rs", true)] {
        fs::write(place.file(name), "secret\n").unwrap();
        let mut recording = place.recording("r.glass");
        let locations = recording.stacks.locations().len() as u32;
        for id in (0..locations).map(stackglass_profile::LocationId) {
            let mut frames: Vec<_> = recording.symbols.frames_of(id).cloned().collect();
            for frame in frames.iter_mut().filter(|frame| frame.file.ends_with("demo/src/lib.rs")) {
                frame.file = place.file(name).to_str().unwrap().into();
            }
            recording.symbols.set(id, frames);
        }
        stackglass_files::write(place.file("other.glass"), &recording).unwrap();
        let (_, head) = page(&place, "other.glass", &["--with-source"]);
        assert_eq!(head["sources"]["files"], before["sources"]["files"], "{name}");
        let missing =
            before["sources"]["texts"].as_u64().unwrap() - head["sources"]["texts"].as_u64().unwrap();
        assert_eq!(missing, u64::from(!is_read), "{name}");
    }
}
