//! The frames of a recording as columns: names, files, lines, modules, crates, and their kind of code.

use crate::columns::{Columns, zigzag};
use foldhash::HashMap;
use stackglass_flame::{Category, frame_name};
use stackglass_profile::{Frame, LocationId, Recording, sanitize};

/// Frames by number: those of the symbols, and one for each location without any.
pub(crate) struct Frames {
    frames: Vec<Frame>,
    nameless: HashMap<LocationId, u32>,
}

impl Frames {
    /// The frames of the symbols.
    pub(crate) fn new(recording: &Recording) -> Frames {
        Frames { frames: recording.symbols.frames().to_vec(), nameless: HashMap::default() }
    }

    /// The frame with this number.
    pub(crate) fn get(&self, number: u32) -> &Frame {
        &self.frames[number as usize]
    }

    /// All frames, by number.
    pub(crate) fn all(&self) -> &[Frame] {
        &self.frames
    }

    /// The frame of a location that has no names: its module, or its address.
    pub(crate) fn nameless(&mut self, recording: &Recording, location: LocationId) -> u32 {
        let frames = &mut self.frames;
        *self.nameless.entry(location).or_insert_with(|| {
            let at = recording.stacks.location(location);
            let module = at.module.and_then(|module| recording.modules.get(module.0 as usize));
            let mut frame = Frame::unknown(at.offset);
            if let Some(module) = module {
                frame.module = module.path.clone();
            }
            frames.push(frame);
            frames.len() as u32 - 1
        })
    }

    /// What the page has of each frame.
    pub(crate) fn table(&self, recording: &Recording, rust: bool) -> FrameTable {
        let mut strings = Strings::default();
        let mut categories = Category::of_frames(&self.frames, rust);
        for (category, frame) in categories.iter_mut().zip(&self.frames) {
            // Time without a stack has a frame that says why, and is no code.
            if frame.func.starts_with('[') && frame.file.is_empty() && frame.module.is_empty() {
                *category = Category::Unknown;
            }
        }
        let names: Vec<u64> = self.frames.iter().map(|frame| strings.intern(&frame_name(frame))).collect();
        let full: Vec<u64> = self
            .frames
            .iter()
            .map(|frame| frame.spec.as_ref().map_or(0, |spec| strings.intern(&sanitize(spec))))
            .collect();
        let files: Vec<u64> =
            self.frames.iter().map(|frame| strings.intern(&file(recording, frame))).collect();
        let modules: Vec<u64> =
            self.frames.iter().map(|frame| strings.intern(&sanitize(&frame.module))).collect();
        let crates: Vec<u64> =
            self.frames.iter().map(|frame| strings.intern(&sanitize(&frame.krate))).collect();
        FrameTable {
            names,
            full,
            files,
            modules,
            crates,
            lines: self.frames.iter().map(|frame| frame.line).collect(),
            inlined: self.frames.iter().map(|frame| frame.inlined).collect(),
            categories: categories.iter().map(|category| *category as u64).collect(),
            strings: strings.into_list(),
        }
    }
}

/// Frames by number; their names, files, modules and crates are numbers of strings.
pub(crate) struct FrameTable {
    pub(crate) names: Vec<u64>,
    pub(crate) full: Vec<u64>,
    pub(crate) files: Vec<u64>,
    pub(crate) modules: Vec<u64>,
    pub(crate) crates: Vec<u64>,
    pub(crate) lines: Vec<i64>,
    inlined: Vec<bool>,
    pub(crate) categories: Vec<u64>,
    pub(crate) strings: Vec<String>,
}

impl FrameTable {
    /// How many frames there are.
    pub(crate) fn count(&self) -> usize {
        self.names.len()
    }

    /// Adds the columns of frames, and their strings.
    pub(crate) fn write(&self, columns: &mut Columns) {
        let texts = [
            ("frames.name", &self.names),
            ("frames.full", &self.full),
            ("frames.file", &self.files),
            ("frames.module", &self.modules),
            ("frames.crate", &self.crates),
        ];
        for (name, numbers) in texts {
            columns.push(name, numbers.iter().copied());
        }
        columns.push("frames.line", self.lines.iter().map(|line| zigzag(*line)));
        columns.push("frames.inlined", self.inlined.iter().map(|inlined| u64::from(*inlined)));
        columns.push("frames.category", self.categories.iter().copied());
        columns.push_text("strings", &strings_json(&self.strings));
    }
}

fn strings_json(strings: &[String]) -> String {
    serde_json::to_string(strings).expect("strings are JSON")
}

/// The source file as reports show it.
fn file(recording: &Recording, frame: &Frame) -> String {
    match recording.symbols.short_path(&frame.file) {
        Some(short) if !short.prefix.is_empty() => {
            sanitize(&format!("{}/{}", short.prefix, short.rest)).into_owned()
        }
        _ => sanitize(&frame.file).into_owned(),
    }
}

/// Strings, each once. The first one is empty.
pub(crate) struct Strings {
    strings: Vec<String>,
    numbers: HashMap<String, u64>,
}

impl Default for Strings {
    fn default() -> Strings {
        let mut strings = Strings { strings: Vec::new(), numbers: HashMap::default() };
        strings.intern("");
        strings
    }
}

impl Strings {
    pub(crate) fn intern(&mut self, string: &str) -> u64 {
        if let Some(number) = self.numbers.get(string) {
            return *number;
        }
        let number = self.strings.len() as u64;
        self.strings.push(string.to_owned());
        self.numbers.insert(string.to_owned(), number);
        number
    }

    pub(crate) fn into_list(self) -> Vec<String> {
        self.strings
    }

    pub(crate) fn json(&self) -> String {
        strings_json(&self.strings)
    }
}
