//! Comparison of texts and values, and the display of differences.

use serde_json::Value;
use similar::TextDiff;

/// Compares texts; `any_order` compares their lines as multisets.
pub(crate) fn same_text(expected: &str, actual: &str, any_order: bool) -> Result<(), String> {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines.join("\n") + "\n"
    };
    let (expected, actual) = match any_order {
        // Shows only real differences, not the order.
        true => (&sorted(expected)[..], &sorted(actual)[..]),
        false => (expected, actual),
    };
    if expected == actual {
        return Ok(());
    }
    Err(TextDiff::from_lines(expected, actual).unified_diff().header("expected", "ours").to_string())
}

/// A value on one line, or a text unchanged.
fn line(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned) + "\n"
}

/// Compares values. List entries are shown one per line.
pub(crate) fn same(expected: &Value, actual: &Value) -> Result<(), String> {
    if expected == actual {
        return Ok(());
    }
    let text = |value: &Value| match value {
        Value::Array(entries) => entries.iter().map(line).collect(),
        Value::Object(entries) => entries.iter().map(|(key, entry)| format!("{key}: {entry}\n")).collect(),
        other => line(other),
    };
    let (expected, actual): (String, String) = (text(expected), text(actual));
    same_text(&expected, &actual, false)?;
    // They differ in a way that this form does not show, such as 1 and "1".
    Err(format!("--- expected\n{expected}+++ ours\n{actual}"))
}
