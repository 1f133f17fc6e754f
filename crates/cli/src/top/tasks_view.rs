//! Draws the tasks of `top`: groups with equal await stacks, and below them the stack of the selected group.

use super::table::{below_head, dim, rest, table};
use super::tasks_model::{TaskRow, TasksModel};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Paragraph, Row};
use stackglass_profile::sanitize;
use stackglass_report::TasksText;
use stackglass_report::columns::cut_left;
use stackglass_report::tasks::{TaskGroup, group_place};
use std::time::Duration;

const COUNT: usize = 7;
const CHANGE: usize = 7;
const SEEN: usize = 8;
const STATE: usize = 8;

/// The groups whose function passes the filter, with their rows.
pub(super) fn shown<'a>(
    model: &'a TasksModel,
    passes: impl Fn(&str) -> bool,
) -> Vec<(TaskGroup<'a>, TaskRow)> {
    let rows = model.groups().into_iter().zip(model.rows().iter().cloned());
    rows.filter(|(group, _)| passes(&name(group))).collect()
}

/// Draws the groups.
pub(super) fn draw(
    model: &TasksModel,
    problem: Option<&str>,
    shown: &[(TaskGroup<'_>, TaskRow)],
    selected: Option<usize>,
    area: Rect,
    frame: &mut Frame<'_>,
) {
    let lower = if area.height >= 14 { area.height / 2 } else { 0 };
    let [upper, cost, lower] =
        Layout::vertical([Constraint::Min(3), Constraint::Length(1), Constraint::Length(lower)]).areas(area);
    let widths = [COUNT, CHANGE, SEEN, STATE];
    let room = rest(&widths, upper);
    let rows = shown.iter().map(|(group, row)| {
        let change = if row.change == 0 { String::new() } else { format!("{:>+CHANGE$}", row.change) };
        Row::new([
            format!("{:>COUNT$}", row.count),
            change,
            seconds(row.seen_for),
            group.state.word().to_owned(),
            cut_left(&name(group), room).into_owned(),
        ])
    });
    table(rows, ["  tasks", " change", "seen for", "state", "in"], &widths, selected, upper, frame);
    if shown.is_empty() {
        below_head(
            match (problem, model.is_known()) {
                (Some(why), _) => why,
                (None, false) => "reading types and tasks …",
                (None, true) => "no name matches the filter (esc clears it)",
            },
            upper,
            frame,
        );
        return;
    }
    let took = model.took.as_secs_f64() * 1e3;
    let pause = model.dump().pause.0 as f64 / 1e6;
    let text = format!(
        "{} tasks; the last refresh took {took:.0} ms and held the program up for {pause:.1} ms",
        model.dump().count()
    );
    frame.render_widget(Paragraph::new(Line::styled(text, dim())), cost);
    if let Some((group, _)) = selected.and_then(|selected| shown.get(selected)) {
        let mut text = Vec::new();
        let writer = TasksText::new().cols(usize::from(area.width));
        // Writing to memory does not fail.
        let _ = writer.group(model.dump(), group, &mut text);
        let text = String::from_utf8_lossy(&text).trim_start_matches('\n').to_owned();
        frame.render_widget(Paragraph::new(Text::from(text)), lower);
    }
}

/// `app::price (main.rs:42)`.
fn name(group: &TaskGroup<'_>) -> String {
    sanitize(&group_place(group)).into_owned()
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0 => String::new(),
        seconds @ ..600 => format!("{:>SEEN$}", format!("{seconds} s")),
        seconds => format!("{:>SEEN$}", format!("{} min", seconds / 60)),
    }
}
