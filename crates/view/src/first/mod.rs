//! The first picture: what a page draws while its columns are still on their way.
//!
//! It has the time of each thread, the boxes of the flame graph of the whole recording that are wide enough to be seen, and the lanes that
//! are in sight at first. All of it is counted from the packed samples, as [the page](../../page/src/kernel.ts) counts them: the numbers stay
//! when the columns come. What does not fit into the bound is drawn coarser.

mod boxes;
mod lanes;

use crate::columns::Columns;
use crate::frames::FrameTable;
use crate::nodes::Nodes;
use crate::page::gzip_base64;
use boxes::{Boxes, Functions};
use lanes::{Kind, LaneBins};
use serde::Serialize;
use stackglass_profile::{Recording, Sample, State};

/// How large it may be as text, bytes.
const MOST: usize = 200_000;
/// In how many parts the time is divided, and how many times the smallest box fits into the whole: what is tried until it fits. A box is
/// drawn from 0.6 pixels on; those that are left out move their neighbours by less than can be seen, but not by nothing.
const LEVELS: [(usize, u64); 7] =
    [(2048, u64::MAX), (2048, 4096), (1024, 4096), (1024, 2048), (512, 2048), (256, 1024), (128, 512)];

/// What is counted of the whole recording.
#[derive(Clone, Debug)]
pub(crate) struct First {
    functions: Functions,
    boxes: Boxes,
    times: Times,
    lanes: Vec<LaneBins>,
    kinds: Vec<Kind>,
}

/// By number of thread, ns. Number 0 is nobody.
#[derive(Clone, Debug)]
struct Times {
    cpu: Vec<u64>,
    asleep: Vec<u64>,
    ready: Vec<u64>,
}

impl Times {
    fn of(recording: &Recording) -> Times {
        let zeros = vec![0; recording.threads.len() + 1];
        let mut times = Times { cpu: zeros.clone(), asleep: zeros.clone(), ready: zeros };
        for sample in &recording.samples {
            let of = match sample.state {
                State::Awake | State::Task => &mut times.cpu,
                State::Asleep => &mut times.asleep,
                State::Waiting => &mut times.ready,
            };
            if let Some(time) = of.get_mut(sample.thread.0 as usize) {
                *time += sample.time.0;
            }
        }
        times
    }
}

/// What the page reads before the columns.
#[derive(Serialize)]
struct Text<'a> {
    /// The number of functions of the recording.
    functions: usize,
    /// Total and own time of all, and hits.
    root: [u64; 3],
    parts: usize,
    kinds: &'a [Kind],
    /// The lanes by their keys.
    lanes: Vec<String>,
    /// Names and sizes.
    columns: &'a [(&'static str, usize)],
    bytes: String,
}

impl First {
    /// Counts a recording. `wall`: its length, ns.
    pub(crate) fn new(
        recording: &Recording,
        samples: &[&Sample],
        nodes: &Nodes,
        frames: &FrameTable,
        wall: u64,
    ) -> First {
        let functions = Functions::of(frames);
        let boxes = Boxes::new(samples, nodes, &functions);
        let times = Times::of(recording);
        let (lanes, kinds) = match recording.is_timed() {
            true => lanes::count(recording, samples, nodes, &functions, &boxes, &times.cpu, wall),
            false => (Vec::new(), Vec::new()),
        };
        First { functions, boxes, times, lanes, kinds }
    }

    /// As JSON, as fine as fits; `None` if it does not.
    pub(crate) fn json(&self) -> Option<String> {
        // A box takes a byte or more.
        let can_fit = |(_, narrowest): &&(usize, u64)| *narrowest < u64::MAX || self.boxes.count() <= MOST;
        let mut texts = LEVELS.iter().filter(can_fit).map(|(parts, narrowest)| self.text(*parts, *narrowest));
        texts.find(|text| text.len() <= MOST)
    }

    fn text(&self, parts: usize, narrowest: u64) -> String {
        let mut columns = Columns::default();
        let Times { cpu, asleep, ready } = &self.times;
        for (name, times) in [("times.cpu", cpu), ("times.asleep", asleep), ("times.ready", ready)] {
            columns.push(name, times.iter().copied());
        }
        self.boxes.write(narrowest, &self.functions, &mut columns);
        lanes::write(&self.lanes, parts, &mut columns);
        let text = Text {
            functions: self.functions.count(),
            root: self.boxes.root(),
            parts,
            kinds: &self.kinds,
            lanes: self.lanes.iter().map(LaneBins::key).collect(),
            columns: columns.sizes(),
            bytes: gzip_base64(columns.bytes()).concat(),
        };
        serde_json::to_string(&text).expect("the first picture is JSON")
    }
}
