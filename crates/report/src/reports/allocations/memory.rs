//! Live and resident bytes over time, one line each.

use super::AllocationsText;
use crate::queries::allocations::memory::Memory;
use crate::text::numbers::{bytes_text, duration_text};
use crate::text::style::{Line, Paint};
use stackglass_profile::Recording;

/// The heights of a column.
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns for everything but the line itself.
const AROUND: usize = 30;
/// Most columns of the line.
const WIDEST: usize = 100;

pub(super) fn lines(text: &AllocationsText, recording: &Recording) -> Vec<Line> {
    let width = text.cols.saturating_sub(AROUND).min(WIDEST);
    let memory = Memory::from_allocations(&recording.allocations, width);
    let over = format!(" in {}", duration_text(memory.time.0));
    let lines = [("live", &memory.live, &*over), ("RSS", &memory.resident, "")];
    let known = lines.into_iter().filter(|(_, values, _)| values.iter().any(|value| *value > 0));
    known
        .map(|(title, values, over)| {
            let most = values.iter().copied().max().unwrap_or(0);
            let mut line = Line::new();
            line.push(Paint::Grey, format!("{title:<5}")).push(Paint::Cyan, sparkline(values, most));
            line.plain(format!(" max {}{over}", bytes_text(most)));
            line
        })
        .collect()
}

/// One character for each value. Only 0 is blank.
fn sparkline(values: &[u64], most: u64) -> String {
    let height = |value: &u64| {
        let height = (u128::from(*value) * 8).div_ceil(u128::from(most.max(1)));
        HEIGHTS[height.min(8) as usize]
    };
    values.iter().map(height).collect()
}

#[cfg(test)]
mod tests {
    use super::sparkline;

    #[test]
    fn heights_are_eighths() {
        assert_eq!(sparkline(&[0, 1, 100, 101, 400, 800], 800), " ▁▁▂▄█");
        assert_eq!(sparkline(&[0, u64::MAX], u64::MAX), " █");
    }
}
