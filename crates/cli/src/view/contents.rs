//! What a page shows: a recording, a heap, the tasks of a process, or several of them.

use super::Flags;
use crate::failure::Failure;
use crate::info;
use crate::input::{self, Input};
use crate::view_beside::{self, Alone};
use stackglass_heap_report::HeapAnswers;
use stackglass_profile::Recording;
use stackglass_view::{Beside, Heap, Packed, Tasks};
use std::path::Path;

pub(super) struct Contents {
    pub(super) packed: Packed,
    /// What is in it, in words.
    pub(super) shown: String,
}

/// An earlier recording, and its name in the page.
fn earlier(path: &Path) -> Result<(String, Recording), Failure> {
    let input = input::read_exactly(path)?;
    if input.timed().is_none() {
        let line = format!("{}: its samples have no times: compare it with `stackglass diff`", input.name);
        return Err(Failure::new(line));
    }
    let name = path.file_name().map_or("standard input".into(), |name| name.to_string_lossy().into_owned());
    Ok((name, input.into_recording()?))
}

impl Contents {
    /// Reads a file of any kind.
    pub(super) fn read(path: &Path, flags: &Flags) -> Result<Contents, Failure> {
        let alone = view_beside::alone(path);
        match alone {
            None => Contents::of_recording(path, input::read_exactly(path)?, flags),
            Some(Alone::Heap) if flags.heap.is_some() => {
                let name = path.display();
                let line =
                    format!("{name} is a heap snapshot already: name a recording, or leave out --heap");
                Err(Failure { status: 2, line })
            }
            Some(_) => {
                let nothing = (Recording::default(), path.display().to_string());
                Contents::with_beside(path, nothing, alone, None, flags)
            }
        }
    }

    /// Takes a recording that was read.
    pub(super) fn of_recording(path: &Path, input: Input, flags: &Flags) -> Result<Contents, Failure> {
        if input.timed().is_none() {
            let line =
                format!("{}: its samples have no times; `stackglass flamegraph` draws them", input.name);
            return Err(Failure::new(line));
        }
        let title = input.title();
        let recording = input.into_recording()?;
        let shown = format!("{} threads, {} samples", recording.threads.len(), recording.samples.len());
        Contents::with_beside(path, (recording, title), None, Some(shown), flags)
    }

    fn with_beside(
        path: &Path,
        (recording, title): (Recording, String),
        alone: Option<Alone>,
        shown: Option<String>,
        flags: &Flags,
    ) -> Result<Contents, Failure> {
        let title = flags.title.clone().unwrap_or(title);
        let facts = alone.is_none().then(|| info::facts(path, &recording)).transpose()?;
        let heap = view_beside::heap_of(path, flags.heap.as_deref())?;
        let tasks = match alone {
            Some(Alone::Tasks) => Some(view_beside::tasks_of(path)?),
            _ => flags.tasks.as_deref().map(view_beside::tasks_of).transpose()?,
        };
        let before = flags.against.as_deref().map(earlier).transpose()?;
        let answers = heap.as_ref().map(|heap| HeapAnswers::new(&heap.graph));
        let beside = Beside {
            heap: heap
                .as_ref()
                .zip(answers.as_ref())
                .map(|(heap, answers)| Heap { name: &heap.name, answers }),
            tasks: tasks.as_ref().map(|(name, dump)| Tasks { name, dump }),
            facts: facts.as_ref(),
            before: before.as_ref().map(|(name, recording)| (name.as_str(), recording)),
        };
        let of_heap = heap.as_ref().map(|heap| format!("the heap of {}", heap.name));
        let of_tasks = tasks.as_ref().map(|(name, _)| format!("the tasks of {name}"));
        let of_before = before.as_ref().map(|(name, _)| format!("compared with {name}"));
        let shown: Vec<String> = [shown, of_before, of_heap, of_tasks].into_iter().flatten().collect();
        Ok(Contents { packed: Packed::with(recording, &title, &beside), shown: shown.join(", ") })
    }
}
