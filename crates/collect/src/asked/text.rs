//! The text in which a program sends what its tasks said. Names are in hexadecimal digits, so that they may have any characters.
//!
//! The reader does not trust it.

use super::{AskedModule, AskedSaid, AskedStack, AskedTask, AskedTasks};
use std::fmt::Write;

/// The first line, with the version.
const HEAD: &str = "stackglass-asked-1";
/// The last line. Without it, the text was cut.
const END: &str = "end";
/// Most modules, tasks, stacks of a task, and frames of a stack that are read.
const MOST_MODULES: usize = 1 << 14;
const MOST_TASKS: usize = 1 << 20;
const MOST_STACKS: usize = 1 << 10;
const MOST_FRAMES: usize = 1 << 10;

impl AskedTasks {
    /// Writes it as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for module in &self.modules {
            let AskedModule { range, bias, build_id, path } = module;
            let (id, path) = (hex(build_id), hex(path.as_bytes()));
            let _ = writeln!(text, "module {:x} {:x} {bias:x} {id} {path}", range.start, range.end);
        }
        for task in &self.tasks {
            let (said, tid) = match &task.said {
                AskedSaid::Waits(_) => ("waits", 0),
                AskedSaid::NoWaker => ("no-waker", 0),
                AskedSaid::NotPolled => ("not-polled", 0),
                AskedSaid::Polled(tid) => ("polled", *tid),
            };
            let (file, line) = task.created.as_ref().map_or(("", 0), |(file, line)| (file, *line));
            let (name, file) = (hex(task.name.as_bytes()), hex(file.as_bytes()));
            let _ = writeln!(text, "task {} {said} {tid} {name} {file} {line}", task.id);
            let AskedSaid::Waits(stacks) = &task.said else { continue };
            for stack in stacks {
                text += if stack.is_wake { "wake" } else { "clone" };
                for frame in &stack.frames {
                    let _ = write!(text, " {frame:x}");
                }
                text.push('\n');
            }
        }
        text + END + "\n"
    }

    /// Reads text. `None` if it is not whole, or of another version.
    pub fn parse(text: &str) -> Option<AskedTasks> {
        let mut lines = text.lines();
        if lines.next()? != HEAD {
            return None;
        }
        let mut asked = AskedTasks::default();
        for line in lines {
            let mut words = line.split(' ');
            match words.next()? {
                END => return Some(asked),
                "module" if asked.modules.len() < MOST_MODULES => {
                    let mut number = || u64::from_str_radix(words.next()?, 16).ok();
                    let (start, end, bias) = (number()?, number()?, number()?);
                    let (build_id, path) = (unhex(words.next()?)?, unhex_text(words.next()?)?);
                    asked.modules.push(AskedModule { range: start..end, bias, build_id, path });
                }
                "task" if asked.tasks.len() < MOST_TASKS => {
                    let id = words.next()?.parse().ok()?;
                    let said = words.next()?;
                    let tid = words.next()?.parse().ok()?;
                    let (name, file) = (unhex_text(words.next()?)?, unhex_text(words.next()?)?);
                    let line = words.next()?.parse().ok()?;
                    let said = match said {
                        "waits" => AskedSaid::Waits(Vec::new()),
                        "no-waker" => AskedSaid::NoWaker,
                        "not-polled" => AskedSaid::NotPolled,
                        "polled" => AskedSaid::Polled(tid),
                        _ => return None,
                    };
                    let created = (line != 0).then_some((file, line));
                    asked.tasks.push(AskedTask { id, name, created, said });
                }
                word @ ("clone" | "wake") => {
                    let AskedSaid::Waits(stacks) = &mut asked.tasks.last_mut()?.said else { return None };
                    let frames = words.take(MOST_FRAMES).map(|word| u64::from_str_radix(word, 16).ok());
                    let frames: Vec<u64> = frames.collect::<Option<_>>()?;
                    if stacks.len() < MOST_STACKS {
                        stacks.push(AskedStack { frames, is_wake: word == "wake" });
                    }
                }
                _ => return None,
            }
        }
        None
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::from("x");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix('x')?.as_bytes();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let bytes = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some((digit(*high)? * 16 + digit(*low)?) as u8),
        _ => None,
    });
    bytes.collect()
}

fn unhex_text(text: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&unhex(text)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> AskedTasks {
        let stack = |is_wake| AskedStack { frames: vec![0x1234, u64::MAX], is_wake };
        let task = |id, said| AskedTask { id, name: "a b\n\u{4}ä".into(), created: None, said };
        AskedTasks {
            modules: vec![AskedModule {
                range: 16..32,
                bias: 16,
                build_id: vec![1, 255],
                path: "/a b".into(),
            }],
            tasks: vec![
                task(1, AskedSaid::Waits(vec![stack(false), stack(true)])),
                AskedTask { created: Some(("src/main.rs".into(), 7)), ..task(2, AskedSaid::NoWaker) },
                task(3, AskedSaid::NotPolled),
                task(4, AskedSaid::Polled(77)),
                task(5, AskedSaid::Waits(Vec::new())),
            ],
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let asked = asked();
        let text = asked.to_text();
        assert!(text.is_ascii() && !text.contains('\u{4}'));
        assert_eq!(AskedTasks::parse(&text), Some(asked));
    }

    #[test]
    fn damage_is_noticed_and_never_panics() {
        let text = asked().to_text();
        for end in 0..text.len() - 1 {
            assert_eq!(AskedTasks::parse(&text[..end]), None, "{end}");
        }
        for at in 0..text.len() {
            for new in ["z", " ", "\n"] {
                let mut damaged = text.clone();
                damaged.replace_range(at..at + 1, new);
                let _ = AskedTasks::parse(&damaged);
            }
        }
    }
}
