//! The legend of still pictures, the same as on the page: colours with their shares of the samples, then marks.

use crate::captions::{self, MARKS, Mark};
use crate::{Graph, Painted};

/// The most colours in a legend; the others are counted.
const MOST_COLORS: usize = 14;

/// An entry of a legend.
pub(crate) struct Entry {
    pub(crate) text: String,
    pub(crate) sample: Sample,
    pub(crate) mark: Option<&'static Mark>,
}

/// What an entry of a legend shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sample {
    /// A colour, by its number.
    Swatch(usize),
    /// All colours that have no entry of their own.
    Others,
    /// No colour, only a mark.
    Nothing,
}

/// The legend of a graph. Colours come with their own samples, most first.
pub(crate) fn entries(graph: &Graph, painted: &Painted, with_shares: bool) -> Vec<Entry> {
    let total = graph.root().span.len();
    let mut by_swatch: Vec<Option<u64>> = vec![None; painted.swatches.len()];
    for (swatch, own) in painted.boxes.iter().zip(graph.own()) {
        let samples = by_swatch[*swatch].get_or_insert(0);
        *samples = samples.saturating_add(own);
    }
    let mut colors: Vec<(&str, usize, u64)> = Vec::new();
    for (number, (swatch, samples)) in painted.swatches.iter().zip(by_swatch).enumerate() {
        let Some(samples) = samples.filter(|_| !swatch.meaning.is_empty()) else { continue };
        match colors.iter_mut().find(|(meaning, ..)| **meaning == *swatch.meaning) {
            Some((.., sum)) => *sum = sum.saturating_add(samples),
            None => colors.push((&swatch.meaning, number, samples)),
        }
    }
    colors.sort_by_key(|(.., samples)| std::cmp::Reverse(*samples));
    let with_share = |text: &str, samples: u64| match samples {
        _ if !with_shares => text.to_owned(),
        0 => text.to_owned(),
        _ => format!("{text} {}", captions::percent(samples, total)),
    };
    let mut entries: Vec<Entry> = Vec::new();
    for (meaning, number, samples) in colors.iter().take(MOST_COLORS) {
        let mark = MARKS.iter().find(|mark| mark.meaning == *meaning);
        let text = with_share(meaning, *samples);
        entries.push(Entry { text, sample: Sample::Swatch(*number), mark });
    }
    if let Some(others) = colors.get(MOST_COLORS..).filter(|others| !others.is_empty()) {
        let samples = others.iter().map(|(.., samples)| samples).sum();
        let text = with_share(&format!("{} more", others.len()), samples);
        entries.push(Entry { text, sample: Sample::Others, mark: None });
    }
    for mark in &MARKS {
        let is_there = graph.nodes().iter().any(|node| captions::bits(node).any(mark.bit));
        if is_there && colors.iter().all(|(meaning, ..)| *meaning != mark.meaning) {
            entries.push(Entry { text: mark.meaning.to_owned(), sample: Sample::Nothing, mark: Some(mark) });
        }
    }
    entries
}
