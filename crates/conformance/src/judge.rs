//! Whether what we say to a case is what was recorded.

use crate::case::{Case, StoredFrame, number};
use crate::{Mode, print};
use serde_json::{Value, json};
use similar::TextDiff;
use stackglass_profile::{Callers, Data, DataError, Frame, callers::CallersError, flatten};
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// `Ok` inside when the case passed, else what differs.
type Verdict = io::Result<Result<(), String>>;

pub(crate) fn judge(case: &Case, mode: Mode, home: &Path, bless: bool) -> Verdict {
    match (case.kind.as_str(), mode) {
        ("print", mode) => judge_print(case, mode, home, bless),
        // The other kinds have no quirks, so one run says everything.
        (_, Mode::Ours) => Ok(Ok(())),
        ("callers", _) => judge_callers(case, home),
        (kind, _) => Ok(match kind {
            "flatten" => judge_flatten(case),
            "strip" => match input(case).strip_meta() {
                Ok(data) => same(&case.expected, &words(&data)),
                Err(error) => Err(error.to_string()),
            },
            "add_fake_meta" => judge_fake_meta(case),
            "has_meta" => same(&case.expected, &json!(input(case).has_meta())),
            "ids" => same(&case.expected, &ids(&input(case))),
            other => Err(format!("nothing here runs cases of kind `{other}`")),
        }),
    }
}

fn judge_print(case: &Case, mode: Mode, home: &Path, bless: bool) -> Verdict {
    let printed = print::print(case, mode);
    let printed = match (printed, &case.error) {
        (Err(message), Some(error)) => return Ok(same(&json!(error.message), &json!(message))),
        (Ok(_), Some(error)) => return Ok(Err(format!("should have failed: {}", error.message))),
        (Err(message), None) => return Ok(Err(format!("failed: {message}"))),
        (Ok(printed), None) => printed,
    };
    let recorded = case.expected.as_str().unwrap_or_default().to_owned();
    let golden = home.join("ours").join(format!("{}.txt", case.name));
    let expected = match (mode, case.quirk) {
        (Mode::Recorded, false) => recorded,
        (Mode::Recorded, true) => {
            fs::read_to_string(home.join("corrected").join(format!("{}.txt", case.name)))?
        }
        (Mode::Ours, _) => {
            if bless {
                bless_golden(&golden, &printed.text, same_text(&recorded, &printed.text, case.tie).is_ok())?;
            }
            if golden.exists() { fs::read_to_string(&golden)? } else { recorded }
        }
    };
    let mut warnings = same(&json!(case.warnings), &json!(printed.warnings));
    if mode == Mode::Ours && printed.warnings.is_empty() {
        // The reference warns of empty groups where there are none; we do not.
        warnings = Ok(());
    }
    // Where siblings may come in any order, ours is still always the same.
    let tie = case.tie && (mode == Mode::Recorded || !golden.exists());
    Ok(same_text(&expected, &printed.text, tie).and(warnings))
}

fn bless_golden(path: &Path, text: &str, as_recorded: bool) -> io::Result<()> {
    if as_recorded {
        return if path.exists() { fs::remove_file(path) } else { Ok(()) };
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

fn same_text(expected: &str, actual: &str, any_order: bool) -> Result<(), String> {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    if expected == actual || (any_order && sorted(expected) == sorted(actual)) {
        return Ok(());
    }
    Err(TextDiff::from_lines(expected, actual).unified_diff().header("expected", "ours").to_string())
}

fn same(expected: &Value, actual: &Value) -> Result<(), String> {
    if expected == actual {
        return Ok(());
    }
    let text = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
    same_text(&text(expected), &text(actual), false)
}

/// The buffer a case is about.
fn input(case: &Case) -> Data {
    let data = case.data();
    if case.input == "metadata stripped first" { data.strip_meta().unwrap_or_default() } else { data }
}

fn words(data: &Data) -> Value {
    data.words().iter().map(u64::to_string).collect()
}

/// What makes two frames equal.
fn identity(frame: &Frame) -> Value {
    json!([*frame.func, *frame.file, frame.line, frame.foreign, frame.inlined])
}

fn judge_callers(case: &Case, home: &Path) -> Verdict {
    let text = |name: &str| case.option(name).and_then(Value::as_str);
    let mut callers = Callers::of(text("func").unwrap_or_default());
    if let Some(file) = text("filename") {
        callers = callers.file(file);
    }
    if let Some(range) = case.option("linerange") {
        let end = |name: &str| range[name].as_i64().unwrap_or(i64::MIN);
        callers = callers.lines(end("start")..=end("stop"));
    }
    let found = match (callers.count((&input(case), &case.dictionary())), &case.error) {
        (Err(CallersError::LinesWithoutFile), Some(error)) => {
            let recorded = "if supplying linerange, you must also supply the filename";
            return Ok(same(&json!(error.message), &json!(recorded)));
        }
        (Err(error), None) => return Ok(Err(error.to_string())),
        (Ok(_), Some(error)) if !case.quirk => {
            return Ok(Err(format!("should have failed: {}", error.message)));
        }
        (Ok(found), _) => found,
    };
    let mut actual: Vec<Value> =
        found.iter().map(|caller| json!([caller.count, identity(&caller.frame)])).collect();
    let expected: Vec<(u64, StoredFrame)> = if case.quirk {
        let path = home.join("corrected").join(format!("{}.json", case.name));
        serde_json::from_slice(&fs::read(path)?).unwrap_or_default()
    } else {
        serde_json::from_value(case.expected.clone()).unwrap_or_default()
    };
    let mut expected: Vec<Value> =
        expected.into_iter().map(|(count, frame)| json!([count, identity(&frame.frame())])).collect();
    if case.tie {
        actual.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
    }
    Ok(same(&json!(expected), &json!(actual)))
}

fn judge_flatten(case: &Case) -> Result<(), String> {
    let (data, dictionary) = flatten(&input(case), &case.dictionary()).map_err(|error| error.to_string())?;
    let named = |word: &u64| match dictionary.get(*word) {
        Some([frame]) => identity(frame),
        _ => json!(word.to_string()),
    };
    let actual: Value = data.words().iter().map(named).collect();
    let expected = case.expected.as_array().into_iter().flatten().map(|entry| match entry {
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

fn judge_fake_meta(case: &Case) -> Result<(), String> {
    // The record of a call with a zero id lacks the id; its message tells which one it was.
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
