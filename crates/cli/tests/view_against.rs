//! `view --against`: an earlier recording in the same page.

use crate::support::samples::recorded;
use serde_json::Value;
use std::fs;

#[test]
fn a_page_has_the_threads_of_both_recordings() {
    let place = recorded();
    fs::copy(place.file("r.glass"), place.file("before.glass")).unwrap();
    let message = place.run(["view", "r.glass", "--against", "before.glass", "-o", "page.html"]);
    let message = String::from_utf8_lossy(&message.stderr).into_owned();
    assert!(message.contains(" samples, compared with before.glass"), "{message}");
    let page = fs::read_to_string(place.file("page.html")).unwrap();
    let head = page.split("id=\"head\">").nth(1).unwrap().split("</script>").next().unwrap();
    let head: Value = serde_json::from_str(head).unwrap();
    let recording = place.recording("r.glass");
    let (threads, processes) = (recording.threads.len(), recording.processes.len());
    assert_eq!(head["before"]["name"], "before.glass");
    assert_eq!(head["before"]["threadsAfter"], threads);
    assert_eq!(head["threads"].as_array().unwrap().len(), 2 * threads);
    assert_eq!(head["samples"], 2 * recording.samples.len());
    let names: Vec<&str> = head["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.iter().filter(|name| name.ends_with(" in before.glass")).count(), processes);

    fs::write(place.file("p.folded"), "main;read 40\n").unwrap();
    let message = place.refused(&["view", "r.glass", "--against", "p.folded"]);
    assert!(message.contains("compare it with `stackglass diff`"), "{message}");
}
