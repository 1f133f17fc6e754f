//! Names of edges, stored once.

use foldhash::HashMap;

/// Interned texts.
#[derive(Debug, Default)]
pub(super) struct Names {
    texts: Vec<Box<str>>,
    known: HashMap<Box<str>, u32>,
}

impl Names {
    /// The number of a text.
    pub fn intern(&mut self, text: &str) -> u32 {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.known.insert(text.into(), number);
        number
    }

    /// All texts by number.
    pub fn texts(&self) -> &[Box<str>] {
        &self.texts
    }
}
