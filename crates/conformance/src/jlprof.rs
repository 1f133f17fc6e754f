//! Cases of kind `jlprof`: files that Julia wrote, or refused.

use crate::same::same;
use serde_json::{Value, json};
use stackglass_files::jlprof::{read, read_from};
use stackglass_profile::{Dictionary, Frame};
use std::fs;
use std::path::{Path, PathBuf};

/// Where a file tells its form, and the form of flame graphs.
const FORM: (usize, u8) = (12, 2);

/// Samples, which are read, or flame graphs, which are not yet.
pub(crate) fn kind(index: &Path, case: &Value) -> &'static str {
    let bytes = fs::read(file(index, case)).unwrap_or_default();
    if bytes.get(FORM.0) == Some(&FORM.1) { "jlprof-graph" } else { "jlprof-samples" }
}

fn file(index: &Path, case: &Value) -> PathBuf {
    index.with_file_name(case["file"].as_str().unwrap_or_default())
}

/// What a file decodes to, and whether it may be opened by its name.
pub(crate) fn judge(index: &Path, case: &Value) -> Result<(), String> {
    let path = file(index, case);
    let bytes = fs::read(&path).map_err(|error| format!("cannot read {}: {error}\n", path.display()))?;
    let verdict = |result: Result<(), String>| match result {
        Ok(()) => json!("accepted"),
        Err(error) => json!(format!("refused: {error}")),
    };
    // A refusal has its own words; only that there is one was recorded.
    let check = |what: &str, recorded: &Value, ours: Result<(), String>| match (recorded.as_bool(), &ours) {
        (Some(true), Ok(())) | (Some(false), Err(_)) => Ok(()),
        (Some(ok), _) => {
            let expected = format!("{what}: {}", if ok { "accepted" } else { "refused" });
            same(&json!(expected), &json!(format!("{what}: {}", verdict(ours).as_str().unwrap_or_default())))
        }
        (None, _) => Err(format!("the case does not say whether the file is accepted {what}\n")),
    };
    let samples = read_from(&bytes[..]);
    check("as samples", &case["ok"], samples.as_ref().map(drop).map_err(ToString::to_string))?;
    check("by its name", &case["by_name"]["ok"], read(&path).map(drop).map_err(|error| error.to_string()))?;
    let Ok(samples) = samples else { return Ok(()) };
    let expected = &case["decoded"];
    let (Some(words), Some(table)) = (expected["data"].as_array(), expected["lidict"].as_array()) else {
        return Err("the case has no decoded samples\n".to_owned());
    };
    same(
        &words.iter().map(text).collect(),
        &samples.data.words().iter().map(|word| json!(word.to_string())).collect(),
    )?;
    let mut table: Vec<Value> = table.iter().map(|entry| json!([text(&entry[0]), entry[1]])).collect();
    table.sort_by_key(|entry| entry[0].as_str().and_then(|word| word.parse::<i128>().ok()));
    same(&json!(table), &decoded(&samples.dictionary))
}

/// Integers that do not fit into 64 signed bits are decimal strings; the others become some.
fn text(number: &Value) -> Value {
    let text = number.as_str().map_or_else(|| number.to_string(), str::to_owned);
    // Addresses and words are signed in the record where it took them for integers.
    match text.parse::<i64>() {
        Ok(negative) if negative < 0 => json!((negative as u64).to_string()),
        _ => json!(text),
    }
}

fn decoded(dictionary: &Dictionary) -> Value {
    let frames = |address: u64| -> Value {
        let frame = |f: &Frame| json!([*f.func, *f.file, f.line, f.foreign, f.inlined]);
        dictionary.get(address).unwrap_or_default().iter().map(frame).collect()
    };
    dictionary.addresses().into_iter().map(|address| json!([address.to_string(), frames(address)])).collect()
}
