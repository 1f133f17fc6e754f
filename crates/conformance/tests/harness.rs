//! The harness itself: what does not pass is counted, what cannot be run is said.

use stackglass_conformance::{Error, Mode, Options, run};
use std::fs;
use std::path::Path;

fn write_case(folder: &Path, name: &str, text: &str) {
    fs::create_dir_all(folder.join("cases")).unwrap();
    fs::write(folder.join("cases").join(format!("{name}.json")), text).unwrap();
}

#[test]
fn a_wrong_expectation_fails_with_a_difference() {
    let folder = tempfile::tempdir().unwrap();
    write_case(
        folder.path(),
        "right",
        r#"{"name":"right","kind":"has_meta","data":["1","2"],"expected":false}"#,
    );
    write_case(
        folder.path(),
        "wrong",
        r#"{"name":"wrong","kind":"has_meta","data":["1","2"],"expected":true}"#,
    );
    write_case(
        folder.path(),
        "text",
        r#"{"name":"text","kind":"print","data":[],"cols":80,"expected":"other\n","warnings":[]}"#,
    );
    let outcome = run(folder.path(), &Options::default()).unwrap();
    assert_eq!((outcome.cases, outcome.passed, outcome.failed()), (3, 1, 2));
    let wrong = outcome.failures.iter().find(|failure| failure.case == "wrong").unwrap();
    assert!(wrong.mode == Mode::Recorded && wrong.text.contains("-true\n+false"), "{}", wrong.text);
    assert!(outcome.failures.iter().any(|failure| failure.case == "text" && failure.text.contains("-other")));
}

#[test]
fn an_unknown_kind_fails_unless_left_out() {
    let folder = tempfile::tempdir().unwrap();
    write_case(folder.path(), "new", r#"{"name":"new","kind":"pixels","expected":null}"#);
    assert_eq!(run(folder.path(), &Options::default()).unwrap().failed(), 1);
    let options = Options { kinds: Some(vec!["print".into()]), ..Options::default() };
    assert!(matches!(run(folder.path(), &options), Err(Error::NoCases(_))));
}

#[test]
fn no_case_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(run(folder.path(), &Options::default()), Err(Error::NoCases(_))));
    write_case(folder.path(), "broken", "{");
    assert!(matches!(run(folder.path(), &Options::default()), Err(Error::Json { .. })));
}
