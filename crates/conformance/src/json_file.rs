//! Reading JSON files, with messages that name the file.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Reads a file as JSON. The error is a line that says why not.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, String> {
    serde_json::from_slice(&read(path)?).map_err(|error| not_json(path, &error))
}

/// Reads JSON of any depth. Only for files that the project or the user has chosen.
pub(crate) fn read_deep(path: &Path) -> Result<Value, String> {
    let text = read(path)?;
    let mut reader = serde_json::Deserializer::from_slice(&text);
    reader.disable_recursion_limit();
    Value::deserialize(&mut reader).map_err(|error| not_json(path, &error))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}\n", path.display()))
}

pub(crate) fn not_json(path: &Path, error: &serde_json::Error) -> String {
    format!("{} is not JSON: {error}\n", path.display())
}
