//! The two parts of an answer that the program itself has written: what its threads do, and the profile. Between them, the peek
//! has the async tasks, which are read from outside.
//!
//! The notice before the profile separates the parts. It comes from the same code as here, or from a program with another
//! version of the crate: then the tasks follow the answer.

use crate::peek_answer::PeekAnswer;
use crate::peek_tasks::{self, PeekTasks};
use crate::terminal::Layout;
use stackglass_report::Peek;
use std::io::{self, Write};
use std::time::Duration;

/// How the line begins that comes before the stacks of the threads.
const THREADS: &[u8] = b"\ncmd: ";

/// Prints an answer that comes in parts, with the tasks in its middle.
pub(crate) struct AnswerParts<'a, W> {
    pid: u32,
    layout: &'a Layout,
    answer: PeekAnswer<W>,
    /// The notice before the profile, in the width and with the colours that were asked for.
    notice: Vec<u8>,
    /// What may be the beginning of that notice.
    held: Vec<u8>,
    /// The last bytes that were printed before the stacks.
    last: Vec<u8>,
    tasks: Option<PeekTasks>,
}

impl<'a, W: Write> AnswerParts<'a, W> {
    /// Prints to `out`.
    pub(crate) fn new(pid: u32, layout: &'a Layout, out: W) -> AnswerParts<'a, W> {
        let mut notice = Vec::new();
        // Writing to memory does not fail.
        let _ = Peek::new(Duration::ZERO).cols(layout.columns).style(layout.style).end(&mut notice);
        // Without the empty line before it: the end of a line is no reason to hold the line back.
        notice.drain(..notice.iter().take_while(|byte| **byte == b'\n').count());
        let tasks = Some(PeekTasks::default());
        AnswerParts {
            pid,
            layout,
            answer: PeekAnswer::new(out),
            notice,
            held: Vec::new(),
            last: Vec::new(),
            tasks,
        }
    }

    /// Prints the next part. The tasks are read from the moment on at which the stacks have come.
    pub(crate) fn push(&mut self, part: &[u8]) -> io::Result<()> {
        if self.tasks.is_none() {
            return self.answer.push(part);
        }
        self.held.extend_from_slice(part);
        self.start_when_threads_have_come(part);
        if let Some(at) = position(&self.held, &self.notice) {
            let held = std::mem::take(&mut self.held);
            self.answer.push(&held[..at])?;
            self.write_tasks(false, true)?;
            return self.answer.push(&held[at..]);
        }
        let is_begin = |from: &usize| self.notice.starts_with(&self.held[*from..]);
        let first = self.held.len().saturating_sub(self.notice.len());
        let keep = (first..self.held.len()).find(is_begin).unwrap_or(self.held.len());
        let rest = self.held.split_off(keep);
        let before = std::mem::replace(&mut self.held, rest);
        self.answer.push(&before)
    }

    /// Prints what is left, and the tasks if they are still to come.
    pub(crate) fn finish(&mut self, early: bool) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.answer.push(&held)?;
        self.answer.finish()?;
        self.write_tasks(early, false)
    }

    fn start_when_threads_have_come(&mut self, part: &[u8]) {
        self.last.extend_from_slice(part);
        if let Some(tasks) = self.tasks.as_mut().filter(|_| position(&self.last, THREADS).is_some()) {
            tasks.start(self.pid);
        }
        let keep = self.last.len().min(THREADS.len() - 1);
        self.last.drain(..self.last.len() - keep);
    }

    /// Prints them, between two parts or at the end.
    fn write_tasks(&mut self, early: bool, is_between: bool) -> io::Result<()> {
        let Some(mut tasks) = self.tasks.take() else { return Ok(()) };
        let mut text = Vec::new();
        peek_tasks::write_waits(&tasks.take_waits(early), None, self.layout, &mut text)?;
        if let Some(dump) = tasks.take(early) {
            peek_tasks::write(&dump, self.layout, &mut text)?;
        }
        if is_between {
            // An empty line comes before them already.
            let before = text.iter().take_while(|byte| **byte == b'\n').count();
            text.rotate_left(before);
        }
        self.answer.print_own(&text)
    }
}

/// Where a text begins in another one.
fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_printed_whole_however_it_is_cut() {
        let layout = Layout::of_file(Some(40));
        let mut whole =
            b"stackglass: wait\n\n====\nnotice\n====\n\ncmd: x 1 running 0 of 1\n\nThread 1\n".to_vec();
        let _ = Peek::new(Duration::ZERO).cols(40).end(&mut whole);
        whole.extend_from_slice(b"Thread 1\n\n=\n\n===\nTotal snapshots: 3.");
        for size in 1..whole.len() {
            let mut out = Vec::new();
            // No process has this id.
            let mut parts = AnswerParts::new(u32::MAX, &layout, &mut out);
            for part in whole.chunks(size) {
                parts.push(part).unwrap();
            }
            parts.finish(true).unwrap();
            assert!(parts.tasks.is_none());
            assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&whole), "{size}");
        }
    }
}
