//! The harness itself: what does not pass is counted, what cannot be run is said, and folders of
//! strangers are run like our own.

use stackglass_conformance::{Error, Mode, Options, Outcome, own_folder, run};
use std::fs;
use std::path::Path;

fn write_case(folder: &Path, name: &str, text: &str) {
    fs::create_dir_all(folder.join("cases")).unwrap();
    fs::write(folder.join("cases").join(format!("{name}.json")), text).unwrap();
}

/// Copies a case of our own, changed, and its dataset where it is asked for.
fn copy_case(folder: &Path, name: &str, from: &str, to: &str) {
    let text = fs::read_to_string(own_folder().join(format!("profile/cases/{name}.json"))).unwrap();
    assert!(text.contains(from), "{name}");
    write_case(folder, name, &text.replacen(from, to, 1));
}

fn run_all(folder: &Path) -> Outcome {
    run(folder, &Options::default()).unwrap()
}

fn kinds(kinds: &[&str]) -> Options {
    Options { kinds: Some(kinds.iter().map(|kind| (*kind).to_owned()).collect()), bless: false }
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
    let outcome = run_all(folder.path());
    assert_eq!((outcome.cases, outcome.passed, outcome.failed()), (3, 1, 2));
    let wrong = outcome.failures.iter().find(|failure| failure.case == "wrong").unwrap();
    assert!(wrong.mode == Mode::Recorded && wrong.text.contains("-true\n+false"), "{}", wrong.text);
    assert!(outcome.failures.iter().any(|failure| failure.case == "text" && failure.text.contains("-other")));
}

#[test]
fn an_expectation_that_is_not_there_is_not_met() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["print", "callers", "flatten", "strip", "add_fake_meta", "has_meta", "ids"] {
        // A flat report of nothing is empty, as is what calls a function that was never seen.
        let option = if kind == "print" { r#""format":"flat""# } else { r#""func":"f""# };
        let rest = format!(r#""data":[],"cols":80,"options":{{{option}}}"#);
        write_case(folder.path(), kind, &format!(r#"{{"name":"{kind}","kind":"{kind}",{rest}}}"#));
    }
    assert_eq!(run_all(folder.path()).passed, 0);
}

#[test]
fn cases_of_ours_are_held_against_our_goldens_wherever_they_lie() {
    let folder = tempfile::tempdir().unwrap();
    copy_case(folder.path(), "basic__flat_c80", "", "");
    copy_case(folder.path(), "basic__tree_c80", "snapshots", "snapshot");
    copy_case(folder.path(), "collide__recur_flat", "", "");
    copy_case(folder.path(), "recurc__callers_withmeta", "", "");
    let outcome = run_all(folder.path());
    assert_eq!((outcome.passed, outcome.failed()), (3, 1));
    assert_eq!(outcome.as_users_see, 2, "a changed case is not one of ours");
    let [failure] = &outcome.failures[..] else { panic!("{:?}", outcome.failures) };
    assert_eq!((&*failure.case, failure.mode), ("basic__tree_c80", Mode::Recorded));
    assert!(failure.text.contains("-Total snapshot: "), "{}", failure.text);
    assert!(failure.text.contains("+Total snapshots: "), "{}", failure.text);
}

#[test]
fn a_changed_quirk_is_not_passed_unseen() {
    let folder = tempfile::tempdir().unwrap();
    copy_case(folder.path(), "collide__recur_flat", "main", "niam");
    let outcome = run_all(folder.path());
    assert_eq!(outcome.passed, 0);
    assert!(outcome.failures[0].text.contains("quirk"), "{}", outcome.failures[0].text);
}

#[test]
fn a_dataset_beside_the_cases_is_the_one() {
    let folder = tempfile::tempdir().unwrap();
    copy_case(folder.path(), "basic__flat_c80", "", "");
    fs::create_dir(folder.path().join("datasets")).unwrap();
    let own = fs::read_to_string(own_folder().join("profile/datasets/basic.json")).unwrap();
    fs::write(folder.path().join("datasets/basic.json"), own.replace("tokenize", "tokenise")).unwrap();
    let outcome = run_all(folder.path());
    assert_eq!((outcome.passed, outcome.as_users_see), (0, 0));
    assert!(outcome.failures[0].text.contains("+") && outcome.failures[0].text.contains("tokenise"));
    fs::write(folder.path().join("datasets/basic.json"), "{").unwrap();
    assert!(run_all(folder.path()).failures[0].text.contains("is not JSON"));
}

#[test]
fn kinds_that_nothing_runs_fail_unless_left_out() {
    let folder = tempfile::tempdir().unwrap();
    write_case(folder.path(), "new", r#"{"name":"new","kind":"tides","expected":null}"#);
    let more = r#"{"kind":"weather","cases":[{"id":"a"},{"id":"b"}]}"#;
    fs::write(folder.path().join("more.json"), more).unwrap();
    fs::write(folder.path().join("candidates.json"), r#"{"kind":"an aid","candidates":[]}"#).unwrap();
    let outcome = run_all(folder.path());
    assert_eq!((outcome.failed(), outcome.passed, outcome.not_implemented["weather"]), (3, 0, 2));
    write_case(folder.path(), "old", r#"{"name":"old","kind":"has_meta","data":[],"expected":false}"#);
    let outcome = run(folder.path(), &kinds(&["has_meta"])).unwrap();
    assert_eq!((outcome.failed(), outcome.passed, outcome.left_out["weather"]), (0, 1, 2));
    let error = run(folder.path(), &kinds(&["print"])).unwrap_err();
    assert!(error.to_string().ends_with("there are has_meta (1), tides (1), weather (2)"), "{error}");
}

#[test]
fn jlprof_files_are_read_or_refused_as_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let own = own_folder().join("flamegraphs/jlprof");
    for entry in own.read_dir().unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let all = run_all(folder.path());
    assert_eq!((all.passed, all.failed()), (54 + 34, 0));
    let index = folder.path().join("index.json");
    let text = fs::read_to_string(&index).unwrap();
    fs::write(&index, text.replacen("\"parse.rs\"", "\"sparse.rs\"", 1)).unwrap();
    // What was accepted is now to be refused.
    fs::write(folder.path().join("format-3.jlprof"), fs::read(own.join("samples-empty.jlprof")).unwrap())
        .unwrap();
    let text = fs::read_to_string(&index).unwrap();
    fs::write(&index, text.replacen("\"func\":\"leaf\"", "\"func\":\"loaf\"", 1)).unwrap();
    let outcome = run(folder.path(), &kinds(&["jlprof"])).unwrap();
    assert_eq!((outcome.passed, outcome.failed()), (52 + 33, 3));
    let texts: String = outcome.failures.iter().map(|failure| &*failure.text).collect();
    assert!(
        texts.contains("sparse.rs")
            && texts.contains("loaf")
            && texts.contains("-by its content: refused\n+by its content: accepted"),
        "{texts}"
    );
}

#[test]
fn no_case_is_an_error_and_a_broken_file_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(run(folder.path(), &Options::default()), Err(Error::NoCases(_))));
    assert!(matches!(run(&folder.path().join("none"), &Options::default()), Err(Error::Io { .. })));
    write_case(folder.path(), "broken", "{");
    let outcome = run_all(folder.path());
    assert!(outcome.failed() == 1 && outcome.failures[0].text.contains("is not JSON"));
    let file = own_folder().join("profile/cases/basic__flat_c80.json");
    assert_eq!(run_all(&file).passed, 1, "one file is a folder of one");
}
