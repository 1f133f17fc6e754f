//! `view`: the page that it writes, and what it refuses.

use crate::support::samples::recorded;
use crate::support::{Place, end_of, signal, text, wait_until};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

#[test]
fn a_recording_becomes_a_page() {
    let place = recorded();
    let output = place.run(["view", "r.glass", "-o", "page.html"]);
    let message = text(&output.stderr);
    assert!(output.status.success() && message.contains("page.html: a page of "), "{message}");
    let page = fs::read_to_string(place.file("page.html")).unwrap();
    let recording = place.recording("r.glass");
    assert!(page.contains(&format!("\"samples\":{},", recording.samples.len())), "every single sample");
    let piped = place.run(["view", "r.glass", "-o", "-"]);
    assert_eq!(text(&piped.stdout), page);
}

/// Asks a server for an address, and returns the connection.
fn ask(address: &str) -> TcpStream {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    stream
}

fn answer(address: &str) -> String {
    let mut page = String::new();
    ask(address).read_to_string(&mut page).unwrap();
    page
}

/// Reads events until one announces the page with this number or a later one.
fn wait_for_page(events: &mut impl BufRead, number: u64) {
    let mut line = String::new();
    let newest = |line: &str| line.strip_prefix("data: ").and_then(|text| text.trim().parse().ok());
    while newest(&line).is_none_or(|newest: u64| newest < number) {
        line.clear();
        assert_ne!(events.read_line(&mut line).unwrap(), 0, "the stream ends before page {number}");
    }
}

/// As much of the end of a recording as has its end mark.
const CUT: usize = 200;

#[test]
fn a_recording_is_served_as_it_grows_until_its_page_is_closed() {
    let place = recorded();
    let whole = fs::read(place.file("r.glass")).unwrap();
    // As if it was still recorded: the end mark is not there.
    fs::write(place.file("growing.glass"), &whole[..whole.len() - CUT]).unwrap();
    let browser = place.file("browser.sh");
    fs::write(&browser, format!("#!/bin/sh\necho \"$1\" > {}\n", place.file("opened").display())).unwrap();
    fs::set_permissions(&browser, Permissions::from_mode(0o755)).unwrap();
    let mut view = place.stackglass(["view", "growing.glass"]);
    let mut view =
        view.env("BROWSER", &browser).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(view.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let address = address.trim();
    let samples = format!("\"samples\":{},", place.recording("r.glass").samples.len());
    assert!(answer(address).contains(&samples));
    let mut events = BufReader::new(ask(&format!("{address}events")));
    wait_for_page(&mut events, 1);

    fs::write(place.file("growing.glass"), &whole).unwrap();
    wait_for_page(&mut events, 2);
    assert!(answer(address).contains(&samples));
    // The browser gets another address, which others may see: it works once.
    place.await_file("opened");
    let opened = fs::read_to_string(place.file("opened")).unwrap();
    assert!(opened.starts_with("http://127.0.0.1:") && opened.trim() != address, "{opened}");
    assert!(answer(opened.trim()).starts_with("HTTP/1.1 303"));
    assert!(answer(opened.trim()).starts_with("HTTP/1.1 410"));
    drop(events);
    let output = view.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("it still grows, and the page follows"),
        "{}",
        text(&output.stderr)
    );
}

/// The line with the address, among messages.
fn printed_address(messages: &mut impl BufRead) -> String {
    let mut line = String::new();
    while !line.starts_with("http://") {
        line.clear();
        assert_ne!(messages.read_line(&mut line).unwrap(), 0, "no address was printed");
    }
    line
}

