//! What `stackglass tasks --json` has printed, read again: await stacks, locks, deadlocks.
//!
//! The file may come from anywhere: only what the page knows is kept, and no text has control characters.

use serde::{Deserialize, Deserializer, Serialize};
use stackglass_profile::sanitize;

/// Text without control characters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Text(sanitize(&text).into_owned()))
    }
}

/// The tasks of a process at one moment.
///
/// ```
/// let json = r#"{"pid":7,"runtimes":[],"tasks":0,"groups":[],"locks":[],"deadlocks":[],"pause":0}"#;
/// assert!(stackglass_view::TaskDump::read(json).is_ok());
/// assert!(stackglass_view::TaskDump::read("{}").is_err());
/// ```
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
pub struct TaskDump {
    pid: u32,
    runtimes: Vec<Text>,
    tasks: u64,
    groups: Vec<Group>,
    locks: Vec<Lock>,
    deadlocks: Vec<Deadlock>,
    pause: u64,
    #[serde(default)]
    blocking: Vec<u64>,
    #[serde(default)]
    without_waker: Vec<u64>,
    #[serde(default)]
    pools: Vec<Pool>,
    #[serde(default)]
    remarks: Vec<Text>,
}

#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
struct Group {
    count: u64,
    ids: Vec<u64>,
    state: Text,
    name: Text,
    tid: Option<u32>,
    stack: Vec<Frame>,
    waited: Option<u64>,
    unpolled: Option<Unpolled>,
    fires_in: Option<[u64; 2]>,
    #[serde(default)]
    given_names: Vec<Text>,
    #[serde(default)]
    created: Vec<Place>,
    thread: Option<Polling>,
}

/// A future, or where a stack branches.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum Frame {
    Branches { branches: Vec<Vec<Frame>> },
    Await { function: Text, file: Option<Text>, line: Option<u32>, note: Option<Text> },
}

#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
struct Unpolled {
    time: u64,
    ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
struct Place {
    file: Text,
    line: u32,
}

#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
struct Polling {
    tid: u32,
    stack: Vec<Called>,
    polled_for: Option<u64>,
}

#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
struct Called {
    function: Text,
    file: Option<Text>,
    line: Option<i64>,
}

#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
struct Lock {
    kind: Text,
    address: Text,
    holders: Vec<Holder>,
    waiters: Vec<u64>,
    arrived: Option<u64>,
    expected: Option<u64>,
    ends: Option<u64>,
}

#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
struct Holder {
    task: u64,
    file: Option<Text>,
    line: Option<u32>,
    certain: bool,
}

#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
struct Deadlock {
    tasks: Vec<u64>,
    via: Vec<Text>,
    certain: bool,
}

#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
struct Pool {
    busy: Option<u64>,
    queued: u64,
    exhausted: bool,
}

impl TaskDump {
    /// Reads the output of `stackglass tasks --json`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(json: &str) -> Result<TaskDump, serde_json::Error> {
        serde_json::from_str(json)
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).expect("it is JSON")
    }
}
