//! One tree of all await stacks: equal frames from the outermost on are one.

use super::TasksText;
use super::groups::{TaskGroup, is_library};
use super::text::{INDENT, frame_line};
use crate::text::numbers::grouped;
use crate::text::style::{Line, Paint};
use stackglass_profile::task_dump::AwaitFrame;
use std::io::{self, Write};

pub(super) fn write(text: &TasksText, groups: &[TaskGroup<'_>], out: &mut dyn Write) -> io::Result<()> {
    let mut stacks: Vec<Merged<'_>> = Vec::new();
    for group in groups {
        let count = group.tasks.len();
        group.stack.iter().for_each(|frame| merge(&mut stacks, frame, count));
    }
    out.write_all(b"\n")?;
    sort(&mut stacks);
    write_tree(text, &stacks, "", out)
}

/// Equal frames of several groups.
struct Merged<'a> {
    frame: &'a AwaitFrame,
    count: usize,
    children: Vec<Merged<'a>>,
}

fn merge<'a>(into: &mut Vec<Merged<'a>>, frame: &'a AwaitFrame, count: usize) {
    let same =
        |known: &Merged<'_>| known.frame.function == frame.function && known.frame.point == frame.point;
    let at = match into.iter().position(same) {
        Some(at) => at,
        None => {
            into.push(Merged { frame, count: 0, children: Vec::new() });
            into.len() - 1
        }
    };
    let merged = &mut into[at];
    merged.count += count;
    frame.children.iter().for_each(|child| merge(&mut merged.children, child, count));
}

fn sort(merged: &mut [Merged<'_>]) {
    merged.sort_by_key(|merged| std::cmp::Reverse(merged.count));
    merged.iter_mut().for_each(|merged| sort(&mut merged.children));
}

fn write_tree(text: &TasksText, merged: &[Merged<'_>], stem: &str, out: &mut dyn Write) -> io::Result<()> {
    for merged in merged {
        let mut last = merged;
        let mut folded = 0;
        if !text.everything && is_library(merged.frame) {
            while let [next] = &last.children[..] {
                if !is_library(next.frame) || next.count != merged.count {
                    break;
                }
                last = next;
                folded += 1;
            }
        }
        let lead = Line::of(Paint::Bold, format!("{:>INDENT$} ", grouped(merged.count as u64)));
        let mut line = frame_line(text, lead, merged.frame, folded, stem);
        line.cut(if text.everything { usize::MAX } else { text.cols }).write(text.style, out)?;
        write_tree(text, &last.children, &format!("{stem} "), out)?;
    }
    Ok(())
}
