//! A recorded case: its JSON, and its conversion to the project's types.

use serde::Deserialize;
use serde_json::Value;
use stackglass_profile::{Data, Dictionary, Frame, ShortPath};
use std::collections::BTreeMap;

/// A case, or a dataset: both have the same shape.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Case {
    pub name: String,
    pub kind: String,
    pub dataset: Option<String>,
    data: Option<Vec<String>>,
    data_repeat: Option<Vec<(u64, Vec<String>)>>,
    lidict: Option<BTreeMap<String, Vec<StoredFrame>>>,
    pools: Option<BTreeMap<String, String>>,
    short_paths: Option<BTreeMap<String, (String, String)>>,
    pub options: BTreeMap<String, Value>,
    pub cols: usize,
    pub input: String,
    pub expected: Value,
    pub warnings: Vec<String>,
    pub error: Option<RecordedError>,
    pub tie: bool,
    pub quirk: bool,
    pub newdata: Option<Vec<String>>,
    pub newdict: Option<BTreeMap<String, StoredFrame>>,
}

/// How the reference failed.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RecordedError {
    pub message: String,
}

/// A recorded frame.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct StoredFrame {
    func: String,
    file: String,
    line: i64,
    from_c: bool,
    inlined: bool,
    pointer: String,
    spec: Option<String>,
}

impl StoredFrame {
    pub(crate) fn frame(&self) -> Frame {
        let mut frame = Frame::unknown(number(&self.pointer));
        (frame.func, frame.file, frame.line) =
            (self.func.as_str().into(), self.file.as_str().into(), self.line);
        (frame.foreign, frame.inlined) = (self.from_c, self.inlined);
        frame.spec = self.spec.as_deref().map(Into::into);
        frame
    }
}

/// A 64-bit number, recorded as text. A malformed one becomes a value that no case expects.
pub(crate) fn number(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX)
}

fn words(texts: &[String]) -> impl Iterator<Item = u64> + '_ {
    texts.iter().map(|text| number(text))
}

impl Case {
    /// Adds fields from a dataset that the case itself does not have.
    pub(crate) fn fill_from(&mut self, dataset: Case) {
        self.data = self.data.take().or(dataset.data);
        self.data_repeat = self.data_repeat.take().or(dataset.data_repeat);
        self.lidict = self.lidict.take().or(dataset.lidict);
        self.pools = self.pools.take().or(dataset.pools);
        self.short_paths = self.short_paths.take().or(dataset.short_paths);
    }

    pub(crate) fn data(&self) -> Data {
        let mut all: Vec<u64> = self.data.iter().flat_map(|data| words(data)).collect();
        for (times, block) in self.data_repeat.iter().flatten() {
            let block: Vec<u64> = words(block).collect();
            (0..*times).for_each(|_| all.extend(&block));
        }
        Data::new(all)
    }

    pub(crate) fn dictionary(&self) -> Dictionary {
        let mut dictionary = Dictionary::new();
        for (address, frames) in self.lidict.iter().flatten() {
            dictionary.set(number(address), frames.iter().map(StoredFrame::frame));
        }
        for (thread, pool) in self.pools.iter().flatten() {
            dictionary.set_thread_label(number(thread), pool.as_str().into());
        }
        for (file, (prefix, rest)) in self.short_paths.iter().flatten() {
            let short = ShortPath { prefix: prefix.as_str().into(), rest: rest.as_str().into() };
            dictionary.set_short_path(file.as_str().into(), short);
        }
        dictionary
    }

    pub(crate) fn option(&self, name: &str) -> Option<&Value> {
        self.options.get(name)
    }
}
