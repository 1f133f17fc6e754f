//! Compares the results of a case with the record.

use crate::case::{Case, StoredFrame, number};
use crate::goldens::Goldens;
use crate::same::{same, same_text};
use crate::{Mode, print};
use serde_json::{Value, json};
use stackglass_profile::{Data, DataError, Frame, flatten};
use stackglass_report::Callers;
use stackglass_report::callers::CallersError;
use std::collections::BTreeMap;

/// The difference, or why the case could not be compared.
type Verdict = Result<(), String>;

/// Compares a case as recorded, or as users see it, with the current result.
pub(crate) fn judge(case: &Case, mode: Mode, goldens: Option<&mut Goldens>, bless: bool) -> Verdict {
    match (case.kind.as_str(), mode) {
        ("print", mode) => judge_print(case, mode, goldens, bless),
        // The other kinds have no quirks, so one run suffices.
        (_, Mode::Ours) => Ok(()),
        ("callers", _) => judge_callers(case, goldens),
        ("flatten", _) => judge_flatten(case),
        ("strip", _) => match input(case).strip_meta() {
            Ok(data) => same(&case.expected, &words(&data)),
            Err(error) => Err(error.to_string()),
        },
        ("add_fake_meta", _) => judge_fake_meta(case),
        ("has_meta", _) => same(&case.expected, &json!(input(case).has_meta())),
        ("ids", _) => same(&case.expected, &ids(&input(case))),
        (other, _) => Err(format!("nothing here runs cases of kind `{other}`")),
    }
}

/// The corrected result, if the record shows a defect.
fn corrected(goldens: Option<&mut Goldens>, file: &str) -> Result<Vec<u8>, String> {
    let Some(goldens) = goldens else {
        return Err("marked as a quirk, but unlike the project's own case of this name (or there is none), \
                    so nobody knows the corrected result\n"
            .to_owned());
    };
    goldens.corrected(file).map_err(|error| error.to_string())
}

fn judge_print(case: &Case, mode: Mode, goldens: Option<&mut Goldens>, bless: bool) -> Verdict {
    let printed = print::print(case, mode);
    let mut printed = match (printed, &case.error) {
        (Err(message), Some(error)) => return same(&json!(error.message), &json!(message)),
        (Ok(_), Some(error)) => return Err(format!("should have failed: {}\n", error.message)),
        (Err(message), None) => return Err(format!("failed: {message}\n")),
        (Ok(printed), None) => printed,
    };
    let Some(recorded) = case.expected.as_str() else {
        return Err("the case has no `expected` text\n".to_owned());
    };
    let mut warnings = case.warnings.clone();
    let mut any_order = case.tie;
    let expected = match (mode, goldens) {
        (Mode::Recorded, goldens) if case.quirk => {
            String::from_utf8_lossy(&corrected(goldens, &format!("{}.txt", case.name))?).into_owned()
        }
        (Mode::Recorded, _) | (Mode::Ours, None) => recorded.to_owned(),
        (Mode::Ours, Some(goldens)) => {
            printed.text = totals_in_a_line(printed.text);
            let failed = |error: std::io::Error| format!("the golden of {}: {error}\n", case.name);
            if bless {
                let as_recorded = same_text(recorded, &printed.text, case.tie).is_ok();
                let text = (!as_recorded).then_some(&*printed.text);
                let is_unwarned = !warnings.is_empty() && printed.warnings.is_empty();
                goldens.bless(&case.name, text, is_unwarned).map_err(failed)?;
            }
            // The reference warns of empty groups even if there are none.
            if goldens.is_unwarned(&case.name) {
                warnings.clear();
            }
            let golden = goldens.text(&case.name).map_err(failed)?;
            // Siblings may be in any order in the record, but the order here is deterministic.
            any_order &= golden.is_none();
            golden.unwrap_or_else(|| recorded.to_owned())
        }
    };
    same_text(&expected, &printed.text, any_order)?;
    // Users get other messages for empty reports, which the tests of the reports check.
    if mode == Mode::Ours && !warnings.is_empty() && !printed.warnings.is_empty() {
        return Ok(());
    }
    same(&json!(warnings), &json!(printed.warnings))
}

/// The text with the totals on one line, as recorded. For users they are wrapped, which the tests of the reports check.
fn totals_in_a_line(text: String) -> String {
    let Some(at) = text.rfind("Total snapshots: ") else { return text };
    let totals = text[at..].trim_end().replace('\n', " ");
    if totals.ends_with("by thread and/or task.") { format!("{}{totals}\n", &text[..at]) } else { text }
}

/// The buffer of a case.
fn input(case: &Case) -> Data {
    let data = case.data();
    if case.input == "metadata stripped first" { data.strip_meta().unwrap_or_default() } else { data }
}

fn words(data: &Data) -> Value {
    data.words().iter().map(u64::to_string).collect()
}

/// The fields that make two frames equal.
fn identity(frame: &Frame) -> Value {
    json!([*frame.func, *frame.file, frame.line, frame.foreign, frame.inlined])
}

