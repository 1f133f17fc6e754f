//! Cases of kind `print`: options, their names, and the text.

use crate::Mode;
use crate::case::{Case, number};
use serde_json::Value;
use stackglass_profile::{DataError, flatten};
use stackglass_report::{
    Format, GroupBy, NO_SAMPLES, NO_SAMPLES_IN_GROUP, Pick, Quirks, Recur, Report, ReportError, SortedBy,
};

/// Text and warnings.
pub(crate) struct Printed {
    pub text: String,
    pub warnings: Vec<String>,
}

/// The report of a case, or the message with which the reference refuses it.
pub(crate) fn print(case: &Case, mode: Mode) -> Result<Printed, String> {
    let report = report(case, mode)?;
    let (mut data, mut dictionary) = (case.data(), case.dictionary());
    if case.option("flattened_input") == Some(&Value::Bool(true)) {
        (data, dictionary) = flatten(&data, &dictionary).map_err(|error| error.to_string())?;
    }
    let mut text = Vec::new();
    let written = report.write((&data, &dictionary), &mut text).map_err(|error| match error {
        ReportError::FlatRecur => "format flat only implements recur=:off".to_owned(),
        ReportError::Data(DataError::MissingMetadata) => {
            "Profile data is missing required metadata".to_owned()
        }
        other => other.to_string(),
    })?;
    let warnings = written.warnings.iter().map(|warning| recorded(warning).to_owned()).collect();
    Ok(Printed { text: String::from_utf8_lossy(&text).into_owned(), warnings })
}

/// A warning as worded by the reference.
fn recorded(warning: &str) -> &str {
    match warning {
        NO_SAMPLES => {
            "There were no samples collected.\n\
             Run your program longer (perhaps by running it multiple times),\n\
             or adjust the delay between samples with `Profile.init()`."
        }
        NO_SAMPLES_IN_GROUP => {
            "There were no samples collected in one or more groups.\n\
             This may be due to idle threads, or you may need to run your\n\
             program longer (perhaps by running it multiple times),\n\
             or adjust the delay between samples with `Profile.init()`."
        }
        other => other,
    }
}

fn report(case: &Case, mode: Mode) -> Result<Report, String> {
    let mut report = Report::new().cols(case.cols);
    if mode == Mode::Recorded {
        // If the defect shows, the corrected result is compared instead.
        report = report.quirks(Quirks { folds_into_metadata: !case.quirk, ..Quirks::ALL });
    }
    // In the order in which the reference checks.
    for name in ["groupby", "recur", "format"] {
        report = match case.option(name) {
            Some(value) => word_option(report, name, value)?,
            None => report,
        };
    }
    for (name, value) in &case.options {
        report = match (name.as_str(), value) {
            ("groupby" | "recur" | "format" | "flattened_input", _) => report,
            ("C", Value::Bool(shown)) => report.c(*shown),
            ("combine", Value::Bool(combined)) => report.combine(*combined),
            ("maxdepth", value) => report.maxdepth(value.as_i64().ok_or("maxdepth")?),
            ("mincount", value) => report.mincount(value.as_u64().ok_or("mincount")?),
            ("noisefloor", value) => report.noisefloor(value.as_f64().ok_or("noisefloor")?),
            // The reference treats every other word as the default.
            ("sortedby", Value::String(word)) => {
                report.sorted_by(word.parse::<SortedBy>().unwrap_or_default())
            }
            ("threads", value) => report.threads(pick(value)),
            ("tasks", value) => report.tasks(pick(value)),
            (name, value) => return Err(format!("option {name} = {value} is not known to this harness")),
        };
    }
    Ok(report)
}

fn word_option(report: Report, name: &str, value: &Value) -> Result<Report, String> {
    let word = match value {
        Value::String(word) => word.clone(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    match name {
        "format" => {
            let refused = |_| format!("output format :{word} not recognized");
            Ok(report.format(word.parse::<Format>().map_err(refused)?))
        }
        "recur" => {
            Ok(report.recur(word.parse::<Recur>().map_err(|_| "recur value not recognized".to_owned())?))
        }
        _ => {
            // A list of one is not a grouping, although its word is.
            let single = value.as_array().is_some_and(|words| words.len() < 2);
            let shown = if value.is_array() { format!("[:{word}]") } else { word.clone() };
            match word.parse::<GroupBy>() {
                Ok(group) if !single => Ok(report.group_by(group)),
                _ => Err(format!(
                    "ArgumentError(\"Unrecognized groupby option: {shown}. Options are :none (default), :task, \
                     :thread, [:task, :thread], or [:thread, :task]\")"
                )),
            }
        }
    }
}

fn pick(value: &Value) -> Pick {
    let one = |value: &Value| value.as_u64().unwrap_or_else(|| value.as_str().map_or(u64::MAX, number));
    match value {
        Value::Array(list) => Pick::List(list.iter().map(one).collect()),
        Value::Object(range) => Pick::Range(one(&range["start"])..=one(&range["stop"])),
        value => Pick::One(one(value)),
    }
}
