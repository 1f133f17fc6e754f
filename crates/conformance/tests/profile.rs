//! All recorded cases that we can run pass, as recorded and as our users see them.

use stackglass_conformance::{KINDS, Options, own_folder, run};

#[test]
fn recorded_cases_pass() {
    let kinds = Some(KINDS.iter().map(|kind| (*kind).to_owned()).collect());
    let outcome = run(&own_folder(), &Options { kinds, bless: false }).unwrap();
    let mut report = String::new();
    for failure in &outcome.failures {
        report += &format!("{} ({:?})\n{}\n", failure.case, failure.mode, failure.text);
    }
    assert!(outcome.failures.is_empty(), "{report}{} passed, {} failed", outcome.passed, outcome.failed());
    assert_eq!(outcome.passed, 409 + 88 + 199 + 116, "cases are missing or new");
    assert_eq!(outcome.as_users_see, 541 + 71);
    assert!(outcome.left_out.is_empty(), "{:?}", outcome.left_out);
}