fn judge_callers(case: &Case, goldens: Option<&mut Goldens>) -> Verdict {
    let text = |name: &str| case.option(name).and_then(Value::as_str);
    let mut callers = Callers::exactly(text("func").unwrap_or_default());
    if let Some(file) = text("filename") {
        callers = callers.file(file);
    }
    if let Some(range) = case.option("linerange") {
        let end = |name: &str| range[name].as_i64().unwrap_or(i64::MIN);
        callers = callers.lines(end("start")..=end("stop"));
    }
    let found = match (callers.count((&input(case), &case.dictionary())), &case.error) {
        // Julia returns no callers then.
        (Err(CallersError::NoFunction), _) => Vec::new(),
        (Err(CallersError::LinesWithoutFile), Some(error)) => {
            let recorded = "if supplying linerange, you must also supply the filename";
            return same(&json!(error.message), &json!(recorded));
        }
        (Err(error), None) => return Err(error.to_string()),
        (Ok(_), Some(error)) if !case.quirk => {
            return Err(format!("should have failed: {}\n", error.message));
        }
        (Ok(found), _) => found,
    };
    let mut actual: Vec<Value> =
        found.iter().map(|caller| json!([caller.count, identity(&caller.frame)])).collect();
    let expected = if case.quirk {
        let file = corrected(goldens, &format!("{}.json", case.name))?;
        serde_json::from_slice(&file)
    } else {
        serde_json::from_value(case.expected.clone())
    };
    let expected: Vec<(u64, StoredFrame)> =
        expected.map_err(|error| format!("`expected` is not a list of [count, frame]: {error}\n"))?;
    let mut expected: Vec<Value> =
        expected.into_iter().map(|(count, frame)| json!([count, identity(&frame.frame())])).collect();
    if case.tie {
        actual.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
    }
    same(&json!(expected), &json!(actual))
}

fn judge_flatten(case: &Case) -> Verdict {
    let (data, dictionary) = flatten(&input(case), &case.dictionary()).map_err(|error| error.to_string())?;
    let named = |word: &u64| match dictionary.get(*word) {
        Some([frame]) => identity(frame),
        _ => json!(word.to_string()),
    };
    let actual: Value = data.words().iter().map(named).collect();
    let Some(expected) = case.expected.as_array() else {
        return Err("the case has no `expected` list\n".to_owned());
    };
    let expected = expected.iter().map(|entry| match entry {
        Value::String(_) => entry.clone(),
        frame => serde_json::from_value::<StoredFrame>(frame.clone())
            .map_or(Value::Null, |frame| identity(&frame.frame())),
    });
    same(&expected.collect(), &actual)?;
    if case.tie {
        return Ok(());
    }
    same(&json!(case.newdata), &words(&data))?;
    let full = |frame: &Frame| json!([identity(frame), frame.address]);
    let stored = case.newdict.iter().flatten();
    let expected: BTreeMap<u64, Value> =
        stored.map(|(word, frame)| (number(word), full(&frame.frame()))).collect();
    let flat = dictionary.addresses().into_iter();
    let actual: BTreeMap<u64, Value> = flat
        .map(|word| (word, dictionary.get(word).and_then(<[Frame]>::first).map_or(Value::Null, full)))
        .collect();
    same(&json!(expected), &json!(actual))
}

fn judge_fake_meta(case: &Case) -> Verdict {
    // The record of a call with a zero id lacks the id. Its message tells which one it was.
    let refused =
        |name: &str| case.error.as_ref().is_some_and(|error| error.message.contains(&format!("Fake {name}")));
    let id = |name: &str, default: u64| match case.option(name).and_then(Value::as_str) {
        Some(text) => number(text),
        None if refused(name) => 0,
        None => default,
    };
    let result = input(case).add_fake_meta(id("threadid", 1), id("taskid", 0xf0f0_f0f0));
    match (result, &case.error) {
        (Ok(data), None) => same(&case.expected, &words(&data)),
        (Ok(_), Some(error)) => Err(format!("should have failed: {}", error.message)),
        (Err(error), None) => Err(error.to_string()),
        (Err(error), Some(recorded)) => {
            let message = match error {
                DataError::ZeroThread => "Fake threadid cannot be 0",
                DataError::ZeroTask => "Fake taskid cannot be 0",
                DataError::HasMetadata => "input already has metadata",
                _ => "another error",
            };
            same(&json!(recorded.message), &json!(message))
        }
    }
}

fn ids(data: &Data) -> Value {
    let tasks = |thread| -> Value { data.task_ids(thread).iter().map(u64::to_string).collect() };
    let threads = data.thread_ids(None);
    let of_thread: serde_json::Map<_, _> =
        threads.iter().map(|thread| (thread.to_string(), tasks(Some(*thread)))).collect();
    let of_task =
        data.task_ids(None).into_iter().map(|task| (task.to_string(), json!(data.thread_ids(Some(task)))));
    json!({
        "threads": threads,
        "tasks": tasks(None),
        "tasks_of_thread": of_thread,
        "threads_of_task": of_task.collect::<serde_json::Map<_, _>>(),
    })
}