#[test]
fn a_recording_is_shown_while_it_is_made() {
    let place = Place::new();
    let program = "until [ -e stop ]; do :; done";
    let mut record = place.stackglass(["record", "--view", "-q", "-o", "r.glass", "--", "sh", "-c", program]);
    record.env("BROWSER", "true").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut record = record.spawn().unwrap();
    let mut messages = BufReader::new(record.stderr.take().unwrap());
    let address = printed_address(&mut messages);
    let address = address.trim();
    let mut events = BufReader::new(ask(&format!("{address}events")));
    wait_for_page(&mut events, 2);
    fs::write(place.file("stop"), "").unwrap();
    let samples = |page: &str| -> usize {
        page.split("\"samples\":").nth(1).unwrap().split(',').next().unwrap().parse().unwrap()
    };
    // The last page has all that was recorded; the stream announces each.
    let complete = || place.file("r.glass").exists() && place.run(["info", "r.glass"]).stderr.is_empty();
    wait_until("the recording is complete", complete);
    let all = place.recording("r.glass").samples.len();
    wait_until("the page has all of it", || samples(&answer(address)) == all);
    drop(events);
    assert_eq!(end_of(&mut record), Some(0));
    // Only the program's output is on stdout.
    let mut output = String::new();
    record.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!(output, "");
}

#[test]
fn a_short_program_has_its_page_as_well() {
    let place = Place::new();
    let mut record = place.stackglass(["record", "--view", "-q", "-o", "r.glass", "--", "false"]);
    let mut record = record.env("BROWSER", "true").stderr(Stdio::piped()).spawn().unwrap();
    let mut messages = BufReader::new(record.stderr.take().unwrap());
    let address = printed_address(&mut messages);
    let mut events = BufReader::new(ask(&format!("{}events", address.trim())));
    wait_for_page(&mut events, 1);
    drop(events);
    assert_eq!(end_of(&mut record), Some(1), "the status of the program");
}

#[test]
fn ctrl_c_ends_the_server() {
    let place = recorded();
    let mut view = place.stackglass(["view", "--no-open"]);
    let mut view = view.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(view.stdout.take().unwrap()).read_line(&mut address).unwrap();
    assert!(answer(address.trim()).contains("<title>"));
    signal(&view, Signal::INT);
    assert_eq!(end_of(&mut view), Some(0));
}

/// The head of a page in a file.
fn head_of(page: &str) -> serde_json::Value {
    let json = page.split_once("id=\"head\">").and_then(|(_, rest)| rest.split_once("</script>"));
    serde_json::from_str(json.expect("a head").0).expect("JSON")
}

#[test]
fn what_has_no_times_counts_samples() {
    let place = recorded();
    fs::write(place.file("p.folded"), "main;read 40\nmain 2\n").unwrap();
    let message = text(&place.run(["view", "p.folded", "-o", "p.html"]).stderr);
    assert!(message.contains("with 42 samples without times"), "{message}");
    let head = head_of(&fs::read_to_string(place.file("p.html")).unwrap());
    assert_eq!((&head["untimed"], &head["file"]), (&true.into(), &"p.folded".into()));
    // The formats of other programs, and those of Julia.
    fs::write(
        place.file("p.txt"),
        "a 7 1.5: 250000 cycles:\n\t55aa f+0x1 (/bin/a)\n\t55bb main+0x9 (/bin/a)\n\n",
    )
    .unwrap();
    assert!(
        text(&place.run(["view", "p.txt", "-o", "p.html"]).stderr).contains("with 1 sample without times")
    );
    place.run(["convert", "r.glass", "r.jlprof"]);
    place.run(["view", "r.jlprof", "-o", "p.html"]);
    let converted = head_of(&fs::read_to_string(place.file("p.html")).unwrap());
    place.run(["view", "r.glass", "-o", "p.html"]);
    let timed = head_of(&fs::read_to_string(place.file("p.html")).unwrap());
    assert_eq!((&converted["untimed"], &timed["untimed"]), (&true.into(), &false.into()));
    assert!(converted["samples"].as_u64() > Some(0), "{converted}");
    // Two of a kind can be compared.
    place.run(["view", "p.folded", "--against", "p.txt", "-o", "p.html"]);
    let message = place.refused(&["view", "r.glass", "--against", "p.folded"]);
    assert!(message.contains("p.folded: its samples have no times"), "{message}");
}

#[test]
fn outputs_that_make_no_sense_are_refused() {
    let place = recorded();
    assert!(place.refused(&["view", "r.glass", "-o", "r.glass"]).contains("is the input"));
    assert!(place.refused(&["view", "r.glass", "-o", "-", "--open"]).contains("--open needs a file"));
}
