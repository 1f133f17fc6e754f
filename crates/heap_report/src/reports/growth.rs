//! What grew from snapshot to snapshot, by type.

use super::HeapText;
use super::table::{header, hidden, numbers, push_type, titled};
use crate::answers::growth::{GrowthRow, HeapSums};
use stackglass_profile::sanitize;
use stackglass_report::columns::cut_left;
use stackglass_report::numbers::{bytes_text, count_text};
use stackglass_report::style::{Line, Paint};
use std::io::{self, Write};

pub(super) fn write(
    text: &HeapText,
    names: &[String],
    snapshots: &[HeapSums],
    rows: &[GrowthRow],
    out: &mut dyn Write,
) -> io::Result<()> {
    for (letter, (name, sums)) in ('A'..).zip(names.iter().zip(snapshots)) {
        let mut line = titled(&letter.to_string());
        let blocks = count_text(sums.nodes);
        line.push(Paint::Bold, bytes_text(sums.self_size)).plain(format!(" in {blocks} nodes"));
        if sums.lost_size > 0 {
            line.plain(format!(", {} leaked?", bytes_text(sums.lost_size)));
        }
        let room = text.cols.saturating_sub(line.width() + 2);
        line.push(Paint::Grey, format!("  {}", cut_left(&sanitize(name), room)));
        line.cut(text.cols).write(text.style, out)?;
    }
    if rows.is_empty() {
        let nothing = if snapshots.len() > 2 { "no type grew in each step" } else { "no type changed" };
        let mut line = Line::new();
        return line.plain(format!("\n{nothing}")).write(text.style, out);
    }
    out.write_all(b"\n")?;
    let columns: Vec<(&str, usize)> = match snapshots.len() {
        2 => vec![("bytes", 9), ("count", 8), ("in A", 7), ("in B", 7)],
        _ => vec![("bytes", 9), ("count", 8), ("in A", 7), ("in B", 7), ("in C", 7)],
    };
    header(text, &columns, if snapshots.len() > 2 { "type, grown in each step" } else { "type" }, out)?;
    let shown = text.shown(rows.len());
    // The largest growth is at the top, the largest decrease at the end.
    let top = shown.min(rows.iter().take_while(|row| row.growth() >= 0).count().max(shown / 2));
    let picked = rows[..top].iter().chain(&rows[rows.len() - (shown - top)..]);
    for row in picked {
        let (Some(first), Some(last)) = (row.sums.first(), row.sums.last()) else { continue };
        let mut values = vec![
            change(first.self_size, last.self_size, bytes_text),
            change(first.count, last.count, count_text),
        ];
        values.extend(row.sums.iter().map(|sum| bytes_text(sum.self_size)));
        let mut line = numbers(&columns, &values);
        push_type(text, &mut line, &row.name);
        line.cut(text.cols).write(text.style, out)?;
    }
    hidden(text, rows.len() - shown, ("type", "types"), "", out)
}

/// `+4.20 kB`, `-17`, `0`.
fn change(before: u64, after: u64, text: fn(u64) -> String) -> String {
    match after.checked_sub(before) {
        Some(0) => text(0),
        Some(more) => format!("+{}", text(more)),
        None => format!("-{}", text(before - after)),
    }
}
