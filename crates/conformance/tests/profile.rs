//! All recorded cases of the CPU reports pass, as recorded and as our users see them.

use stackglass_conformance::{Options, run};
use std::path::Path;

#[test]
fn recorded_cases_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/profile");
    let options = Options { bless: std::env::var_os("STACKGLASS_BLESS").is_some(), ..Options::default() };
    let outcome = run(&folder, &options).unwrap();
    let mut report = String::new();
    for failure in &outcome.failures {
        report += &format!("{} ({:?})\n{}\n", failure.case, failure.mode, failure.text);
    }
    assert!(outcome.failures.is_empty(), "{report}{} passed, {} failed", outcome.passed, outcome.failed());
    assert_eq!(outcome.cases, 409, "cases are missing or new");
}
