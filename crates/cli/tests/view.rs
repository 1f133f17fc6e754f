//! `view`: the page that it writes, and what it refuses.

use crate::support::samples::recorded;
use crate::support::text;
use std::fs;

#[test]
fn a_recording_becomes_a_page() {
    let place = recorded();
    let output = place.run(["view", "r.glass", "-o", "page.html"]);
    let message = text(&output.stderr);
    assert!(output.status.success() && message.contains("page.html: a page of "), "{message}");
    let page = fs::read_to_string(place.file("page.html")).unwrap();
    let recording = place.recording("r.glass");
    assert!(page.contains(&format!("\"samples\":{},", recording.samples.len())), "every single sample");
    // The default has the name of the recording, in the current folder; the newest recording is the default.
    assert!(place.run(["view"]).status.success());
    assert_eq!(fs::read_to_string(place.file("r-view.html")).unwrap(), page);
    let piped = place.run(["view", "r.glass", "-o", "-"]);
    assert_eq!(text(&piped.stdout), page);
}

#[test]
fn what_has_no_times_is_refused() {
    let place = recorded();
    fs::write(place.file("p.folded"), "main;read 40\n").unwrap();
    let message = place.refused(&["view", "p.folded"]);
    assert!(message.contains("its samples have no times; `stackglass flamegraph` draws them"), "{message}");
    assert!(place.refused(&["view", "r.glass", "-o", "r.glass"]).contains("is the input"));
    assert!(place.refused(&["view", "r.glass", "-o", "-", "--open"]).contains("--open needs a file"));
}
