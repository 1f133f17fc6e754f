//! `view` with what lies beside a recording: a heap snapshot, and tasks.

use crate::heap::snapshot;
use crate::support::samples::recorded;
use crate::support::{Place, text};
use serde_json::Value;
use std::fs;

/// Writes a page, and returns its head and what the command says.
fn head(place: &Place, arguments: &[&str]) -> (Value, String) {
    let output = place.run([&["view", "-o", "page.html"], arguments].concat());
    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    let page = fs::read_to_string(place.file("page.html")).unwrap();
    let head = page.split("id=\"head\">").nth(1).unwrap().split("</script>").next().unwrap();
    (serde_json::from_str(head).unwrap(), message)
}

#[test]
fn a_heap_snapshot_has_a_page_of_its_own() {
    let place = Place::new();
    snapshot(&place, "app.heapsnapshot", 500, "");
    let (of_file, message) = head(&place, &["app.heapsnapshot"]);
    assert!(message.contains(" with the heap of app.heapsnapshot"), "{message}");
    assert_eq!((&of_file["heap"]["name"], &of_file["samples"]), (&"app.heapsnapshot".into(), &0.into()));
    assert_eq!(of_file["heap"]["alive"], serde_json::json!({"count": 500, "bytes": 32000}));
    assert_eq!(of_file["heap"]["lost"], serde_json::json!({"count": 2, "bytes": 96}));
    let (of_parts, _) = head(&place, &["parts"]);
    assert_eq!(
        (&of_parts["heap"]["name"], &of_parts["heap"]["alive"]),
        (&"parts".into(), &of_file["heap"]["alive"])
    );
    assert!(
        place
            .refused(&["view", "app.heapsnapshot", "--heap", "parts"])
            .contains("is a heap snapshot already")
    );
}

#[test]
fn a_recording_is_shown_with_the_snapshot_beside_it() {
    let place = recorded();
    let (alone, message) = head(&place, &["r.glass"]);
    assert!(alone["heap"].is_null() && !message.contains("heap"), "{message}");
    snapshot(&place, "other.heapsnapshot", 7, "");
    let (given, message) = head(&place, &["r.glass", "--heap", "other.heapsnapshot"]);
    assert!(message.contains(" samples, the heap of other.heapsnapshot"), "{message}");
    assert_eq!((&given["heap"]["alive"]["count"], &given["samples"]), (&7.into(), &alone["samples"]));
    // That of the same name needs no flag.
    snapshot(&place, "r.heapsnapshot", 9, "");
    let (beside, _) = head(&place, &["r.glass"]);
    assert_eq!(
        (&beside["heap"]["name"], &beside["heap"]["alive"]["count"]),
        (&"r.heapsnapshot".into(), &9.into())
    );
    let (given, _) = head(&place, &["r.glass", "--heap", "other.heapsnapshot"]);
    assert_eq!(given["heap"]["name"], "other.heapsnapshot");
    assert!(place.refused(&["view", "r.glass", "--heap", "r.glass"]).contains("has no heap snapshot"));
    assert!(place.refused(&["view", "r.glass", "--heap", "gone"]).contains("gone"));
}

/// What `stackglass tasks --json` prints.
const TASKS: &str = include_str!("../../view/tests/tasks.json");

#[test]
fn tasks_have_a_page_of_their_own_and_a_tab() {
    let place = recorded();
    fs::write(place.file("t.json"), TASKS).unwrap();
    let (alone, message) = head(&place, &["t.json"]);
    assert!(message.contains(" with the tasks of t.json"), "{message}");
    assert_eq!((&alone["tasks"]["dump"], &alone["samples"]), (&"t.json".into(), &0.into()));
    let (both, message) = head(&place, &["r.glass", "--tasks", "t.json"]);
    assert!(message.contains(" samples, the tasks of t.json"), "{message}");
    assert_eq!(both["tasks"]["dump"], "t.json");
    fs::write(place.file("wrong.json"), "{\"pid\":1}").unwrap();
    let message = place.refused(&["view", "r.glass", "--tasks", "wrong.json"]);
    assert!(
        message.contains("wrong.json: this is not the output of `stackglass tasks PID --json`: "),
        "{message}"
    );
    assert!(place.refused(&["view", "wrong.json"]).contains("this is not the output of"));
    assert!(place.refused(&["view", "r.glass", "--tasks", "gone.json"]).contains("gone.json: "));
}

/// What the page says of a recording is what `info` says, word by word.
#[test]
fn facts_are_those_of_info() {
    let place = recorded();
    let (of_page, _) = head(&place, &["r.glass"]);
    let info = place.stdout_of(&["info", "r.glass"]);
    let facts = of_page["facts"].as_array().unwrap();
    let text = |fact: &Value, at: usize| fact[at].as_str().unwrap().to_owned();
    let mut of_facts = String::new();
    for fact in facts {
        of_facts += &format!("{} {} ", text(fact, 0), text(fact, 1));
    }
    // Notes are wrapped there.
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let first = info.split_once('\n').unwrap().1.split("\n\n").next().unwrap();
    assert_eq!(words(&of_facts), words(first));
    assert!(facts.len() >= 11, "{of_facts}");
}
