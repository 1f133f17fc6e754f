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

    /// Adds the columns of frames, and their strings.
    pub(crate) fn write(&self, recording: &Recording, rust: bool, columns: &mut Columns) {
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
        columns.push("frames.name", names);
        columns.push("frames.full", full);
        columns.push("frames.file", files);
        columns.push("frames.module", modules);
        let crates: Vec<u64> =
            self.frames.iter().map(|frame| strings.intern(&sanitize(&frame.krate))).collect();
        columns.push("frames.crate", crates);
        columns.push("frames.line", self.frames.iter().map(|frame| zigzag(frame.line)));
        columns.push("frames.inlined", self.frames.iter().map(|frame| frame.inlined.into()));
        columns.push("frames.category", categories.iter().map(|category| *category as u64));
        columns.push_text("strings", &strings.json());
    }
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
        serde_json::to_string(&self.strings).expect("strings are JSON")
    }
}
