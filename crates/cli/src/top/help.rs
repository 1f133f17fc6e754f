//! The help of `top`: keys and the meaning of the figures. Two columns of keys if there is room, else one; the text
//! scrolls if it does not fit.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Clear, Paragraph};
use stackglass_report::columns::wrap;

const KEYS: [(&str, &str); 14] = [
    ("up down j k", "select a row"),
    ("enter", "callers and callees; of"),
    ("1", "functions"),
    ("", "a thread: its functions"),
    ("2", "lines"),
    ("esc", "back"),
    ("3", "threads"),
    ("/", "filter by name"),
    ("4", "async tasks"),
    ("", ""),
    ("s", "save a recording"),
    ("p space", "pause, resume"),
    ("q", "quit"),
    ("ctrl-z", "to the shell; fg returns"),
];

const MEANING: &str = "Times cover the last ten seconds; 100 % is one CPU. own: in the function itself; \
    total: in the function and its callees. ready: could run, but waits for a CPU. Threads that are \
    asleep have no share. tasks: grouped by equal await stacks; a task that is seen at a place at every \
    refresh may have run in between; each refresh copies the process, once a second while tasks are shown. The program runs on after top; a program started by top ends with it.";

/// Width of the column of keys.
const KEY: usize = 12;
/// Width of the column of descriptions.
const WHAT: usize = 25;

/// Draws the help from line `first` on, or from the last line that still fills the box. Returns the first line drawn.
pub(super) fn draw(first: usize, frame: &mut Frame<'_>) -> usize {
    let all = frame.area();
    let width = all.width.min(80);
    let lines = lines(usize::from(width.saturating_sub(2)));
    let height = all.height.min(lines.len() as u16 + 2);
    let area = Rect { x: (all.width - width) / 2, y: (all.height - height) / 2, width, height };
    let first = first.min(lines.len().saturating_sub(usize::from(height.saturating_sub(2))));
    let title = if usize::from(height) < lines.len() + 2 { "keys (up, down: more)" } else { "keys" };
    let text: Vec<Line<'_>> = lines.into_iter().skip(first).map(Line::from).collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text).block(Block::new().borders(Borders::ALL).title(title)), area);
    first
}

fn lines(width: usize) -> Vec<String> {
    let entry = |(key, what): &(&str, &str)| format!("{key:KEY$}{what:WHAT$}");
    let mut lines: Vec<String> = if width >= 2 * (KEY + WHAT) {
        KEYS.chunks(2).map(|pair| pair.iter().map(entry).collect()).collect()
    } else {
        // The left column first, then the right one.
        KEYS.iter().step_by(2).chain(KEYS.iter().skip(1).step_by(2)).map(entry).collect()
    };
    lines.push(String::new());
    lines.extend(wrap(MEANING, width));
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn rendered(first: usize, width: u16, height: u16) -> (usize, String) {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut at = 0;
        terminal.draw(|frame| at = draw(first, frame)).unwrap();
        let cells = terminal.backend().buffer().content().chunks(usize::from(width));
        (at, cells.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n").collect())
    }

    #[test]
    fn every_word_can_be_read_at_any_size() {
        let words = KEYS.iter().flat_map(|(key, what)| [*key, *what]).chain(MEANING.split(' '));
        let words: Vec<&str> = words.flat_map(|text| text.split(' ')).collect();
        for (width, height) in [(80, 24), (60, 20), (40, 10), (39, 8), (200, 60)] {
            let mut all = String::new();
            for first in 0..40 {
                all += &rendered(first, width, height).1;
            }
            for word in &words {
                assert!(all.contains(word), "{word} at {width}x{height}");
            }
        }
        let (last, text) = rendered(1000, 39, 8);
        assert!(last > 0 && text.contains("with it.") && text.contains("more"), "{text}");
        assert!(!rendered(0, 80, 24).1.contains("more"));
        // Very small terminals must not panic.
        for (width, height) in [(1, 1), (2, 2), (20, 3)] {
            rendered(3, width, height);
        }
    }
}
